"""Branch and price: bounds that are never above the optimum, optima, and why parts are right."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest

from benchmarks.flow_bound import optima
from benchmarks.workload_instances import random_workload, small_workload
from gapless.formulations.flow_shop.space import groups_of
from gapless.formulations.flow_shop.tables import Schedule, shop_of
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.solvers.flow_shop import branch_and_price
from gapless.solvers.flow_shop.branch_and_price import (
    BranchAndPrice,
    Part,
    Split,
    Splits,
    even_split,
    orders_within,
)
from gapless.solvers.flow_shop.contention_bound import able_of, contention_bound
from gapless.solvers.flow_shop.draft import Places
from gapless.solvers.flow_shop.search import JointSearch, Proof
from gapless.solvers.protocol import Clock, Deadline

Traded = tuple[Schedule, list[Places]]


def part_of(problem: Problem) -> tuple[BranchAndPrice, Part]:
    """Return the search of a problem with one set of units, and the part that all plans are in."""
    search = JointSearch(problem)
    ((context, bounds),) = search.contexts
    found = BranchAndPrice(context, bounds, groups_of(problem), search._measure, search.kept)
    return found, found._whole


def drawn_schedule(problem: Problem, rng: random.Random, *, idle: bool = False) -> Schedule:
    """Return any schedule that the units can run, perhaps one in which the first one is idle."""
    shop, cuts = shop_of(problem), []
    for chain in map(shop.chain, range(shop.request_count)):
        while True:
            own = (0, *sorted(rng.choices(chain.cuts, k=shop.unit_count - 1)), chain.cuts[-1])
            own = (0, 0, *own[2:]) if idle else own
            if all(a == b or chain.runs(a, b, unit) for unit, (a, b) in enumerate(pairwise(own))):
                break
        cuts.append(own)
    return Schedule(tuple(rng.sample(range(shop.request_count), shop.request_count)), tuple(cuts))


@pytest.mark.parametrize("few", [0, 5_000])
@pytest.mark.parametrize("seed", range(30))
def test_bounds_are_no_higher_than_the_optimum_and_meet_it(
    seed: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `few` = 0 no part is walked before it is a single plan."""
    monkeypatch.setattr(branch_and_price, "_FEW_PLANS", few)
    monkeypatch.setattr(branch_and_price, "_FEW_ORDERS", max(1, few))
    problem = small_workload(seed).with_objective("makespan")
    search = JointSearch(problem, proof=Proof.PRICED)
    least = optima(problem, ("makespan",))
    if not search.provable or not search.contexts:
        pytest.skip("of another kind, or impossible")
    proved = search.prove()
    best = search.kept.best
    if least is not None:
        assert search.bounds[0] <= least[0]
    if proved:
        assert (best and best[1:]) == least
    assert proved or few == 0


def test_a_proof_that_is_interrupted_goes_on_without_losing_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_and_price, "_FEW_PLANS", 0)
    monkeypatch.setattr(branch_and_price, "_FEW_ORDERS", 1)
    now_s, draw, split = [0.0], random.Random(1), BranchAndPrice._split

    def in_time(self: BranchAndPrice, *known: Any) -> Split | None:
        if draw.random() < 0.5:
            return split(self, *known)
        now_s[0] += 1.0
        return None

    monkeypatch.setattr(BranchAndPrice, "_split", in_time)
    interrupted = 0
    for seed in range(40):
        problem = small_workload(seed).with_objective("makespan")
        search = JointSearch(problem, proof=Proof.PRICED)
        if not search.provable or len(search.contexts) != 1:
            continue
        (part,) = search._parts
        while not part.prove(Deadline(1.0, Clock(lambda: now_s[0])), 1_000, lambda _: None):
            interrupted += 1
            if part._programs >= 1_000:
                break
        else:
            best = search.kept.best
            assert (best and best[1:]) == optima(problem, ("makespan",)), seed
    assert interrupted > 20


def test_the_workload_of_the_readme_is_proved() -> None:
    search = JointSearch(shipped_workload("kirin990", "yolov4,bert,mobilenetv2x3"), proof=Proof.PRICED)
    before_us = search.bounds[0]
    assert search.prove()
    assert search.kept.best == (0, *search.bounds)
    assert search.bounds[0] > before_us


@pytest.mark.parametrize("slowdown", [False, True])
def test_better_bounds_are_shown_with_the_best_plan(slowdown: bool) -> None:
    shown: list[tuple[int, int]] = []
    search = JointSearch(
        random_workload(5, 3, 1, slowdown=slowdown),
        proof=Proof.PRICED,
        on_better=lambda key, schedule: shown.append((key[1], search.bounds[0])),
    )
    assert search.prove()
    assert shown[-1][0] == search.bounds[0]
    assert all(bound <= value for value, bound in shown)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_out_never_runs(seed: int) -> None:
    """Whoever runs together in a plan can, in the part that says all about its order, units and phases."""
    rng = random.Random(seed)
    problem = random_workload(5, 4, seed, slowdown=bool(seed % 2))
    shop, schedule = shop_of(problem), drawn_schedule(problem, rng, idle=seed % 3 == 0)
    search, part = part_of(problem)
    code = shop.chunked(schedule)
    runs = shop.played(code.order, code.parts)
    for first, then in pairwise(schedule.order):
        part = part.ordered(first, then)
    for request, unit in product(range(shop.request_count), range(shop.unit_count)):
        used = any(run.unit == unit and run.request == request for run in runs)
        half = part.using([request], unit, used=used)
        assert half is not None
        part = half
    phase_us = max((run.end_us for run in runs if run.unit == part.first), default=0)
    for request in range(shop.request_count):
        own = [run for run in runs if run.request == request and run.end_us > phase_us]
        place, next_ = 2 * shop.unit_count, min(own, key=lambda run: run.unit, default=None)
        if next_ is not None:
            place = 2 * next_.unit + (next_.start_us < phase_us)
        part = part.on_its_way([request], place, later=False).on_its_way([request], place - 1, later=True)
    able = able_of(part.kinds(shop.chain_of), shop.unit_count)
    company = search._company.within(able, part.apart())
    times = sorted({run.start_us for run in runs} | {run.end_us for run in runs})
    together = np.full((len(times), shop.unit_count), -1)
    for run in runs:
        at = [index for index, time in enumerate(times) if run.start_us <= time < run.end_us]
        together[at, run.unit] = run.request
    assert company.possible(together).all()
    assert not company.possible(together[:, ::-1]).all()


def holds(part: Part | None, schedule: Schedule, cuts: Sequence[Places]) -> bool:
    """Return whether a schedule is in a part, as far as its order and cuts say."""
    if part is None:
        return False
    place = {request: index for index, request in enumerate(schedule.order)}
    in_order = all(place[i] < place[j] for i, j in np.argwhere(part.before).tolist())
    return in_order and all(ways.allows(places) for ways, places in zip(part.ways, cuts, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_the_halves_of_a_split_hold_every_plan(seed: int) -> None:
    """Or one that differs from it by requests of the same network that trade places."""
    rng = random.Random(seed)
    problem = random_workload(4, 3, seed, slowdown=True)
    search, part = part_of(problem)
    shop = shop_of(problem)
    for _ in range(6):
        kinds = part.kinds(shop.chain_of)
        program = contention_bound(
            shop, kinds, company=search._company.within(able_of(kinds, shop.unit_count), part.apart())
        )
        split = Splits().best(part, program) or even_split(part, None)
        if split is None:
            return
        halves = list(split.halves(part))
        for _ in range(60):
            schedule = drawn_schedule(problem, rng)
            cuts = zip(part.ways, schedule.cuts, strict=True)
            places = [tuple(ways.arrays.places_of(own).tolist()) for ways, own in cuts]
            if holds(part, schedule, places):
                every = list(trades(shop.chain_of, schedule, places))
                assert any(holds(half, *traded) for half in halves for traded in every)
        part = rng.choice([half for half in halves if half is not None])


def trades(chain_of: tuple[int, ...], schedule: Schedule, places: list[Places]) -> Iterator[Traded]:
    """Yield the plan with requests of one network in each other's place."""
    count = len(chain_of)
    for mapped in permutations(range(count)):
        if all(chain_of[i] == chain_of[mapped[i]] for i in range(count)):
            order = tuple(mapped[request] for request in schedule.order)
            moved = [places[mapped.index(request)] for request in range(count)]
            yield Schedule(order, schedule.cuts), moved


def test_orders_are_counted() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        before = np.triu(rng.random((5, 5)) < 0.3, 1)
        orders = sum(
            all(order.index(i) < order.index(j) for i, j in np.argwhere(before).tolist())
            for order in permutations(range(5))
        )
        assert orders_within(before, 120) == orders
        assert orders_within(before, orders - 1) is None
    assert orders_within(np.zeros((14, 14), dtype=np.bool_), math.factorial(13)) is None
