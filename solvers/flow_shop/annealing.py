"""Simulated annealing over order and cuts: the metaheuristic that Hetero2Pipe is compared with (Fig. 8a)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ...formulations.flow_shop.tables import Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.judge import violations
from ...formulations.problem import Problem
from ..proposing import UNFINISHED, Proposals, Proposing
from ..protocol import Capabilities, Deadline, SolveOptions
from .arrays import FORBIDDEN, ChainArrays, Ints
from .heuristic import (
    confined,
    network_arrays,
    slice_requests,
    workload_capabilities,
)
from .units import unit_sets

STEPS = 5000
"""Moves that are tried for each set of units."""

SHOWN_EVERY = 100
"""After this number of moves the best schedule is shown, if it is a new one."""

FIRST_PERMILLE, LAST_PERMILLE = 50, 1
"""Temperature at the start and at the end, relative to the value of the first schedule."""

ORDER_SHARE, NEAR_SHARE = 0.3, 0.5
"""Share of the moves that change a free order, and of the others that move a cut by one place."""


_FADING = 0.9
"""How much of the longest look at a schedule counts a step later."""

_STUCK = "some request has layers that the units in their order cannot run"


class AnnealingBackend(Proposing[Schedule]):
    """Simulated annealing of the first objective term on the simulation."""

    name: ClassVar[str] = "annealing"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        f"simulated annealing over order and cuts, {STEPS:,} simulations"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals[Schedule]:
        """Anneal from the slicing in order of arrival, for each largest set of units without conflicts."""
        shop = shop_of(problem)
        steps, left, everywhere = 0, 0, network_arrays(shop)
        for units in unit_sets(shop):
            networks = confined(everywhere, units)
            places = slice_requests(shop, networks)
            if places is not None:
                annealer = _Annealer(problem, networks, places, options.seed)
                yield from annealer.walk(deadline)
                steps, left = steps + annealer.steps, left + STEPS - annealer.steps
        return {"steps": steps, UNFINISHED: left} if steps or left else {"steps": 0, "reason": _STUCK}


class _Annealer:
    """One walk: the schedule where it is, and the best valid one so far (the first one, if none was)."""

    def __init__(
        self, problem: Problem, networks: Sequence[ChainArrays], places: Sequence[Ints], seed: int
    ) -> None:
        self._problem, self._shop = problem, shop_of(problem)
        self._arrays = [networks[index] for index in self._shop.chain_of]
        self._random = random.Random(seed)
        cuts = tuple(own.cuts_of(found) for own, found in zip(self._arrays, places, strict=True))
        self._here = self.best = Schedule(tuple(range(len(cuts))), cuts)
        self.steps = 0
        self._terms = problem.objective.terms
        self._energy = 0
        self._least: tuple[int, ...] | None = None

    def walk(self, deadline: Deadline) -> Iterator[Schedule]:
        """Walk until it is cold or time is up; yield the best schedule at once, now and then, and at the end.

        Time is up when it is not enough for another step and for the judge, who takes as long.
        """
        yield self.best
        shown, began = self.best, deadline.now()
        values = WorkloadValues(self._shop, self._here)
        self._energy, self._least = values.term(self._terms[0]), self._valid_terms(values)
        look_s = deadline.now() - began
        heat, cooling = self._energy * FIRST_PERMILLE / 1000, (LAST_PERMILLE / FIRST_PERMILLE) ** (1 / STEPS)
        while self.steps < STEPS and not deadline.within(2 * look_s):
            if self.steps % SHOWN_EVERY == 0 and self.best is not shown:
                shown = self.best
                yield shown
            began = deadline.now()
            self._step(heat)
            look_s = max(_FADING * look_s, deadline.now() - began)
            heat *= cooling
            self.steps += 1
        yield self.best

    def _step(self, heat: float) -> None:
        schedule = self._neighbour()
        if schedule is None:
            return
        values = WorkloadValues(self._shop, schedule)
        energy = values.term(self._terms[0])
        worse = energy - self._energy
        if worse > 0 and (heat == 0 or self._random.random() >= math.exp(-worse / heat)):
            return
        self._here, self._energy = schedule, energy
        if self._least is None or values.values(self._terms) < self._least:
            least = self._valid_terms(values)
            if least is not None:
                self.best, self._least = schedule, least

    def _valid_terms(self, values: WorkloadValues) -> tuple[int, ...] | None:
        """Return the objective of a schedule, or None if it breaks something."""
        return None if any(violations(self._problem, values.schedule, values)) else values.values(self._terms)

    def _neighbour(self) -> Schedule | None:
        """Return a schedule with one request somewhere else or cut otherwise; None if no unit can run it."""
        count = self._shop.request_count
        if self._shop.order_is_free and count > 1 and self._random.random() < ORDER_SHARE:
            order = list(self._here.order)
            order.insert(self._random.randrange(count), order.pop(self._random.randrange(count)))
            return replace(self._here, order=tuple(order))
        request = self._random.randrange(count)
        arrays = self._arrays[request]
        places = self._moved(arrays.places_of(self._here.cuts[request]), arrays.size)
        if arrays.times_us(places).max() >= FORBIDDEN:
            return None
        cuts = list(self._here.cuts)
        cuts[request] = arrays.cuts_of(places)
        return replace(self._here, cuts=tuple(cuts))

    def _moved(self, places: Ints, size: int) -> Ints:
        """Return cuts with one of them a step away or anywhere; it pushes the others along."""
        if len(places) == 2:
            return places
        cut = self._random.randrange(1, len(places) - 1)
        near = int(places[cut]) + self._random.choice((-1, 1))
        place = near if self._random.random() < NEAR_SHARE else self._random.randint(0, size)
        place = min(max(place, 0), size)
        return np.concatenate(
            (np.minimum(places[:cut], place), [place], np.maximum(places[cut + 1 :], place))
        )
