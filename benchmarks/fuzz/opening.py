"""The child process that opens damaged files as the commands do, and says what became of each."""

from __future__ import annotations

import io
import resource
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from gapless.cli.base.exits import ExitCode
from gapless.cli.main import main
from gapless.executor.graph.inspection import inspect_model
from gapless.executor.graph.onnx_model import load_onnx
from gapless.executor.workers import Link
from gapless.formulations.errors import GaplessError

_MEMORY_BYTES = 2**31
"""As much as `gapless` allows for a small model."""

_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of the child: open the file that each question names.

    Parameters
    ----------
    link
        Each question holds a "path" and more words for `_OPENING` of "what" it is; each answer is a
        "verdict": "opened", "refused", or what is wrong.
    settings
        Nothing.
    """
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, hard))
    while (question := link.receive()) is not None:
        try:
            verdict = _OPENING[question["what"]](Path(question["path"]), question["case"])
        except MemoryError:
            verdict = "met the memory limit"
        link.send({"kind": "opened", "verdict": verdict})


def open_model(path: Path, case: int) -> str:
    """Open a model as the child of `gapless tools inspect` does, then divide and cut it as its parent does.

    Here nothing hides an exception: what `gapless` would turn into an error without a traceback, because
    its child has failed, is a failure.
    """
    try:
        model = load_onnx(path)
        inspect_model(model)
        for piece in model.pieces(0, len(model.network.layers)):
            piece.content.read()
    except GaplessError as error:
        return "refused" if _is_printable(str(error)) else f"not printable: {error!r}"
    except MemoryError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]} at {_place(error)}"
    return "opened"


def open_document(path: Path, case: int) -> str:
    """Open a document by `gapless show`; every 25th one by all commands that read it, and as JSON."""
    commands = [["show", str(path)]]
    if case % 25 == 0:
        plain = str(path)
        commands += [
            ["show", plain, "--json"],
            ["plan", plain, "--backends", "native", "--time-limit", "200ms"],
            ["tools", "check", "pixel7a/alexnet-sparse", plain],
            ["simulate", "pixel7a/alexnet-sparse", plain],
            ["costs", "judge", plain],
            ["report", plain, "--out", str(path.with_suffix(".html"))],
        ]
    codes = []
    for words in commands:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as said:
            code = main(words)
        if code == ExitCode.INTERNAL:
            return f"gapless {words[0]}: {said.getvalue()[-500:]}"
        if not _is_printable(out.getvalue()) or not _is_printable(said.getvalue()):
            return f"gapless {words[0]} is not printable: {(out.getvalue() + said.getvalue())[:300]!r}"
        codes.append(code)
    return "opened" if ExitCode.OK in codes else "refused"


_OPENING: Mapping[str, Callable[[Path, int], str]] = {"onnx": open_model, "json": open_document}


def _is_printable(text: str) -> bool:
    return all(unicodedata.category(letter) not in _STEERING or letter == "\n" for letter in text)


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
