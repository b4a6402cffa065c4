"""The local search on one set of units: its moves, and the steps that take them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...formulations.terms import Term
from ..protocol import Deadline
from .arrays import FORBIDDEN, Ints
from .bounds import Prices, scaled
from .draft import Draft, DraftContext, Places, Row, Sides, end_us, heads, put_back, slowed, tails
from .measure import KeptSchedules, Key, Measure, MeasuredSchedule
from .starts import inserted

_NOISE = 0.7
"""Standard deviation of the logarithm of prices when they are drawn again."""

_COLUMN_NOISE = 0.4
"""The same of the columns that a request is fitted to for a try."""

_LESS_WORK = 10
"""Of cuts that are equally good, the ones with less work: it counts 1 in two to the power of this."""

_SURPRISE_FREE, _SURPRISE_FIXED = 0.2, 0.9
"""How often a third request is cut otherwise before: with a fixed order nothing else brings variety."""

_LOOSER = 4
"""A request that does not fit by the end of the plan may make it this many times as long for now."""


class Moves:
    """The moves that serve any objective.

    `prices`: good prices of the units, shape (K,).
    """

    def __init__(self, context: DraftContext, prices: Ints, rng: random.Random) -> None:
        self._context, self._prices, self._rng = context, prices, rng

    def reprice(self, draft: Draft) -> Draft:
        """Give one or two requests the cheapest cuts at other prices."""
        count = min(len(draft.order), self._rng.choice((1, 1, 2)))
        chosen = self._rng.sample(draft.order, count)
        return draft.with_places({request: self.priced(request) for request in chosen})

    def priced(self, request: int) -> Places:
        """Return the cheapest cuts of a request at prices around the good ones."""
        noise = [math.exp(self._rng.gauss(0, _NOISE)) for _ in self._prices]
        prices = scaled((self._prices + 1) * np.array(noise))
        places: Places = tuple(self._context.ways(request).least_priced(prices[None, :])[1][0].tolist())
        return places

    def shift(self, draft: Draft) -> Draft:
        """Move one cut of one request, to anywhere between its neighbours."""
        request = self._rng.choice(draft.order)
        places = list(draft.places[request])
        if len(places) < 3:
            return draft
        index = self._rng.randrange(1, len(places) - 1)
        low, high = places[index - 1], places[index + 1]
        if self._rng.random() < 0.5:
            low, high = max(low, places[index] - 1), min(high, places[index] + 1)
        places[index] = self._rng.randint(low, high)
        if not self._context.ways(request).allows(places):
            return draft
        return draft.with_places({request: tuple(places)})

    def scatter(self, draft: Draft) -> Draft:
        """Cut one request anywhere."""
        request = self._rng.choice(draft.order)
        size, units = self._context.ways(request).size, self._context.shop.unit_count
        inner = sorted(self._rng.randint(0, size) for _ in range(units - 1))
        places = (0, *inner, size)
        return draft.with_places({request: places}) if self._context.ways(request).allows(places) else draft

    def reorder(self, draft: Draft) -> Draft:
        """Exchange two requests, or take one to another position; nothing if the order is fixed."""
        if not self._context.shop.order_is_free or len(draft.order) < 2:
            return draft
        order = list(draft.order)
        one, other = self._rng.sample(range(len(order)), 2)
        if self._rng.random() < 0.5:
            order[one], order[other] = order[other], order[one]
        else:
            order.insert(other, order.pop(one))
        return replace(draft, order=tuple(order))

    def level_columns(self, draft: Draft) -> Draft:
        """Recut some neighbours as if their columns were otherwise, then all around them as they are."""
        if self._rng.random() < 0.3:
            draft = self.reorder(draft)
        count, reach = len(draft.order), self._context.shop.unit_count
        first = self._rng.randrange(count)
        stop = min(count, first + self._rng.randint(1, 3))
        for position in range(first, stop):
            beside = self._beside(draft, position)
            noisy = [int(time * math.exp(self._rng.gauss(0, _COLUMN_NOISE))) for time in beside]
            draft = self._recut(draft, draft.order[position], np.maximum, noisy, np.add)
        near = range(max(0, first - reach + 1), min(count, stop + reach - 1))
        for position in self._rng.sample(near, len(near)):
            beside = self._beside(draft, position)
            draft = self._recut(draft, draft.order[position], np.maximum, beside, np.add)
        return draft

    def level_loads(self, draft: Draft) -> Draft:
        """Recut two requests, one after the other, so that the largest load is small."""
        for request in self._rng.sample(draft.order, min(2, len(draft.order))):
            rows = self._context.rows(draft, range(len(draft.order)))
            others = [sum(times) - times[request] for times in zip(*rows, strict=True)]
            draft = self._recut(draft, request, np.add, others, np.maximum)
        return draft

    def _beside(self, draft: Draft, position: int) -> Row:
        """Return the longest chunk of the others in each column that a position takes part in."""
        units = range(self._context.shop.unit_count)
        longest = [0] * len(units)
        for other in range(max(0, position - len(units) + 1), min(len(draft.order), position + len(units))):
            if other != position:
                request = draft.order[other]
                row = self._context.row(request, draft.places[request])
                for unit in units:
                    own = unit + other - position
                    if 0 <= own < len(units):
                        longest[own] = max(longest[own], row[unit])
        return tuple(longest)

    def _recut(
        self, draft: Draft, request: int, beside: np.ufunc, others: Sequence[int], along: np.ufunc
    ) -> Draft:
        """Recut a request to the least `along`, over the units, of `beside`(others, its own time)."""
        times = self._context.ways(request).arrays.times
        best = np.full(times.shape[1], FORBIDDEN)
        best[0] = 0
        starts = []
        for unit, other in enumerate(others):
            cost = beside(other, times[unit])
            if along is np.add:
                cost = cost + (times[unit] >> _LESS_WORK)
            total = along(best[:, None], cost)
            start = total.argmin(axis=0)
            starts.append(start)
            best = np.minimum(total[start, np.arange(len(start))], FORBIDDEN)
        if best[-1] >= FORBIDDEN:
            return draft
        places = [len(best) - 1]
        for start in reversed(starts):
            places.append(int(start[places[-1]]))
        return draft.with_places({request: tuple(reversed(places))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Positions [start, stop) of the order, with what is around them."""

    start: int
    stop: int
    sides: Sides


class Reinsertion:
    """The move that shortens the makespan: takes two requests out, and puts each back where it fits best.

    Both are of one stretch, and the first gets a second try.
    """

    def __init__(self, context: DraftContext, recut: Callable[[int], Places], rng: random.Random) -> None:
        self._context, self._recut, self._rng = context, recut, rng
        self._surprise = _SURPRISE_FREE if context.shop.order_is_free else _SURPRISE_FIXED

    def __call__(self, draft: Draft, rates: Sequence[Row] | None, stretch: Stretch, limit_us: int) -> Draft:
        """Return a draft whose stretch may be shorter.

        `rates`: by how much slowdown stretches each request on each unit, permille by request; None: not.
        """
        work = _Work(self._context, draft, rates, stretch, self._rng)
        chosen = self._choose(work.order)
        if len(work.order) > len(chosen) and self._rng.random() < self._surprise:
            near = self._choose([request for request in work.order if request not in chosen])[0]
            work.recut(near, self._recut(near))
            chosen.append(near)
        for request in chosen[:2]:
            work.take(request)
        for request in chosen[:2]:
            if not (work.put(request, limit_us) or work.put(request, _LOOSER * limit_us)):
                return draft
        for request in (*chosen[2:], *chosen[:1]):
            work.retry(request)
        return work.draft()

    def _choose(self, order: list[int]) -> list[int]:
        if self._context.shop.order_is_free or len(order) < 2:
            return self._rng.sample(order, min(2, len(order)))
        reach = self._context.shop.unit_count
        first = self._rng.randrange(len(order))
        near = [at for at in range(first - reach, first + reach + 1) if 0 <= at < len(order) and at != first]
        return [order[first], order[self._rng.choice(near)]]


class _Work:
    """A stretch at work: requests are taken out and put back."""

    def __init__(
        self,
        context: DraftContext,
        draft: Draft,
        rates: Sequence[Row] | None,
        stretch: Stretch,
        rng: random.Random,
    ) -> None:
        self._context, self._draft, self._rates, self._stretch, self._rng = (
            context,
            draft,
            rates,
            stretch,
            rng,
        )
        self._fixed = not context.shop.order_is_free
        self.order = list(draft.order[stretch.start : stretch.stop])
        self._rows = {request: self._row(request, draft.places[request]) for request in self.order}
        self._changes: dict[int, Places] = {}
        self._nothing = (0,) * context.shop.unit_count

    def _row(self, request: int, places: Places) -> Row:
        row = self._context.row(request, places)
        return row if self._rates is None else slowed(row, self._rates[request])

    def take(self, request: int) -> None:
        """Take a request out; with a fixed order it keeps its position, without work."""
        self._rows[request] = self._nothing
        if not self._fixed:
            self.order.remove(request)

    def put(self, request: int, limit_us: int) -> bool:
        """Put a request back so that the plan ends early; return whether it ends in time."""
        ways = self._context.ways(request)
        if self._rates is not None:
            ways = ways.slowed(self._rates[request])
        spot = put_back(
            ways,
            self._context.arrivals_us[request],
            (self._in_order(), self._arrivals()),
            self._stretch.sides,
            limit_us=limit_us,
            rng=self._rng,
            indices=(self.order.index(request),) if self._fixed else None,
        )
        if spot is None:
            return False
        self._set(request, spot.index, spot.places)
        return True

    def recut(self, request: int, places: Places) -> None:
        """Cut a request otherwise, where it is."""
        self._changes[request] = places
        self._rows[request] = self._row(request, places)

    def retry(self, request: int) -> None:
        """Take a request out and put it back if that makes the plan shorter."""
        limit_us = end_us(self._in_order(), self._arrivals(), self._stretch.sides)
        index, places = self.order.index(request), self._changes[request]
        self.take(request)
        if not self.put(request, limit_us - 1):
            self._set(request, index, places)

    def draft(self) -> Draft:
        """Return the draft as it is now."""
        start, stop = self._stretch.start, self._stretch.stop
        order = (*self._draft.order[:start], *self.order, *self._draft.order[stop:])
        return replace(self._draft.with_places(self._changes), order=order)

    def _set(self, request: int, index: int, places: Places) -> None:
        self.recut(request, places)
        if not self._fixed:
            self.order.insert(index, request)

    def _in_order(self) -> list[Row]:
        return [self._rows[request] for request in self.order]

    def _arrivals(self) -> list[int]:
        return [self._context.arrivals_us[request] for request in self.order]


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
