"""Several units that compute tiles of one chunk: right numbers, one after the other, nothing lost."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import numpy as np
import pytest

from gapless.executor.engine import Artifact
from gapless.executor.engines.ort_engine import OrtEngine
from gapless.executor.engines.registry import get_engine
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.graph.tiling import Tiler
from gapless.executor.measurement import Measurement
from gapless.executor.model import Piece
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.trace_file import check_trace, load_trace, trace_parts
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.progress import Step
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment, Mode, Rounds
from gapless.formulations.errors import (
    InvalidInputError,
    InvalidPlanError,
    OutputMismatchError,
    UnitLostError,
)
from gapless.formulations.plan import Chunk
from gapless.formulations.spatial import Axis
from gapless.formulations.streams import Stream, Tile
from tests.executor.export.exports import write
from tests.executor.graph.models import load, residual
from tests.executor.pipeline.fakes import platform
from tests.executor.pipeline.test_pipeline import left

PLATFORM = platform("a", "b", "c")


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = left()
    yield
    assert left() == before


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OnnxModel:
    return load(residual(2), tmp_path_factory.mktemp("model"), name="net")


def stream(model: OnnxModel, *parts: tuple[int, str, Sequence[int]], axis: Axis = Axis.ROWS) -> Stream:
    """Return a stream from (stop, units, rows before each but the first unit) of its chunks."""
    chunks: list[Chunk] = []
    tiles: list[Tile | None] = []
    start = 0
    for stop, units, inner in parts:
        if len(units) > 1:
            bounds = [0, *inner, Tiler(model).rows(start, stop, axis)]
            tiles += [Tile(axis=axis, start=a, stop=b) for a, b in pairwise(bounds)]
        else:
            tiles.append(None)
        chunks += [Chunk(network="net", start=start, stop=stop, unit=unit) for unit in units]
        start = stop
    return Stream(name="net", chunks=tuple(chunks), tiles=tuple(tiles))


def opened(model: OnnxModel, *streams: Stream, engine: str = "onnxruntime", **options: object) -> Pipeline:
    found = Deployment(streams=streams)
    return Pipeline(found, {"net": model}, PLATFORM, get_engine(engine), **options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_groups_give_the_right_numbers_and_wait_for_each_other(model: OnnxModel, tmp_path: Path) -> None:
    last = len(model.network.layers)
    assert model.network.legal_cuts == tuple(range(1, last))
    # A group, one unit, a group: the first and the last chunks are divided, and unevenly.
    parts = stream(model, (1, "ab", [5]), (2, "c", []), (last, "bca", [3, 4]), axis=Axis.COLUMNS)
    assert str(parts) == (
        "0-0 a columns 0-4 + b columns 5-11 | 1-1 c | "
        f"2-{last - 1} b columns 0-2 + c columns 3-3 + a columns 4-11"
    )
    with opened(model, parts) as pipeline:
        assert verify(pipeline, References({"net": model})).largest_error < 1e-5
        measured = pipeline.measure(Budget(requests=20))
        trace = pipeline.trace(requests=8)
        frames = [model.sample_inputs(seed) for seed in range(9)]
        found = list(pipeline.map(frames))
    for frame, outputs in zip(frames, found, strict=True):
        assert np.allclose(outputs["b2"], model.reference(frame)["b2"], atol=1e-5)
    pieces = {(receipt.unit, receipt.piece.partition(" ")[2]) for receipt in measured.receipts}
    assert {("a", "columns 0 to 4 of 12"), ("c", "columns 3 to 3 of 12"), ("c", "")} <= pieces
    assert {(times.chunk, times.unit) for times in measured.chunks} == set(enumerate("abcbca"))
    assert_in_step(measured)
    done = {(event.request, event.chunk): event for event in trace.events}
    for request in range(8):
        for early, late in (((0, 1), (2,)), ((2,), (3, 4, 5))):
            ends = [done[request, chunk].end_ns for chunk in early]
            assert max(ends) <= min(done[request, chunk].start_ns for chunk in late)
    text = "".join(trace_parts(trace))
    assert check_trace(json.loads(text)) == []
    assert f"net 2-{last - 1} columns 3-3" in text
    path = tmp_path / "trace.json"
    path.write_text(text)
    assert load_trace(path) == trace


def assert_in_step(measured: Measurement) -> None:
    """Require that the numbers of a measurement fit together."""
    (times,) = measured.streams
    assert times.requests == 20
    assert times.latency_us.least > max(chunk.busy_us.least for chunk in measured.chunks)
    assert measured.period_us == pytest.approx(measured.seconds * 1e6 / 20)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["onnxruntime", "mnn"])
def test_one_group_alone_computes_the_network(model: OnnxModel, engine: str) -> None:
    last = len(model.network.layers)
    with opened(model, stream(model, (last, "ab", [7])), engine=engine) as pipeline:
        assert pipeline.deployment.streams[0].slots == 2
        assert verify(pipeline, References({"net": model})).largest_error < 1e-4
        assert pipeline.measure(Budget(requests=10)).requests == 10
        assert pipeline.measure(Budget(seconds=0.05)).requests >= 1
        assert len(pipeline.trace(requests=3).events) == 6


@pytest.mark.slow
def test_a_lost_tile_is_named_and_its_requests_run_again(model: OnnxModel) -> None:
    last = len(model.network.layers)
    parts = stream(model, (1, "ab", [6]), (last, "ab", [6]))
    said: list[Step] = []
    with opened(model, parts, restarts=1, report=said.append) as pipeline:
        frames = [model.sample_inputs(seed) for seed in range(12)]
        found = []
        for number, outputs in enumerate(pipeline.map(frames)):
            found.append(outputs["b2"])
            if number == 2:
                os.kill(pipeline._workers().pids[1], signal.SIGKILL)
        for frame, output in zip(frames, found, strict=True):
            assert np.allclose(output, model.reference(frame)["b2"], atol=1e-5)
        assert "the worker of unit 'b'" in said[0].text
        os.kill(pipeline._workers().pids[1], signal.SIGKILL)
        with pytest.raises(UnitLostError, match=r"'b'.*killed by SIGKILL"):
            pipeline.measure(Budget(requests=5))


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [0, 1])
def test_a_tile_that_hangs_is_told_from_one_that_waits(model: OnnxModel, stopped: int) -> None:
    parts = stream(model, (1, "ab", [6]), (len(model.network.layers), "ab", [6]))
    with opened(model, parts, stall_limit_s=0.6) as pipeline:
        results = pipeline.map(model.sample_inputs(seed) for seed in count())
        for _ in range(3):
            next(results)
        pids = pipeline._workers().pids
        os.kill(pids[stopped], signal.SIGSTOP)
        with pytest.raises(UnitLostError) as caught:
            for _ in results:
                pass
    text = str(caught.value)
    assert f"the worker of unit {'ab'[stopped]!r} (process {pids[stopped]}) has made no progress" in text
    assert "of 'net' (chunk " in text


class _WrongTile(OrtEngine):
    """An engine that runs the tile at the top in place of the one at the bottom."""

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        above, below, *others = super().prepare(pieces, folder=folder)
        return above, replace(below, path=above.path), *others


@pytest.mark.slow
def test_a_wrong_tile_is_named(model: OnnxModel) -> None:
    parts = stream(model, (1, "ab", [6]), (len(model.network.layers), "c", []))
    deployment = Deployment(streams=(parts,))
    with (
        Pipeline(deployment, {"net": model}, PLATFORM, _WrongTile()) as pipeline,
        pytest.raises(OutputMismatchError) as caught,
    ):
        verify(pipeline, References({"net": model}))
    assert "made by 'net' (chunk 1, layers 0 to 0, rows 6-11) on unit 'b'" in str(caught.value)
    assert "ONNX Runtime" in str(caught.value).partition("was granted")[2]


@pytest.mark.slow
def test_divided_and_other_streams_share_units(model: OnnxModel) -> None:
    last = len(model.network.layers)
    other = Stream(name="other", chunks=(Chunk(network="net", start=0, stop=last, unit="b"),))
    with opened(model, stream(model, (last, "ab", [6])), other) as pipeline:
        assert verify(pipeline, References({"net": model})).largest_error < 1e-5
        assert pipeline.measure(Budget(requests=5)).requests == 10


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
def test_requests_of_a_workload_can_be_divided(model: OnnxModel, mode: Mode) -> None:
    last = len(model.network.layers)
    parts = stream(model, (1, "ab", [6]), (last, "ba", [6]))
    streams = tuple(
        replace(parts, name=name, chunks=tuple(replace(chunk, request=name) for chunk in parts.chunks))
        for name in ("one", "two")
    )
    deployment = Deployment(streams=streams, rounds=Rounds(mode=mode, arrivals_us=(0, 0)))
    with Pipeline(deployment, {"net": model}, PLATFORM, get_engine("onnxruntime")) as pipeline:
        assert verify(pipeline, References({"net": model})).largest_error < 1e-5
        measured = pipeline.measure(Budget(requests=6, warm_up_requests=1))
    assert measured.requests == 12
    if mode is Mode.BATCH:
        assert measured.makespan_us is not None
        assert measured.makespan_us.least >= max(times.latency_us.least for times in measured.streams)


def chunk(start: int, stop: int, unit: str) -> Chunk:
    return Chunk(network="net", start=start, stop=stop, unit=unit)


def rows(start: int, stop: int, axis: Axis = Axis.ROWS) -> Tile:
    return Tile(axis=axis, start=start, stop=stop)


@pytest.mark.parametrize(
    ("chunks", "tiles", "words"),
    [
        ("ab", (rows(0, 5),), "1 tiles for 2 chunks"),
        ("ab", (), "each needs a tile along the same axis"),
        ("ab", (rows(0, 5), None), "each needs a tile along the same axis"),
        ("ab", (rows(0, 5), rows(5, 9, Axis.COLUMNS)), "each needs a tile along the same axis"),
        ("ab", (rows(0, 5), rows(6, 9)), "do not follow each other from 0 on"),
        ("ab", (rows(1, 5), rows(5, 9)), "do not follow each other from 0 on"),
        ("ab", (rows(0, 5), rows(5, 5)), "do not follow each other from 0 on"),
        ("aa", (rows(0, 5), rows(5, 9)), "computed twice by one unit: a, a"),
        ("a", (rows(0, 9),), "but one unit alone computes them"),
    ],
)
def test_tiles_that_do_not_fit_together_are_refused(
    chunks: str, tiles: tuple[Tile | None, ...], words: str
) -> None:
    layers = tuple(chunk(0, 3, unit) for unit in chunks)
    with pytest.raises(InvalidPlanError, match=words):
        Deployment(streams=(Stream(name="net", chunks=layers, tiles=tiles),))


@pytest.mark.parametrize("leaders", [(0,), (2, 0), (0, 1), (0, 2, 3), (0, 3), (0, -1)])
def test_leaders_that_do_not_lead_each_group_are_refused(leaders: tuple[int, ...]) -> None:
    chunks, tiles = (chunk(0, 3, "a"), chunk(0, 3, "b"), chunk(3, 4, "a")), (rows(0, 5), rows(5, 9), None)
    stream = Stream(name="net", chunks=chunks, tiles=tiles, leaders=(1, 2))
    led = Deployment(streams=(stream,))
    assert led.deployment_id != Deployment(streams=(replace(stream, leaders=()),)).deployment_id
    with pytest.raises(InvalidPlanError, match="are not one chunk of each group, in order"):
        Deployment(streams=(replace(stream, leaders=leaders),))


def test_tiles_that_do_not_fit_the_model_are_refused(model: OnnxModel) -> None:
    last = len(model.network.layers)
    parts = Stream(
        name="net", chunks=(chunk(0, last, "a"), chunk(0, last, "b")), tiles=(rows(0, 5), rows(5, 9))
    )
    with pytest.raises(InvalidPlanError, match=r"is rows 5-8: it must end with the last of 12 rows"):
        opened(model, parts)


def test_a_deployment_knows_its_tiles(model: OnnxModel) -> None:
    last = len(model.network.layers)
    one, other = (Deployment(streams=(stream(model, (last, "ab", [at])),)) for at in (5, 6))
    assert one.deployment_id != other.deployment_id
    assert one.is_divided
    assert one.units == ("a", "b")
    assert one.streams[0].waits == ((), ())
    assert one.streams[0].first == one.streams[0].last == (0, 1)
    assert one.plan == other.plan  # rows are worked out anew, not part of a plan


def test_tiles_are_not_lost_silently_where_nobody_can_run_them(model: OnnxModel, tmp_path: Path) -> None:
    divided = Deployment(streams=(stream(model, (len(model.network.layers), "ab", [6])),))
    with pytest.raises(InvalidInputError, match="cannot be exported: several units compute tiles"):
        write(tmp_path, divided, model)
