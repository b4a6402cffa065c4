"""The engine "mnn": pieces are converted once, kept in the cache, and run by MNN's sessions."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...formulations.availability import Availability
from ...formulations.errors import ConversionError, ExecutionError, UnitLostError
from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, artifact_of, installed_version
from ..model import Piece
from ..workers import Link, Message, Role
from .cache import Cache, cache_key, default_cache
from .helper import Helper, NamelessFile

if TYPE_CHECKING:
    from .mnn_session import MnnSession


WORDS = {
    "cpu": "CPU",
    "metal": "METAL",
    "cuda": "CUDA",
    "opencl": "OPENCL",
    "nnapi": "NN",
    "opengl": "OPENGL",
    "vulkan": "VULKAN",
    "hiai": "HIAI",
    "tensorrt": "TRT",
}
"""Our names of backends, and the words that MNN takes: every one of them; where it is not there, MNN falls
back to the CPU."""

_NAMES = {  # the numbers that MNN reports
    0: "cpu",
    1: "metal",
    2: "cuda",
    3: "opencl",
    5: "nnapi",
    6: "opengl",
    7: "vulkan",
    8: "hiai",
    9: "tensorrt",
    13: "cpu",  # with instructions beyond the baseline
}


def backend_name(number: int) -> str:
    """Return our name of the backend that a session reports."""
    return _NAMES.get(number, f"backend number {number}")


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


def converter(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of the process in which MNN's converter runs, and is loaded."""
    from .mnn_converter import serve

    serve(link, settings)


def convert(
    pieces: Sequence[Piece], *, role: Role | str = converter, limit_s: float = LIMIT_S
) -> Generator[Conversion, None, None]:
    """Yield what becomes of each piece; one that kills MNN's converter does not harm the next."""
    from ..graph.saturating import saturating

    with NamelessFile() as source, NamelessFile() as target:
        settings = {"source": source.path, "options": OPTIONS}
        files = (source.descriptor, target.descriptor)
        with Helper("MNN converter", role, settings, descriptors=files, engines=["mnn"]) as helper:
            for piece in pieces:
                source.write(saturating(piece.content.read()))
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


_SUFFIX = ".mnn"


class MnnEngine:
    """MNN, by its session interface.

    `allow_mismatch`: whether sessions may open when MNN grants something else than was asked; their receipts
    tell.
    """

    name: ClassVar[str] = "mnn"

    def __init__(self, *, allow_mismatch: bool = False) -> None:
        self._allow_mismatch = allow_mismatch

    def availability(self) -> Availability:
        """Say whether MNN and its converter are installed."""
        if util.find_spec("MNN") is None or util.find_spec("_tools") is None:
            return Availability(ok=False, reason="MNN is not installed: pip install 'gapless[mnn]'")
        return Availability(ok=True, version=metadata.version("MNN"))

    def backends(self) -> tuple[str, ...]:
        """Return the backends that open here, as found out once by a child process; "cpu" first."""
        return _backends() if self.availability().ok else ()

    def takes(self, kind: str) -> bool:
        """Return whether it can run contents of a kind: "onnx"."""
        return kind == "onnx"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Convert the pieces that the cache does not have yet, all in one child process.

        Raises EngineUnavailableError: MNN is not installed; StoreError: the cache cannot take the result.
        """
        from ..graph.saturating import REWRITTEN

        store = default_cache() if folder is None else Cache(folder)
        version = installed_version(self.availability())
        how = (self.name, version, *OPTIONS, REWRITTEN)
        keys = {piece.digest: cache_key(piece.digest, *how) for piece in pieces}
        paths = {digest: path for digest, key in keys.items() if (path := store.path(key, _SUFFIX))}
        missing = tuple({piece.digest: piece for piece in pieces if piece.digest not in paths}.values())
        problems: dict[str, str] = {}
        with closing(convert(missing)) as conversions:
            for piece, made in zip(missing, conversions, strict=True):
                if made.content is None:
                    problems[piece.name] = made.problem
                else:
                    paths[piece.digest] = store.put(keys[piece.digest], _SUFFIX, made.content)
        if problems:
            listed = "\n".join(f"{name}: {problem}" for name, problem in problems.items())
            raise ConversionError(f"MNN cannot run {listed}", problems)
        return tuple(artifact_of(piece, engine=self.name, path=paths[piece.digest]) for piece in pieces)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> MnnSession:
        """Open a session in this process.

        Raises PlacementError: MNN granted another backend, another number of threads or other cores than was
        asked; ExecutionError: the artifact cannot be opened.
        """
        version = installed_version(self.availability())
        from .mnn_session import MnnSession

        return MnnSession(artifact, unit, version=version, allow_mismatch=self._allow_mismatch)


def trial(piece: Piece) -> Conversion:
    """Convert a piece, usually a whole model, only to see what stands in the way; nothing is kept.

    Raises EngineUnavailableError: MNN is not installed.
    """
    installed_version(MnnEngine().availability())
    with closing(convert([piece])) as conversions:
        return next(conversions)


@cache
def _backends() -> tuple[str, ...]:
    from .helper import working_backends

    return working_backends("mnn", tuple(WORDS))
