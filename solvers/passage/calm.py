"""Plans whose requests wait little: for limits on requests in flight and on the latency in the stream.

Limits on what requests wait, and lists of plans by that from lists by what they take at least. Of a plan that
has begun searches know that no request is faster than its busy times; how long it waits only finished plans
tell (`cycles.py`). So lists are by these lower bounds, and their plans are judged. A plan is among the best
ones if nothing behind the list can be before it by its bound; otherwise a longer list is asked for.

Plans whose requests wait little: for limits on requests in flight and on the latency in the stream. How long
requests wait only the cycle of a finished plan tells, and to look for one takes a thousand times as long as
the loads of a move. But it is known what makes waits short: few hops, and units that are not busy all the
time, so that chunks need not wait for each other. So plans are searched whose busiest unit is busy for longer
than the others by some share, and in which hops count something. Shares and hops are drawn, more often near
those that have led to the best plan so far. Cycles are only looked for of plans that would be the best.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence

from ...formulations.chain import Part
from ...formulations.chunking.quantities import PlanValues
from ...formulations.cycles import brief_latency_us
from ...formulations.limits import Limits
from ...formulations.problem import Problem
from ...formulations.terms import PlanNumbers, Term
from ..chunking.ranking import Pool
from ..chunking.verdicts import Verdicts
from ..protocol import Claim, Deadline, RuleHandling, SolveOptions, SolveStatus, Statistics, StopReason
from .descent import Aim, Annealing
from .prices import Paths
from .table import Table

WAITS = frozenset((Term.STREAM_LATENCY, Term.IN_FLIGHT))
"""Terms that only finished plans tell."""


WAIT_LIMITS = ("max_stream_latency_us", "max_in_flight")
"""Limits that only finished plans can be asked for."""


def allowed_us(limits: Limits, period_us: int) -> int:
    """Return the longest latency in the stream that limits allow plans of a period."""
    most = sys.maxsize if limits.max_stream_latency_us is None else limits.max_stream_latency_us
    return most if limits.max_in_flight is None else min(most, limits.max_in_flight * period_us)


def least_values(numbers: PlanNumbers, terms: Sequence[str]) -> tuple[int, ...]:
    """Return the terms of a plan as if no request waited."""
    assert isinstance(numbers, PlanValues)
    least = {
        Term.STREAM_LATENCY: numbers.latency_us,
        Term.IN_FLIGHT: -(-numbers.latency_us // numbers.period_us),
    }
    return tuple(least[Term(term)] if term in WAITS else numbers.term(term) for term in terms)


def judged_claim(
    pool: Pool,
    listed: Sequence[tuple[Part, ...]],
    frontier: tuple[int, ...] | None,
    stop: StopReason,
    *,
    verdicts: Verdicts,
    problem: Problem,
    options: SolveOptions,
    handling: Mapping[str, RuleHandling],
    statistics: Statistics,
) -> Claim:
    """Return what a pool of plans by their lower bounds allows to claim; parameters as for `claim_of`."""
    found, count = [], len(problem.ranking)
    # What no plan that was not judged is before, by its bound and so by its terms.
    limit = frontier
    if frontier is None and pool.full:
        limit = tuple(pool.ranks[:, -1].tolist())
    for place, parts in enumerate(listed):
        if verdicts.exhausted:
            stop, left = StopReason.REJECTION_LIMIT, tuple(pool.ranks[:, place].tolist())
            limit = left if limit is None else min(left, limit)
            break
        plan = verdicts.ask(parts)
        if plan is not None:
            numbers = problem.formulation.numbers(problem, parts)
            path = pool.ranks[count:, place].tolist()
            found.append(((*numbers.values(problem.ranking), *path), plan))
    found.sort(key=lambda entry: entry[0])
    before = [limit is None or key[: len(limit)] < limit or key == limit for key, _ in found]
    proven = min([*before, False].index(False), options.top)
    best = found[0][0] if found else None
    exhausted = limit is None and stop is StopReason.COMPLETE
    firsts = [key[0] for key in (best, limit) if key]
    chosen = found[: options.top]
    return Claim(
        status=SolveStatus.of(found=bool(found), proven=proven > 0, exhausted=exhausted),
        stop=stop,
        plans=tuple(plan for _, plan in chosen),
        values=None if best is None else best[: len(problem.objective.terms)],
        bound=None if limit == () else min(firsts, default=None),
        proven=proven,
        exhausted=exhausted and len(found) <= options.top,
        handling=dict(handling),
        statistics={**statistics, "rejected_plans": verdicts.rejected},
    )


_MOVES = 30
"""Moves of one look, by pieces."""

_LEAST, _MOST = 0.003, 3.0
"""By which shares others are less busy than the busiest unit."""

_HOPS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)
"""What a hop counts, in shares of the shortest period known."""

_STRAY = 0.02
"""By which share a plan that is near one may be longer."""

_NEAR, _FRESH = 0.35, 0.25
"""Shares of the looks that stay near plans that missed the limits, and of those that start anywhere."""

_CLOSEST = 3
"""Plans that are kept which miss the limits least, to stay near them."""

_HEATS = (0.01, 0.05)
"""Temperatures at first, in shares of the period."""


_Drawn = tuple[dict[int, float], float, float]
"""By which share each resource is less busy, the share of the period that a hop counts, and the share of the
latency that is allowed which nobody has to wait for."""


class Calm:
    """Looks for plans that keep limits on waits, each with a shorter period than those before.

    Parameters
    ----------
    table, limits
        The arrays, and the limits.
    valid
        Whether a plan, by the unit of each piece, keeps everything else.
    seed, deadline
        The seed of what is drawn, and when it has to end.

    Attributes
    ----------
    found
        The plans, by the unit of each piece, the best one last.
    period_us
        Its period.
    """

    def __init__(
        self,
        table: Table,
        limits: Limits,
        valid: Callable[[Sequence[int]], bool],
        *,
        seed: int,
        deadline: Deadline,
    ) -> None:
        self._table, self._limits, self._valid, self._deadline = table, limits, valid, deadline
        self._annealing, self._paths = Annealing(table, seed), Paths(table)
        self._draw, self._moves = random.Random(seed), _MOVES * table.count
        self._first = table.first.tolist()
        self._resources = sorted(set(self._first))
        self._aim: _Drawn | None = None
        self.found: list[tuple[int, ...]] = []
        self.period_us = sys.maxsize
        self._seen: set[tuple[int, ...]] = set()
        self._missed: list[tuple[float, int, tuple[int, ...]]] = []

    def keep(self, units: Sequence[int], *, patient: bool = False) -> bool:
        """Take in a plan if it keeps the limits, and its period is shorter than that of the best one."""
        loads = self._paths.pooled(units)
        period_us = max(loads)
        most_us = allowed_us(self._limits, period_us)
        if period_us >= self.period_us or sum(loads) > most_us or tuple(units) in self._seen:
            return False
        self._seen.add(tuple(units))
        if not self._valid(units):
            return False
        latency_us = self._latency_us(units, most_us, patient=patient)
        if latency_us > most_us:
            self._missed.append(((latency_us - most_us) / period_us, period_us, tuple(units)))
            return False
        self.found.append(tuple(units))
        self.period_us = period_us
        return True

    def look(self, least: Sequence[int], starts: Sequence[Sequence[int]]) -> bool:
        """Search once; return whether a better plan was found.

        Starts are plans that missed the limits by little and may need other borders only, the best plan, and
        any others.
        """
        turn = self._draw.random()
        if turn < _NEAR:
            missed = [entry for entry in self._missed if entry[1] < self.period_us]
            self._missed = sorted(missed)[:_CLOSEST]
            return self.keep(self._strayed(self._draw.choice(self._missed)[2] if self._missed else least))
        fresh = not self.found or turn < _NEAR + _FRESH
        rooms, hop, share = self._drawn() if fresh or self._aim is None else self._varied(*self._aim)
        start = self._draw.choice(starts) if fresh else self.found[-1]
        in_flight, most_us = self._limits.max_in_flight, self._limits.max_stream_latency_us
        aim = Aim(
            weights=tuple(1.0 + rooms[first] for first in self._first),
            hop_us=hop * max(self._paths.pooled(least)),
            periods=math.inf if in_flight is None else share * in_flight,
            latency_us=math.inf if most_us is None else share * most_us,
            heat=self._draw.choice(_HEATS),
        )
        units = self._annealing.near(start, self._paths.loads(start), self._moves, self._deadline, aim)
        if tuple(units) in self._seen:
            units = self._strayed(units)
        if not self.keep(units):
            return False
        self._aim = rooms, hop, share
        return True

    def _strayed(self, units: Sequence[int]) -> list[int]:
        """Return a plan near one whose period is hardly longer: requests wait differently in it."""
        most_us = max(self._paths.pooled(units)) * (1.0 + _STRAY * self._draw.random())
        return self._annealing.stray(units, self._paths.loads(units), 1 + self._draw.randrange(8), most_us)

    def _drawn(self) -> _Drawn:
        """Draw how much less busy than the busiest resource others are, what a hop counts, and for waits."""
        draw, busiest, room = self._draw.random, self._draw.choice(self._resources), self._room()
        rooms = {one: room if draw() < 0.7 else self._room() for one in self._resources}
        if draw() < 0.5:
            rooms = dict.fromkeys(rooms, 0.0)
        return {**rooms, busiest: 0.0}, self._draw.choice(_HOPS), 1.0 - 0.5 * draw()

    def _varied(self, rooms: Mapping[int, float], hop: float, share: float) -> _Drawn:
        """Draw near what has led to the best plan."""
        gauss = self._draw.gauss
        varied = {one: room * math.exp(gauss(-0.2, 0.6)) for one, room in rooms.items()}
        return varied, self._draw.choice((hop, hop, *_HOPS)), min(1.0, max(0.3, share + gauss(0.05, 0.1)))

    def _room(self) -> float:
        return _LEAST * math.pow(_MOST / _LEAST, self._draw.random())

    def _latency_us(self, units: Sequence[int], enough_us: int, *, patient: bool) -> int:
        """Return the latency of a cycle, once it is short enough; with a chunk per resource nobody waits."""
        parts = self._table.parts_of(units)
        times_us = [self._table.chain.busy_us(*part) for part in parts]
        shared = [self._first[unit] for _, _, unit in parts]
        if len(set(shared)) == len(shared):
            return sum(times_us)
        return brief_latency_us(times_us, shared, enough_us=enough_us, patient=patient)
