"""Helper processes that misbehave, for the tests of those who use them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gapless.executor.engine import parse_artifact
from gapless.executor.engines.mnn_engine import MnnEngine
from gapless.executor.workers import Link, parse_unit
from gapless.formulations.errors import StoreError

BAD_PIECE = b"bad"
OTHER_FILE = "GAPLESS_TEST_OTHER_FILE"


def _converter(behaviour: Callable[[Path, Path], object]) -> Callable[[Link, Mapping[str, Any]], None]:
    """Return the converter's role, with MNN's own function behaving otherwise on bad pieces."""

    def serve(link: Link, settings: Mapping[str, Any]) -> None:
        import _tools

        from gapless.executor.engines import mnn_converter

        real = _tools.mnnconvert

        def convert(arguments: Sequence[str]) -> object:
            source, target = (
                Path(arguments[arguments.index(f"--{o}") + 1]) for o in ("modelFile", "MNNModel")
            )
            if BAD_PIECE in source.read_bytes():
                return behaviour(source, target)
            return real(arguments)

        _tools.mnnconvert = convert
        mnn_converter.serve(link, settings)

    return serve


nothing = _converter(lambda source, target: True)
garbage = _converter(lambda source, target: target.write_bytes(b"garbage" * 100))
truncated = _converter(lambda source, target: target.write_bytes(other_file()[:-100]))
other = _converter(lambda source, target: target.write_bytes(other_file()))
full = _converter(lambda source, target: _raise(StoreError("the disk is full")))
crash = _converter(lambda source, target: os.kill(os.getpid(), signal.SIGSEGV))
blunder = _converter(lambda source, target: [].pop())
leave = _converter(lambda source, target: os._exit(0))
hang = _converter(lambda source, target: time.sleep(60))


def _raise(error: Exception) -> None:
    raise error


def other_file() -> bytes:
    """Return the file of another piece, in MNN's form."""
    return Path(os.environ[OTHER_FILE]).read_bytes()


def thread_counts(link: Link, settings: Mapping[str, Any]) -> None:
    """Open the artifact again and again in one process, with as many threads as each message says."""
    artifact = parse_artifact(settings["artifact"])
    while (question := link.receive()) is not None:
        unit = settings["units"][question["unit"]]
        session = MnnEngine(allow_mismatch=question["allow"]).open(artifact, parse_unit(unit))
        link.send({"kind": "opened", "granted": session.receipt.granted_threads})
