"""Real workers: networks and the probe side by side, and nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gapless.executor.engines.registry import get_engine
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.machine.counters import counters_availability
from gapless.executor.progress import Step
from gapless.executor.workers import Worker
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.profiler.slowdown.contention.features import EVENTS
from gapless.profiler.slowdown.contention.measure import measure_contention
from gapless.profiler.slowdown.contention.probe import PROBE
from gapless.profiler.slowdown.contention.result import ContentionOptions
from tests.executor.graph.models import load, residual
from tests.profiler.test_real import children

pytestmark = pytest.mark.measures

CORES = sorted(os.sched_getaffinity(0))
FREE = Platform(name="not pinned", units=(ProcessingUnit(name="a"), ProcessingUnit(name="b")))
QUICK = ContentionOptions(rounds=1, seconds_per_item=0.005)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnnxModel:
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path / "cache"))
    return load(residual(), tmp_path)


@pytest.mark.slow
def test_networks_beside_each_other_on_any_machine(model: OnnxModel) -> None:
    before = children()
    found = measure_contention([model], FREE, get_engine("onnxruntime"), options=QUICK)
    assert children() == before
    name = model.network.name
    assert {(one.victim, one.aggressor) for one in found.coruns} == {(name, name)}
    assert all(time > 0 for one in found.coruns for time in (*one.alone_us, *one.beside_us))
    assert found.interference.provenance.engine.startswith("onnxruntime")
    assert found.interference.provenance.device
    assert name in found.interference.provenance.source or "zoo" not in found.interference.provenance.source


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(model: OnnxModel) -> None:
    def press(step: Step) -> None:
        if step.done:
            raise KeyboardInterrupt

    Worker(ProcessingUnit(name="first"), "tests.executor.roles:echo", {}).close()  # what forks workers stays
    before = children(), len(os.listdir("/proc/self/fd"))
    with pytest.raises(KeyboardInterrupt):
        measure_contention([model], FREE, get_engine("onnxruntime"), options=QUICK, report=press)
    assert (children(), len(os.listdir("/proc/self/fd"))) == before


@pytest.mark.slow
@pytest.mark.skipif(len(CORES) < 2, reason="two units need two usable cores")
def test_the_probe_beside_a_network_on_cores(model: OnnxModel) -> None:
    platform = Platform(
        name="two cores",
        units=tuple(ProcessingUnit(name=f"core{core}", cores=(core,), threads=1) for core in CORES[:2]),
    )
    before = children()
    found = measure_contention([model], platform, get_engine("mnn"), options=QUICK)
    assert children() == before
    assert {(one.victim, one.aggressor) for one in found.coruns} >= {
        (PROBE, PROBE),
        (PROBE, model.network.name),
        (model.network.name, PROBE),
    }
    assert [one.unit for one in found.calibrations] == [unit.name for unit in platform.units]
    assert all(1e8 < one.bytes_per_s < 1e13 for one in found.calibrations)
    if not counters_availability(EVENTS).ok:
        assert found.regression is None
        assert any("counted" in warning for warning in found.warnings)
