"""First part of the exported runner: the manifest, and one chunk open in an engine.

The modules `sessions`, `crews` and `runner` are put together into one file, `run.py` (`standalone.py`). They
import nothing of gapless but each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

HERE = Path(__file__).resolve().parent
BAD_INPUT, FAILED, WRONG, INTERRUPTED = 2, 5, 6, 130


class Stopped(Exception):
    """What ends the program."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


class Export:
    """The manifest, and the files beside it."""

    def __init__(self, folder: Path = HERE) -> None:
        self.folder = folder
        try:
            self.data = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Stopped(f"cannot read {folder / 'manifest.json'}: {error}", BAD_INPUT) from None
        if (self.data.get("format"), self.data.get("version")) != ("gapless.export", 1):
            raise Stopped(f"{folder / 'manifest.json'} is no gapless.export file of version 1", BAD_INPUT)
        self.streams: list[Any] = self.data["streams"]
        self.units = {unit["name"]: unit for unit in self.data["units"]}
        self.networks = {network["name"]: network for network in self.data["networks"]}

    def turns(self) -> list[tuple[int, int]]:
        """Return stream and chunk of all that units serve for requests of one number, in their order."""
        places = [(s, c) for s, stream in enumerate(self.streams) for c in range(len(stream["chunks"]))]
        told = (self.data["rounds"] or {}).get("turns")
        if not told:
            return places
        index = {stream["name"]: number for number, stream in enumerate(self.streams)}
        turns = [(index.get(turn["stream"], -1), turn["chunk"]) for turn in told]
        if sorted(turns) != places:
            raise Stopped("the turns in manifest.json do not name every chunk once", BAD_INPUT)
        return turns

    def file(self, name: str) -> Path:
        """Return the path of a file after comparing its digest with that of the manifest."""
        path = self.folder / name
        try:
            with path.open("rb") as opened:
                digest = hashlib.sha256()
                while block := opened.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise Stopped(f"cannot read {path}: {error.strerror}", BAD_INPUT) from None
        if digest.hexdigest() != self.data["files"].get(name):
            raise Stopped(f"{path} is not the file that was exported: export the plan again", BAD_INPUT)
        return path

    def alive(self, stream: int, chunk: int) -> list[Any]:
        """Return the tensors that have to be there before a chunk; behind the last one: the outputs."""
        chunks, network = self.streams[stream]["chunks"], self.networks[self.streams[stream]["network"]]
        if chunk == len(chunks):
            return list(network["outputs"])
        made = (spec for before in chunks[:chunk] for spec in before["gives"])
        known = {spec["name"]: spec for spec in (*network["inputs"], *made)}
        return [known[name] for name in chunks[chunk]["alive"]]


class OrtFileSession:
    """One model file, open in ONNX Runtime."""

    def __init__(self, path: Path, step: Any, unit: Any) -> None:
        import onnxruntime as ort

        asked = unit["session"]
        options = ort.SessionOptions()
        options.intra_op_num_threads = asked["intra_op_num_threads"]
        options.inter_op_num_threads = asked["inter_op_num_threads"]
        options.execution_mode = getattr(ort.ExecutionMode, asked["execution_mode"])
        options.log_severity_level = 3
        for key, value in asked["config"].items():
            options.add_session_config_entry(key, value)
        self._session = ort.InferenceSession(str(path), options, providers=asked["providers"])
        granted = self._session.get_providers()[0]
        if granted != asked["providers"][0]:
            raise Stopped(f"unit {unit['name']!r}: asked for {asked['providers'][0]}, got {granted}")
        self._outputs = step["outputs"]

    def run(self, inputs: Tensors) -> Tensors:
        """Return the outputs by name."""
        return dict(zip(self._outputs, self._session.run(self._outputs, dict(inputs)), strict=True))


class MnnFileSession:
    """One model file, open in MNN."""

    def __init__(self, path: Path, step: Any, unit: Any) -> None:
        import MNN

        asked = unit["session"]
        self._interpreter = MNN.Interpreter(str(path))
        self._session = self._interpreter.createSession(dict(asked["config"]))
        granted = self._interpreter.getSessionInfo(self._session, 2)
        if granted not in asked["granted"]:
            name = asked["config"]["backend"]
            raise Stopped(f"unit {unit['name']!r}: asked for {name}, got backend number {granted}")
        threads = np.float32(self._interpreter.getSessionInfo(self._session, 4)).view(np.int32)
        if asked["config"].get("numThread", threads) != threads:
            raise Stopped(f"unit {unit['name']!r}: asked for {unit['threads']} threads, got {threads}")
        inputs = self._interpreter.getSessionInputAll(self._session)
        outputs = self._interpreter.getSessionOutputAll(self._session)
        # MNN drops inputs that nothing depends on, and overwrites the others while it runs.
        self._inputs = {
            name: (inputs[name], _host(inputs[name])) for name in step["inputs"] if name in inputs
        }
        self._outputs = {name: (outputs[name], _host(outputs[name])) for name in step["outputs"]}
        self._most = dict(zip(step["inputs"], step.get("most", ()), strict=False))

    def run(self, inputs: Tensors) -> Tensors:
        """Return the outputs by name, in the element types of MNN."""
        for name, (tensor, host) in self._inputs.items():
            most, array = self._most.get(name), inputs[name]
            if most is not None and array.size and max(-int(array.min()), int(array.max())) > most:
                text = f"input {name!r} holds numbers beyond {most}: what MNN makes of them may be wrong"
                raise Stopped(text, BAD_INPUT)
            memory = host.getNumpyData()
            with np.errstate(over="ignore"):
                np.copyto(memory, inputs[name], casting="unsafe")
            if memory.dtype.kind in "iu" and not np.array_equal(memory, inputs[name]):
                raise Stopped(f"input {name!r} holds numbers beyond {memory.dtype}, with which MNN computes")
            tensor.copyFrom(host)
        if self._interpreter.runSession(self._session) != 0:
            raise Stopped("MNN failed to run it")
        for tensor, host in self._outputs.values():
            tensor.copyToHostTensor(host)
        return {name: host.getNumpyData().copy() for name, (_, host) in self._outputs.items()}


def _host(tensor: Any) -> Any:
    """Return a tensor of MNN in main memory, in the order of the model."""
    data = np.zeros(tuple(tensor.getShape()), dtype=tensor.getNumpyData().dtype)
    return type(tensor)(data.shape, tensor.getDataType(), data, 1)


SESSIONS = {"onnxruntime": OrtFileSession, "mnn": MnnFileSession}


class OpenChunk:
    """One chunk, open in this thread, which has been pinned before.

    `opened`: sessions of the same unit by file: requests of one network share them.
    """

    def __init__(self, export: Export, stream: int, number: int, opened: dict[str, Any]) -> None:
        chunk, engine = export.streams[stream]["chunks"][number], export.data["engine"]
        unit = export.units[chunk["unit"]]
        self._where = f"chunk {number} of {export.streams[stream]['name']!r} on unit {unit['name']!r}"
        self._dtypes = {spec["name"]: spec["dtype"] for spec in chunk["gives"]}
        self._sends = [spec["name"] for spec in export.alive(stream, number + 1)]
        self._steps = []
        for step in chunk["steps"]:
            with self._blamed():
                if unit["session"] is None:
                    raise Stopped(f"{engine} has no backend {unit['backend']!r}", BAD_INPUT)
                if step["file"] not in opened:
                    opened[step["file"]] = SESSIONS[engine](export.file(step["file"]), step, unit)
            self._steps.append((step, opened[step["file"]]))

    def run(self, tensors: Tensors) -> Tensors:
        """Return what has to be there after this chunk."""
        slot = dict(tensors)
        for step, session in self._steps:
            prefix = step["prefix"]
            with self._blamed():
                made = session.run({name: slot[prefix + name] for name in step["inputs"]})
            for name, array in made.items():  # MNN knows fewer element types
                slot[prefix + name] = array.astype(self._dtypes[prefix + name], copy=False)
        return {name: slot[name] for name in self._sends}

    @contextlib.contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            raise Stopped(f"{error}: install the engine that manifest.json names", BAD_INPUT) from None
        except Stopped as error:
            raise Stopped(f"{self._where}: {error}", error.code) from None
        except Exception as error:
            raise Stopped(f"{self._where}: {error}") from error


def pin_thread(unit: Any) -> None:
    """Keep this thread, and the threads that it will start, on the cores of a unit."""
    if not unit["cores"]:
        return
    try:
        os.sched_setaffinity(0, unit["cores"])
        granted = sorted(os.sched_getaffinity(0))
    except OSError as error:
        raise Stopped(f"unit {unit['name']!r} needs the cores {unit['cores']}: {error.strerror}") from None
    if granted != sorted(unit["cores"]):
        raise Stopped(f"unit {unit['name']!r} needs the cores {unit['cores']}, got {granted}")
