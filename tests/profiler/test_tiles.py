"""Times of tiles: a line through what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapless.executor.engines.registry import get_engine
from gapless.executor.graph.tiling import Tiler
from gapless.executor.progress import Report, Step, silent
from gapless.executor.tuning.store import Store
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.spatial import Axis
from gapless.profiler import records
from gapless.profiler.feed import Feed
from gapless.profiler.sampling import Effort
from gapless.profiler.tiles import TileSample, TileTimes, fitted, measure_tiles
from tests.executor.graph.models import load, residual
from tests.executor.pipeline.fakes import platform


def samples(*pairs: tuple[int, float]) -> list[TileSample]:
    return [TileSample(rows=rows, busy_us=busy_us) for rows, busy_us in pairs]


@pytest.mark.parametrize(
    ("measured", "line"),
    [
        (samples((1, 13.0), (2, 16.0), (8, 34.0)), (10.0, 3.0)),
        (samples((1, 12.0), (2, 17.0), (3, 18.0)), (29 / 3, 3.0)),  # slope 6 / 2, mean 47 / 3 at 2 rows
        (samples((1, 0.5), (2, 4.0), (4, 11.5)), (0.0, 54.5 / 21)),  # through zero: sum x y / sum x x
        (samples((1, 9.0), (4, 7.0)), (8.0, 0.0)),
        (samples((4, 8.0)), (0.0, 2.0)),
    ],
)
def test_the_line_fits_by_least_squares(measured: list[TileSample], line: tuple[float, float]) -> None:
    assert fitted(measured) == pytest.approx(line)


@pytest.mark.parametrize(
    ("overhead_us", "share"),
    [(0.0, 0.4), (10.0, 0.3 / 0.9), (50.0, 0.0)],  # 40 us are fixed, of 100
)
def test_the_fixed_share_is_that_of_operations_and_not_of_the_session(
    overhead_us: float, share: float
) -> None:
    found = tuple(
        TileSample(rows=rows, busy_us=1.0, work=work, run_us=40 + 60 * work)
        for rows, work in ((1, 0.25), (4, 0.625), (6, 0.75))
    )
    times = TileTimes(
        unit="a", span=(0, 1), axis=Axis.ROWS, total=8, samples=found, fixed_us=0.0, row_us=1.0,
        receipt=None,  # type: ignore[arg-type]
    )  # fmt: skip
    assert times.fixed_share(overhead_us) == pytest.approx(share)


def test_parts_of_tensors_are_fed_to_tiles(tmp_path: Path) -> None:
    model = load(residual(1), tmp_path)
    piece = Tiler(model).piece(1, 3, Axis.COLUMNS, (2, 7))
    feed = Feed(model, seed=3)
    places = feed.places(piece)
    feed_file = feed._file
    inputs = model.sample_inputs(3)
    right = model.reference(inputs, also=[spec.name for spec in piece.inputs])
    for spec, part, place in zip(piece.inputs, piece.parts, places, strict=False):
        feed_file.seek(place)
        found = np.frombuffer(feed_file.read(spec.bytes), spec.dtype).reshape(spec.shape)
        assert (found == part.of(right[spec.name])).all()
    feed.close()


@pytest.mark.slow
@pytest.mark.measures
def test_tiles_are_measured_on_each_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "defects", lambda busy: [])  # what is unsteady is measured again
    model = load(residual(2, channels=16, size=48), tmp_path)
    spans = [(0, 2), (2, len(model.network.layers))]
    said: list[Step] = []
    ledger = Store(":memory:")

    def measured(report: Report) -> tuple[TileTimes, ...]:
        return measure_tiles(
            model,
            platform("a", "b"),
            get_engine("onnxruntime"),
            spans,
            effort=Effort(min_repetitions=10, min_seconds=0.02),
            ledger=ledger,
            report=report,
        )

    found = measured(said.append)
    assert measured(silent) == found  # from the ledger
    assert [(times.span, times.unit) for times in found] == [(s, u) for s in spans for u in "ab"]
    assert [step.done for step in said] == [0, 1, 2, 3]
    for times in found:
        assert times.total == 48
        assert [sample.rows for sample in times.samples] == [6, 12, 24, 36]
        assert times.samples[0].busy_us < times.samples[-1].busy_us
        assert [sample.work for sample in times.samples] == sorted({sample.work for sample in times.samples})
        assert all(0 < sample.run_us < sample.busy_us for sample in times.samples)
        assert times.row_us > 0
        assert times.receipt.unit == times.unit
        assert times.predicted_us(48) == times.fixed_us + 48 * times.row_us
        worst = max(times.samples, key=lambda s: abs(times.predicted_us(s.rows) / s.busy_us - 1))
        assert times.misfit == pytest.approx(abs(times.predicted_us(worst.rows) / worst.busy_us - 1))


def test_what_cannot_be_divided_is_not_measured(tmp_path: Path) -> None:
    model = load(residual(1), tmp_path)
    with pytest.raises(InvalidPlanError, match="is no chunk"):
        measure_tiles(model, platform("a"), get_engine("onnxruntime"), [(0, 99)])
