"""How layers side by side run: pieces that begin when their inputs are there, one request at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..branches import runs_of
from ..deployment import Deployment
from ..errors import InvalidInputError, InvalidPlanError
from ..history import History, SteadyState
from ..objective import Objective
from ..operation import Operation, operation_of
from ..plan import Plan
from ..problem import Problem
from ..usage import Usage
from . import history
from .history import usage as bytes_in_use
from .pieces import stream_of
from .tables import tasks_of


class TaskGraphOperation(Operation):
    """One request after the other; what has no pieces side by side is charged as a chain of chunks."""

    def pace(self, problem: Problem) -> str:
        """Return the latency: one request is on its way at a time."""
        return "latency"

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream, whose chunks are the pieces."""
        _check_slots(task_slots)
        return Deployment(streams=(stream_of(problem, plan),))

    def check_executable(self, problem: Problem) -> None:
        """Refuse devices that links join."""
        if tasks_of(problem).over_links:
            raise InvalidInputError(
                "the plan is for several devices (links), and layers side by side run on the units of one: "
                "`gapless simulate` plays it; for a cluster make a plan of chunks (--layer-order fixed)"
            )

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield problems of two units at least, of layers and of whole branches, and that of chunks in a row.

        So layers run side by side in some plans of a race, even if a unit alone is predicted to be faster.
        Branches have fewer pieces, which a table does not say the price of. Rules are about these plans.
        """
        if problem.rules:
            return
        limits, data = problem.limits, tasks_of(problem)
        runs = tuple(run for run in runs_of(problem.network) if len(run) > 1)
        if limits.min_units is None and limits.max_units != 1 and len(problem.platform.units) > 1:
            apart = replace(problem, limits=replace(limits, min_units=2))
            yield apart
            if runs and not data.segments:
                yield replace(apart, data=replace(data, segments=runs))
        yield _chain(problem)

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each unit alone."""
        chain = _chain(problem)
        return operation_of(chain).baselines(chain, sets)

    def charged(self, problem: Problem, deployment: Deployment) -> Problem:
        """Return the problem; where no chunks run side by side, that of chunks one after the other."""
        return problem if deployment.is_dataflow else _chain(problem)

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return the time of each piece."""
        (state,) = history.steady(problem, deployment)
        return (tuple((event.end_ns - event.start_ns) // 1000 for event in state.events),)

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a number of requests, one at a time."""
        _check_slots(task_slots)
        return history.history(
            problem, plan, requests=requests, interval_us=interval_us, task_slots=task_slots
        )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        return bytes_in_use(problem, history)

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse what is not one stream of the network."""
        if deployment.rounds is not None or len(deployment.streams) != 1:
            raise InvalidPlanError("it runs several requests at once, the problem is about one")

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play requests one after the other."""
        return history.play(problem, deployment, rounds)

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return one request."""
        return history.steady(problem, deployment)


def _check_slots(task_slots: int | None) -> None:
    if task_slots not in (None, 1):
        raise InvalidInputError(
            f"task_slots is {task_slots}: layers side by side are for one request at a time; leave it out"
        )


def _chain(problem: Problem) -> Problem:
    """Return the problem of cutting the order of the network, for the latency."""
    return replace(problem, data=None, objective=Objective(terms=("latency",)), rules=())
