"""The steps of the local search on one set of units."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from ...formulations.terms import Term
from ..protocol import Deadline
from .bounds import Prices
from .draft import Draft, DraftContext
from .line import Row, Sides, end_us, heads, tails
from .measure import KeptSchedules, Key, Measure, MeasuredSchedule
from .moves import Moves, Reinsertion, Stretch
from .starts import inserted

_STRETCH, _STRIDE = 20, 13
"""Positions that are looked at together, and by how many the next ones are further."""

_LONG_VISIT, _SHORT_VISIT = 40, 16
"""Steps at a stretch that is everything, and at one of many."""

_TEMPERATURES, _LEARNING = (0.05, 0.3), 0.05
"""Shares of the usual loss of a proposal, of which one is drawn for each visit: so large a loss is accepted
in one of e steps. How fast the usual loss is learnt."""

_KICKS = 3
"""Moves away from the best draft before the next visit."""

_PROMISING_PERMILLE, _ANYWAY = 1004, 0.1
"""Proposals whose estimated makespan is longer than this share of the present one are mostly not played,
because that takes longer than the estimate; share of those that are."""

_MOST_INSERTED = 40
"""Requests up to which a schedule to start from is built by insertion."""

_SERVED_BY_REINSERTION = (
    Term.MAKESPAN,
    Term.LATENCY,
    Term.IDLE,
    Term.BUBBLES,
)
_SERVED_BY_LEVELLING = (Term.PERIOD, Term.GAPNESS)

Step = Callable[[Draft, Stretch], Draft]


class Descent:
    """A search that walks from schedule to schedule.

    `prices`: good prices of the units; asked for once there are schedules to start from.
    """

    def __init__(
        self,
        context: DraftContext,
        measure: Measure,
        prices: Callable[[], Prices],
        kept: KeptSchedules,
        rng: random.Random,
    ) -> None:
        self._context, self._measure, self._kept, self._rng = context, measure, kept, rng
        self._prices = prices
        self._estimates = measure.terms[0] == Term.MAKESPAN and not measure.in_columns
        idle = (0,) * context.shop.unit_count
        self._whole = Stretch(
            start=0, stop=context.shop.request_count, sides=Sides(ready_us=idle, after_us=idle)
        )
        self._looked: dict[Draft, tuple[Key, MeasuredSchedule | None]] = {}
        self._rates: Sequence[Row] | None = None
        self._usual_loss: dict[int, float] = {}
        self._temperature = _TEMPERATURES[0]

    @cached_property
    def _moves(self) -> Moves:
        return Moves(self._context, self._prices().best, self._rng)

    @cached_property
    def _reinsertion(self) -> Reinsertion:
        return Reinsertion(self._context, self._moves.priced, self._rng)

    def begin(self, deadline: Deadline) -> None:
        """Look at what insertion makes, the second time with the slowdown that the first one shows.

        That takes a moment, and no prices: there is a plan before anything else is asked.
        """
        if not self._estimates or self._context.shop.request_count > _MOST_INSERTED:
            return
        shop = self._context.shop
        rates: Sequence[Row] | None = None
        if shop.losses.contended:  # as alone, but as ways with rates that remember no cuts (`Ways.slowed`)
            rates = [(1000,) * shop.unit_count] * shop.request_count
        for _ in range(1 + shop.losses.contended):
            draft = inserted(self._context, rates, deadline)
            if draft is None:
                return
            self._looked[draft] = self._look(draft, self._whole)
            measured = self._looked[draft][1]
            if measured is not None:
                rates = realised_rates(measured)

    def run(self, starts: Iterable[Draft], steps: int | None, done: Callable[[], bool]) -> int:
        """Walk from the best of some drafts; return the number of steps.

        `done`: asked after each valid one of the first drafts, and before each step.
        """
        looked = self._looked
        for draft in starts:
            if draft not in looked:
                looked[draft] = self._look(draft, self._whole)
                valid = looked[draft][0][0] == 0
                if valid and done():
                    break
        self._draft, (self._key, measured) = min(looked.items(), key=lambda entry: entry[1][0])
        self._best = self._key, self._draft
        self._settle(measured)
        taken = 0
        for stretch, visit in self._visits():
            for _ in range(visit):
                if taken == steps or done():
                    return taken
                taken += 1
                self._step(stretch)
        return taken

    @cached_property
    def _mix(self) -> dict[Step, int]:
        """The kinds of steps, with how often they are taken."""
        if self._measure.is_longest_path:
            return {self._reinserted: 1}
        moves = self._moves
        mix: dict[Step, int] = {
            lambda draft, _: moves.reprice(draft): 2,
            lambda draft, _: moves.shift(draft): 2,
            lambda draft, _: moves.shift(moves.shift(draft)): 1,
            lambda draft, _: moves.scatter(draft): 1,
            lambda draft, _: moves.scatter(moves.shift(draft)): 1,
            lambda draft, _: moves.reorder(draft): 1 + self._context.shop.order_is_free,
        }
        term = self._measure.terms[0]
        if self._measure.in_columns and term in _SERVED_BY_REINSERTION:
            mix[lambda draft, _: moves.level_columns(draft)] = 10
        elif term in _SERVED_BY_REINSERTION:
            mix[self._reinserted] = 10
        elif term in _SERVED_BY_LEVELLING:
            mix[lambda draft, _: moves.level_loads(draft)] = 5
        return mix

    def _reinserted(self, draft: Draft, stretch: Stretch) -> Draft:
        known = self._measure.is_longest_path
        limit_us = self._key[1] if known else self._end_us(draft, stretch)
        return self._reinsertion(draft, self._rates, stretch, limit_us)

    def _step(self, stretch: Stretch) -> None:
        """Propose, and keep what is not worse or only a little."""
        propose = self._rng.choices(list(self._mix), list(self._mix.values()))[0]
        draft = propose(self._draft, stretch)
        if draft == self._draft or not self._is_promising(draft, stretch):
            return
        key, measured = self._look(draft, stretch)
        if key < self._best[0]:
            self._best = key, draft
        if self._accepts(key):
            self._key, self._draft = key, draft
            self._settle(measured)

    def _look(self, draft: Draft, stretch: Stretch) -> tuple[Key, MeasuredSchedule | None]:
        """Return the key of a draft; good valid ones are kept."""
        measured = None
        if self._measure.is_longest_path:
            key: Key = (0, self._end_us(draft, stretch))
        else:
            measured = self._measure.of(self._context.schedule(draft))
            key = measured.key
        if self._kept.wants(key):
            self._kept.add(key, self._context.schedule(draft))
        return key, measured

    def _end_us(self, draft: Draft, stretch: Stretch) -> int:
        """Return the makespan without barriers and slots, with the slowdown of the last schedule."""
        order = draft.order[stretch.start : stretch.stop]
        arrivals = [self._context.arrivals_us[request] for request in order]
        return end_us(self._context.rows(draft, order, self._rates), arrivals, stretch.sides)

    def _is_promising(self, draft: Draft, stretch: Stretch) -> bool:
        """Return whether a draft is worth being played: its makespan is estimated to be short."""
        if not self._estimates or self._measure.is_longest_path or self._key[0]:
            return True
        if self._rng.random() < _ANYWAY:
            return True
        return 1000 * self._end_us(draft, stretch) <= _PROMISING_PERMILLE * self._key[1]

    def _accepts(self, key: Key) -> bool:
        """Accept what is not worse, and small losses now and then: small among those that were proposed."""
        if key <= self._key:
            return True
        index = next(i for i, (new, old) in enumerate(zip(key, self._key, strict=True)) if new != old)
        loss = key[index] - self._key[index]
        usual = self._usual_loss.get(index, float(loss))
        self._usual_loss[index] = usual + _LEARNING * (loss - usual)
        return self._rng.random() < math.exp(-loss / (self._temperature * usual))

    def _settle(self, measured: MeasuredSchedule | None) -> None:
        """Learn from the schedule that is walked from by how much slowdown stretches its chunks."""
        if measured is None or not self._context.shop.losses.contended:
            return
        self._rates = realised_rates(measured)

    def _visits(self) -> Iterator[tuple[Stretch, int]]:
        """Yield stretches to look at, for ever, each with a number of steps; then go on from the best."""
        count = self._context.shop.request_count
        while True:
            if count <= _STRETCH:
                yield self._whole, _LONG_VISIT
            else:
                yield from self._sweep(count)
            self._temperature = self._rng.choice(_TEMPERATURES)
            self._draft = self._best[1]
            for _ in range(self._rng.randint(0, _KICKS)):
                kick = self._rng.choice((self._moves.reprice, self._moves.shift, self._moves.reorder))
                self._draft = kick(self._draft)
            self._key, measured = self._look(self._draft, self._whole)
            self._settle(measured)

    def _sweep(self, count: int) -> Iterator[tuple[Stretch, int]]:
        """Go through the order once; what lies behind a stretch does not change before it is reached."""
        at, ready = 0, self._whole.sides.ready_us
        behind = tails(*self._ordered(0, count), self._whole.sides)
        for corner in range(-self._rng.randrange(_STRIDE), count, _STRIDE):
            start, stop = max(corner, 0), min(corner + _STRETCH, count)
            ready = heads(*self._ordered(at, start), ready)[-1]
            at = start
            after, late = behind[stop]
            sides = Sides(ready_us=ready, after_us=after, late_us=late)
            yield Stretch(start=start, stop=stop, sides=sides), _SHORT_VISIT

    def _ordered(self, start: int, stop: int) -> tuple[list[Row], list[int]]:
        """Return rows and arrivals of some positions."""
        order = self._draft.order[start:stop]
        arrivals = [self._context.arrivals_us[request] for request in order]
        return self._context.rows(self._draft, order, self._rates), arrivals


def realised_rates(measured: MeasuredSchedule) -> list[Row]:
    """Return how much longer than alone each request took on each unit, permille by request.

    A unit that a request does not use has the mean of the others there.
    """
    values = measured.values
    spent, work = [0] * values.tables.unit_count, [0] * values.tables.unit_count
    for run in values.runs:
        spent[run.unit] += run.end_us - run.start_us
        work[run.unit] += run.work_us
    means = [1000 * took // own if own else 1000 for took, own in zip(spent, work, strict=True)]
    rates = [list(means) for _ in range(values.tables.request_count)]
    for run in values.runs:
        rates[run.request][run.unit] = 1000 * (run.end_us - run.start_us) // run.work_us
    return [tuple(row) for row in rates]
