"""From a problem to a claim: the best plans of one network whose units may have several chunks.

The problem is that of `chunking` without "every unit at most once": over all sequences of chunks, neighbours
on different units, minimise lexicographically terms of the loads

    L_u = sum over the chunks (i, j) of u of (times of the layers + copy in at i + copy out at j),

where units that take turns on one resource count as one: their loads are added up (`Table.pooled`).

1. `chunking.facts` draws from the rules what they forbid outright; `table` holds what is left by piece.
2. `prices` finds prices of the units that bound the period, and first plans.
3. `sweep` grows labels over the boundaries, few at first, then more: each sweep gives plans and a bound.
   Sweeps for the first term alone come first, because most labels can replace others there.
4. A sweep that loses nothing has the best plans, in canonical order.

Why it is exact: a label goes only where its bounds say that no plan from it is wanted, where enough others
before it lead to better plans, or where it is counted among the lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ...formulations.chain import Part
from ...formulations.chunking.tables import chain_of
from ...formulations.errors import GaplessError
from ...formulations.expr import variables
from ...formulations.judge import examined
from ...formulations.limits import Limits
from ...formulations.problem import Problem
from ...formulations.terms import Quantity, Term
from ..chunking.facts import Facts, is_known
from ..chunking.ranking import Ints, Pool, Ranking
from ..chunking.search import StopSearch
from ..chunking.solving import native_starts, solve_chunking
from ..chunking.verdicts import Verdicts, claim_of, nothing
from ..families import Start
from ..protocol import EXACT, Claim, Deadline, SolveOptions, SolveStatus, Statistics, StopReason, Support
from .calm import WAIT_LIMITS, WAITS, Calm, allowed_us, judged_claim, least_values
from .descent import Annealing
from .dominance import Dominance
from .outlook import Needs, Outlook, needs_of
from .prices import Paths, Pricing, price, price_latency, price_set
from .sweep import Growth, RulePruner, Setting, Sweep, path_rows
from .table import Table, build_table

_FIRST_WIDTH, _WIDER = 32, 4
_WIDEST = 300_000
"""Labels per boundary: at first, how many times more in the next sweep, and at most."""

_FIRST_MOVES, _MOVES = 4_000, 20
"""Moves of the annealing before the first sweep, and after each one by its labels per boundary."""

_FIRST_MEETING, _MEETING, _MOST_MEETING = 128, 8, 2048
"""Labels from each end: at first, by those of the sweep before, and at most."""

_LONG = 80
"""With more pieces plans from both ends come before the first sweep: it takes about as long."""

_ENUMERABLE = 3_000
"""Spaces of at most this number of plans are swept without a limit at once."""

_FIRST_LOOKS, _LABELS_PER_LOOK = 12, 16
"""Looks for plans whose requests wait little: after the first sweeps, and labels of later ones for each."""

_DONE = object()

_LISTABLE = 4_000_000
"""Of larger spaces the least first term is proved before there are lists."""

_ONLY_PERIOD = frozenset(
    ("max_period_us", "max_hops", "max_units", "max_memory_bytes", "max_unit_memory_bytes")
)
"""Filters that loads below the least period do not matter for."""

_TOTALS = frozenset((Term.PERIOD, Term.HOPS, Term.LATENCY, Term.STREAM_LATENCY, Term.UNITS))
"""Terms that know loads only by the largest one and by their sum."""

_LONGER = 4
"""How many times more plans are asked for when finished plans are turned down."""

_MONOTONE = frozenset(
    (
        Term.PERIOD,
        Term.LATENCY,
        Term.STREAM_LATENCY,
        Term.HOPS,
        Term.ENERGY,
        Term.UNITS,
        Term.PEAK_MEMORY,
    )
)
"""Terms that never get better with more load, hops or bytes."""

_TWO_SIDED = (
    "min_units",
    "min_balance_permille",
    "max_gapness_us",
    "min_utilisation_permille",
    "max_bubbles_us",
    "max_in_flight",
)
"""Filters that more load may pass and less may not."""

_PAIRS = 4
"""Plans that each pair of units offers, at most."""

_ONCE, _MOST_ONCE_S = 0.5, 1.0
"""Share of a time limit, and seconds, that the best plan with one chunk per unit may take; it usually needs a
few milliseconds."""


def solve_passage(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return the best plans of one network whose units may have several chunks (see `PassageSolve`)."""
    return PassageSolve(problem, options, support).run()


class PassageSolve:
    """One solve of one problem.

    Rules that are expressions steer the search. Opaque rules, and what is asked of waits in the stream, are
    for finished plans, in canonical order; when they turn down too many, the search is repeated for a longer
    list.
    """

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self.problem, self.options = problem, options
        self.deadline = Deadline(options.time_limit_s, options.clock)
        self.handling = support.handling(problem)
        rules = problem.expression_rules
        known = {rule.name for rule in rules if is_known(rule.expr)} - problem.opaque_demands
        self.rules = tuple(rule for rule in rules if rule.name in known)
        late = tuple(rule for rule in rules if rule.name not in known)
        self.verdicts = Verdicts(problem, late, options.max_rejections)
        self._waits = not WAITS.isdisjoint(problem.ranking)
        self._once: list[tuple[Part, ...]] = []

    def run(self) -> Claim:
        """Solve."""
        chain = chain_of(self.problem)
        facts = Facts(chain, [rule.expr for rule in self.rules])
        if facts.contradictory:
            return nothing(self.handling)
        if self.problem.formulation.count(self.problem) > _LISTABLE:
            self._once = self._one_chunk_per_unit()
        searches = []
        for table in build_table(chain, facts.restrictions).compatible():
            pricing = price(table, self.deadline)
            if pricing.paths:
                search = Search(self.problem, self.options, facts, table, self.deadline)
                search.price(pricing)
                searches.append(search)
        if not searches:
            return nothing(self.handling)
        wanted = self.options.top
        while (claim := self._attempt(searches, wanted)) is None:
            wanted *= _LONGER
        return claim

    def _one_chunk_per_unit(self) -> list[tuple[Part, ...]]:
        """Return the best plan with one chunk per unit if there is time for it: no answer is to be worse.

        Searches for plans whose requests wait little do not begin with it: what is near it is no better.
        """
        try:
            once = self.problem.with_data(None)
        except GaplessError:  # a rule speaks of several chunks of a unit
            once = replace(self.problem, rules=()).with_data(None)
        left_s = self.deadline.share(_ONCE).left_s
        limit_s = _MOST_ONCE_S if left_s is None else min(left_s, _MOST_ONCE_S)
        options = SolveOptions(time_limit_s=limit_s, seed=self.options.seed, clock=self.options.clock)
        codes = [
            self.problem.formulation.code(self.problem, plan)
            for plan in solve_chunking(once, options, EXACT).plans
        ]
        return [parts for parts in codes if not examined(self.problem, parts)[1]]

    def _attempt(self, searches: Sequence[Search], wanted: int) -> Claim | None:
        """Return a claim, or None when a longer list has to be checked."""
        pool = Pool(wanted, searches[0].rows)
        stop, left = StopReason.COMPLETE, list[tuple[Search, Iterator[None]]]()
        try:
            left += [(search, search.begin(pool)) for search in searches]
            for search in searches:
                for parts in self._once if search.calm is None else ():
                    search.offer(search.table.units_of(parts))
            while left:
                for search, sweeps in tuple(left):
                    try:
                        done = next(sweeps, _DONE) is _DONE
                    except StopSearch as stopped:
                        if stopped.reason is StopReason.TIME_LIMIT:
                            raise
                        done, stop = True, stopped.reason
                    if done:
                        left.remove((search, sweeps))
                    if self._calm(searches) or not (self.problem.opaque_demands or self._waits):
                        self.options.publish(self._claim(searches, StopReason.TIME_LIMIT))
        except StopSearch as stopped:
            stop = stopped.reason
        if stop is StopReason.COMPLETE and self._calm(searches) and not self._asked(searches[0].listed()):
            stop = StopReason.TIME_LIMIT
        claim = self._claim(searches, stop)
        if stop is not StopReason.COMPLETE or self.verdicts.exhausted or claim.exhausted:
            return claim
        enough = claim.proven if self._waits else len(claim.plans)
        if enough < self.options.top and self._waits and wanted > self.options.max_rejections:
            return replace(claim, stop=StopReason.SPACE_LIMIT)
        return claim if enough == self.options.top else None

    def _claim(self, searches: Sequence[Search], stop: StopReason) -> Claim:
        """Return what the plans found and the frontiers of the searches allow to claim."""
        claim = judged_claim if self._waits else claim_of
        frontiers = [s.frontier for s in searches if s.frontier is not None]
        if stop is not StopReason.COMPLETE and self._calm(searches):
            return self._calm_claim(searches, stop)
        found = claim(
            searches[0].pool,
            searches[0].listed(),
            min(frontiers, default=None),
            stop,
            verdicts=self.verdicts,
            problem=self.problem,
            options=self.options,
            handling=self.handling,
            statistics=self._statistics(searches),
        )
        if found.stop is not StopReason.COMPLETE and not found.plans and self._calm(searches):
            return self._calm_claim(searches, found.stop)
        return found

    def _asked(self, listed: Sequence[tuple[Part, ...]]) -> bool:
        """Ask finished plans as long as there is time; return whether there was enough of it."""
        left = self.options.top
        for parts in listed:
            if self.deadline.passed:
                return False
            left -= self.verdicts.ask(parts) is not None
            if not left or self.verdicts.exhausted:
                break
        return True

    def _calm(self, searches: Sequence[Search]) -> list[tuple[tuple[int, ...], tuple[Part, ...]]]:
        """Return the plans whose requests were found to wait little enough, with their terms, best first."""
        calms = [(search.table, search.calm) for search in searches if search.calm is not None]
        plans = {table.parts_of(units) for table, calm in calms for units in calm.found}
        plans.update(self._once if calms else ())
        numbers = self.problem.formulation.numbers
        return sorted((numbers(self.problem, parts).values(self.problem.ranking), parts) for parts in plans)

    def _calm_claim(self, searches: Sequence[Search], stop: StopReason) -> Claim:
        """Return a claim of these plans: others may be better, and nothing is asked of them any more."""
        known = self._calm(searches)[: self.options.top]
        pool = searches[0].pool
        firsts = [search.frontier[0] for search in searches if search.frontier]
        left = [place for place, parts in enumerate(searches[0].listed()) if not self.verdicts.refuses(parts)]
        firsts += [int(pool.ranks[0, place]) for place in left[:1]]
        if pool.worst is not None:  # nothing outside a full pool is before it where a search is at its end
            firsts.append(int(pool.worst[0]))
        chain, terms = chain_of(self.problem), len(self.problem.objective.terms)
        return Claim(
            status=SolveStatus.FEASIBLE,
            stop=stop,
            plans=tuple(chain.plan(parts) for _, parts in known),
            values=known[0][0][:terms],
            bound=None if any(s.frontier == () for s in searches) else min([*firsts, known[0][0][0]]),
            handling=dict(self.handling),
            statistics=self._statistics(searches),
        )

    def _statistics(self, searches: Sequence[Search]) -> Statistics:
        return {
            "sweeps": sum(search.count for search in searches),
            "widest": max(search.widest for search in searches),
        }


class Search:
    """Sweeps for one problem, and what they found.

    Attributes
    ----------
    pool
        The best plans so far.
    frontier
        What no other plan comes before, by its key or its first terms; None: there are none but worse ones.
    count, widest
        Sweeps, and the most labels per boundary of one of them.
    """

    def __init__(
        self, problem: Problem, options: SolveOptions, facts: Facts, table: Table, deadline: Deadline
    ) -> None:
        self._problem, self._options, self._facts, self.table = problem, options, facts, table
        self._deadline = deadline
        self.ranking = Ranking(
            terms=problem.ranking,
            limits=problem.limits,
            resources=len(table.chain.pools),
            device_memory=table.chain.device_memory,
            in_flight=False,
        )
        self._spoken = frozenset(key[0] for part in facts.open for key in variables(part))
        self._memory = self._weighs()
        self._needs = needs_of(self.ranking, self._spoken, memory=self._memory)
        self._growth = Growth(table, memory=self._memory, paths=bool(facts.open))
        self._prune = RulePruner(table, facts) if facts.open else None
        self.count = self.widest = 0
        self._annealing, self._paths = Annealing(table, options.seed), Paths(table)
        self.calm = self._calmly()
        self._loose = problem if self.calm is None else problem.with_limits(**dict.fromkeys(WAIT_LIMITS))
        self._floor = 0
        self.frontier: tuple[int, ...] | None = ()

    def price(self, pricing: Pricing) -> None:
        """Bound periods by these prices, and those near them."""
        in_flight = self._problem.limits.max_in_flight
        if self.calm is not None and in_flight is not None:
            self._floor, paths = price_latency(pricing, self.table, in_flight)
            pricing = replace(pricing, paths=[*pricing.paths, *paths])
        self._pricing = pricing
        powers = self.table.chain.powers if self._needs.energy else None
        self._outlook = Outlook(
            self.table,
            price_set(pricing, self.table),
            self._needs,
            best=np.array(pricing.best)[self.table.first] / self.table.scale,
            idle_mw=0 if powers is None else powers.idle_mw,
            extra_mw=(0,) * self.table.units if powers is None else powers.extra_mw,
        )

    @property
    def rows(self) -> int:
        """Rows of a pool: terms, and a number per piece."""
        return len(self.ranking.terms) + self.table.count

    def begin(self, pool: Pool) -> Iterator[None]:
        """Look for the plans that belong into a pool; return the sweeps (see `_sweeps`)."""
        self.pool = pool
        known = (self._outlook.root(self.ranking.terms[0]), self._options.at_least or 0, self._floor)
        self.frontier = (max(known),)
        for units in {tuple(path) for path in self._pricing.paths} | set(single_units(self.table)):
            self.offer(units, patient=False)
        return self._sweeps()

    def offer(self, units: tuple[int, ...], *, patient: bool = True) -> None:
        """Keep a plan if it is valid, waits apart where they are for `calm`, and wanted."""
        numbers, broken = examined(self._loose, self.table.parts_of(units))
        if not broken and self._keeps_facts(units) and self._may_wait(units, patient=patient):
            path = path_rows(np.array(units, dtype=np.int64)[:, None], self.table.units)
            terms = np.array(least_values(numbers, self.ranking.terms), dtype=np.int64)[:, None]
            self.pool.add(np.concatenate([terms, path]))

    def _may_wait(self, units: tuple[int, ...], *, patient: bool) -> bool:
        """Return whether a plan keeps limits on waits if nobody waits; with luck it keeps them anyway."""
        if self.calm is None:
            return True
        self.calm.keep(units, patient=patient)
        loads = self._paths.pooled(units)
        return sum(loads) <= allowed_us(self._problem.limits, max(loads))

    def _calmly(self) -> Calm | None:
        """Return the search for plans whose requests wait little, where that is asked and there are many."""
        problem, table = self._problem, self.table
        asked = any(getattr(problem.limits, name) is not None for name in WAIT_LIMITS)
        if not asked or self.ranking.terms[0] != Term.PERIOD or table.must.any() or table.units == 1:
            return None
        if problem.formulation.count(problem) <= _LISTABLE:
            return None

        def valid(units: Sequence[int]) -> bool:
            return self._keeps_facts(units) and not examined(self._loose, table.parts_of(units))[1]

        return Calm(table, problem.limits, valid, seed=self._options.seed, deadline=self._deadline)

    def _look(self) -> Iterator[None]:
        """Look for plans whose requests wait little, for about as long as the latest sweep took."""
        if self.calm is not None:
            yield  # what has been found by the way
            starts = [*self._pricing.paths, *single_units(self.table)]
            for _ in range(max(_FIRST_LOOKS, self.widest // _LABELS_PER_LOOK)):
                self._pause()
                if self.calm.look(self._shortest(), starts):
                    yield

    def _shortest(self) -> Sequence[int]:
        """Return the plan of the shortest period that is known, whatever requests wait."""
        best = (self.pool.ranks[len(self.ranking.terms) :, :1] % self.table.units).T.tolist()
        known = self._pricing.paths + [path for path in best if self._keeps_facts(path)]
        return min(known, key=lambda path: max(self._paths.pooled(path)))

    def _sweeps(self) -> Iterator[None]:
        """Sweep with more and more labels until the best plans are proved to be in the pool."""
        space = self._problem.formulation.count(self._problem)
        if space > _LISTABLE:
            yield from self._look()
            for _ in self._first():
                yield from self._look()
                yield
        width = _WIDEST if space <= _ENUMERABLE else max(_FIRST_WIDTH, self.widest // _WIDER)
        while True:
            sweep = self._sweep(self._setting(self.ranking, self.pool), width)
            worst = self.pool.worst
            if sweep.lost is None or (
                worst is not None and tuple(worst[: len(sweep.lost)].tolist()) < sweep.lost
            ):
                self.frontier = None
                return
            self.frontier = max(self.frontier or (), sweep.lost)
            yield from self._look()
            yield
            width = self._wider(width)

    def _first(self) -> Iterator[None]:
        """Sweep for the least first term alone, until it is proved."""
        limits = replace(self.ranking.limits, max_in_flight=None) if self.calm else self.ranking.limits
        ranking = replace(self.ranking, terms=self.ranking.terms[:1], limits=limits)
        best, width = Pool(1, 1 + self.table.count), _FIRST_WIDTH
        meeting = None
        if ranking.terms[0] == Term.PERIOD:
            meeting = Meeting(self._outlook, ranking, self._pause)
            self._anneal(_FIRST_MOVES)
        self._keep_best(best)
        if meeting is not None and self.table.count > _LONG:
            self._meet(meeting, best, _FIRST_MEETING)
            yield
        while True:
            sweep = self._sweep(self._setting(ranking, best), width)
            if len(best):
                self.offer(tuple((best.ranks[1:, 0] % self.table.units).tolist()))
            least = min(int(best.ranks[0, 0]) if len(best) else sys.maxsize, *(sweep.lost or ()), sys.maxsize)
            if least < sys.maxsize:
                self.frontier = max(self.frontier or (), (least,))
                self._floor = max(self._floor, least)
            yield
            if sweep.lost is None or (len(best) and sweep.lost[0] >= best.ranks[0, 0]):
                return
            if meeting is not None:
                self._meet(meeting, best, min(_MEETING * width, _MOST_MEETING))
                self._anneal(_MOVES * width)
                self._keep_best(best)
                yield
            width = self._wider(width)

    def _meet(self, meeting: Meeting, best: Pool, width: int) -> None:
        """Look for plans from both ends that are better than the best one."""
        floor = (self.frontier or (0,))[0]
        for units in meeting.plans(best, floor, width):
            self.offer(units)
        self._keep_best(best)

    def _anneal(self, moves: int) -> None:
        """Search near the best plan."""
        if not len(self.pool) or self.table.must.any() or self.table.units == 1:
            return
        units = (self.pool.ranks[len(self.ranking.terms) :, 0] % self.table.units).tolist()
        if not self._keeps_facts(units):  # the best plan is one of other units
            units = min(self._pricing.paths, key=lambda path: max(self._paths.pooled(path)))
        self.offer(tuple(self._annealing.near(units, self._paths.loads(units), moves, self._deadline)))

    def _keep_best(self, best: Pool) -> None:
        """Let the best plan known be the one that has to be beaten."""
        if len(self.pool):
            path = self.pool.ranks[len(self.ranking.terms) :, :1]
            best.add(np.concatenate([self.pool.ranks[:1, :1], path]))

    def _sweep(self, setting: Setting, width: int) -> Sweep:
        sweep = Sweep(setting, width)
        self.count, self.widest = self.count + 1, max(self.widest, width)
        sweep.run()
        return sweep

    @staticmethod
    def _wider(width: int) -> int:
        if width >= _WIDEST:
            raise StopSearch(StopReason.MEMORY_LIMIT)
        return min(_WIDER * width, _WIDEST)

    def listed(self) -> list[tuple[Part, ...]]:
        """Return the plans of the pool, best first."""
        rows: Ints = self.pool.ranks[len(self.ranking.terms) :]
        return [self.table.parts_of(column) for column in (rows % self.table.units).T.tolist()]

    def _setting(self, ranking: Ranking, pool: Pool) -> Setting:
        """Return what sweeps share that look for plans of some terms."""
        limits = ranking.limits.in_use()
        monotone = _MONOTONE.issuperset(ranking.terms) and not any(name in limits for name in _TWO_SIDED)
        alone = ranking is not self.ranking
        most = None if alone else self._most_period()
        self._outlook.cap(most)
        floor = (self.frontier or (0,))[0]
        clipped = monotone and ranking.terms[0] == Term.PERIOD and _ONLY_PERIOD.issuperset(limits)
        settled = clipped and not alone and most == floor and _TOTALS.issuperset(ranking.terms)
        clipped = clipped and alone
        return Setting(
            table=self.table,
            growth=self._growth,
            outlook=self._outlook,
            ranking=ranking,
            pool=pool,
            dominance=Dominance(
                enough=0 if self._prune else pool.size,
                monotone=monotone,
                sets=not monotone
                or bool(self.table.conflicts.any())
                or Term.UNITS in ranking.terms
                or "max_units" in limits,
                hops=not alone or Term.HOPS in ranking.terms or "max_hops" in limits,
                idle_below=self._outlook.idle_below(floor) if settled or clipped else None,
                by_unit=self._needs.energy,
                settled=settled,
            ),
            prune=self._prune,
            pause=self._pause,
            floor=floor,
            better=alone,
        )

    def _most_period(self) -> int | None:
        """Return what the periods of all plans that are wanted do not exceed, if that is known."""
        found = [self._problem.limits.max_period_us]
        if self.ranking.terms[0] == Term.PERIOD and self.pool.worst is not None:
            found.append(int(self.pool.worst[0]))
        return min((period for period in found if period is not None), default=None)

    def _pause(self) -> None:
        if self._deadline.passed:
            raise StopSearch(StopReason.TIME_LIMIT)

    def _weighs(self) -> bool:
        """Return whether bytes of plans matter: whether a capacity can be exceeded, or somebody asks."""
        chain, table = self.table.chain, self.table
        most = table.weights.copied + int(table.working.sum())
        asked = Term.PEAK_MEMORY in self.ranking.terms or bool(
            self._spoken & {Quantity.MEMORY, Quantity.PEAK}
        )
        tight = int(table.most_bytes.min()) < most
        return asked or tight or (chain.device_memory is not None and chain.device_memory < most)

    def _keeps_facts(self, units: Sequence[int]) -> bool:
        return bool(self.table.able[np.arange(self.table.count), list(units)].all())


def single_units(table: Table) -> Iterator[tuple[int, ...]]:
    """Yield the plans of a single chunk."""
    for unit in np.flatnonzero(table.able.all(axis=0) & ~table.must.any()).tolist():
        yield (unit,) * table.count


class Meeting:
    """Sweeps from both ends of a network to its middle, where labels meet; the first term is the period.

    A few hundred labels from each end make a few hundred thousand plans, and some of these are far better
    balanced than any that a single narrow sweep ends with: so much the more if the labels that are kept
    differ in how their loads are balanced. It says nothing about what no plan can reach.
    """

    def __init__(self, outlook: Outlook, ranking: Ranking, pause: Callable[[], None]) -> None:
        table = outlook.table
        self.table, self._middle = table, table.count // 2
        needs = Needs(energy=False, balance=False, idle=False, memory=False)
        self._ranking = replace(ranking, limits=Limits(), device_memory=None)
        self._outlooks = [
            Outlook(own, outlook.prices, needs, best=outlook.best, idle_mw=0, extra_mw=(0,) * table.units)
            for own in (table, reversed_table(table))
        ]
        self._pause = pause

    def plans(self, pool: Pool, floor: int, width: int) -> Iterator[tuple[int, ...]]:
        """Yield plans, by the unit of each piece, with shorter periods than the only plan of a pool.

        No plan has a period below the floor; `width` labels come from each end.
        """
        below = int(pool.ranks[0, 0]) if len(pool) else sys.maxsize
        sweeps = [Sweep(self._setting(outlook, pool, floor), width) for outlook in self._outlooks]
        ahead, behind = sweeps[0].run(self._middle), sweeps[1].run(self.table.count - self._middle)
        if ahead is None or behind is None:
            return
        found: list[tuple[int, int, int]] = []
        for unit, other in product(range(self.table.units), repeat=2):
            rows, columns = np.flatnonzero(ahead.unit == unit), np.flatnonzero(behind.unit == other)
            if (unit == other and self.table.must[self._middle]) or not (len(rows) and len(columns)):
                continue
            period = self._periods(ahead.state.loads[:, rows], behind.state.loads[:, columns], unit, other)
            for place in np.argpartition(period.ravel(), min(_PAIRS, period.size) - 1)[:_PAIRS].tolist():
                row, column = divmod(place, len(columns))
                found.append((int(period[row, column]), int(rows[row]), int(columns[column])))
        for period_us, front, back in sorted(found)[:_PAIRS]:
            if period_us >= below:
                return
            first = sweeps[0].paths(np.array([front]))[:, 0]
            second = sweeps[1].paths(np.array([back]))[::-1, 0]
            yield (*first.tolist(), *second.tolist())

    def _setting(self, outlook: Outlook, pool: Pool, floor: int) -> Setting:
        return Setting(
            table=outlook.table,
            growth=Growth(outlook.table, memory=False, paths=False),
            outlook=outlook,
            ranking=self._ranking,
            pool=pool,
            dominance=Dominance(
                enough=1,
                monotone=True,
                sets=bool(self.table.conflicts.any()),
                hops=False,
                idle_below=outlook.idle_below(floor),
            ),
            prune=None,
            pause=self._pause,
            floor=floor,
            better=True,
            spread=True,
        )

    def _periods(self, ahead: Ints, behind: Ints, unit: int, other: int) -> Ints:
        """Return the periods of all pairs."""
        if unit != other:
            ahead, behind = ahead.copy(), behind.copy()
            ahead[unit] += self.table.leave[self._middle][unit]
            behind[other] += self.table.enter[self._middle][other]
        ahead, behind = self.table.pooled(ahead), self.table.pooled(behind)
        found: Ints = ahead[0][:, None] + behind[0]
        for own, rest in zip(ahead[1:], behind[1:], strict=True):
            np.maximum(found, own[:, None] + rest, out=found)
        return found


def reversed_table(table: Table) -> Table:
    """Return the arrays of the network from its end to its beginning, without bytes."""
    return replace(
        table,
        time=table.time[::-1],
        able=table.able[::-1],
        enter=table.leave[::-1],
        leave=table.enter[::-1],
        must=table.must[::-1],
    )


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more; see `native_starts`."""
    from . import FAMILY  # which names this module

    return native_starts(problem, options, solve_passage, FAMILY.support)
