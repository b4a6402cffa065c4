"""Profiles of a model whose costs are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from gapless.answers.measured import profile_blocks
from gapless.executor.progress import Forgetful, Ledger, Step
from gapless.formulations.errors import (
    ConversionError,
    InvalidInputError,
    LayerNotRunnableError,
    NoisyMeasurementError,
    StoreError,
)
from gapless.formulations.files import dump, parse
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.problem import Problem
from gapless.profiler.hops import Trial
from gapless.profiler.measuring import PreparedPiece
from gapless.profiler.profile import PROFILE, Basis, Method, Profile, ProfileOptions
from gapless.profiler.slowdown.side_by_side import joint_platform
from gapless.profiler.summary import ANY_NOISE, Timing
from gapless.profiler.survey import with_spares
from gapless.view.terminal.blocks import blocks_view

from .fakes import PLATFORM, FakeBench, FakeEngine, FakeModel, Shelf, surveying

LAYERS = 12
BIG = [200.0 + 40 * (layer % 5) for layer in range(LAYERS)]
COSTS = {"big": BIG, "little": [3 * time for time in BIG], "all": [0.7 * time for time in BIG]}
SIZES = [4096, *(1024 * (1 + layer % 4) for layer in range(1, LAYERS)), 256]
BOTH = (Method.ISOLATED, Method.HEAVY)


def take(
    bench: FakeBench,
    *,
    model: FakeModel | None = None,
    engine: FakeEngine | None = None,
    platform: Platform = PLATFORM,
    methods: Sequence[Method] = BOTH,
    ledger: Ledger = Forgetful(),
    steps: list[Step] | None = None,
    trial: Trial | None = None,
    others: float = 0.0,
    **options: Any,
) -> Profile:
    """Take a profile on a fake bench."""
    engines = None if engine is None else dict.fromkeys(platform.unit_names, engine)
    with surveying(
        bench, model or FakeModel(SIZES), ProfileOptions(**options), platform=platform, engines=engines,
        ledger=ledger, steps=steps, trial=trial,
    ) as survey:  # fmt: skip
        survey.others_on = lambda unit: others
        return survey.profile(methods)


def bench(**changes: Any) -> FakeBench:
    return replace(FakeBench(layer_us=COSTS), asked=[], **changes)


@pytest.mark.parametrize(("operator_factor", "callback_us"), [(1.0, 0), (0.8, 0), (1.0, 8)])
def test_the_isolated_table_is_the_truth(operator_factor: float, callback_us: float) -> None:
    """Operators that are slower under observation, by a factor or by a callback each, are put right."""
    taken = take(bench(operator_factor=operator_factor, callback_us=callback_us))
    costs = taken.table(Method.ISOLATED).of("fake")
    for column, unit in enumerate(PLATFORM.unit_names):
        for layer in range(LAYERS):
            assert costs.layer_us[layer][column] == pytest.approx(COSTS[unit][layer], rel=0.02)
        # 20 us of overhead and 3 + 16 x 0.1 us for the copy of 16 KiB
        assert costs.transfer_in_us[0][column] == pytest.approx(24.6, abs=4)
        assert costs.transfer_out_us[LAYERS][column] == pytest.approx(3.1, abs=1)
        assert costs.transfer_in_us[LAYERS][column] == costs.transfer_out_us[0][column] == 0
    assert taken.check_error is not None
    assert len(taken.checks) == 6
    assert taken.check_error < 0.01
    for fit in taken.fits:
        assert fit.factor == pytest.approx(1 / operator_factor, rel=0.05)


def test_the_heavy_table_is_slower_by_what_the_load_does() -> None:
    taken = take(bench())
    alone, heavy = (taken.table(method).of("fake") for method in BOTH)
    for layer in range(LAYERS):
        a, h = alone.layer_us[layer], heavy.layer_us[layer]
        assert None not in (*a, *h)
        assert h[:2] == pytest.approx([1.5 * (time or 0) for time in a[:2]], rel=0.01)
        assert h[2] == a[2]  # "all" excludes both others
    assert any("'all' has no other unit beside it" in warning for warning in taken.warnings)
    assert heavy.transfer_in_us[3][0] == pytest.approx(1.5 * alone.transfer_in_us[3][0], abs=1)


def test_who_runs_beside_whom() -> None:
    fake = bench()
    take(fake)
    beside = {(unit, others) for unit, _, others in fake.asked}
    assert beside == {("big", ()), ("little", ()), ("all", ()), ("big", ("little",)), ("little", ("big",))}
    only_alone = bench()
    taken = take(only_alone, methods=[Method.ISOLATED])
    assert all(others == () for _, _, others in only_alone.asked)
    with pytest.raises(InvalidInputError, match="no table 'heavy', only isolated"):
        taken.table(Method.HEAVY)


@pytest.mark.parametrize("changes", [{"operator_factor": None}, {"tensor": "made up "}, {}])
def test_without_operator_times_chunks_are_measured(changes: dict[str, Any]) -> None:
    basis = Basis.OPERATORS if changes else Basis.CHUNKS
    fake = bench(**changes)
    taken = take(fake, basis=basis)
    assert ("big", "fake[4:5)", ()) in fake.asked
    costs = taken.table(Method.ISOLATED).of("fake")
    for layer in range(LAYERS):
        assert costs.layer_us[layer][0] == pytest.approx(COSTS["big"][layer], rel=0.02)
    assert taken.check_error is not None
    assert taken.check_error < 0.02


def test_layers_that_cannot_be_parted_share_by_their_operations() -> None:
    model = FakeModel(SIZES, forbidden=[5])
    taken = take(bench(operator_factor=None), model=model)
    costs = taken.table(Method.ISOLATED).of("fake")
    four, five = costs.layer_us[4][0], costs.layer_us[5][0]
    assert four is not None
    assert five is not None
    assert four + five == pytest.approx(COSTS["big"][4] + COSTS["big"][5], rel=0.02)
    assert five / four == pytest.approx(6 / 5, rel=0.02)


def test_a_layer_that_one_unit_cannot_run_is_none_there() -> None:
    taken = take(bench(unable={"little": [3]}))
    table = taken.table(Method.ISOLATED)
    rows = table.of("fake").layer_us
    assert [row[1] is None for row in rows] == [layer == 3 for layer in range(LAYERS)]
    assert all(row[0] is not None for row in rows)
    assert rows[5][1] == pytest.approx(COSTS["little"][5], rel=0.1)
    assert taken.table(Method.HEAVY).of("fake").layer_us[3][1] is None
    assert "'little' cannot run 'layer3'" in table.provenance.notes
    assert all(
        not check.chunk.start <= 3 < check.chunk.stop
        for check in taken.checks
        if check.chunk.unit == "little"
    )


def test_a_layer_that_no_unit_can_run_is_named() -> None:
    with pytest.raises(
        LayerNotRunnableError, match=r"(?s)no unit can run layer 'layer7' of 'fake'.*Frobnicate"
    ):
        take(bench(), engine=FakeEngine(unconvertible=[7]))
    nowhere = {unit: [2] for unit in PLATFORM.unit_names}
    with pytest.raises(LayerNotRunnableError, match="no unit can run 'layer2' of 'fake'"):
        take(bench(unable=nowhere))


def test_a_model_that_cannot_be_converted_in_one_piece_is_profiled_by_its_chunks() -> None:
    class Whole(FakeEngine):
        def prepare(self, pieces: Any, **more: Any) -> Any:
            if any(piece.name == "fake[0:12)" for piece in pieces):
                raise ConversionError("too large")
            return super().prepare(pieces, **more)

    taken = take(bench(), engine=Whole())
    assert any("too large" in warning for warning in taken.warnings)
    rows = taken.table(Method.ISOLATED).of("fake").layer_us
    assert [row[0] for row in rows] == pytest.approx(BIG, rel=0.15)


def test_several_models_in_a_row_pay_for_the_seam_in_their_layers() -> None:
    taken = take(bench(), model=FakeModel(SIZES, seams=[5]))
    costs = taken.table(Method.ISOLATED).of("fake")
    assert costs.transfer_in_us[5] == costs.transfer_out_us[5] == (0, 0, 0)
    four, five = costs.layer_us[4][0], costs.layer_us[5][0]
    copy_us = 3 + 0.1 * 4 * SIZES[5] / 1024
    assert four == pytest.approx(BIG[4] + copy_us, rel=0.02)
    assert five == pytest.approx(BIG[5] + 20 + copy_us, rel=0.02)
    assert taken.check_error is not None
    assert taken.check_error < 0.02


def test_pieces_are_converted_in_few_batches() -> None:
    engine = FakeEngine()
    take(bench(), engine=engine)
    assert engine.batches[:2] == [1, LAYERS]  # the whole, and every chunk of one layer
    assert len(engine.batches) == 3


def test_an_interrupted_profile_goes_on_where_it_stopped() -> None:
    shelf, first, second = Shelf(dies_after=20), bench(), bench()
    with pytest.raises(KeyboardInterrupt):
        take(first, ledger=shelf)
    assert len(shelf.entries) == 20
    shelf.dies_after = None
    resumed = take(second, ledger=shelf)
    straight = bench()
    whole = take(straight)
    assert len(second.asked) + 20 - 3 == len(straight.asked)  # 3 entries are operator times
    assert resumed.table(Method.HEAVY).of("fake") == whole.table(Method.HEAVY).of("fake")
    assert "20 measurements kept from earlier" in resumed.table(Method.HEAVY).provenance.notes
    again = bench()
    take(again, ledger=shelf)
    assert again.asked == []


@pytest.mark.parametrize("operator_factor", [0.95, None])
def test_a_disk_that_is_full_for_a_moment_is_no_layer_that_a_unit_cannot_run(
    operator_factor: float | None,
) -> None:
    class Full(Shelf):
        def __init__(self, at: int) -> None:
            super().__init__()
            self.at = at

        def keep(self, kind: str, key: str, text: str) -> None:
            self.at -= 1
            if self.at == 0:
                raise StoreError("the disk is full")
            super().keep(kind, key, text)

    whole = Shelf()
    take(bench(operator_factor=operator_factor), ledger=whole)
    for at in range(1, len(whole.entries) + 1):
        with pytest.raises(StoreError, match="the disk is full"):
            take(bench(operator_factor=operator_factor), ledger=Full(at))


def test_other_settings_are_measured_anew() -> None:
    shelf = Shelf()
    take(bench(), ledger=shelf)
    longer = bench()
    take(longer, ledger=shelf, min_repetitions=40)
    straight = bench()
    take(straight)
    assert longer.asked == straight.asked
    other, wider = bench(), replace(PLATFORM.units[0], threads=2)
    take(other, ledger=shelf, platform=replace(PLATFORM, units=(wider, *PLATFORM.units[1:])))
    # "all" has no unit beside it, and stayed what it was
    assert other.asked == [row for row in straight.asked if "big" in (row[0], *row[2])]


def test_a_device_that_changes_meanwhile_is_refused_or_warned_of() -> None:
    with pytest.raises(NoisyMeasurementError, match=r"unit 'little': .*profile again"):
        take(bench(wobble={"little": (1.0, 5.0, 25.0, 125.0)}))
    for wobble in [(1.0, 1.3), (1.0, 1.0, 2.2)]:
        warned = take(bench(wobble={"little": wobble}))
        assert any("unit 'little': the same layers took" in warning for warning in warned.warnings)


def test_a_profile_that_was_given_up_can_be_resumed() -> None:
    shelf, first, second = Shelf(), bench(wobble={"little": (1.0, 5.0, 25.0, 125.0)}), bench()
    with pytest.raises(NoisyMeasurementError, match=r"--resume.*--item-seconds.*--accept-noise"):
        take(first, ledger=shelf)
    with pytest.raises(NoisyMeasurementError):  # as noisy as before: it is tried, not remembered
        take(bench(wobble={"little": (1.0, 5.0, 25.0, 125.0)}), ledger=shelf)
    found = take(second, ledger=shelf)
    assert 0 < len(second.asked) < len(first.asked)
    assert not [warning for warning in found.warnings if "the same layers took" in warning]


def test_what_was_unsteady_is_measured_again_when_a_profile_is_resumed() -> None:
    class Unsteady(FakeBench):
        def timing(self, unit: str, prepared: PreparedPiece, **more: Any) -> Timing:
            found = super().timing(unit, prepared, **more)
            later = replace(found.busy, late_us=2 * found.busy.early_us)
            return replace(found, busy=later if unit == "little" else found.busy)

    shelf, again = Shelf(), bench()
    assert take(Unsteady(layer_us=COSTS), ledger=shelf).warnings
    found = take(again, ledger=shelf)
    assert again.asked
    assert {unit for unit, *_ in again.asked} == {"little"}
    assert not any("second half" in warning for warning in found.warnings)


def test_noise_can_be_accepted() -> None:
    found = take(bench(wobble={"little": (1.0, 5.0, 25.0, 125.0)}), most_far=ANY_NOISE)
    assert any("unit 'little': the same layers took" in warning for warning in found.warnings)


def test_other_programs_that_disturb_long_runs_do_not_spoil_the_table() -> None:
    class Busy(FakeBench):
        def timing(self, unit: str, prepared: PreparedPiece, **more: Any) -> Timing:
            found = super().timing(unit, prepared, **more)
            long = replace(found.run, typical_us=found.run.typical_us * 2)
            return replace(found, run=long) if prepared.piece.name == "fake[0:12)" else found

    for layer, row in enumerate(take(Busy(layer_us=COSTS)).table(Method.ISOLATED).of("fake").layer_us):
        assert row[0] == pytest.approx(COSTS["big"][layer], rel=0.02)


def test_progress_reaches_its_end() -> None:
    steps: list[Step] = []
    take(bench(), steps=steps)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].total is not None
    assert steps[-1].done == steps[-1].total


def test_a_profile_survives_a_file_and_makes_a_problem() -> None:
    taken = take(bench())
    read = parse(dump(taken, PROFILE).encode(), PROFILE, name="profile.json")
    assert read == taken
    table = read.table(Method.HEAVY)
    provenance = table.provenance
    assert (provenance.method, provenance.engine, provenance.device) == ("heavy", "fake 1.0", "a test")
    assert provenance.source == "fake.model (0123456789abcdef)"
    assert provenance.taken_at[:2] == "20"
    assert "+" in provenance.taken_at or "-" in provenance.taken_at[10:]
    Problem(platform=read.platform, networks=(read.network,), costs=table)


def test_options_are_checked_all_at_once() -> None:
    with pytest.raises(InvalidInputError) as error:
        ProfileOptions(min_repetitions=0, checks=-1, min_seconds_per_item=2.0, max_seconds_per_item=1.0)
    assert len(error.value.problems) == 3


def test_what_the_platform_says_a_unit_lacks_has_no_cost_there() -> None:
    model = FakeModel(SIZES)
    layers = [
        replace(layer, op_types=("Softplus" if index == 3 else "Conv",))
        for index, layer in enumerate(model.network.layers)
    ]
    model.network = replace(model.network, layers=tuple(layers))
    units = tuple(
        replace(unit, unsupported=("Softplus",)) if unit.name == "little" else unit for unit in PLATFORM.units
    )
    table = take(bench(), model=model, platform=replace(PLATFORM, units=units)).table(Method.ISOLATED)
    rows = table.of("fake").layer_us
    assert [row[1] is None for row in rows] == [layer == 3 for layer in range(LAYERS)]
    assert all(row[0] is not None for row in rows)
    assert rows[5][1] == pytest.approx(COSTS["little"][5], rel=0.1)
    assert "'little' cannot run 1 of 12 layers of 'fake', as the platform says" in table.provenance.notes


def with_two_workers(slowdown: float, **changes: Any) -> Profile:
    """Take a profile in which two workers of a unit take longer than one by a factor."""
    costs = COSTS | {f"{unit}.2": times for unit, times in COSTS.items()}
    two = replace(bench(slowdown=slowdown), layer_us=costs, platform=with_spares(PLATFORM, 2))
    return take(two, methods=(Method.ISOLATED,), most_workers=2, **changes)


@pytest.mark.parametrize(("slowdown", "workers"), [(1.004, 2), (1.9, 2), (1.95, 1), (2.1, 1)])
def test_a_second_worker_that_pays_stands_in_the_platform(slowdown: float, workers: int) -> None:
    found = with_two_workers(slowdown)
    for unit, one in zip(found.platform.units, found.shared, strict=True):
        assert (one.unit, one.workers, unit.workers) == (unit.name, 2, workers)
        assert list(unit.sharing_permille) == pytest.approx([1000, 1000 * slowdown], abs=1)
        assert one.gain == pytest.approx(2 / slowdown, rel=1e-3)
    assert parse(dump(found, PROFILE).encode(), PROFILE, name="a test") == found
    console = Console(width=200, record=True, file=StringIO())
    console.print(blocks_view(profile_blocks(found)))
    rows = [line.split() for line in console.export_text().splitlines() if "this many pay" in line]
    assert [row[:2] for row in rows] == [[unit.name, str(workers)] for unit in found.platform.units]


def test_workers_are_measured_only_if_asked_for() -> None:
    found = take(bench(), methods=(Method.ISOLATED,))
    assert found.shared == ()
    assert found.platform == PLATFORM


def test_beside_other_programs_it_is_not_known_how_many_workers_pay() -> None:
    found = with_two_workers(1.0, others=0.3)
    assert len(found.shared) == len(found.platform.units)
    assert found.platform == PLATFORM
    assert sum("kept 30% of its cores busy" in warning for warning in found.warnings) == len(found.shared)
    unit = "core0@onnxruntime"
    platform = Platform(name="p", units=(ProcessingUnit(name=unit),))
    shown = replace(found, shared=(replace(found.shared[0], unit=unit),), platform=platform)
    console = Console(width=200, record=True, file=StringIO())
    console.print(blocks_view(profile_blocks(shown)))
    said = console.export_text()
    assert "this many pay" not in said
    one, two = (line.split() for line in said.splitlines() if line.split()[:1] == [unit])  # none is cut
    assert one[1] == "1"
    assert two[-2:] == ["not", "known"]
    assert not any(word.endswith("%") for word in two)  # no gain of which it is not known whether it is one


def test_networks_that_were_profiled_each_have_the_workers_that_pay_for_all() -> None:
    pays, does_not = with_two_workers(1.2), with_two_workers(2.0)
    other = replace(does_not, network=replace(does_not.network, name="other"))
    joint = joint_platform([pays, other])
    assert {(unit.workers, unit.sharing_permille) for unit in joint.units} == {(1, (1000, 2000))}
    assert {unit.workers for unit in joint_platform([pays]).units} == {2}
    moved = replace(pays.platform, name="elsewhere")
    with pytest.raises(InvalidInputError, match="profiled on different platforms"):
        joint_platform([pays, replace(other, platform=moved)])
