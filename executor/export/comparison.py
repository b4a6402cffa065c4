"""Exported chunks against the uncut model: each one by the exported runner, where its engine is here."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formulations.errors import OutputMismatchError
from ..comparing import Reference
from ..gathering import SEEDS, Gathered
from ..model import Model, allowed_of
from ..runner import Verification
from .frames import write_npz
from .manifest import RUNNER_NAME, ExportedChunk, ExportedStream, Manifest

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LIMIT_S = 300.0


def compared(folder: Path, manifest: Manifest, models: Mapping[str, Model]) -> Verification:
    """Run every chunk of a folder alone on the right inputs, and compare what it makes.

    What cannot be run here (no such engine, no such device) is said in `problem`.
    """
    gathered = Gathered("tensor", manifest.tolerance)
    right = {
        network.name: gathered.right(models[network.name], _between(network.name, manifest))
        for network in manifest.networks
    }
    if not all(right.values()):
        return gathered.verification(requests=0)
    chunks = {(s.network, c.start, c.stop, c.unit): (s, c) for s in manifest.streams for c in s.chunks}
    precisions = {unit.name: unit.precision for unit in manifest.units}
    for stream, chunk in chunks.values():
        own = right[stream.network]
        made = _made(folder, stream, chunk, own)
        if isinstance(made, str):
            gathered.cannot(f"{_where(stream, chunk)} cannot be run here ({made})")
            continue
        allowed = allowed_of(models[stream.network].network, [precisions[chunk.unit]])
        for name, sample in product(made, range(len(SEEDS))):
            difference = own[name].compare(made[name][sample], sample, allowed)
            gathered.add(difference, name)
            if not difference.agrees:
                raise OutputMismatchError(
                    f"{stream.network!r} gives wrong numbers. The first wrong tensor is {name!r}, made by "
                    f"{_where(stream, chunk)}: {difference.said_of(manifest.engine)}. Nothing is written; "
                    "choose another engine, or take it unchecked (--unchecked, check=False)"
                )
    return gathered.verification()


def _between(network: str, manifest: Manifest) -> set[str]:
    """Return the tensors between the chunks of a network."""
    streams = (stream for stream in manifest.streams if stream.network == network)
    return {made.name for stream in streams for chunk in stream.chunks for made in chunk.gives}


def _where(stream: ExportedStream, chunk: ExportedChunk) -> str:
    return (
        f"{stream.name!r} (chunk {chunk.number}, layers {chunk.start} to {chunk.stop - 1}) "
        f"on unit {chunk.unit!r}"
    )


def _made(
    folder: Path, stream: ExportedStream, chunk: ExportedChunk, right: Mapping[str, Reference]
) -> dict[str, NDArray[Any]] | str:
    """Return what a chunk makes of the right inputs, or why it cannot be run here."""
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="gapless-export-") as scratch:
        given, made = Path(scratch) / "in.npz", Path(scratch) / "out.npz"
        with given.open("wb") as file:
            write_npz(file, {name: np.stack(right[name].arrays) for name in chunk.alive})
        command = [sys.executable, str(folder / RUNNER_NAME), "--no-pin", "--stream", stream.name]
        command += ["--chunk", str(chunk.number), "--input", str(given), "--output", str(made)]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"it takes more than {_LIMIT_S:.0f} s"
        if ran.returncode:
            said = ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"]
            return said[-1].removeprefix("error: ")
        with np.load(made, allow_pickle=False) as arrays:
            own = {one.name for one in chunk.gives}
            return {name: arrays[name] for name in arrays.files if name in own}
