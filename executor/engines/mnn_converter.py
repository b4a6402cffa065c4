"""The child process that has MNN convert models: MNN's converter crashes, prints, and lies about success.

Only the function inside MNN's own extension is called. MNN's console scripts and `MNN.tools` are never
touched: they install packages and send machine and model ids to a server.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import _tools

from ...formulations.errors import ExecutionError
from ..engine import Artifact, parse_artifact
from ..workers import Link
from .mnn_session import MnnSession

_STANDARD_OUTPUT = 1


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a helper process: convert one model for each message.

    `link`: each question holds the "artifact" to make; its answer says what is wrong with what was made
    ("defect", None for a good one), and the "words" that MNN printed. `settings`: "source": path of the file
    to read ONNX from; "options": what to tell MNN beside.
    """
    _leave_the_folder()
    while (question := link.receive()) is not None:
        start = os.fstat(_STANDARD_OUTPUT).st_size
        artifact = parse_artifact(question["artifact"])
        # It returns True whatever happened.
        files = ["--modelFile", settings["source"], "--MNNModel", artifact.path]
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", *files, *settings["options"]])
        made = os.stat(artifact.path).st_size > 0
        defect = _defect(artifact, link) if made else "there is nothing"
        link.send({"kind": "converted", "defect": defect, "words": _words_since(start)})


def _leave_the_folder() -> None:
    """Work in a folder that is gone already.

    The converter puts a file of a fixed name into the working folder for a moment: two converters in one
    folder read each other's weights, and one that is killed leaves it behind. It does without, too.
    """
    folder = tempfile.mkdtemp(prefix="gapless-")
    os.chdir(folder)
    os.rmdir(folder)


def _defect(artifact: Artifact, link: Link) -> str | None:
    try:
        MnnSession(artifact, link.unit, version="", allow_mismatch=True).close()
    except ExecutionError as error:
        return str(error)
    return None


def _words_since(start: int) -> str:
    """Return what MNN has printed: the parent gave this process a file as standard output."""
    ctypes.CDLL(None).fflush(None)
    end = os.fstat(_STANDARD_OUTPUT).st_size
    return os.pread(_STANDARD_OUTPUT, end - start, start).decode(errors="replace")
