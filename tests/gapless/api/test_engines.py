"""Engines that are asked for, and the variants of units that stand for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.api.engines import (
    engines_for,
    engines_of,
    measured_with,
    resolve_engine,
    resolve_engines,
    with_engines,
)
from gapless.api.execution import placed
from gapless.api.problems import table_problem
from gapless.executor.engine import Engine
from gapless.executor.engines.registry import get_engine
from gapless.formulations.costs import Provenance
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import MAX_UNITS, EngineSettings, Platform, ProcessingUnit, UnitKind
from gapless.formulations.problem import Problem

BOTH = ("mnn", "onnxruntime")


def cores(count: int) -> Platform:
    units = [ProcessingUnit(name=f"core{core}", kind=UnitKind.CPU, cores=(core,)) for core in range(count)]
    return Platform(name="board", units=tuple(units))


class Reaching:
    """An engine that reaches some backends."""

    def __init__(self, name: str, *backends: str) -> None:
        self.name = name
        self._backends = backends

    def backends(self) -> tuple[str, ...]:
        return self._backends


def engines() -> list[Engine]:
    return [get_engine(name) for name in BOTH]


def problem(platform: Platform, *, engine: str = "") -> Problem:
    found = table_problem([[1.0] * len(platform.units)] * 2, platform.units, network="net")
    return replace(found, costs=replace(found.costs, provenance=Provenance(engine=engine)))


def test_several_engines_are_a_sequence_or_names_with_commas() -> None:
    for asked in ("mnn, onnxruntime", list(BOTH), engines()):
        assert tuple(engine.name for engine in resolve_engines(asked)) == BOTH
    assert resolve_engine("mnn").name == "mnn"
    with pytest.raises(InvalidInputError, match="here one of mnn, onnxruntime must be chosen"):
        resolve_engine("mnn,onnxruntime")
    with pytest.raises(InvalidInputError, match="each once; got mnn, mnn"):
        resolve_engines("mnn,mnn")
    with pytest.raises(InvalidInputError, match="must be one name, or several with a comma"):
        resolve_engines(" ,")
    with pytest.raises(InvalidInputError, match="no engine 'onxruntime'"):
        resolve_engines("mnn,onxruntime")


def test_both_engines_compete_over_onnx_files_where_both_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gapless.open_model("squeezenet")
    assert engines_for(model) == BOTH
    installed = get_engine("mnn").availability()
    monkeypatch.setattr(
        "gapless.executor.engines.ort_engine.OrtEngine.availability", lambda _: replace(installed, ok=False)
    )
    assert engines_for(model) == ("mnn",)


def test_each_unit_has_one_variant_an_engine() -> None:
    found = with_engines(cores(2), engines())
    assert found.unit_names == ("core0", "core1", "core0@onnxruntime", "core1@onnxruntime")
    assert [unit.engine.name for unit in found.units] == ["mnn", "mnn", "onnxruntime", "onnxruntime"]
    assert found.conflicts == ((0, 2), (1, 3))
    assert found.most_at_once == 2
    assert with_engines(found, engines()) is found


def test_one_engine_is_that_of_all_units() -> None:
    found = with_engines(with_engines(cores(1), engines()), engines()[:1])
    assert [unit.engine.name for unit in found.units] == ["mnn", "mnn"]


def test_units_of_other_engines_cannot_compete() -> None:
    own = with_engines(cores(1), [get_engine("callable")])
    with pytest.raises(InvalidInputError, match="are for the engines callable: they cannot be for mnn"):
        with_engines(own, engines())


def test_an_accelerator_is_there_for_the_engines_that_reach_it() -> None:
    gpu = ProcessingUnit(
        name="gpu", kind=UnitKind.GPU, engine=EngineSettings(backend="opencl"), power_mw=9, idle_mw=2
    )
    board = replace(cores(1), units=(*cores(1).units, gpu))
    asked = [Reaching("a", "cpu", "opencl"), Reaching("b", "cpu"), Reaching("mine.py:C", "cpu", "opencl")]
    found = with_engines(board, asked)  # type: ignore[arg-type]
    assert found.unit_names == ("core0", "gpu", "core0@b", "core0@C", "gpu@C")
    assert found.units[-1].idle_mw == 0  # idle powers are added up, and there is one GPU
    assert {frozenset(pair) for pair in found.conflicts} == {
        frozenset(pair) for pair in [(0, 2), (0, 3), (2, 3), (1, 4)]
    }


def test_two_accelerators_of_one_engine_do_not_exclude_each_other() -> None:
    units = [ProcessingUnit(name=f"gpu{i}", kind=UnitKind.GPU) for i in range(2)]
    board = Platform(name="board", units=tuple(units))
    assert board.conflicts == ()
    assert with_engines(board, engines()[:1]).conflicts == ()


def test_there_are_never_more_units_than_a_platform_may_have() -> None:
    found = with_engines(cores(40), engines())
    assert len(found.units) == MAX_UNITS
    assert {"core39", "core39@onnxruntime"} <= set(found.unit_names)


def test_units_are_chosen_with_their_variants() -> None:
    first = gapless.this_device().unit_names[0]
    found = gapless.this_device(engine="mnn,onnxruntime", units=[first])
    assert found.unit_names == (first, f"{first}@onnxruntime")
    found = gapless.this_device(engine=BOTH, units=[f"{first}@onnxruntime"])
    assert found.unit_names == (f"{first}@onnxruntime",)
    assert not any(unit.engine.name for unit in gapless.this_device().units)


def test_who_runs_a_profiled_problem() -> None:
    both, old = with_engines(cores(1), engines()), problem(cores(1), engine="onnxruntime 1.20.0")
    assert engines_of(problem(both), None, gapless.open_model("squeezenet"))[1].units == both.units
    engine, platform = engines_of(old, None)  # as files were that name no engines of units
    assert engine.name == "onnxruntime"
    assert platform.units == cores(1).units
    engine, platform = engines_of(problem(both), "onnxruntime")
    assert {unit.engine.name for unit in platform.units} == {engine.name} == {"onnxruntime"}
    assert engines_of(problem(both), "onnxruntime,mnn")[1].units == both.units
    with pytest.raises(InvalidInputError, match="not profiled for mnn, onnxruntime each"):
        engines_of(old, BOTH)
    assert measured_with(old) == "onnxruntime"
    assert measured_with(problem(both)) == ""
    assert measured_with(problem(both), ["core0@onnxruntime"]) == "onnxruntime"
    assert measured_with(problem(cores(1), engine="TensorRT 10")) == ""


def test_what_units_name_counts_where_nothing_is_asked() -> None:
    model = gapless.open_model("squeezenet")
    named = with_engines(cores(1), engines()[1:])
    assert placed(None, named, model)[1] == named
    assert placed(None, cores(1), model)[1] == with_engines(cores(1), engines())
    assert placed("mnn", named, model)[1] == with_engines(cores(1), engines()[:1])
