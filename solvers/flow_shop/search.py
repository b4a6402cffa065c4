"""Joint local search over the order and the cuts of a workload (formulations, section 6).

Schedules that do what the program behind the contention bound says: which cuts, and who beside whom. The
program says which share of the requests of a kind takes which cuts. The order is built from the front:
whenever a unit has nothing to do, one of the requests that need it is next, if it is their turn. What a
schedule takes longer than the bound is what its company loses, over time, against the best company (the
reduced cost of a set of the program), and what its cuts cost more than the cheapest ones. So a beam of
partial orders is played, with the slowdown, and those are kept that have lost least and have taken requests
of all groups alike.

Joint local search over the order and the cuts of a workload (formulations, section 6). A step proposes
another schedule and keeps it if it is not worse, or hardly. For the makespan the moves re-plan single
requests exactly (`Reinsertion`), so few steps go far; every other objective and every constraint is served by
moves that know less, and by measuring each proposal in full.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cached_property, partial
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import InvalidInputError
from ...formulations.flow_shop.space import groups_of, neighbours_in
from ...formulations.flow_shop.tables import Schedule, shop_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..contention import PRICE_SCALE
from ..protocol import NEVER, Deadline, StopReason
from ..repairing import downhill
from .arrays import FORBIDDEN, build_arrays
from .baselines import MOST_SETS, confine, unit_sets
from .bounds import Prices, TermBounds
from .branch_and_price import BranchAndPrice
from .branching import Branching
from .columns import columns_apply, least_columns, order_by_contention
from .contention_bound import ContentionBound, company_of
from .descent import Descent
from .draft import Draft, DraftContext, Places
from .measure import KeptSchedules, Key, Measure
from .starts import quick_schedules, serial_drafts, starting_drafts
from .ways import Ways

_WIDTH = 4
"""Partial orders that are kept."""

_MOST_DRAFTS = 3
"""Orders that are played in full."""

_EVEN = 0.3
"""What it counts, in parts of its price, that a request too many or too few of a group has been taken; for
more of them by the square."""

_AHEAD = 0.5
"""How many requests of a group may be taken before their turn."""

_ROUNDING_US = 1e-6
"""A chunk that has less work left has ended."""


def guided_drafts(context: DraftContext, bound: ContentionBound, deadline: Deadline) -> Iterator[Draft]:
    """Yield drafts that follow the program behind a bound; with a fixed order its cuts only."""
    groups = [group for number in range(len(bound.kinds)) for group in _shared_out(bound, number)]
    of_request: dict[int, Places] = {request: cuts for _, cuts, own in groups for request in own}
    places = tuple(of_request[request] for request in range(len(of_request)))
    if not context.shop.order_is_free:
        yield Draft(tuple(range(len(places))), places)
        return
    for found in _Dispatch(context, bound, groups).orders(deadline):
        waiting = [iter(own) for _, _, own in groups]
        yield Draft(tuple(next(waiting[group]) for group in found), places)


def _shared_out(bound: ContentionBound, number: int) -> list[tuple[int, Places, list[int]]]:
    """Return (kind, cuts, requests) for the cuts of one kind that requests should take."""
    requests = list(bound.kinds[number].requests)
    wanted = bound.shares[number] / max(bound.shares[number].sum(), 1e-9) * len(requests)
    counts = np.floor(wanted + 1e-6).astype(np.int64)
    missing = len(requests) - int(counts.sum())
    counts[np.argsort(counts - wanted)[:missing]] += 1
    groups = []
    for cuts, count in zip(bound.cuts[number].tolist(), counts.tolist(), strict=True):
        if count:
            groups.append((number, tuple(cuts), requests[:count]))
            requests = requests[count:]
    return groups


class _State(NamedTuple):
    """A schedule while it is played, up to where a unit has nothing to do."""

    lines: tuple[tuple[tuple[int, int], ...], ...]
    """Whom each unit serves next: (position in the order, group)."""

    left_us: tuple[float, ...]
    """Work that the first in each line still has; 0: it does not run."""

    lost_us: float
    """What the company has lost so far."""


class _Partial(NamedTuple):
    """A partial order: the last group, the order before, what is left of each group, and how it is played."""

    score: float
    state: _State
    left: tuple[int, ...]
    group: int = -1
    before: _Partial | None = None

    @property
    def order(self) -> list[int]:
        """The groups in order."""
        found, drawn = list[int](), self
        while drawn.before is not None:
            found.append(drawn.group)
            drawn = drawn.before
        return found[::-1]


class _Dispatch:
    """Plays orders of groups of requests, all of which are cut alike."""

    def __init__(
        self, context: DraftContext, bound: ContentionBound, groups: Sequence[tuple[int, Places, list[int]]]
    ) -> None:
        self._kinds = [number for number, _, _ in groups]
        self._counts = np.array([len(own) for _, _, own in groups])
        self._rows = [tuple(map(float, context.row(own[0], cuts))) for _, cuts, own in groups]
        self._prices = bound.prices / PRICE_SCALE
        self._worth = (np.array(self._rows) * self._prices[self._kinds]).sum(axis=1)
        self._units = range(context.shop.unit_count)
        self._sets = company_of(context.shop, bound.kinds)
        self._known: dict[tuple[int, ...], tuple[list[float], float]] = {}

    def orders(self, deadline: Deadline) -> Iterator[list[int]]:
        """Yield orders of groups, each as often as it has requests; none if the time is up before."""
        nothing = _State(((),) * len(self._units), (0.0,) * len(self._units), 0.0)
        beam = [_Partial(0.0, nothing, tuple(self._counts.tolist()))]
        for position in range(int(self._counts.sum())):
            if deadline.passed:
                return
            found: dict[tuple[int, tuple[int, ...]], _Partial] = {}
            for drawn in sorted(self._next(beam, position), key=lambda each: each.score):
                found.setdefault((round(drawn.state.lost_us), drawn.left), drawn)
                if len(found) == _WIDTH:
                    break
            beam = list(found.values())
        yield from (drawn.order for drawn in beam[:_MOST_DRAFTS])

    def _next(self, beam: Sequence[_Partial], position: int) -> Iterator[_Partial]:
        """Yield what each partial order can become by one request."""
        for drawn in beam:
            groups, _ = self._turns(drawn.left)
            lines = drawn.state.lines
            idle = [unit for unit in self._needed(groups) if not lines[unit]] or self._units
            for group in groups:
                row = self._rows[group]
                if any(row[unit] for unit in idle):
                    left = (*drawn.left[:group], drawn.left[group] - 1, *drawn.left[group + 1 :])
                    queued = ((position, group),)
                    joined = tuple(
                        line + queued if work else line for line, work in zip(lines, row, strict=True)
                    )
                    then, uneven_us = self._turns(left)
                    state = self._played(drawn.state._replace(lines=joined), self._needed(then))
                    yield _Partial(state.lost_us + _EVEN * uneven_us, state, left, group, drawn)

    def _turns(self, left: Sequence[int]) -> tuple[list[int], float]:
        """Return the groups whose turn it is, and how far groups are from their turns, squared."""
        waiting = np.array(left)
        due = self._counts * (waiting @ self._worth) / max(float(self._counts @ self._worth), _ROUNDING_US)
        early = due - waiting
        groups = np.flatnonzero((waiting > 0) & (early < _AHEAD)).tolist()
        return groups, float(self._worth @ early**2)

    def _needed(self, groups: Sequence[int]) -> list[int]:
        """Return the units that some groups need."""
        return [unit for unit in self._units if any(self._rows[group][unit] for group in groups)]

    def _played(self, state: _State, needed: Sequence[int]) -> _State:
        """Play until a unit has nothing to do that is needed, or nothing is left."""
        lines, works, lost_us = list(state.lines), list(state.left_us), state.lost_us
        while True:
            for unit, line in enumerate(lines):
                if line and not works[unit]:
                    position, group = line[0]
                    if all(position != other for before in lines[:unit] for other, _ in before):
                        works[unit] = self._rows[group][unit]
            if not any(works) or not all(lines[unit] for unit in needed):
                return _State(tuple(lines), tuple(works), lost_us)
            running = (
                self._kinds[line[0][1]] if work else -1 for line, work in zip(lines, works, strict=True)
            )
            rates, loss = self._company(tuple(running))
            time_us = min(work / rate for work, rate in zip(works, rates, strict=True) if work)
            lost_us += time_us * loss
            for unit, work in enumerate(works):
                if work:
                    works[unit] = work - time_us * rates[unit]
                    if works[unit] < _ROUNDING_US:
                        works[unit], lines[unit] = 0.0, lines[unit][1:]

    def _company(self, running: tuple[int, ...]) -> tuple[list[float], float]:
        """Return how fast each unit is, and what a microsecond loses; kind on each unit, -1 for none."""
        known = self._known.get(running)
        if known is None:
            pairs = self._sets.rates_of(np.array([running])).reshape(self._prices.T.shape) / 1000
            loss = 1.0 - float((self._prices.T * pairs).sum())
            known = self._known[running] = pairs.sum(axis=1).tolist(), loss
        return known


_STEPS, _PER_REQUEST = 1600, 3
"""Steps without a time limit: so many, and for long orders so many for each two requests."""

_CUTS = 25_000_000
"""Cuts that a proof looks at without a time limit: about a second."""

_PROGRAMS = 60
"""Linear programs of branch and price without a time limit: less than a second."""

_SEARCHING, _PROVING, _HURRY_S = 4, 0.8, 0.3
"""One in so many parts of the time goes into the search for plans if there may be a proof, such a share of
the rest into that, and what is left into the search again; where there are so many seconds or more."""

_UNLIKELY, _FAR = 0.2, 1.1
"""The share for a proof under rules or limits where the best plan is this number of times the bound,
or longer."""

_STARTING = 3
"""One in this number of parts of the time that is left may go into schedules to start from."""

_REPAIRING = 0.4
"""Share of the time that repairs of what heuristics propose may take."""

_MEASURED, _FEWEST = 30_000, 50
"""Requests, over all steps, in schedules that have to be measured in full; at least so many steps."""


class Proof(Enum):
    """When a search keeps time for a proof, or for a better bound."""

    NEVER = "never"
    PRICED = "where branch and price applies"
    ALWAYS = "wherever the makespan is bounded"


def best_schedule(
    problem: Problem, *, time_limit_s: float | None, seed: int = 0, proof: Proof = Proof.NEVER
) -> tuple[Schedule | None, int]:
    """Return a good valid schedule of a workload, None if none was found, and a bound on the first term.

    `time_limit_s`: when the search ends, unless it has taken a fixed number of steps before; None: for those.
    """
    search = JointSearch(problem, seed=seed, deadline=Deadline(time_limit_s), counted=True, proof=proof)
    search.run()
    return next(iter(search.kept.schedules), None), search.bounds[0]


def objective_bound(problem: Problem, deadline: Deadline = NEVER) -> int:
    """Return a lower bound on the first term of the objective; 0 where nothing better is known."""
    return JointSearch(problem, deadline=deadline).bounds[0]


class JointSearch:
    """Local search with bounds.

    `most_rejections`: how many schedules opaque rules may turn down before the search gives up. `deadline`:
    when to stop. Until then the search goes on, unless it meets its bounds; without one it takes a fixed
    number of steps. `counted`: whether it takes no more steps than that before a deadline, either. `proof`:
    where most of the time is kept for `prove`.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        top: int = 1,
        seed: int = 0,
        most_rejections: int = 10_000,
        on_better: Callable[[Key, Schedule], None] = lambda key, schedule: None,
        deadline: Deadline = NEVER,
        counted: bool = False,
        proof: Proof = Proof.NEVER,
    ) -> None:
        self._problem, self._shop = problem, shop_of(problem)
        self._proof, self._on_better = proof, on_better
        self._counted = counted or deadline.left_s is None
        self._seed, self._most_rejections, self._deadline = seed, most_rejections, deadline
        self._measure = Measure(problem)
        self.kept = KeptSchedules(top, on_better, groups_of(problem))
        self.steps, self.proved = 0, False
        self._repaired: list[Schedule] = []
        self._arrays = [build_arrays(chain) for chain in self._shop.chains]

    @cached_property
    def contexts(self) -> list[tuple[DraftContext, TermBounds]]:
        """What is planned and its bounds, for each largest set of units that share no cores.

        Only sets on which all requests can run.
        """
        found = []
        for own in self._unit_sets:
            networks = [Ways(confine(arrays, own)) for arrays in self._arrays]
            if all(network.runs for network in networks):
                bounds = self._bounds_of(networks)
                if bounds.possible:
                    found.append((DraftContext(self._shop, networks), bounds))
        return found

    def _bounds_of(self, networks: Sequence[Ways]) -> TermBounds:
        return TermBounds(self._problem, networks, lambda: self._calm_order, self._deadline)

    @cached_property
    def _unit_sets(self) -> tuple[frozenset[int], ...]:
        return unit_sets(self._shop)

    @property
    def impossible(self) -> bool:
        """Whether it is proved that the requests do not fit on the units, or not in time, in any order."""
        return not self.contexts and len(self._unit_sets) < MOST_SETS

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """A lower bound on each term of the objective, given that the terms before are at theirs.

        The search stops when it has met them all.
        """
        terms, every = self._problem.objective.terms, [bounds for _, bounds in self.contexts]
        if len(self._unit_sets) >= MOST_SETS:  # not all sets of units are there: all units at once are less
            every = [self._bounds_of(list(map(Ways, self._arrays)))]
        found = [tuple(map(bounds.of, terms)) for bounds in every]
        return tuple(map(min, zip(*found, strict=True))) if found else (0,) * len(terms)

    @cached_property
    def _calm_order(self) -> tuple[int, ...] | None:
        """The order with the least (contention, displacement), or None if that is too hard to find."""
        if not self._shop.order_is_free:
            return tuple(range(self._shop.request_count))
        try:
            return order_by_contention(self._shop.high, self._shop.unit_count)
        except InvalidInputError:
            return None

    def run(self) -> None:
        """Search until the bounds are met, the time is up or, without a limit, the effort is spent.

        Where a proof may be found, most of the time goes into that; what is left, into the search again.
        """
        self._repair()
        self._search()
        if self.provable and not self._is_done(self._deadline) and not self.prove():
            self._resume()

    def _repair(self) -> None:
        """Keep what heuristics propose, repaired where it breaks something and would be the best plan.

        They know no sets of units. Everything on one unit comes first: there is a plan before any repair.
        """
        if not self._measure.demanding or self._deadline.left_s is None:  # long orders would take minutes
            return
        deadline = self._deadline.share(_REPAIRING)
        for context, _ in self.contexts:
            whole = map(context.schedule, serial_drafts(context))
            if any(map(self._take, takewhile(lambda _: not deadline.passed, whole))):
                break
        for key, schedule in quick_schedules(self._problem, deadline):
            made: Schedule | None = schedule
            if key[0]:
                best = self.kept.best
                if deadline.passed or (best is not None and key[1] >= best[1:]):
                    return  # repairs seldom make plans better, and those behind are no better to begin with
                made = downhill(self._problem, schedule, key, deadline)
            if made is not None and self._take(made):
                self._repaired.append(made)

    def _take(self, schedule: Schedule) -> bool:
        """Keep a schedule if it is wanted; return whether it is valid."""
        measured = self._measure.of(schedule)
        if self.kept.wants(measured.key):
            self.kept.add(measured.key, schedule)
        return measured.valid

    def _search(self) -> None:
        """Look for good plans, without proofs."""
        brief = self.provable
        deadline = self._deadline.share(1 / (_SEARCHING if brief else 1))
        effort = self._effort // max(1, len(self.contexts)) if self._counted or brief else None
        for number, (context, bounds) in enumerate(self.contexts):
            if deadline.passed and self.kept.best is not None:
                break
            own = deadline.share(1 / (len(self.contexts) - number + self._is_alignment))
            rng = random.Random(f"{self._seed} {number}")
            descent = Descent(context, self._measure, partial(self._prices, bounds), self.kept, rng)
            descent.begin(own)
            if self._is_done(own) and self.kept.best is not None:
                continue
            starts = self._early(self._starts(context, bounds, own), own)
            self.steps += descent.run(starts, effort, partial(self._is_done, own))
        if self._is_alignment and self.contexts and not self._is_done(deadline):
            self._align(self.contexts[0][0], deadline)

    def _resume(self) -> None:
        """Search on from the best schedule until the time is up."""
        schedules = self.kept.schedules
        if not schedules or self._deadline.left_s is None:
            return
        for context, bounds in self.contexts:
            draft = context.draft(schedules[0])
            if draft is not None:
                rng = random.Random(f"{self._seed} again")
                descent = Descent(context, self._measure, partial(self._prices, bounds), self.kept, rng)
                self.steps += descent.run([draft], None, partial(self._is_done, self._deadline))

    def _prices(self, bounds: TermBounds) -> Prices:
        return bounds.guiding if self._is_guided else bounds.prices

    def _starts(self, context: DraftContext, bounds: TermBounds, deadline: Deadline) -> Iterator[Draft]:
        """Yield drafts to start from that need prices."""
        yield from filter(None, map(context.draft, self._repaired))
        if self._is_guided:
            yield from guided_drafts(context, bounds.contention, deadline)
        yield from starting_drafts(context, self._prices(bounds), lambda: self._calm_order)
        if self._measure.demanding:
            yield from serial_drafts(context)

    @cached_property
    def provable(self) -> bool:
        """Whether a proof can be looked for, or better bounds: there are few requests, and time enough.

        All plans have to be those of the contexts, and the makespan has to say what is better.
        """
        left_s = self._deadline.left_s
        return (
            self._proof is not Proof.NEVER
            and len(self._unit_sets) < MOST_SETS
            and not self._measure.in_columns
            and self._problem.objective.terms[0] == Term.MAKESPAN
            and not self._problem.opaque_rules
            and (self._proof is Proof.ALWAYS or left_s is None or left_s >= _HURRY_S)
            and (self._proof is Proof.ALWAYS or BranchAndPrice.applies(self._shop))
        )

    def prove(self) -> bool:
        """Look for what is better than the best plan everywhere; return whether nothing was left out.

        Then the best plan is an optimum, and without one there is none.
        """
        proofs = [self._prove(number) for number in range(len(self.contexts))]
        self.proved = all(proofs)
        if self.proved and self.kept.best is not None:
            self.bounds = self.kept.best[1:]
        return self.proved

    def _is_unlikely(self, number: int) -> bool:
        """Return whether rules may keep plans far from the bound of a context, so that there is no proof."""
        best = self.kept.best
        hard = self._measure.demanding and self._proof is not Proof.ALWAYS
        return hard and best is not None and best[1] > _FAR * self._least[number]

    @cached_property
    def _parts(self) -> list[BranchAndPrice]:
        """Branch and price of each context, where it applies."""
        if not BranchAndPrice.applies(self._shop):
            return []
        groups = groups_of(self._problem)
        return [BranchAndPrice(*context, groups, self._measure, self.kept) for context in self.contexts]

    @cached_property
    def _least(self) -> list[int]:
        """A lower bound on the makespan in each context."""
        return [bounds.of(Term.MAKESPAN) for _, bounds in self.contexts]

    def _prove(self, number: int) -> bool:
        """Look for the proof in one context."""
        unlikely, left = self._is_unlikely(number), len(self.contexts) - number
        done, deadline = False, self._deadline.share((_UNLIKELY if unlikely else _PROVING) / left)
        if self._measure.is_longest_path or not self._parts:
            done = self._walk(*self.contexts[number], deadline)
        if self._parts and not done:
            most = _PROGRAMS if self._deadline.left_s is None else math.inf
            prove = partial(
                self._parts[number].prove, most_programs=most, on_bound=partial(self._raise, number)
            )
            done = prove(deadline)
            if not done and unlikely and not self._is_unlikely(number):  # its bounds have come near meanwhile
                done = prove(self._deadline.share(_PROVING / left))
        if done:
            best = self.kept.best
            self._raise(number, FORBIDDEN if best is None else best[1])
        return done

    def _walk(self, context: DraftContext, bounds: TermBounds, deadline: Deadline) -> bool:
        """Look at all plans that may be better, without branch and price for as long as there is time."""
        walk = Branching(
            context,
            bounds.prices.best,
            bounds.contention,
            self._settled,
            measure=self._measure,
            kept=self.kept,
            deadline=deadline,
            most_cuts=_CUTS if self._parts or deadline.left_s is None else math.inf,
        )
        return walk.prove()

    def _raise(self, number: int, bound_us: int) -> None:
        """Take in a better bound on the makespan in one context, and show it."""
        self._least[number] = max(self._least[number], bound_us)
        best, least = self.kept.best, min(self._least)
        if self.bounds[0] < least < FORBIDDEN:
            self.bounds = (least, *self.bounds[1:])
            if best is not None:
                self._on_better(best, self.kept.schedules[0])

    @cached_property
    def _settled(self) -> NDArray[np.bool_]:
        """Whether one request can be served before another without loss, shape (M, M)."""
        count = self._shop.request_count
        if not self._shop.order_is_free:
            return np.triu(np.ones((count, count), dtype=np.bool_), 1)
        found = np.zeros((count, count), dtype=np.bool_)
        for pair in neighbours_in(groups_of(self._problem)):
            found[pair] = True
        return found

    def _early(self, drafts: Iterator[Draft], deadline: Deadline) -> Iterator[Draft]:
        """Yield drafts to start from; once there is a plan, for a share of the time only."""
        early = deadline.share(1 / _STARTING)
        for draft in drafts:
            yield draft
            if early.passed and self.kept.best is not None:
                return

    @property
    def _is_guided(self) -> bool:
        """Whether the program behind the contention bound is about what is asked for."""
        return not self._measure.in_columns and self._measure.terms[0] == Term.MAKESPAN

    def stop(self) -> StopReason:
        """Return why the search has ended."""
        if self._measure.rejected > self._most_rejections:
            return StopReason.REJECTION_LIMIT
        return StopReason.TIME_LIMIT if self._deadline.passed else StopReason.COMPLETE

    def _is_done(self, deadline: Deadline) -> bool:
        if deadline.passed or self._measure.rejected > self._most_rejections:
            return True
        return self.kept.full and self.kept.best == (0, *self.bounds)

    @cached_property
    def _is_alignment(self) -> bool:
        """Whether the exact algorithm for columns bounds the first term: it needs a fixed order."""
        return (
            self._measure.in_columns
            and len(self._unit_sets) == 1
            and self._problem.objective.terms[0] == Term.MAKESPAN
            and not (self._shop.order_is_free and self._shop.request_count > 1)
        )

    def _align(self, context: DraftContext, deadline: Deadline) -> None:
        """Bound the makespan in columns; the least one without slowdown and constraints may be a plan."""
        best = self.kept.best
        if best is None or not columns_apply(context.networks, best[1]):
            return
        result = least_columns(context.networks, self._shop.chain_of, best[1], deadline)
        self.bounds = (max(self.bounds[0], result.bound_us), *self.bounds[1:])
        if result.places is not None:
            self._take(context.schedule(Draft(tuple(range(self._shop.request_count)), result.places)))

    @property
    def _effort(self) -> int:
        """The steps that are taken without a time limit."""
        count = self._shop.request_count
        steps = max(_STEPS, _PER_REQUEST * count // 2)
        return steps if self._measure.is_longest_path else min(steps, max(_FEWEST, _MEASURED // count))
