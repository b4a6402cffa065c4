"""A lower bound on the makespan by two requests that are played exactly; others pay prices.

Two requests that run beside each other at least cost: labels, level by level. One of the
two decides, the other one has a chunk in progress: a label is what was paid so far, and how long the chunk
would still take alone. Where both wait it is only what was paid. A label is worse than one of the same key
that has paid no more and has no longer to go: it can begin everything when the worse one does.

A chunk may begin at any time while that of the other one runs. It only matters if it still runs when the
other one ends; then more of a delay means less company, and more to go. Pieces cover such delays, each with
the least of both that it can have: what is left beyond its end costs at least `slope` per microsecond, as it
does in the cheapest company.

A lower bound on the makespan by two requests that are played exactly; others pay prices, or are left out.
What prices do not see is waiting: a chunk that has begun stays where it is. So two requests play a game:
chunks over blocks of layers, begun at any time, at the least cost. Where others are left
out, a microsecond costs one, and the least is a bound: take the others out of a schedule, and let the two
begin as before; they end no later. Where others pay prices (`solvers/contention.py`), a microsecond of the
two costs what the others leave of it (`pair_ways.py`), and their priced work is added.

The play's clock takes up to a microsecond off what a chunk loses to one that it meets. Of two that meet, the
later one is cheaper by what both can gain, at what their work costs in the worst company. Floating point is
off by far less than the thousandth of a microsecond that is taken off in the end.

A bound holds up to any limit at which the game is broken off, and the lower it is, the less there is to play:
limits rise while there is time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, log

import numpy as np
from numpy.typing import NDArray

from ..contention import PRICE_SCALE, Floats, Ints, Program
from ..protocol import NEVER, Deadline
from .pair_ways import Blocks, Modes, ModeSets, Steps, blocks_of, lowered, modes_of
from .passages import Instance

_FIRST_PIECE = 0.1
"""Size of the piece that ends with a start at once, as a share of the largest; those before it are as large
as they are far from it."""

_NOTHING, _TINY = 1e-6, 1e-12
"""What a delay saves at most where it is not looked at; what no division is by less than."""

_MEASURED, _SPEED = 20_000, 150_000
"""Labels after which their number per second is known, and what it is said to be before."""

_LEAST_ROOM, _EARLY, _EVEN = 100, 3.0, 0.5
"""Labels of a level for which there is always time; how many times more than their share the first levels may
have, which are small; and the least share of a level, in parts of the mean."""

_AT_ONCE = 20_000
"""Labels that are expanded at once."""


@dataclass(slots=True)
class _Labels:
    """Labels: `who` decides at a border, the other one is on a unit until a border."""

    who: Ints
    border: Ints
    unit: Ints
    until: Ints
    paid: Floats
    left: Floats  # of the other one's chunk, alone

    def at(self, rows: Ints | NDArray[np.bool_]) -> _Labels:
        """Return some of them."""
        return _Labels(
            self.who[rows],
            self.border[rows],
            self.unit[rows],
            self.until[rows],
            self.paid[rows],
            self.left[rows],
        )


@dataclass(slots=True)
class _Begun:
    """Chunks that begin beside others: labels, and what their deciders do."""

    labels: _Labels
    unit: Ints
    stop: Ints
    work: Floats
    cost: Floats
    own_us: Floats  # how long both run if the chunk ends first
    other_us: Floats  # if that of the other one does

    def at(self, rows: Ints | NDArray[np.bool_]) -> _Begun:
        """Return some of them."""
        return _Begun(
            self.labels.at(rows),
            self.unit[rows],
            self.stop[rows],
            self.work[rows],
            self.cost[rows],
            self.own_us[rows],
            self.other_us[rows],
        )


Waiting = tuple[Ints, Floats, Floats]
"""Keys of labels of a level (who decides, at which border, and the unit of the other one), what was paid, and
what is left."""


class Game:
    """What two requests pay at least together, if that is less than a limit.

    `prices`: at which no mode costs less than its work, by [who][unit]. `piece`: what a piece of a delay may
    cost too little.
    """

    def __init__(self, modes: Modes, steps: tuple[Steps, Steps], prices: Floats, piece: float) -> None:
        self.modes, self.steps, self.prices, self.piece = modes, steps, prices, piece
        self.seen = self.dropped = 0  # labels
        self._best, self._deadline = inf, NEVER
        self._levels: list[list[Waiting]] = []
        self._profile: Floats = np.arange(1.0, sum(own.count for own in steps) + 2)
        """How many labels each level may have, compared with others: as many as in the game before."""
        self._prepare()

    @property
    def root(self) -> float:
        """What they pay at least at the prices."""
        return float(sum(steps.rest[0] for steps in self.steps))

    def least(self, most: float, deadline: Deadline = NEVER) -> float:
        """Return what they pay at least, or the limit if that is more.

        The limit sinks where there is no time for all labels: to what the first one that is dropped comes to.
        """
        self._best, self._deadline = most, deadline
        begun_s, self.seen, self.dropped = deadline.now(), 0, 0
        one, other = self.steps
        idle = self._idle
        idle[:] = inf
        idle[0, 0] = 0.0
        self._levels = [[] for _ in range(one.count + other.count + 1)]
        counts = np.zeros(len(self._levels))
        for level, labels in enumerate(self._levels):
            before = self.seen
            if labels:
                self._expand(level, labels, self._room(begun_s, level))
                labels.clear()
            counts[level] = self.seen - before
            first = np.arange(max(0, level - other.count), min(one.count, level) + 1)
            self._begin(first, level - first)
        if not self.dropped and self.seen:
            self._profile = np.maximum(counts, _EVEN * self.seen / len(counts))
        return self._best

    def _prepare(self) -> None:
        one, other = self.steps
        self._span = max(one.count, other.count) + 1
        self._units = self.modes.alone.shape[1]
        self._idle: Floats = np.full((one.count + 1, other.count + 1), inf)
        rest, last = np.full((2, self._span), inf), np.full((2, self._span), inf)
        for who, steps in enumerate(self.steps):
            rest[who, : steps.count + 1], last[who, : steps.count + 1] = steps.rest, steps.last
        self._rest, self._last = rest, last
        # numbers of 16 bits are sorted several times as fast
        self._small = np.int16 if 2 * self._span * self._units < 2**15 else np.int64
        self._counts = np.array([one.count, other.count])
        self._unit = np.concatenate([one.unit, other.unit])
        self._stop = np.concatenate([one.stop, other.stop])
        self._work = np.concatenate([one.work, other.work])
        self._less = np.concatenate([one.less, other.less])
        self._far = 1.0 + max(own.excess.max(initial=0.0) for own in self.steps)
        first = np.zeros(2 * self._span + 1, dtype=np.int64)
        sorted_by = []
        for who, own in enumerate(self.steps):
            offset = who * len(one.unit)
            first[who * self._span : who * self._span + own.count + 2] = own.first + offset
            if own.count + 2 <= self._span:
                first[who * self._span + own.count + 2 : (who + 1) * self._span] = own.first[-1] + offset
            groups = np.repeat(np.arange(own.count + 1), np.diff(own.first))
            sorted_by.append((who * self._span + groups) * self._far + own.excess)
        first[-1] = len(self._unit)
        self._first, self._sorted = first, np.concatenate(sorted_by)
        cost, rate, alone = self.modes.cost, self.modes.rate, self.modes.alone
        beside = np.isfinite(cost)
        back = rate[::-1].transpose(0, 2, 1)  # of the other one
        safe = np.where(beside, cost, 0.0)
        company = np.where(
            beside, safe - np.where(np.isfinite(alone), alone, 0.0)[::-1][:, None, :] * back, inf
        )
        self._company = np.maximum(company, 0.0)
        gain = np.where(beside, self._company / rate, inf).min(axis=2)
        self._slope = np.minimum(gain, alone)
        grid = [0.0, _FIRST_PIECE * self.piece]
        while grid[-1] < self.piece:
            grid.append(2 * grid[-1])
        most = max(float(own.work.max(initial=0.0)) for own in self.steps) / float(rate.min())
        self._grid = np.append(grid, np.arange(grid[-1], most + 2 * self.piece, self.piece)[1:])

    def _begin(self, first: Ints, second: Ints) -> None:
        """Let one of two that wait begin; the other one decides at once, or goes on to wait."""
        paid = self._idle[first, second]
        good = paid + self._rest[0, first] + self._rest[1, second] < self._best
        first, second, paid = first[good], second[good], paid[good]
        if not len(paid):
            return
        for who, (own, others) in enumerate(((first, second), (second, first))):
            done = own == self._counts[who]
            self._finish(paid[done] + self._last[1 - who, others[done]])
            slack = self._best - paid - self._rest[who, own] - self._rest[1 - who, others]
            rows, steps = self._possible(who * self._span + own, slack)
            unit, stop, work = self._unit[steps], self._stop[steps], self._work[steps]
            now = paid[rows] - self._less[steps]
            ended = others[rows] == self._counts[1 - who]
            going = ~ended
            self._push(
                _Labels(
                    np.full(int(going.sum()), 1 - who),
                    others[rows][going],
                    unit[going],
                    stop[going],
                    now[going],
                    work[going],
                )
            )

    def _possible(self, groups: Ints, slack: Floats) -> tuple[Ints, Ints]:
        """Return labels and steps that are possible from their borders within what may still be lost."""
        limit = groups * self._far + np.minimum(slack, self._far * (1 - 1e-12))
        counts = np.searchsorted(self._sorted, limit) - self._first[groups]
        counts = np.maximum(counts, 0)
        rows = np.repeat(np.arange(len(groups)), counts)
        begun = np.cumsum(counts) - counts
        steps = np.arange(len(rows)) - begun[rows] + self._first[groups][rows]
        return rows, steps

    def _finish(self, paid: Floats) -> None:
        if len(paid):
            self._best = min(self._best, float(paid.min()))

    def _push(self, labels: _Labels) -> None:
        """Put labels on their levels that may still come to less than the best."""
        own = labels.at(np.flatnonzero(self._total(labels) < self._best))
        other = 1 - own.who
        alone = self.modes.alone[other, own.unit] * own.left + self._last[other, own.until]
        own = own.at(
            np.flatnonzero(own.paid + np.maximum(alone, self._last[own.who, own.border]) < self._best)
        )
        level = own.border + own.until
        key = ((own.who * self._span + own.border) * self._units + own.unit).astype(self._small)
        order = np.argsort(level.astype(self._small), kind="stable")
        level, key, paid, left = level[order], key[order], own.paid[order], own.left[order]
        cuts = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), len(level)]
        for begin, end in pairwise(cuts if len(level) else ()):
            self._levels[int(level[begin])].append((key[begin:end], paid[begin:end], left[begin:end]))

    def _room(self, begun_s: float, level: int) -> int:
        """Return how many labels of a level there is time for."""
        left_s = self._deadline.left_s
        if left_s is None:
            return sys.maxsize
        spent_s = self._deadline.now() - begun_s
        speed = self.seen / spent_s if self.seen > _MEASURED else _SPEED
        share = self._profile[level] / self._profile[level:].sum()
        early = 1 + _EARLY * (1 - level / len(self._profile))
        return _LEAST_ROOM + int(early * speed * left_s * share)

    def _expand(self, level: int, parts: list[Waiting], most: int) -> None:
        """Let the labels of a level decide, or the best ones of them."""
        key, paid, left = (np.concatenate(column) for column in zip(*parts, strict=True))
        kept = _undominated(key, paid, left)
        groups, unit = np.divmod(key[kept].astype(np.int64), self._units)
        who, border = np.divmod(groups, self._span)
        labels = self._wait(_Labels(who, border, unit, level - border, paid[kept], left[kept]))
        total = self._total(labels)
        if len(total) > most:
            self.dropped += len(total) - most
            self._best = min(self._best, float(np.partition(total, most)[most]))
        labels = labels.at(np.flatnonzero(total < self._best))
        self.seen += len(labels.paid)
        for begin in range(0, len(labels.paid), _AT_ONCE):
            self._decide(labels.at(np.arange(begin, min(begin + _AT_ONCE, len(labels.paid)))))

    def _total(self, labels: _Labels) -> Floats:
        """Return what labels come to at least at prices."""
        other = 1 - labels.who
        rest = self._rest[labels.who, labels.border] + self._rest[other, labels.until]
        found: Floats = labels.paid + self.prices[other, labels.unit] * labels.left + rest
        return found

    def _wait(self, labels: _Labels) -> _Labels:
        """Let those who decide wait for the end of the other one's chunk; return the labels that are left.

        Where both can wait at the same borders for no more, a label is behind.
        """
        first = np.where(labels.who == 0, labels.border, labels.until)
        second = np.where(labels.who == 0, labels.until, labels.border)
        until_end = self.modes.alone[1 - labels.who, labels.unit] * labels.left
        np.minimum.at(self._idle, (first, second), labels.paid + until_end)
        return labels.at(np.flatnonzero(labels.paid < self._idle[first, second]))

    def _decide(self, labels: _Labels) -> None:
        """Let those who decide begin whatever they can."""
        who = labels.who
        slack = self._best - self._total(labels)
        rows, steps = self._possible(who * self._span + labels.border, slack)
        cost = self.modes.cost[who[rows], self._unit[steps], labels.unit[rows]]
        good = np.flatnonzero(np.isfinite(cost))
        labels, steps, cost = labels.at(rows[good]), steps[good], cost[good]
        labels.paid -= self._less[steps]
        unit, work, rate = self._unit[steps], self._work[steps], self.modes.rate
        own_us = work / rate[labels.who, unit, labels.unit]
        other_us = labels.left / rate[1 - labels.who, labels.unit, unit]
        begun = _Begun(labels, unit, self._stop[steps], work, cost, own_us, other_us)
        self._own_first(begun.at(np.flatnonzero(own_us < other_us)))
        self._other_first(begun)

    def _own_first(self, begun: _Begun) -> None:
        """Go on where the chunk that begins ends first."""
        labels, stop = begun.labels, begun.stop
        who, other = labels.who, 1 - labels.who
        paid = labels.paid + begun.cost * begun.own_us
        rate = self.modes.rate[other, labels.unit, begun.unit]
        left = np.maximum(labels.left - rate * begun.own_us, 0.0)
        done = stop == self._counts[who]
        alone = self.modes.alone[other, labels.unit] * left + self._last[other, labels.until]
        self._finish((paid + alone)[done])
        self._push(_Labels(who, stop, labels.unit, labels.until, paid, left).at(~done))

    def _other_first(self, begun: _Begun) -> None:
        """Go on where the chunk in progress ends before the one that begins, now or later."""
        labels, unit, stop = begun.labels, begun.unit, begun.stop
        who, other = labels.who, 1 - labels.who
        both_us = np.minimum(begun.own_us, begun.other_us)
        rate, company = self.modes.rate[who, unit, labels.unit], self._company[who, unit, labels.unit]
        paid = labels.paid + self.modes.alone[other, labels.unit] * labels.left
        lost = np.maximum(
            company - self._slope[who, unit] * rate, 0.0
        )  # by a start at once, each microsecond
        left = np.maximum(begun.work - rate * both_us, 0.0)
        done = labels.until == self._counts[other]
        alone = self.modes.alone[who, unit] * left + self._last[who, stop]
        self._finish((paid + company * both_us + alone)[done])
        price, total = self.prices[who, unit], lost * both_us
        slack = self._best - (paid + company * both_us + price * left)
        slack -= self._rest[who, stop] + self._rest[other, labels.until]
        span = np.minimum(total, self._far_enough(slack, price * rate - company, lost))
        is_piece = total > _NOTHING
        now = (slack > 0) & (begun.own_us >= begun.other_us)
        going = np.flatnonzero(~done & np.where(is_piece, span > 0, now))
        counts = np.where(is_piece[going], np.searchsorted(self._grid, span[going]), 1)
        rows = np.repeat(going, counts)
        number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin = np.where(is_piece[rows], self._grid[number], 0.0)
        size = np.where(is_piece[rows], np.minimum(self._grid[number + 1], total[rows]) - begin, 0.0)
        both_us = both_us[rows] - begin / np.maximum(lost[rows], _TINY)
        paid = paid[rows] + company[rows] * both_us - size
        left = np.maximum(begun.work[rows] - rate[rows] * both_us, 0.0)
        self._push(_Labels(other[rows], labels.until[rows], unit[rows], stop[rows], paid, left))

    def _far_enough(self, slack: Floats, dearer: Floats, lost: Floats) -> Floats:
        """Return how far the pieces of a delay may begin from a start at once, in what a start at once loses.

        `slack`: what may still be lost with a start at once; `dearer`: what a microsecond of delay costs at
        prices. A piece costs at most its size too little: `piece`, or how far it is, or the first size.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = np.where(dearer > 0, (slack + self.piece) * lost / dearer, inf)
            growing = np.where(dearer > lost, (slack + self._grid[1]) * lost / (dearer - lost), inf)
        found: Floats = np.maximum(np.minimum(whole, growing), 0.0)
        return found


def _undominated(key: Ints, paid: Floats, left: Floats) -> Ints:
    """Return the labels that no other one of the same key beats."""
    order = np.argsort(paid)
    order = order[np.argsort(key[order], kind="stable")]
    sorted_key, sorted_left = key[order], left[order]
    group = np.cumsum(np.diff(sorted_key, prepend=sorted_key[0]) != 0)
    shifted = sorted_left - group * (2.0 + float(left.max(initial=0.0)))
    least: Floats = np.minimum.accumulate(shifted)
    kept: NDArray[np.bool_] = np.ones(len(order), dtype=np.bool_)
    kept[1:] = shifted[1:] < least[:-1]
    chosen: Ints = order[kept]
    return chosen


_SHORT_US, _SHORT_SHARE = 3_500.0, 1 / 80
"""How long the fastest unit may take for a block of several sections, also as a share of the makespan."""

_PIECE_SHARE, _FINER = 1 / 500, 0.25
"""Size of the pieces of a delay, as a share of the makespan; what finer ones are in parts of it."""

_HEAVY_SHARE = 0.1
"""A request is heavy that takes so much of the bound alone, and needs several units for that. With more than
two of them a pair says less than prices of all."""

_FIRST_STEP, _LEAST_STEP, _LARGEST_STEP = 0.1, 0.02, 0.3
"""By how much a limit rises, in parts of the gap at the beginning."""

_GROWTH, _SLOWER = 4.0, 0.7
"""The logarithm of how many times as long a game takes at least whose limit is higher by that gap; how much
slower than before that grows."""

_FAR_BELOW = 0.02
"""A game is not played whose prices say so much less than what is known."""

_LEAST_S = 0.02
"""Seconds that a game is said to take at least."""

_SAFE_US = 1e-3
"""More than floating point is off."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Requests of two networks of an instance."""

    instance: Instance
    core: tuple[int, int]  # their networks
    modes: Modes
    less: Floats  # by how much a chunk is cheaper, because a play rounds; by [network][unit]
    others: float  # what all others pay

    @staticmethod
    def of(instance: Instance, core: tuple[int, int], prices: Floats | None) -> Pair | None:
        """Return the pair; None: there are too many sets of others, or leaving them out proves nothing.

        `prices`: what the others pay, shape (N, K), which keep to the condition of `solvers/contention.py`;
        None: they are left out.
        """
        capped = instance.losses is not None and instance.losses.capped
        if prices is None and len(instance.network_of) > 2 and capped:
            return None  # what the cap spares is rounded, too, for each chunk that is left out
        company = instance.company()
        paid = np.zeros((len(instance.networks), instance.unit_count)) if prices is None else prices
        modes = modes_of(instance, company, paid, core, fluid=prices is not None)
        if modes is None:
            return None
        worth = paid.copy()
        for who, own in enumerate(core):
            worth[own] = np.maximum(worth[own], modes.dearest[who, :-1])
        size, units = worth.shape
        lost = worth.T.reshape(-1, 1) * company.rounding / 1000
        if prices is None:
            alien = np.tile(~np.isin(np.arange(size), core), units)
            lost[alien] = lost[:, alien] = 0.0
        each = (lost + lost.T).reshape(size * units, units, size).max(axis=2).sum(axis=1)
        less = each.reshape(units, size).T
        others = 0.0
        for number, network in enumerate(instance.networks):
            count = instance.counts[number] - core.count(number)
            if count and prices is not None:
                found = network.cheapest(paid[number].tolist(), less[number].tolist())
                if found is None:
                    return None
                others += count * found[0]
        return Pair(instance, core, modes, less, others)

    def game(self, short_us: float, piece: float, deadline: Deadline = NEVER) -> Game:
        """Return the game of the two; a block is one section, or a run that a unit passes in `short_us`."""
        blocks = [
            Blocks.of(self.instance.networks[number], borders, self.less[number])
            for number in self.core
            for borders in [blocks_of(self.instance.networks[number], short_us)]
        ]
        program = Program(ModeSets(self.modes), blocks, self.modes.units)
        program.improve(deadline)
        prices = program.result().prices / PRICE_SCALE
        one, other = (own.priced(prices[who], self.modes.alone[who]) for who, own in enumerate(blocks))
        return Game(self.modes, (one, other), prices, piece)


def heavy_pair(instance: Instance, bound_us: int) -> tuple[int, int] | None:
    """Return the networks of the two heavy requests; None: there are fewer or more."""
    found: list[int] = []
    for number, count in enumerate(instance.counts):
        alone = instance.networks[number].alone
        if alone is not None and alone[0] >= _HEAVY_SHARE * bound_us and len({p[2] for p in alone[1]}) > 1:
            found += [number] * count
    return (found[0], found[1]) if len(found) == 2 else None


class PairBound:
    """The better bound of the pair of heavy requests, with the others and without.

    `bound_us`, `prices`: a bound that is known, and prices that give it (`price_bound.py`).
    """

    def __init__(self, instance: Instance, bound_us: int, prices: Floats) -> None:
        self._instance, self._prices = instance, prices
        self.core = heavy_pair(instance, bound_us)
        self.bound_us = self._known_us = bound_us

    def improve(self, best_us: int, deadline: Deadline) -> None:
        """Raise the bound until a plan that is known proves to be the best one, or the time is up."""
        short_us = min(_SHORT_US, _SHORT_SHARE * best_us)
        piece = _PIECE_SHARE * best_us
        games: list[tuple[Pair, Game]] = []
        for pair in self._candidates():
            if deadline.passed:
                return
            game = pair.game(short_us, piece, deadline)
            if pair.others + game.root > self._known_us * (1 - _FAR_BELOW):
                games.append((pair, game))
        games.sort(key=lambda each: -each[0].others - each[1].root)
        for short, size in ((short_us, piece), (short_us, _FINER * piece), (0.0, _FINER * piece)):
            for pair, known in games:
                if deadline.passed or self.bound_us >= best_us:
                    return
                game = known if size == piece else pair.game(short, size, deadline)
                self._climb(pair, game, best_us, deadline)

    def _candidates(self) -> Iterator[Pair]:
        assert self.core is not None
        yield from filter(None, [Pair.of(self._instance, self.core, None)])
        if len(self._instance.network_of) > 2:
            prices = lowered(self._instance, self._prices, self.core)
            yield from filter(None, [Pair.of(self._instance, self.core, prices)])

    def _climb(self, pair: Pair, game: Game, best_us: int, deadline: Deadline) -> None:
        """Play a game with higher and higher limits, while it reaches them."""
        gap = best_us - self._known_us
        step, last = _FIRST_STEP * gap, (0.0, 0.0)
        while self.bound_us < best_us:
            limit, begun = min(float(best_us), self.bound_us + step), deadline.now()
            if limit <= last[0]:
                return  # of a few microseconds: the step is less than what is taken off for rounding
            least = game.least(limit - pair.others, deadline)
            self.bound_us = max(self.bound_us, ceil(pair.others + least - _SAFE_US))
            if pair.others + least < limit - 1:
                return
            took_s, left_s = max(_LEAST_S, deadline.now() - begun), deadline.left_s
            if last[1] and left_s:
                growth = max(_SLOWER * log(took_s / last[1]) / (limit - last[0]), _GROWTH / gap)
                step = max(0.0, log(left_s / took_s) / growth)
                step = min(max(step, _LEAST_STEP * gap), _LARGEST_STEP * gap)
            last = limit, took_s
