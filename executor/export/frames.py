"""Third part of the exported runner: arrays in files, what should come out, and what did."""

from __future__ import annotations

import itertools
import statistics
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ..comparing import Allowed, Difference, Reference
from .crews import PendingRequest
from .sessions import BAD_INPUT, Export, Stopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]


class Frames:
    """Inputs of all streams, and what should come out; request n takes the arrays at n modulo their number.

    `given`, `expected`: files of the user; None: those of the manifest, and nothing for inputs of the user.
    """

    def __init__(self, export: Export, given: Path | None, expected: Path | None) -> None:
        self._inputs, self._right = [], []
        several = export.data["rounds"] is not None and len(export.streams) > 1
        for stream in export.streams:
            network = export.networks[stream["network"]]
            prefix = f"{stream['name']}/" if several else ""
            source, target = given or export.file(network["sample"]), expected
            if given is None and expected is None and network["expected"] is not None:
                target = export.file(network["expected"])
            self._inputs.append(read_npz(source, network["inputs"], prefix if given else ""))
            outputs = [o for o in network["outputs"] if o["name"] not in network.get("random", ())]
            self._right.append(read_npz(target, outputs, prefix if expected else ""))
        counts = {len(array) for arrays in (*self._inputs, *self._right) for array in arrays.values()}
        if len(counts) != 1 or 0 in counts:
            raise Stopped(
                f"the first dimensions must count the same requests, got {sorted(counts)}", BAD_INPUT
            )
        (self.count,) = counts
        self._allowed = Allowed(export.data["tolerance"], quantised=export.data.get("quantised", False))
        self._known = [
            {name: Reference.of(list(array)) for name, array in right.items()} for right in self._right
        ]

    def inputs(self, stream: int, number: int) -> Tensors:
        """Return the inputs of a request."""
        return {name: array[number % self.count, ...] for name, array in self._inputs[stream].items()}

    def difference(self, stream: int, number: int, found: Tensors) -> tuple[str, Difference] | None:
        """Return the output of a request that is furthest off; None: nothing is expected."""
        compared = [
            (name, reference.compare(found[name], number % self.count, self._allowed))
            for name, reference in self._known[stream].items()
        ]
        return max(
            (each for each in compared if each[1].compared),
            key=lambda each: (not each[1].agrees, each[1].error),
            default=None,
        )


def read_npz(path: Path | None, specs: Sequence[Any], prefix: str = "") -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by the names of some tensors; each begins with a dimension that counts."""
    if path is None:
        return {}
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {spec["name"]: found[prefix + spec["name"]] for spec in specs}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise Stopped(f"cannot read {path}: {error}", BAD_INPUT) from None
    for spec in specs:
        array = arrays[spec["name"]]
        if (list(array.shape[1:]), str(array.dtype)) != (spec["shape"], spec["dtype"]) or not array.ndim:
            asked = f"{spec['dtype']} {['any number', *spec['shape']]}"
            text = f"{path}: {spec['name']!r} is {array.dtype} {list(array.shape)}, needs {asked}"
            raise Stopped(text, BAD_INPUT)
    return arrays


def write_npz(path: Path | IO[bytes], arrays: Tensors) -> None:
    """Write arrays by name, whatever the names are; the same arrays give the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)


class Account:
    """What came out: times, errors, and the outputs where they are wanted."""

    def __init__(self, export: Export, frames: Frames, *, warm_up: int, keep: bool) -> None:
        self._export, self._frames, self._warm_up, self._keep = export, frames, warm_up, keep
        # Number, beginning of its round, when it left, when it entered.
        self._times: list[tuple[int, int, int, int]] = []
        self._kept: list[dict[int, Tensors]] = [{} for _ in export.streams]
        self._compared, self._worst, self._wrong = 0, 0.0, ""

    def add(self, stream: int, job: PendingRequest) -> None:
        """Note a request that has just left."""
        waited_ns = 1000 * self._export.streams[stream]["arrival_us"]
        self._times.append((job.number, job.entered_ns - waited_ns, time.monotonic_ns(), job.entered_ns))
        found = self._frames.difference(stream, job.number, job.tensors)
        if found is not None:
            name, difference = found
            self._compared, self._worst = self._compared + 1, max(self._worst, difference.error)
            if not difference.agrees and not self._wrong:
                self._wrong = difference.said_of(f"request {job.number}, output {name!r}")
        if self._keep:
            self._kept[stream][job.number] = job.tensors

    def outputs(self) -> Tensors:
        """Return all outputs, stacked."""
        together: dict[int, Tensors] = {}
        named = [f"{stream['name']}/" for stream in self._export.streams]
        if self._export.data["rounds"] is None or len(named) == 1:
            for kept in self._kept:
                together.update(kept)
        else:
            for number in self._kept[0]:
                rows = zip(named, self._kept, strict=True)
                together[number] = {p + name: a for p, kept in rows for name, a in kept[number].items()}
        numbers = sorted(together)
        return {name: np.stack([together[n][name] for n in numbers]) for name in together[numbers[0]]}

    def document(self) -> dict[str, Any]:
        """Return what was measured; times in microseconds."""
        rounds, predicted = self._export.data["rounds"], self._export.data["predicted"]
        counted = [times for times in self._times if times[0] >= self._warm_up]
        batch = rounds is not None and rounds["mode"] == "batch"
        grouped = itertools.groupby(sorted(counted), key=lambda times: times[0])
        spans_ns = [
            (min(row[1] for row in rows), max(row[2] for row in rows)) for rows in map(_second, grouped)
        ]
        ends_ns, steps = sorted(end for _, end in spans_ns), len(spans_ns) - 1
        tolerance: float = self._export.data["tolerance"]
        makespan_us = statistics.median((end - start) / 1e3 for start, end in spans_ns)
        return {
            "requests": len(counted),
            "period_us": (ends_ns[-1] - ends_ns[0]) / 1e3 / steps if steps and not batch else None,
            "makespan_us": makespan_us if batch else None,
            "latency_us": statistics.median((left - entered) / 1e3 for *_, left, entered in counted),
            "predicted_period_us": predicted["period_us"],
            "predicted_makespan_us": predicted["makespan_us"],
            "predicted_latency_us": predicted["latency_us"],
            "engine": self._export.data["engine"],
            "predicted_engine": predicted["engine"],
            "compared": self._compared,
            "agree": not self._wrong if self._compared else None,
            "wrong": self._wrong or None,
            "worst_error": self._worst if self._compared and np.isfinite(self._worst) else None,
            "tolerance": tolerance,
        }


def _second(entry: tuple[Any, Iterable[Any]]) -> list[Any]:
    return list(entry[1])
