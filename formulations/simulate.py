"""Deterministic event simulation of plans: the history that requests leave."""

from __future__ import annotations

from .chunking import history as chunking
from .deployment import Deployment
from .errors import InvalidInputError
from .flow_shop import history as flow_shop
from .history import History, SteadyState
from .plan import Plan
from .problem import Problem


def simulate(
    problem: Problem,
    plan: Plan,
    *,
    requests: int,
    interval_us: int | None = None,
    task_slots: int | None = None,
) -> History:
    """Play a plan for a number of requests.

    Parameters
    ----------
    problem, plan
        The problem, and a well-formed plan for it; limits and rules need not hold.
    requests
        Number of requests, at least 1.
    interval_us
        Time between arrivals. None: one period, so that queues neither grow nor run dry.
    task_slots
        Most requests on their way at once: the next one enters when an earlier one has left.
        None: as many as there are.

    Returns
    -------
    History
        What ran when (`events`), with latencies, outputs and bubbles.

    Raises
    ------
    InvalidPlanError
        The plan is not well formed.
    InvalidInputError
        A number is out of range.
    """
    if problem.data is not None:
        raise InvalidInputError("the problem has a workload: play it with simulate_workload")
    return chunking.history(problem, plan, requests=requests, interval_us=interval_us, task_slots=task_slots)


def simulate_workload(problem: Problem, plan: Plan) -> History:
    """Play a plan for a workload, as the judge does; limits and rules need not hold.

    Returns
    -------
    History
        What ran when (`events`); its streams are the requests, as the workload lists them.

    Raises
    ------
    InvalidPlanError
        The plan is not well formed.
    """
    return flow_shop.history(problem, plan)


def check_device(problem: Problem) -> None:
    """Do nothing for a problem whose costs a simulated device can obey.

    Raises
    ------
    InvalidInputError
        It is not clear what runs.
    """
    if problem.data is None:
        chunking.check_device(problem)


def check_deployment(problem: Problem, deployment: Deployment) -> None:
    """Do nothing for a deployment that is one of the problem.

    Raises
    ------
    InvalidPlanError
        It serves something else.
    """
    if problem.data is None:
        chunking.check_deployment(deployment)
    else:
        flow_shop.check_deployment(problem, deployment)


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play a deployment of a problem: so many requests of each stream, with their copies.

    Its plans must be well formed, and streams that are not in rounds must share no unit.
    """
    if problem.data is None:
        return chunking.play(problem, deployment, rounds)
    return flow_shop.play(problem, deployment, rounds)


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return the steady states of a deployment as for `play`: one for all streams that go in step."""
    if problem.data is None:
        return chunking.steady(problem, deployment)
    return flow_shop.steady(problem, deployment)
