"""Units of one resource, two engines on one core say: they take turns, and their loads are added up."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import gapless
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem

TIMES_MS: dict[str, list[float | None]] = {
    "a": [1.0, 5.0, 9.0],
    "b": [9.0, 2.0, 9.0],
    "c": [9.0, 9.0, 4.0],
    "d": [1.5, 5.0, 9.0],
}
"""Layer b is fast with the second engine of the core only."""


def core(name: str, **changes: object) -> ProcessingUnit:
    unit = ProcessingUnit(name=name, kind=UnitKind.CPU, cores=(0,), resource="core0")
    return replace(unit, **changes)  # type: ignore[arg-type]


def problem() -> Problem:
    """Return a network on one core with two engines, and on a GPU."""
    table = gapless.table_problem(TIMES_MS, ["core0", "core0@other", "gpu"], network="net")
    units = (core("core0"), core("core0@other"), ProcessingUnit(name="gpu", kind=UnitKind.GPU))
    powered = tuple(replace(unit, power_mw=1000, idle_mw=10) for unit in units)
    return gapless.with_passage(replace(table, platform=replace(table.platform, units=powered)))


def plan(*units: str) -> Plan:
    """Return a plan with a chunk per layer."""
    chunks = (Chunk(network="net", start=at, stop=at + 1, unit=unit) for at, unit in enumerate(units))
    return Plan(chunks=tuple(chunks))


BEST = plan("core0", "core0@other", "gpu", "core0")


def test_loads_of_one_resource_are_added_up() -> None:
    judged = score(problem(), BEST)
    assert judged.valid
    assert judged.busy_us == (2500, 2000, 4000)
    assert (judged.period_us, judged.latency_us, judged.units, judged.hops) == (4500, 8500, 3, 3)
    assert (judged.gapness_us, judged.bubbles_us) == (500, 500)
    assert judged.columns["bubble_us"] == (0, 0, 500)
    numbers = problem().formulation.numbers(problem(), problem().formulation.code(problem(), BEST))
    assert numbers.term("idle") == 56  # 500 of 2 x 4,500
    assert numbers.term("energy") == 990 * 8500 + 30 * 4500
    assert gapless.plan(problem(), backend="exhaustive").plan == BEST
    alone = score(problem(), plan("core0", "core0@other", "core0", "core0@other"))
    assert (alone.period_us, alone.gapness_us, alone.bubbles_us) == (17_000, 17_000, 0)


def test_one_chunk_per_unit_and_tables_for_sets_know_no_turns() -> None:
    once = gapless.with_passage(problem(), "once")
    whole = Plan(chunks=(*BEST.chunks[:2], replace(BEST.chunks[2], stop=4)))
    assert [violation.rule for violation in score(once, whole).violations] == ["conflict"]
    apart = problem().platform.without_turns()
    assert apart.conflicts == problem().platform.conflicts == ((0, 1),)
    assert not score(replace(problem(), platform=apart), BEST).valid


def test_a_file_keeps_the_resource() -> None:
    known = parse_problem(dump_problem(problem()).encode(), name="file")
    assert known == problem()
    assert known.platform.resources == (0, 0, 2)
    assert known.platform.turns(["gpu", "core0@other", "elsewhere"]) == ("gpu", "core0", "elsewhere")


@pytest.mark.parametrize(
    "changes", [{"cores": (0, 1)}, {"kind": UnitKind.NPU}, {"quota_permille": 500}], ids=str
)
def test_units_of_one_resource_are_in_one_place(changes: dict[str, object]) -> None:
    units = (core("core0"), core("core0@other", **changes))
    with pytest.raises(InvalidProblemError, match="are one resource, 'core0', but differ"):
        Platform(name="p", units=units)


def test_a_plan_is_played_so_that_units_of_one_resource_never_run_at_once() -> None:
    asked = problem()
    played = gapless.simulate(asked, BEST, requests=40)
    assert played.output_us[30] - played.output_us[10] == 20 * 4500
    shared = sorted(event.span_us for event in played.events if event.unit != "gpu")
    assert len(shared) == 3 * 40
    assert all(one[1] <= other[0] for one, other in pairwise(shared))
    (stream,) = operation_of(asked).deploy(asked, BEST).streams
    assert stream.cycle is not None
    assert stream.cycle.period_us == 4500
    assert stream.cycle.starts_us[1] == 1000  # right behind its neighbour, with which it takes turns
    # No unit has two chunks, but the core has.
    once_each = plan("core0", "gpu", "gpu", "core0@other")
    once_each = Plan(chunks=(once_each.chunks[0], replace(once_each.chunks[1], stop=3), once_each.chunks[3]))
    (stream,) = operation_of(asked).deploy(asked, once_each).streams
    assert stream.cycle is not None
    known = operation_of(asked).matching(gapless.with_passage(asked, "once"), [once_each])
    assert known.data == asked.data


def test_a_race_asks_for_plans_that_come_back_to_a_resource() -> None:
    once = gapless.with_passage(problem(), "once")
    rival = next(iter(operation_of(once).rivals(once)))
    assert gapless.plan(rival, backend="exhaustive").plan == BEST
    found = gapless.plan(rival.with_limits(max_hops=2), backend="exhaustive", top=50)
    assert any(
        len({chunk.unit for chunk in candidate.plan.chunks}) == len(candidate.plan.chunks)
        for candidate in found.candidates
    )
