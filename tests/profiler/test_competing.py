"""Profiles by several engines, of which each has its own variant of every unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from gapless.executor.engine import Artifact
from gapless.executor.model import Piece
from gapless.executor.progress import Step
from gapless.formulations.errors import ConversionError, LayerNotRunnableError
from gapless.formulations.hardware import EngineSettings, Platform
from gapless.profiler.feed import Feed
from gapless.profiler.isolated import RawTimes, seams
from gapless.profiler.preparing import Preparer
from gapless.profiler.profile import Basis, Method, Profile, ProfileOptions
from gapless.profiler.slowdown.corun import companions

from .fakes import PLATFORM, FakeBench, FakeEngine, FakeModel, Shelf, surveying

SIZES = [256] * 9
LAYERS = len(SIZES) - 1
FAST, SURE = "fast", "sure"
BOTH = Platform(
    name="two",
    units=tuple(
        replace(unit, name=name, engine=EngineSettings(name=engine))
        for engine in (FAST, SURE)
        for unit in PLATFORM.units
        for name in [unit.name if engine == FAST else f"{unit.name}@{engine}"]
    ),
)
COSTS = {unit.name: [100.0 if unit.engine.name == FAST else 200.0] * LAYERS for unit in BOTH.units}


def take(
    engines: Sequence[FakeEngine],
    *,
    bench: FakeBench | None = None,
    shelf: Shelf | None = None,
    steps: list[Step] | None = None,
    basis: Basis = Basis.OPERATORS,
) -> Profile:
    """Take a profile by engines of the names of the units."""
    by_name = {engine.name: engine for engine in engines}
    by_unit = {unit.name: by_name[unit.engine.name] for unit in BOTH.units if unit.engine.name in by_name}
    platform = replace(BOTH, units=tuple(unit for unit in BOTH.units if unit.name in by_unit))
    options = ProfileOptions(basis=basis, retries=0)
    with surveying(
        bench or fake_bench(), FakeModel(SIZES), options, platform=platform, engines=by_unit,
        ledger=shelf or Shelf(), steps=steps,
    ) as survey:  # fmt: skip
        return survey.profile(tuple(Method))


def fake_bench() -> FakeBench:
    return FakeBench(layer_us=COSTS, platform=BOTH, asked=[])


def column(taken: Profile, unit: str) -> list[int | None]:
    table = taken.table(Method.ISOLATED)
    return [row[table.units.index(unit)] for row in table.of("fake").layer_us]


def test_each_engine_has_its_own_times() -> None:
    steps: list[Step] = []
    taken = take([FakeEngine(FAST), FakeEngine(SURE)], steps=steps)
    assert taken.platform == BOTH
    assert column(taken, "big") == pytest.approx([100] * LAYERS, rel=0.05)
    assert column(taken, "big@sure") == pytest.approx([200] * LAYERS, rel=0.05)
    assert taken.tables[0].provenance.engine == "fast 1.0 + sure 1.0"
    assert "for fast and sure: all is measured with each of them" in steps[0].text


def test_a_layer_that_one_engine_lacks_is_the_others() -> None:
    taken = take([FakeEngine(FAST, unconvertible=[3, 4]), FakeEngine(SURE)])
    assert [time is None for time in column(taken, "little")] == [i in {3, 4} for i in range(LAYERS)]
    assert None not in column(taken, "little@sure")
    assert taken.network == FakeModel(SIZES).network  # no cut is closed
    notes = [text for text in taken.warnings if "Frobnicate" in text]
    assert [text.partition(":")[0] for text in notes] == [
        "fast cannot run 'layer3'",
        "fast cannot run 'layer4'",
    ]
    measured = [one.chunk for one in taken.measured if one.chunk.unit == "big"]
    assert measured
    assert not any(chunk.start <= 3 < chunk.stop for chunk in measured)


def test_the_load_beside_a_unit_is_of_its_own_engine_where_that_can_run_it() -> None:
    bench = fake_bench()
    take([FakeEngine(FAST, unconvertible=[3]), FakeEngine(SURE)], bench=bench)
    beside = {(unit, piece): load for unit, piece, load in bench.asked if load}
    for (unit, piece), load in beside.items():
        own = unit.partition("@")[2]
        assert all(other.partition("@")[2] == own for other in load), piece
    names = BOTH.unit_names
    assert companions(BOTH, "big@sure", able=names) == ("little@sure",)
    assert companions(BOTH, "big@sure", able=("little",)) == ("little",)
    assert companions(BOTH, "big", able=("big@sure", "all@sure")) == ()


def test_layers_that_an_engine_computes_wrongly_are_the_others() -> None:
    bench = replace(fake_bench(), wrong={FAST: [2, 6], SURE: [6]})
    taken = take([FakeEngine(FAST), FakeEngine(SURE)], bench=bench)
    assert [time is None for time in column(taken, "big")] == [layer == 2 for layer in range(LAYERS)]
    assert None not in column(taken, "big@sure")  # nobody has layer 6 right, so the reference may be wrong
    notes = [text for text in taken.warnings if "wrong numbers" in text]
    assert notes == ["fast cannot run 'layer2': wrong numbers, relative error up to 0.5, allowed is 0.001"]


def test_wrong_numbers_of_a_lone_engine_are_no_matter_of_the_profile() -> None:
    taken = take([FakeEngine(FAST)], bench=replace(fake_bench(), wrong={FAST: [2]}))
    assert None not in column(taken, "big")


def test_variants_that_can_run_nothing_are_left_out() -> None:
    taken = take([FakeEngine(FAST, unconvertible=range(LAYERS)), FakeEngine(SURE)])
    assert taken.platform.unit_names == ("big@sure", "little@sure", "all@sure")
    assert any("they can run no layer: big, little, all" in text for text in taken.warnings)


def test_a_layer_that_no_engine_has_is_named_with_every_reason() -> None:
    engines = [FakeEngine(FAST, unconvertible=[2, 5]), FakeEngine(SURE, unconvertible=[5])]
    with pytest.raises(LayerNotRunnableError, match="no unit can run layer 'layer5' of 'fake'") as caught:
        take(engines)
    assert "fast cannot run 'layer2'" in str(caught.value)
    assert "sure cannot run 'layer5'" in str(caught.value)


def test_nothing_is_measured_before_it_is_known_who_can_run_what() -> None:
    bench = fake_bench()
    with pytest.raises(LayerNotRunnableError):
        take([FakeEngine(FAST, unconvertible=[2])], bench=bench)
    assert not bench.asked


@pytest.mark.parametrize("basis", list(Basis))
def test_a_cut_that_an_engine_cannot_bear_is_closed(basis: Basis) -> None:
    """Layer 3 can be converted beside others, but not alone: so no chunk begins or ends there."""
    taken = take([FakeEngine(FAST, alone=[3])], basis=basis)
    assert not {3, 4} & set(taken.network.legal_cuts)
    assert set(taken.network.legal_cuts) == {1, 2, 5, 6, 7}
    assert None not in column(taken, "big")
    assert any("no chunk begins or ends there" in text for text in taken.warnings)


def test_a_cut_is_closed_for_all_engines() -> None:
    taken = take([FakeEngine(FAST, alone=[3]), FakeEngine(SURE)])
    assert set(taken.network.legal_cuts) == {1, 2, 5, 6, 7}
    assert not any({one.chunk.start, one.chunk.stop} & {3, 4} for one in taken.measured)


def test_an_engine_that_names_what_it_refuses_is_asked_twice() -> None:
    class Telling(FakeEngine):
        def prepare(self, pieces: Sequence[Piece], **more: Any) -> tuple[Artifact, ...]:
            wrong = {p.name: "it is odd" for p in pieces if p.name in {"fake[1:2)", "fake[4:5)"}}
            if wrong:
                self.batches.append(len(pieces))
                raise ConversionError("several", wrong)
            return super().prepare(pieces, **more)

    model, engine = FakeModel(SIZES), Telling()
    feed = Feed(model, seed=0)
    refused = Preparer(model, engine, feed).attempt([(i, i + 1) for i in range(LAYERS)])
    assert set(refused) == {(1, 2), (4, 5)}
    assert {str(error) for error in refused.values()} == {"fake[1:2): it is odd", "fake[4:5): it is odd"}
    assert engine.batches == [LAYERS, LAYERS - 2]
    feed.close()


def test_groups_end_where_other_units_can_run_what_follows() -> None:
    some: Mapping[str, RawTimes] = {
        "a": RawTimes(layer_us=(1.0, None, None, 1.0), wholes=()),
        "b": RawTimes(layer_us=(1.0, 1.0, 1.0, 1.0), wholes=()),
    }
    assert seams([range(4)], some) == [1, 3]
    assert seams([range(2), range(2, 4)], some) == [1, 2, 3]


def test_measurements_of_one_engine_are_not_those_of_another() -> None:
    shelf = Shelf()
    take([FakeEngine(FAST)], shelf=shelf)
    alone = len(shelf.entries)
    bench = fake_bench()
    take([FakeEngine(FAST), FakeEngine(SURE)], shelf=shelf, bench=bench)
    assert {unit for unit, _, _ in bench.asked} >= {"big@sure", "little@sure", "all@sure"}
    assert len(shelf.entries) > 1.8 * alone  # all but some checks, which are shared out among more units
