"""A lower bound on the makespan by two requests that are played exactly; others pay prices, or are left out.

What prices do not see is waiting: a chunk that has begun stays where it is. So two requests play a game:
chunks over blocks of layers, begun at any time, at the least cost (`pair_game.py`). Where others are left
out, a microsecond costs one, and the least is a bound: take the others out of a schedule, and let the two
begin as before; they end no later. Where others pay prices (`solvers/contention.py`), a microsecond of the
two costs what the others leave of it (`pair_modes.py`), and their priced work is added.

The play's clock takes up to a microsecond off what a chunk loses to one that it meets. Of two that meet, the
later one is cheaper by what both can gain, at what their work costs in the worst company. Floating point is
off by far less than the thousandth of a microsecond that is taken off in the end.

A bound holds up to any limit at which the game is broken off, and the lower it is, the less there is to play:
limits rise while there is time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log

import numpy as np

from ..contention import PRICE_SCALE, Program
from ..protocol import NEVER, Deadline
from ..simplex import Floats
from .instance import Instance
from .pair_blocks import Blocks, blocks_of
from .pair_game import Game
from .pair_modes import Modes, ModeSets, lowered, modes_of

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
