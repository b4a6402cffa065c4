"""What share of its time each unit works in the steady state: the one account of busy times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .deployment import Deployment
from .history import SteadyState
from .operation import operation_of
from .problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitShare:
    """What a unit does in each period of a pipeline at work, or in the makespan of a batch; microseconds."""

    whole_us: float  # the period or makespan
    busy_us: float  # how long it works in that, with the time that slowdown takes; never more than the whole
    lost_us: float = 0.0  # what slowdown takes of it

    @property
    def idle_us(self) -> float:
        """How long it does nothing."""
        return self.whole_us - self.busy_us

    @property
    def permille(self) -> int:
        """Share of its time in which it works, rounded down: below 1000 it is sometimes idle."""
        return int(1000 * self.busy_us // self.whole_us)


def unit_shares(problem: Problem, deployment: Deployment) -> dict[str, UnitShare]:
    """Return what each unit in use does in the steady state of what runs, by the costs of a problem.

    Raises InvalidInputError: plans of this problem cannot be simulated.
    """
    return shares_of(operation_of(problem).steady(problem, deployment))


def shares_of(states: Sequence[SteadyState]) -> dict[str, UnitShare]:
    """Return what each unit in use does, from the steady states of streams that run side by side.

    The rates of streams side by side add up: their common period is that of all outputs together.
    """
    whole_us = 1 / sum(1 / state.period_us for state in states)
    found: dict[str, UnitShare] = {}
    for state in states:
        for unit, (busy, lost) in _spent_ns(state).items():
            each = whole_us / state.period_us / 1000
            found[unit] = UnitShare(
                whole_us=whole_us, busy_us=min(whole_us, busy * each), lost_us=min(whole_us, lost * each)
            )
    return found


def utilisation(problem: Problem, shares: Mapping[str, UnitShare]) -> float:
    """Return which share of the units that can work at once works, 0 to 1: of units that share cores one."""
    units = problem.platform.unit_names  # what links do is not their work
    busy = sum(share.busy_us / share.whole_us for unit, share in shares.items() if unit in units)
    return min(1.0, busy / problem.platform.most_at_once)


def slowest_latency_us(states: Sequence[SteadyState]) -> float:
    """Return how long a request of the slowest stream is on its way while all task slots are taken."""
    spans_ns: dict[int, tuple[int, int]] = {}
    for state in states:
        for event in state.events:
            start, end = spans_ns.get(event.stream, (event.start_ns, event.end_ns))
            spans_ns[event.stream] = (min(start, event.start_ns), max(end, event.end_ns))
    return max(end - start for start, end in spans_ns.values()) / 1000


def _spent_ns(state: SteadyState) -> dict[str, tuple[int, int]]:
    """Return the busy time of each unit in a round, and what slowdown takes of it, nanoseconds."""
    busy: defaultdict[str, int] = defaultdict(int)
    lost: defaultdict[str, int] = defaultdict(int)
    for event in state.events:
        busy[event.unit] += event.end_ns - event.start_ns
        lost[event.unit] += event.slowdown_ns
    return {unit: (time_ns, lost[unit]) for unit, time_ns in busy.items()}
