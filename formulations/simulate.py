"""Deterministic event simulation of plans: the history that requests leave."""

from __future__ import annotations

from .history import History, Usage
from .operation import operation_of
from .plan import Plan
from .problem import Problem


def simulate(
    problem: Problem,
    plan: Plan,
    *,
    requests: int | None = None,
    interval_us: int | None = None,
    task_slots: int | None = None,
) -> History:
    """Play a plan as the judge sees it; limits and rules need not hold.

    Parameters
    ----------
    problem, plan
        The problem, and a well-formed plan for it.
    requests
        Of an endless stream: number of requests, at least 1. Requests that the problem names are played once,
        as it says; then this and what follows must be left out.
    interval_us
        Time between arrivals. None: one period, so that queues neither grow nor run dry.
    task_slots
        Most requests on their way at once: the next one enters when an earlier one has left.
        None: as many as there are.

    Returns
    -------
    History
        What ran when (`events`), with latencies, outputs and bubbles; of named requests its streams are the
        requests, in their order.

    Raises
    ------
    InvalidPlanError
        The plan is not well formed.
    InvalidInputError
        A number is out of range, or plans of this problem cannot be simulated.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/alexnet-sparse")
    >>> played = gapless.simulate(problem, gapless.plan(problem).plan, requests=3)
    >>> played.makespan_us
    42759
    >>> first = played.events[0]
    >>> first.unit, first.start_us, first.end_us
    ('Big', 0, 5225)
    """
    return operation_of(problem).history(
        problem, plan, requests=requests, interval_us=interval_us, task_slots=task_slots
    )


def simulate_workload(problem: Problem, plan: Plan) -> History:
    """Play a plan for requests that the problem names: `simulate` without numbers."""
    return simulate(problem, plan)


def trace_usage(problem: Problem, trace: History) -> Usage:
    """Return the bytes in use over time while a trace runs, counted as the judge counts them.

    For one network: the weights of all chunks are resident; a chunk that runs needs the most live
    tensors of any of its layers (`Chain.memory_bytes`); between two chunks a request holds the tensors
    alive at the cut. Requests that have not started yet hold nothing.

    The judge (`Score.peak_bytes`) charges all chunks as if they ran at once, and no waiting tensors. In
    steady state, when requests come no faster than one a period, a chunk starts as soon as the one before
    it ends: nothing waits, and the peak of a trace is at most the judge's. It is less where no instant
    sees all chunks at work. When requests come faster, tensors pile up in front of slow chunks, and the
    peak can be larger by what waits.

    With a workload, the weights follow its load policy, and for the trace that `simulate_workload`
    makes of a plan the peak is the judge's own.

    `trace`: a trace of a well-formed plan for it; with a workload, of one round.
    Returns steps of bytes in use, and the most bytes while a chunk of each request runs.
    Raises InvalidPlanError: the plan of the trace does not belong to the problem.
    """
    return operation_of(problem).usage(problem, trace)
