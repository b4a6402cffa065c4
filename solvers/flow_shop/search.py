"""Joint local search over the order and the cuts of a workload (formulations, section 6).

A step proposes another schedule and keeps it if it is not worse, or hardly. For the makespan the moves
re-plan single requests exactly (`Reinsertion`), so few steps go far; every other objective and every
constraint is served by moves that know less, and by measuring each proposal in full.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cached_property, partial
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import InvalidInputError
from ...formulations.flow_shop.space import groups_of, neighbours_in
from ...formulations.flow_shop.tables import Schedule, shop_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..protocol import NEVER, Deadline, StopReason
from ..repairing import downhill
from .arrays import FORBIDDEN, build_arrays
from .bounds import Prices, TermBounds
from .branch_and_price import BranchAndPrice
from .branching import Branching
from .columns import columns_apply, least_columns
from .descent import Descent
from .draft import Draft, DraftContext
from .guided import guided_drafts
from .measure import KeptSchedules, Key, Measure
from .ordering import order_by_contention
from .starts import quick_schedules, serial_drafts, starting_drafts
from .units import MOST_SETS, confine, unit_sets
from .ways import Ways

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
