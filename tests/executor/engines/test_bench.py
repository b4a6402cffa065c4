"""Benching an engine: everything that is asked for is measured, and the numbers are checked."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from gapless.executor.engines.bench import BenchEffort, bench_engine
from gapless.executor.model import references
from gapless.formulations.errors import PlacementError

from .pieces import OPENCL, UNIT, direction

pytestmark = pytest.mark.slow

PINNED = replace(UNIT, cores=(min(os.sched_getaffinity(0)),))
SHORT = BenchEffort(min_repetitions=4, min_seconds=0.0, warm_up_repetitions=1)


@pytest.mark.parametrize("engine", ["mnn", "onnxruntime", "openvino"])
def test_a_real_model_is_benched(engine: str) -> None:
    bench = bench_engine(direction(), PINNED, engine=engine, effort=SHORT)
    assert bench.network == direction().network.name
    assert bench.run_us.count == bench.copy_in_us.count == bench.copy_out_us.count == 4
    assert 0 < bench.copy_in_us.least < bench.run_us.least
    assert bench.open_us > 0
    assert bench.rss_bytes > 10_000_000
    assert bench.right
    assert bench.worst_error is not None
    assert bench.worst_error < 1e-4
    assert bench.tolerance == 1e-3
    assert [(r.granted_cores, r.granted_threads, r.mismatches) for r in bench.receipts] == [
        (PINNED.cores, 1, ())
    ]


def test_all_samples_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The right numbers of another sample than the last one are none for this."""
    monkeypatch.setattr(
        "gapless.executor.engines.bench.references", lambda model, seeds: references(model, [*seeds[:-1], 99])
    )
    assert bench_engine(direction(), PINNED, effort=SHORT).wrong


def test_it_runs_for_a_while() -> None:
    bench = bench_engine(direction(), PINNED, effort=replace(SHORT, min_repetitions=1, min_seconds=0.1))
    assert bench.run_us.count > 3


def test_a_unit_that_is_not_there_is_refused() -> None:
    with pytest.raises(PlacementError, match="backend: asked for opencl, got cpu"):
        bench_engine(direction(), OPENCL, effort=SHORT)
