"""Pipelines: what they are worth and what they break, by hand and against a second definition."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from gapless.formulations.cluster import Link, Pipelines
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidProblemError, MalformedPlanError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.judge import check, score
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.pipelines.quantities import PipelineValues
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from gapless.solvers.exhaustive import all_plans, count_plans
from tests.pipeline_instances import drawn_problem

SLOW = Link(source="a", target="b", bytes_per_second=1_000_000, latency_us=3)
BACK = Link(source="b", target="a", bytes_per_second=500_000)


def pair(**asked: object) -> Problem:
    """Return three layers on two devices; cuts send 20, 10 and 5 bytes, the result has 4."""
    data: dict[str, object] = {"links": (SLOW, BACK), **asked}
    sizes = {-1: 20, 0: 10, 1: 5, 2: 4}
    return Problem(
        platform=Platform(
            name="two", units=(ProcessingUnit(name="a"), ProcessingUnit(name="b", memory_bytes=100))
        ),
        networks=(
            Network(
                name="net",
                layers=tuple(Layer(name=f"l{n}", weight_bytes=30) for n in range(3)),
                tensors=tuple(
                    Tensor(name=f"x{s}", bytes=size, source=s, targets=(s + 1,)) for s, size in sizes.items()
                ),
            ),
        ),
        costs=CostTable(
            units=("a", "b"), networks=(NetworkCosts(network="net", layer_us=((7, 9), (4, 6), (2, 3))),)
        ),
        objective=Objective.parse("throughput"),
        data=Pipelines(**data),  # type: ignore[arg-type]
    )


def chunk(start: int, stop: int, unit: str, pipeline: str = "") -> Chunk:
    return Chunk(network="net", start=start, stop=stop, unit=unit, request=pipeline)


ONE = Plan(chunks=(chunk(0, 1, "a"), chunk(1, 3, "b")))
TWO = Plan(chunks=(chunk(0, 3, "a", "p"), chunk(0, 3, "b", "q")), order=("p", "q"))


@pytest.mark.parametrize(
    ("asked", "stages", "latency"),
    [
        ({}, (13, 9), 7 + 13 + 9),  # the message of 10 bytes takes 3 + 10
        ({"overlap": False}, (20, 9), 29),
        ({"links": ()}, (7, 9), 16),
        ({"host": "a"}, (13, 9), 7 + 13 + 9 + 8),  # the result of 4 bytes goes back in 8
        ({"host": "a", "overlap": False}, (20, 17), 37),
        ({"host": "b"}, (40, 9), 40 + 7 + 13 + 9),  # the input of 20 bytes comes in 40
    ],
)
def test_what_an_item_takes(asked: dict[str, object], stages: tuple[int, ...], latency: int) -> None:
    found = score(pair(**asked), ONE)
    assert found.columns["stage_us"] == stages
    assert found.columns["busy_us"] == (7, 9)
    assert (found.period_us, found.latency_us) == (max(stages), latency)
    assert found.gapness_us == max(stages) - min(stages)
    assert found.interval_ns == 1000 * max(stages)


def test_pipelines_side_by_side_add_their_rates() -> None:
    found = score(pair(), TWO)
    assert found.columns["pipeline"] == (1, 2)
    assert (found.period_us, found.devices, found.traffic_bytes) == (18, 2, 0)
    assert found.throughput == pytest.approx(1e6 / 13 + 1e6 / 18)
    assert found.interval_ns == round(1000 / (1 / 13 + 1 / 18))
    assert score(pair(), ONE).traffic_bytes == 10


def test_energy_is_power_by_time() -> None:
    assert score(pair(power_mw=(3, 2)), ONE).energy_nj == 3 * 7 + 2 * 9
    assert score(pair(power_mw=(3, 2)), TWO).energy_nj == max(3 * 13, 2 * 18)
    assert score(pair(), ONE).energy_nj == 0


def test_memory_counts_queues_and_the_runtime() -> None:
    # b holds 60 bytes of weights and 15 of tensors; 10 bytes come in and 4 go out.
    assert score(pair(), ONE).columns["memory_bytes"][1] == 75
    problem = pair(in_slots=2, out_slots=1, resident_bytes=1)
    assert score(problem, ONE).columns["memory_bytes"][1] == 75 + 2 * 10 + 4 + 1
    assert [v.rule for v in check(problem, ONE)] == []
    assert [v.rule for v in check(pair(in_slots=3), ONE)] == ["unit_memory"]


@pytest.mark.parametrize(
    ("problem", "plan", "rules"),
    [
        (pair(links=(BACK,)), ONE, ["link"]),
        (pair(links=(SLOW,), host="a"), ONE, ["link"]),
        (pair(most=1), TWO, ["most", "unit_memory"]),
        # 10 bytes every 13 us are more than 700,000 and less than 800,000 bytes a second.
        (pair(switch_bytes_per_second=700_000), ONE, ["switch"]),
        (pair(switch_bytes_per_second=800_000), ONE, []),
        (replace(pair(), platform=replace(pair().platform, memory_bytes=100)), ONE, ["device_memory"]),
    ],
)
def test_what_is_broken_is_named(problem: Problem, plan: Plan, rules: list[str]) -> None:
    assert [violation.rule for violation in check(problem, plan)] == rules


@pytest.mark.parametrize(
    ("chunks", "order", "text"),
    [
        ((chunk(0, 2, "a"),), (), "layers 2 to 2 are not covered"),
        ((chunk(0, 3, "a", "p"), chunk(0, 3, "a", "q")), ("p", "q"), "second chunk on that device"),
        ((chunk(0, 2, "a", "p"), chunk(0, 3, "b", "q")), ("p", "q"), "of pipeline 1 are not covered"),
        ((chunk(0, 3, "c"),), (), "no such device"),
        ((chunk(0, 4, "a"),), (), "only 3 layers"),
        ((chunk(0, 3, "a", "p"),), ("p", "q"), "it lists"),
    ],
)
def test_malformed_plans_say_why(chunks: tuple[Chunk, ...], order: tuple[str, ...], text: str) -> None:
    with pytest.raises(MalformedPlanError, match=text):
        score(pair(), Plan(chunks=chunks, order=order))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"host": "c"}, "host 'c' is no device"),
        ({"links": (replace(SLOW, source="x"),)}, "'x' is no device and no type"),
        ({"types": ("t",)}, "types has 1 entries, needs one for each of the 2 devices"),
        ({"power_mw": (1, 2, 3)}, "power_mw has 3 entries"),
    ],
)
def test_what_does_not_go_with_the_devices_is_refused(asked: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidProblemError, match=text):
        pair(**asked)


def slow_numbers(problem: Problem, plan: Plan) -> tuple[Fraction, int]:
    """Return rate and latency by the equations alone: chunks and links by name, no tables."""
    data, network = problem.data, problem.network
    assert isinstance(data, Pipelines)
    table = {
        u: [row[k] or 0 for row in problem.costs.networks[0].layer_us]
        for k, u in enumerate(problem.platform.unit_names)
    }
    types = dict(zip(problem.platform.unit_names, data.types_of(problem.platform), strict=True))
    sizes = network.boundary_bytes

    def message(source: str, target: str, size: int) -> int:
        if not data.links or source == target:
            return 0
        pairs = (
            (source, target),
            (source, types[target]),
            (types[source], target),
            (types[source], types[target]),
        )
        link = next(one for pair in pairs for one in data.links if (one.source, one.target) == pair)
        return link.latency_us + int(-(-Fraction(size * 1_000_000, link.bytes_per_second) // 1))

    rate, latencies = Fraction(0), []
    for name in plan.order or ("",):
        chunks, period, latency = plan.of(name), 0, 0
        for place, one in enumerate(chunks):
            times = [sum(table[one.unit][one.start : one.stop])]
            if place + 1 < len(chunks):
                times.append(message(one.unit, chunks[place + 1].unit, sizes[one.stop]))
            elif data.host:
                times.append(message(one.unit, data.host, sizes[-1]))
            if place == 0 and data.host:
                times.append(message(data.host, one.unit, sizes[0]))
            period = max(period, max(times) if data.overlap else sum(times))
            latency += sum(times)
        rate += Fraction(1, period)
        latencies.append(latency)
    return rate, max(latencies)


@pytest.mark.parametrize("seed", range(80))
def test_every_plan_is_worth_what_the_equations_say(seed: int) -> None:
    problem = drawn_problem(seed)
    plans = [plan for plan in all_plans(problem) if not check(problem, plan)]
    for plan in random.Random(seed).sample(plans, min(20, len(plans))):
        rate, latency = slow_numbers(problem, plan)
        found = score(problem, plan)
        assert abs(found.interval_ns - 1000 / rate) <= 1 + 1000 / rate / 10**8
        assert found.latency_us == latency
        assert found.throughput == pytest.approx(float(1_000_000 * rate))


@pytest.mark.parametrize("seed", range(40))
def test_the_oracle_lists_every_plan_once_and_counts_them(seed: int) -> None:
    problem = drawn_problem(seed)
    plans = list(all_plans(problem))
    assert len({plan.plan_id for plan in plans}) == len(plans) <= count_plans(problem)
    if all(None not in row for row in problem.costs.networks[0].layer_us):
        assert len(plans) == count_plans(problem)
    codes = [problem.formulation.code(problem, plan) for plan in plans]
    assert [problem.formulation.plan(problem, code) for code in codes] == plans
    assert len({problem.formulation.key(problem, code) for code in codes}) == len(codes)


def test_rates_tell_plans_apart_and_intervals_follow_them() -> None:
    tables = pair().tables
    rates = [tables.rate(period) for period in range(1, 4000)]
    assert len(set(rates)) == len(rates)
    for rate in rates[::37]:
        value = tables.interval_ns(rate)
        assert tables.least_rate(value) <= rate
        assert tables.interval_ns(tables.least_rate(value)) == value
        assert tables.interval_ns(tables.least_rate(value) - 1) > value


def test_devices_of_one_kind_can_be_swapped() -> None:
    for seed in range(60):
        problem = drawn_problem(seed)
        kinds = problem.tables.kinds
        for plan in list(all_plans(problem))[:40]:
            code = problem.formulation.code(problem, plan)
            for one in range(len(kinds)):
                for other in range(one):
                    if kinds[one] != kinds[other]:
                        continue
                    swap = {one: other, other: one}
                    swapped = tuple(tuple((i, j, swap.get(d, d)) for i, j, d in pipe) for pipe in code)
                    first, second = (problem.formulation.numbers(problem, c) for c in (code, swapped))
                    assert isinstance(first, PipelineValues)
                    names = problem.formulation.terms
                    assert first.values(names) == second.values(names)
