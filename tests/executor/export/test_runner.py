"""The exported runner: right numbers without gapless, and clear words where something is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

from gapless.executor.export.crews import PendingRequest, Threads
from gapless.executor.export.folder import load_manifest
from gapless.executor.export.kinds import ExportKind
from gapless.executor.export.sessions import Export, OpenChunk
from gapless.executor.joined import join
from gapless.executor.model import Model
from gapless.formulations.deployment import Deployment, Mode, Rounds, replicas
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.hardware import EngineSettings, UnitKind
from gapless.formulations.plan import Plan
from gapless.formulations.streams import Stream
from gapless.formulations.workload import Request, Workload
from tests.executor.graph.models import constant, node, residual, tiny, value
from tests.executor.graph.models import model as onnx_model
from tests.numbers import relative_error

from .exports import chunks, opened, ran, run, save_frames, skipping, units, write

THREE = ((1, "a"), (2, "b"), (4, "c"))
ENGINES = [(ExportKind.ONNXRUNTIME, "onnxruntime"), (ExportKind.MNN, "mnn")]


@pytest.fixture
def skip(tmp_path: Path) -> Model:
    return opened(skipping(), tmp_path, "skip")


def assert_right(path: Path, model: Model, seeds: range, prefix: str = "") -> None:
    with np.load(path) as found:
        for number, seed in enumerate(seeds):
            for name, right in model.reference(model.sample_inputs(seed)).items():
                assert relative_error(found[prefix + name][number], right) < 1e-5, (number, name)


@pytest.mark.slow
@pytest.mark.parametrize("crew", ["threads", "processes"])
@pytest.mark.parametrize(("kind", "engine"), ENGINES)
def test_a_tensor_that_jumps_over_a_chunk_arrives(
    skip: Model, tmp_path: Path, kind: ExportKind, engine: str, crew: str
) -> None:
    out = tmp_path / "out"
    exported = write(out, chunks("skip", *THREE), skip, kind=kind, engine=engine)
    first, second, third = exported.manifest.streams[0].chunks
    assert [(spec.name, spec.source) for spec in third.takes] == [("b", 1), ("a", 0)]
    assert [spec.name for spec in second.takes] == ["a"]
    assert (first.alive, second.alive, third.alive) == (("x",), ("a",), ("a", "b"))
    words = ["--processes"] if crew == "processes" else []
    found = ran(out, "--requests", "20", *words)
    assert (found["requests"], found["compared"], found["engine"]) == (20, 25, engine)
    assert found["worst_error"] < 1e-5
    assert found["predicted_period_us"] == 1000
    frames = save_frames(tmp_path / "in.npz", [skip.sample_inputs(seed) for seed in range(10, 17)])
    found = ran(out, "--input", frames, "--output", tmp_path / "out.npz", *words)
    assert (found["requests"], found["compared"], found["worst_error"]) == (7, 0, None)
    assert_right(tmp_path / "out.npz", skip, range(10, 17))


@pytest.mark.slow
def test_one_chunk_after_the_other_by_files(skip: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, chunks("skip", *THREE), skip)
    path = save_frames(tmp_path / "0.npz", [skip.sample_inputs(seed) for seed in range(2)])
    for number in range(3):
        after = tmp_path / f"{number + 1}.npz"
        done = run(out, "--chunk", str(number), "--input", path, "--output", after)
        assert done.returncode == 0, done.stderr
        path = after
    assert_right(path, skip, range(2))


@pytest.mark.slow
def test_replicas_share_the_requests(skip: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported = write(out, replicas("skip", 4, ("a", "b")), skip)
    assert sorted(exported.manifest.files) == [
        "run.py", "skip.0-3.a+b.onnx", "skip.expected.npz", "skip.sample.npz",
    ]  # fmt: skip
    frames = save_frames(tmp_path / "in.npz", [skip.sample_inputs(seed) for seed in range(9)])
    for words in ([], ["--processes"]):
        found = ran(out, "--input", frames, "--output", tmp_path / "out.npz", *words)
        assert found["requests"] == 9
        assert_right(tmp_path / "out.npz", skip, range(9))


@pytest.mark.slow
@pytest.mark.parametrize("mode", Mode)
def test_the_requests_of_a_workload_keep_their_order(skip: Model, tmp_path: Path, mode: Mode) -> None:
    other = opened(residual(1), tmp_path, "other")
    layers = len(other.network.layers)
    named = {"late": chunks("skip", (2, "a"), (4, "b")), "early": chunks("other", (layers, "b"))}
    named["again"] = chunks("skip", (1, "a"), (4, "b"))
    plan = Plan(
        chunks=tuple(replace(chunk, request=name) for name, own in named.items() for chunk in own),
        order=("late", "early", "again"),
    )
    late_us = 2000 if mode is Mode.BATCH else 0
    requests = tuple(
        Request(name=name, network=own[0].network, arrival_us=late_us if name == "late" else 0)
        for name, own in named.items()
    )
    for slots in (None, 1):
        out = tmp_path / f"out-{slots}"
        workload = Workload(requests=requests, mode=mode, task_slots=slots)
        write(out, deploy_rounds(plan, workload), skip, other)
        found = ran(out, "--requests", "6", "--warm-up", "1")
        assert found["compared"] == 21
        assert found["worst_error"] < 1e-5
        assert (found["makespan_us"] is None) == (mode is Mode.STREAM)
        assert (found["period_us"] is None) == (mode is Mode.BATCH)
    models = {"late": skip, "early": other, "again": skip}
    frames = [
        {f"{name}/{key}": array for name, model in models.items() for key, array in inputs(model, seed)}
        for seed in range(4)
    ]
    source = save_frames(tmp_path / "in.npz", frames)
    ran(out, "--input", source, "--output", tmp_path / "out.npz")
    for name, model in models.items():
        assert_right(tmp_path / "out.npz", model, range(4), f"{name}/")
    refused = run(out, "--processes")
    assert refused.returncode == 2
    assert "b serve several streams" in refused.stderr.replace("a, b", "b")


def own_orders(skip: Model, other: Model) -> Deployment:
    """Return two requests that come back to units, which serve them in orders of their own."""
    layers = len(other.network.layers)
    streams = (
        Stream(name="one", chunks=chunks("skip", (1, "a"), (2, "b"), (4, "a")), task_slots=1),
        Stream(name="two", chunks=chunks("other", (1, "b"), (2, "a"), (layers, "b")), task_slots=1),
    )
    order = ("two", "one", "two", "one", "two", "one")
    return Deployment(streams=streams, rounds=Rounds(mode=Mode.BATCH, arrivals_us=(0, 0), order=order))


@pytest.mark.slow
def test_units_keep_orders_of_their_own(skip: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, out = opened(residual(1), tmp_path, "other"), tmp_path / "out"
    exported = write(out, own_orders(skip, other), skip, other)
    assert exported.manifest.rounds is not None
    assert [(turn.stream, turn.chunk) for turn in exported.manifest.rounds.turns] == [
        *(("two", 0), ("one", 0), ("two", 1)),
        *(("one", 1), ("two", 2), ("one", 2)),
    ]
    found = ran(out, "--requests", "6", "--warm-up", "1")
    assert found["compared"] == 14
    assert found["worst_error"] < 1e-5
    models = {"one": skip, "two": other}
    frames = [
        {f"{name}/{key}": array for name, model in models.items() for key, array in inputs(model, seed)}
        for seed in range(3)
    ]
    source = save_frames(tmp_path / "in.npz", frames)
    ran(out, "--input", source, "--output", tmp_path / "out.npz")
    for name, model in models.items():
        assert_right(tmp_path / "out.npz", model, range(3), f"{name}/")

    served: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}

    class Noting(OpenChunk):
        def __init__(self, export: Export, stream: int, number: int, opened: dict[str, Any]) -> None:
            super().__init__(export, stream, number, opened)
            self._unit = served[export.streams[stream]["chunks"][number]["unit"]]
            self._place = stream, number

        def run(self, tensors: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
            self._unit.append(self._place)
            return super().run(tensors)

    monkeypatch.setattr("gapless.executor.export.crews.OpenChunk", Noting)
    export = Export(out)
    crew = Threads(export, pinned=False)
    crew.open()
    for number in range(2):
        for stream, model in enumerate((skip, other)):
            crew.enter(stream, PendingRequest(number, 0, model.sample_inputs(0)))
    assert {crew.events.get()[0] for _ in range(4)} == {0, 1}
    crew.close()
    assert served == {"a": [(0, 0), (1, 1), (0, 2)] * 2, "b": [(1, 0), (0, 1), (1, 2)] * 2}


@pytest.mark.slow
def test_turns_that_leave_a_chunk_out_are_refused(skip: Model, tmp_path: Path) -> None:
    other, out = opened(residual(1), tmp_path, "other"), tmp_path / "out"
    write(out, own_orders(skip, other), skip, other)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["rounds"]["turns"][0] = manifest["rounds"]["turns"][1]
    (out / "manifest.json").write_text(json.dumps(manifest))
    refused = run(out)
    assert refused.returncode == 2
    assert "do not name every chunk once" in refused.stderr


def inputs(model: Model, seed: int) -> list[tuple[str, Any]]:
    return list(model.sample_inputs(seed).items())


@pytest.mark.slow
def test_a_chunk_of_several_models_has_several_files(tmp_path: Path) -> None:
    joined = join([opened(residual(1), tmp_path, "one"), opened(tiny(), tmp_path, "two")])
    name, layers = joined.network.name, len(joined.network.layers)
    out = tmp_path / "out"
    exported = write(out, chunks(name, (2, "a"), (layers, "b")), joined)
    assert [len(chunk.steps) for chunk in exported.manifest.streams[0].chunks] == [1, 2]
    assert [step.prefix for step in exported.manifest.streams[0].chunks[1].steps] == ["one/", "two/"]
    assert ran(out, "--requests", "5")["worst_error"] < 1e-5
    assert ran(out, "--requests", "5", "--processes")["worst_error"] < 1e-5


@pytest.mark.slow
def test_mnn_gets_a_process_for_each_unit_with_threads(skip: Model, tmp_path: Path) -> None:
    usable = tuple(sorted(os.sched_getaffinity(0)))
    if len(usable) < 2:
        pytest.skip("this machine has one core")
    both = units("a", "b", threads=2)
    both = replace(both, units=tuple(replace(unit, cores=usable[:2]) for unit in both.units))
    one = replace(both, units=(both.units[0], replace(both.units[1], threads=1, cores=usable[:1])))
    for name, platform in (("both", both), ("one", one)):
        out = tmp_path / name
        export = partial(write, kind=ExportKind.MNN, engine="mnn", platform=platform)
        export(out, chunks("skip", (2, "a"), (4, "b")), skip)
        assert ran(out, "--requests", "5")["worst_error"] < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--processes"]], ids=["threads", "processes"])
def test_a_changed_file_is_refused(skip: Model, tmp_path: Path, words: list[str]) -> None:
    out = tmp_path / "out"
    write(out, chunks("skip", *THREE), skip)
    with (out / "skip.1-1.b.onnx").open("ab") as file:
        file.write(b" ")
    done = run(out, *words)
    assert done.returncode == 2
    assert "skip.1-1.b.onnx is not the file that was exported" in done.stderr
    assert not done.stdout


def test_wrong_numbers_are_told(skip: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, chunks("skip", *THREE), skip)
    with np.load(out / "skip.expected.npz") as right:
        shifted = {name: right[name] + 0.1 for name in right.files}
    np.savez(tmp_path / "other.npz", **shifted)
    done = run(out, "--expect", tmp_path / "other.npz")
    assert done.returncode == 6
    assert "DIFFER FROM" in done.stdout
    np.savez(tmp_path / "nan.npz", **{name: array * np.nan for name, array in shifted.items()})
    done = run(out, "--expect", tmp_path / "nan.npz", "--json")
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert (done.returncode, found["agree"], found["worst_error"]) == (6, False, None)


@pytest.mark.slow
def test_bad_input_is_refused(skip: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, chunks("skip", *THREE), skip)
    good = skip.sample_inputs(0)["x"]
    cases = {
        "shape": ({"x": np.stack([good[:, :, :4]])}, "needs float32 ['any number', 1, 3, 8, 8]"),
        "dtype": ({"x": np.stack([good]).astype(np.float64)}, "'x' is float64"),
        "name": ({"y": np.stack([good])}, "'x is not a file in the archive'"),
        "empty": ({"x": np.stack([good])[:0]}, "must count the same requests"),
    }
    for name, (arrays, message) in cases.items():
        np.savez(tmp_path / f"{name}.npz", **arrays)  # type: ignore[arg-type]
        done = run(out, "--input", tmp_path / f"{name}.npz")
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    for words, message in (
        (["--requests", "0"], "--requests must be at least 1"),
        (["--chunk", "3"], "there is no chunk 3"),
        (["--chunk", "0", "--input", "x.npz"], "needs --output"),
        (["--chunk", "0", "--stream", "other"], "--stream must be one of skip"),
        (["--input", "nowhere.npz"], "cannot read nowhere.npz"),
    ):
        done = run(out, *words)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_without_its_engine_it_says_so(skip: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, chunks("skip", *THREE), skip)
    done = run(out, without=["gapless", "onnxruntime"])
    assert done.returncode == 2
    assert "install the engine" in done.stderr


def test_a_unit_without_settings_never_falls_back(skip: Model, tmp_path: Path) -> None:
    platform = units("a", "b", "c")
    gpu = replace(platform.units[2], kind=UnitKind.GPU, engine=EngineSettings(backend="opencl"), cores=())
    platform = replace(platform, units=(*platform.units[:2], gpu))
    out = tmp_path / "out"
    write(out, chunks("skip", *THREE), skip, kind=ExportKind.ONNX, platform=platform)
    done = run(out)
    assert done.returncode == 2
    assert "chunk 2 of 'skip' on unit 'c': onnxruntime has no backend 'opencl'" in done.stderr
    assert run(out, "--chunk", "0", "--feed").returncode == 5  # the pipe is broken off: nobody feeds it


@pytest.mark.slow
def test_a_backend_that_mnn_does_not_grant_is_refused(skip: Model, tmp_path: Path) -> None:
    platform = units("a")
    gpu = replace(platform.units[0], kind=UnitKind.GPU, engine=EngineSettings(backend="cuda"), cores=())
    out = tmp_path / "out"
    write(
        out, chunks("skip", (4, "a")), skip, kind=ExportKind.MNN, engine="mnn",
        platform=replace(platform, units=(gpu,)),
    )  # fmt: skip
    done = run(out)
    assert done.returncode == 5
    assert "asked for CUDA, got backend number" in done.stderr


@pytest.mark.parametrize("words", [[], ["--processes"]], ids=["threads", "processes"])
def test_ctrl_c_ends_it(skip: Model, tmp_path: Path, words: list[str]) -> None:
    out, platform = tmp_path / "out", units("a", "b", "c", quota_permille=500)
    write(out, chunks("skip", *THREE), skip, platform=platform)
    argv = [sys.executable, str(out / "run.py"), "--requests", "100000000", *words]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "was emulated" in process.stderr.readline()  # it has started
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert "interrupted\n" in said
    assert "Traceback" not in said


def test_the_manifest_on_disk_is_what_was_returned(skip: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported = write(out, chunks("skip", *THREE), skip)
    assert load_manifest(out) == exported.manifest
    raw = json.loads((out / "manifest.json").read_text())
    assert (raw["format"], raw["version"]) == ("gapless.export", 1)
    assert raw["streams"][0]["chunks"][0]["takes"][0]["dtype"] == "float32"


@pytest.mark.slow
def test_numbers_without_dimensions_and_other_types_pass(tmp_path: Path) -> None:
    proto = onnx_model(
        [
            node("Cast", "x", "f", to=TensorProto.FLOAT),
            node("ReduceSum", "f", "s", keepdims=0),
            node("Mul", "f s", "m"),
            node("Greater", "m t", "g"),
            node("Cast", "g", "y", to=TensorProto.INT64),
        ],
        [value("x", [2, 3], TensorProto.INT64), value("t", [], TensorProto.FLOAT)],
        [value("y", [2, 3], TensorProto.INT64), value("s", [], TensorProto.FLOAT)],
    )
    odd = opened(proto, tmp_path, "odd")
    layers = len(odd.network.layers)
    parts = chunks("odd", *((stop, "abc"[stop - 1] if stop < 3 else "c") for stop in (1, 2, layers)))
    out = tmp_path / "out"
    write(out, parts, odd)
    for words in ([], ["--processes"]):
        found = ran(out, "--requests", "6", *words)
        assert (found["agree"], found["compared"]) == (True, 11)


def test_what_is_random_is_compared_with_nothing(tmp_path: Path) -> None:
    nodes = [node("RandomNormalLike", "x", "n"), node("Add", "x n", "y"), node("Neg", "x", "z")]
    proto = onnx_model(nodes, [value("x", [2, 3])], [value("y", [2, 3]), value("z", [2, 3])])
    noisy = opened(proto, tmp_path, "noisy")
    out = tmp_path / "out"
    exported = write(out, chunks("noisy", (len(noisy.network.layers), "a")), noisy)
    assert exported.manifest.networks[0].random == ("y",)
    found = ran(out, "--requests", "6")
    assert (found["agree"], found["worst_error"]) == (True, 0.0)


@pytest.mark.slow
def test_numbers_of_which_mnn_would_compute_others_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("MNN")
    table = constant("table", [[0.5]] * 9, "float32")
    proto = onnx_model(
        [node("Gather", "table x", "y")], [value("x", [4], TensorProto.INT64)], [value("y", [4, 1])], [table]
    )
    words = opened(proto, tmp_path, "words")
    out = tmp_path / "out"
    write(out, chunks("words", (1, "a")), words, kind=ExportKind.MNN, engine="mnn")
    assert ran(out, "--requests", "3")["agree"]
    done = run(out, "--input", save_frames(tmp_path / "in.npz", [{"x": np.array([1, 2, 3, 9])}]))
    assert done.returncode == 2
    assert "input 'x' holds numbers beyond 8" in done.stderr
