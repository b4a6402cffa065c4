"""A small ONNX model, profiled by real engines on one core and on two."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gapless.executor.engines.registry import get_engine
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.machine.cores import usable_cores
from gapless.formulations.errors import PlacementError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.profiler.profile import Method, ProfileOptions, profile
from tests.executor.graph.models import load, residual
from tests.processes import workers

from .fakes import Shelf

pytestmark = pytest.mark.measures

CORE = min(os.sched_getaffinity(0))
PLATFORM = Platform(name="one core", units=(ProcessingUnit(name="core", cores=(CORE,), threads=1),))
QUICK = ProfileOptions(min_repetitions=5, min_seconds_per_item=0.005, retries=0, checks=2)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnnxModel:
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path / "cache"))
    return load(residual(), tmp_path)


def children() -> set[int]:
    """Return the processes that this one has started."""
    return workers(os.getpid())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["mnn", "onnxruntime"])
def test_a_profile_is_interrupted_and_resumed(model: OnnxModel, engine: str) -> None:
    shelf, before = Shelf(dies_after=4), children()
    with pytest.raises(KeyboardInterrupt):
        profile(model, PLATFORM, get_engine(engine), options=QUICK, ledger=shelf)
    assert children() == before
    shelf.dies_after = None
    taken = profile(model, PLATFORM, get_engine(engine), options=QUICK, ledger=shelf)
    assert children() == before
    provenance = taken.table(Method.HEAVY).provenance
    assert "4 measurements kept from earlier" in provenance.notes
    assert provenance.engine.startswith(engine)
    assert provenance.device
    costs = taken.table(Method.ISOLATED).of(model.network.name)
    assert len(costs.layer_us) == len(model.network.layers)
    assert all((row[0] or 0) >= 1 for row in costs.layer_us)
    assert [receipt.granted_cores for receipt in taken.receipts] == [(CORE,)]
    assert len(taken.checks) == 2
    assert all(check.measured_us > 0 for check in taken.checks)


def test_a_unit_that_is_not_granted_is_no_unit_that_cannot_run_layers(model: OnnxModel) -> None:
    far = Platform(name="far", units=(ProcessingUnit(name="far", cores=(4000,), threads=1),))
    with pytest.raises(PlacementError, match="'far' needs the cores"):
        profile(model, far, get_engine("onnxruntime"), options=QUICK)


@pytest.mark.slow
@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
def test_hops_are_measured_in_the_runtime(model: OnnxModel) -> None:
    two = Platform(
        name="two",
        units=tuple(
            ProcessingUnit(name=f"core{core}", cores=(core,), threads=1) for core in usable_cores()[:2]
        ),
    )
    before = children()
    taken = profile(model, two, get_engine("onnxruntime"), methods=(Method.ISOLATED,), options=QUICK)
    assert children() == before
    names = set(two.unit_names)
    assert {(hop.source, hop.target) for hop in taken.hops} == {(a, b) for a in names for b in names - {a}}
    assert all(hop.borders and hop.hand_over_us > 0 for hop in taken.hops)
    costs = {fit.unit: fit.hop_us for fit in taken.fits}
    row = taken.table(Method.ISOLATED).of(model.network.name).transfer_in_us[1]
    assert all(time_us >= int(costs[unit]) > 0 for time_us, unit in zip(row, two.unit_names, strict=True))
