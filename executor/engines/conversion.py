"""Conversion of pieces into MNN's form, in a helper process; and why it failed, in words that help."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...formulations.errors import ExecutionError, UnitLostError
from ..engine import artifact_of
from ..model import Piece
from ..workers import Message
from .helper import Helper
from .nameless import NamelessFile

ROLE = "gapless.executor.engines.mnn_converter:serve"

OPTIONS = ("--bizCode", "gapless")
"""What MNN's converter is told beside the files; part of the key of what it makes."""

LIMIT_S = 300.0
"""How long one conversion may take: milliseconds for most pieces, a minute for gigabytes."""

_UNSUPPORTED = re.compile(r"These Op Not Support:(.*)")
_LOST_WEIGHTS = re.compile(r"Can't open file: ?(.*)")
_CONTROL_FLOW = "The model has subgraphs"
_INSTEAD = "engine 'onnxruntime' may"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What became of one piece."""

    content: bytes | None = None  # the piece in MNN's form; None: it could not be converted
    problem: str = ""  # why it could not be converted
    unsupported: tuple[str, ...] = ()  # types of the operators that MNN lacks


def convert(
    pieces: Sequence[Piece], *, role: str = ROLE, limit_s: float = LIMIT_S
) -> Generator[Conversion, None, None]:
    """Yield what becomes of each piece; one that kills MNN's converter does not harm the next."""
    with NamelessFile() as source, NamelessFile() as target:
        settings = {"source": source.path, "options": OPTIONS}
        files = (source.descriptor, target.descriptor)
        with Helper("MNN converter", role, settings, descriptors=files) as helper:
            for piece in pieces:
                source.write(piece.content.read())
                target.write(b"")
                artifact = artifact_of(piece, engine="mnn", path=Path(target.path))
                try:
                    answer = helper.ask({"kind": "convert", "artifact": asdict(artifact)}, limit_s=limit_s)
                except UnitLostError as error:
                    yield Conversion(problem=f"MNN's converter failed on it: {error}; {_INSTEAD} run it")
                except ExecutionError as error:  # not MNN's fault
                    if type(error) is not ExecutionError:
                        raise  # nor the piece's: a full cache, say
                    yield Conversion(problem=f"gapless failed on it: {error}; please report it")
                else:
                    yield _judged(answer, target.read())


def _judged(answer: Message, content: bytes) -> Conversion:
    """Judge by what is there and what was printed: the converter itself always claims success."""
    words: str = answer["words"]
    if found := _UNSUPPORTED.search(words):
        operators = tuple(sorted(set(re.findall(r"::([^\s|]+)", found[1]))))
        return Conversion(
            problem=f"MNN lacks the operator {', '.join(operators)}; {_INSTEAD} run it",
            unsupported=operators,
        )
    if _CONTROL_FLOW in words:
        return Conversion(
            problem="MNN's sessions have no control flow (If, Loop; MNN makes loops of GRU and LSTM, too); "
            f"{_INSTEAD} run it"
        )
    if found := _LOST_WEIGHTS.search(words):
        return Conversion(problem=f"its weights are in another file, {found[1]!r}, which is not there")
    if not content:
        return Conversion(problem=f"MNN's converter made nothing of it; it printed: {_last_line(words)}")
    if answer["defect"]:
        return Conversion(problem=f"what MNN made of it cannot be used: {answer['defect']}")
    return Conversion(content=content)


def _last_line(words: str) -> str:
    lines = words.strip().splitlines()
    return lines[-1][:300] if lines else "nothing"
