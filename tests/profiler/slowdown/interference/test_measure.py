"""Measuring beside load, on a bench that knows the answer, and once for real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import pytest

from gapless.api.device import this_device
from gapless.api.slowdown.interference import measure_interference
from gapless.executor.progress import Forgetful, Ledger, Step
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Platform
from gapless.formulations.plan import Chunk, Plan
from gapless.profiler.measuring import NOTHING, PreparedPiece
from gapless.profiler.sampling import Effort
from gapless.profiler.slowdown.corun import unit_pairs
from gapless.profiler.slowdown.interference.measure import REST, InterferenceSurvey
from gapless.profiler.slowdown.interference.ratios import InterferenceRatios
from gapless.profiler.slowdown.turns import CoRunOptions, CoRunRatio
from gapless.profiler.summary import Timing
from tests.profiler.fakes import PLATFORM, FakeBench, FakeEngine, FakeModel, Shelf, layers_of, surveying

EDGES = Path(__file__).parents[4] / "docs" / "examples" / "edges.py"
LAYERS = 6
BIG = [150.0] * LAYERS
COSTS = {"big": BIG, "little": [2 * time for time in BIG], "all": BIG}
NOWHERE: Mapping[str, Sequence[int]] = {}


@dataclass
class DriftingBench(FakeBench):
    """Load of n layers slows by n tenths; and with each measurement everything gets slower, or load worse."""

    drift: float = 0.0
    growth: float = 0.0
    loads: list[dict[str, str]] = field(default_factory=list)

    def timing(
        self,
        unit: str,
        prepared: PreparedPiece,
        *,
        effort: Effort,
        beside: Mapping[str, PreparedPiece] = NOTHING,
    ) -> Timing:
        self.loads.append({name: load.artifact.piece for name, load in beside.items()})
        layers = sum(len(layers_of(load.artifact.path)) for load in beside.values())
        self.slowdown = 1 + 0.1 * layers + self.growth * len(self.asked)
        slower = 1 + self.drift * len(self.asked)
        self.layer_us = {name: [slower * time for time in COSTS[name]] for name in COSTS}
        return super().timing(unit, prepared, effort=effort, beside=beside)


def bench(*, unable: Mapping[str, Sequence[int]] = NOWHERE, **changes: float) -> DriftingBench:
    return DriftingBench(
        layer_us=COSTS,
        overhead_us=0.0,
        per_tensor_us=0.0,
        per_kilobyte_us=0.0,
        unable=unable,
        operator_factor=None if unable else 0.95,
        **changes,  # type: ignore[arg-type] # numbers only
    )


def surveyed(
    fake: FakeBench,
    *,
    beside: Sequence[tuple[str, ...]] = (),
    plans: Sequence[Plan] = (),
    model: FakeModel | None = None,
    ledger: Ledger = Forgetful(),
    steps: list[Step] | None = None,
    rounds: int = 3,
) -> InterferenceRatios:
    """Measure on a fake bench: plans, or all groups of layers."""
    model, options = (
        model or FakeModel([64] * (LAYERS + 1)),
        CoRunOptions(rounds=rounds, seconds_per_item=0.01),
    )
    with surveying(fake, model, options.profiling, ledger=ledger, steps=steps) as profiling:
        survey = InterferenceSurvey(profiling=profiling, options=options)
        return survey.plans(plans) if plans else survey.loads(beside)


def plan(*parts: tuple[int, int, str]) -> Plan:
    return Plan(chunks=tuple(Chunk(network="fake", start=a, stop=b, unit=unit) for a, b, unit in parts))


def sizes(ratios: Sequence[CoRunRatio]) -> list[int]:
    return [one.chunk.stop - one.chunk.start for one in ratios]


def test_groups_are_measured_beside_the_same_layers() -> None:
    found = surveyed(bench())
    assert {(one.chunk.unit, one.load) for one in found.ratios} == {("big", "little"), ("little", "big")}
    assert max(sizes(found.ratios)) > 1
    for unit in ("big", "little"):
        here = [one for one in found.ratios if one.chunk.unit == unit]
        assert sum(sizes(here)) == LAYERS
        for one in here:  # the load has as many layers as the group
            assert one.ratio == pytest.approx(1 + 0.1 * (one.chunk.stop - one.chunk.start), rel=1e-3)
            assert len(one.beside_us) == 3
    assert found.warnings == ()
    assert {receipt.unit for receipt in found.receipts} == {"big", "little"}


def test_what_drifts_cancels_because_load_lies_between_two_times_alone() -> None:
    steady, drifting = bench(), bench(drift=0.02)
    expected, found = surveyed(steady, rounds=1), surveyed(drifting, rounds=1)
    for one, other in zip(expected.ratios, found.ratios, strict=True):
        assert other.ratio == pytest.approx(one.ratio, rel=1e-3)
    assert found.ratios[-1].alone_us[0] > 1.3 * expected.ratios[-1].alone_us[0]
    job = [beside for _, _, beside in steady.asked[-3:]]
    assert [len(beside) for beside in job] == [0, 1, 0]


def test_chosen_loads_are_measured_where_they_can_be() -> None:
    found = surveyed(bench(), beside=[("big",)])
    assert {(one.chunk.unit, one.load, one.beside) for one in found.ratios} == {("little", "big", ("big",))}


def test_units_that_cannot_run_layers_neither_make_nor_suffer_load_there() -> None:
    found = surveyed(bench(unable={"little": [0]}))
    assert all(one.chunk.start > 0 for one in found.ratios)
    assert any("'little' cannot run" in warning for warning in found.warnings)


def test_each_chunk_of_a_plan_is_measured_beside_the_others() -> None:
    fake = bench()
    found = surveyed(fake, plans=[plan((0, 4, "big"), (4, 6, "little")), plan((0, 6, "big"))])
    first, alone = found.plans
    assert [one.ratio for one in first.chunks] == pytest.approx([1.2, 1.4], rel=1e-3)
    assert [one.beside for one in first.chunks] == [("little",), ("big",)]
    assert {one.load for one in first.chunks} == {REST}
    assert {"little": "fake[4:6)"} in fake.loads
    assert {"big": "fake[0:4)"} in fake.loads
    assert [said.period_us for said in first.periods] == pytest.approx([840, 600], rel=1e-3)
    assert alone.chunks[0].beside == ()
    assert alone.chunks[0].ratio == 1.0
    assert found.ratios == ()


def test_chunks_of_one_unit_are_measured_apart_and_predict_its_load() -> None:
    fake = bench()
    found = surveyed(fake, plans=[plan((0, 3, "big"), (3, 4, "little"), (4, 6, "big"))]).plans[0]
    assert [mean(one.alone_us) for one in found.chunks] == pytest.approx([450, 300, 300])
    loads = [load["big"] for load in fake.loads if "big" in load]
    assert set(loads) == {"fake[0:3)"}  # the longest chunk of a unit makes its load
    assert [one.beside for one in found.chunks] == [("little",), ("big",), ("little",)]
    assert found.periods[1].period_us == pytest.approx(750)


def test_a_chunk_that_goes_on_into_the_next_model_is_its_parts() -> None:
    fake = bench()
    model = FakeModel([64] * (LAYERS + 1), seams=[3])
    found = surveyed(fake, plans=[plan((0, 1, "little"), (1, 6, "big"))], model=model)
    little, big = found.plans[0].chunks
    assert mean(big.alone_us) == pytest.approx(5 * 150)
    assert {"big": "fake[3:6)"} in fake.loads  # its longest part makes the load
    assert little.ratio == pytest.approx(1.3, rel=1e-3)


def test_what_a_ledger_holds_is_not_measured_again() -> None:
    shelf, fake = Shelf(dies_after=9), bench()
    with pytest.raises(KeyboardInterrupt):
        surveyed(fake, ledger=shelf)
    before = len(fake.asked)
    shelf.dies_after = None
    found = surveyed(fake, ledger=shelf)
    assert "measurements kept from earlier" in found.provenance.notes
    fresh = bench()
    assert found.ratios == surveyed(fresh, ledger=Shelf()).ratios
    # one thing was measured, but not kept any more
    assert len(fake.asked) == len(fresh.asked) + 1 > before
    again = bench()
    assert surveyed(again, ledger=shelf).ratios == found.ratios
    assert again.asked == []


def test_plans_that_share_a_chunk_do_not_share_its_measurements() -> None:
    plans = [plan((0, 3, "big"), (3, 6, "little")), plan((0, 3, "big"), (3, 5, "little"), (5, 6, "all"))]
    fake = bench()
    found = surveyed(fake, plans=plans, ledger=Shelf(), rounds=1)
    assert [one.ratio for one in (found.plans[0].chunks[0], found.plans[1].chunks[0])] == pytest.approx(
        [1.3, 1.3], rel=1e-3
    )
    assert [beside for unit, piece, beside in fake.asked if (unit, piece) == ("big", "fake[0:3)")] == [
        (), ("little",), (), (), ("little", "all"), (),
    ]  # fmt: skip


def test_progress_counts_to_the_end() -> None:
    steps: list[Step] = []
    surveyed(bench(), steps=steps)
    assert steps[-1].done == steps[-1].total


def test_rounds_that_disagree_are_told() -> None:
    found = surveyed(bench(growth=0.1), rounds=2)
    assert any("the ratios of the rounds spread over" in warning for warning in found.warnings)


@pytest.mark.slow
def test_python_functions_really_run_beside_each_other() -> None:
    pairs = unit_pairs(this_device(engine="callable"))
    if not pairs:
        pytest.skip("no two units of this machine can run at once")
    platform = this_device(units=pairs[0], engine="callable")
    options = CoRunOptions(rounds=1, seconds_per_item=0.005)
    found = measure_interference([f"{EDGES}:EDGES"], platform=platform, options=options)
    assert {(one.chunk.unit, one.beside[0]) for one in found.ratios} == {pairs[0], pairs[0][::-1]}
    assert {receipt.mismatches for receipt in found.receipts} == {()}
    assert found.provenance.engine.startswith("callable")


def test_units_are_checked_before_anything_is_measured() -> None:
    one = Platform(name="one", units=PLATFORM.units[:1])
    with pytest.raises(InvalidInputError, match="no two of the units big"):
        measure_interference([FakeModel([1, 1])], platform=one, engine=FakeEngine())
    with pytest.raises(InvalidInputError, match="big and all share cores"):
        measure_interference(
            [FakeModel([1, 1])], platform=PLATFORM, engine=FakeEngine(), beside=[("big", "all")]
        )
