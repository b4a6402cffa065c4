"""Units of one resource have one worker together, in which they take turns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import gapless
from gapless.executor.engines.registry import get_engine
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.runner import Budget
from gapless.formulations.cycles import cycle_of
from gapless.formulations.deployment import Deployment
from gapless.formulations.hardware import EngineSettings, Platform
from gapless.formulations.history import History
from gapless.formulations.operation import operation_of
from tests.coming_back import uneven
from tests.executor.graph.models import load, residual
from tests.executor.pipeline.fakes import FakeEngine, chain, platform
from tests.executor.pipeline.test_pipeline import check_map, stream

UNITS = "abcab"
ONE = frozenset("ab")
"""Units of one resource."""


def shared(found: Platform, *engines: str) -> Platform:
    """Return a platform whose first two of three units are one resource, and may name engines."""
    first, second, third = found.units
    others = [replace(third, cores=())]
    units = [replace(unit, cores=first.cores, resource="core") for unit in (first, second)]
    if engines:
        units = [
            replace(unit, engine=EngineSettings(name=name)) for unit, name in zip(units, engines, strict=True)
        ]
        others = [replace(unit, engine=EngineSettings(name=engines[0])) for unit in others]
    return replace(found, units=(*units, *others))


def in_turns(trace: History) -> bool:
    """Return whether units of one resource never ran at once."""
    runs = sorted((event.start_ns, event.end_ns) for event in trace.events if event.unit in ONE)
    return all(one[1] <= other[0] for one, other in pairwise(runs))


def test_units_of_one_resource_run_in_turns_in_one_worker() -> None:
    model = chain("add", ("sleep", 0.001), "add", ("sleep", 0.001), ("scale", 2.0), name="net")
    plain = stream("net", *((stop, unit) for stop, unit in enumerate(UNITS, start=1)))
    turns = ["a" if unit in ONE else unit for unit in UNITS]
    played = replace(plain, cycle=cycle_of([100, 1100, 100, 1100, 100], turns))
    devices = shared(platform("a", "b", "c"))
    with Pipeline(Deployment(streams=(played,)), {"net": model}, devices, FakeEngine()) as pipeline:
        assert [[unit.name for unit in own] for own in pipeline.blueprint.workers] == [["a", "b"], ["c"]]
        assert len(pipeline._workers().pids) == 2
        check_map(pipeline, [model])
        assert in_turns(pipeline.trace(requests=30))
        measured = pipeline.measure(Budget(requests=20, warm_up_requests=3))
        memory = {unit.unit: unit.rss_bytes for unit in measured.units}
        assert memory["a"] == memory["b"] > 10**6  # they have one worker
        assert memory["c"] > 10**6
        assert sorted(receipt.unit for receipt in pipeline.receipts) == sorted(UNITS)


@pytest.mark.slow
def test_two_engines_take_turns_on_one_core(tmp_path: Path) -> None:
    pytest.importorskip("MNN")
    model = load(residual(2), tmp_path, name="net")
    devices = shared(platform("a", "b", "c"), "mnn", "onnxruntime")
    asked = gapless.with_passage(uneven(model, devices))
    plan = gapless.plan(asked).plan
    assert plan is not None
    assert {chunk.unit for chunk in plan.chunks} == {"a", "b", "c"}
    deployment = operation_of(asked).deploy(asked, plan)
    with Pipeline(deployment, {"net": model}, devices, get_engine("mnn")) as pipeline:
        assert len(pipeline._workers().pids) == 2
        assert verify(pipeline, References({"net": model})).largest_error < 1e-4
        assert in_turns(pipeline.trace(requests=40))
        engines = {receipt.unit: receipt.engine.partition(" ")[0] for receipt in pipeline.receipts}
    assert engines == {"a": "MNN", "b": "ONNX", "c": "MNN"}
