"""Runs below a folder: what each is about, how far it has come, and what it found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..executor.measurement import Spread
from ..executor.tuning.candidates import CandidateKind
from ..executor.tuning.documents import TUNING
from ..executor.tuning.result import TuningResult
from ..formulations.errors import InvalidInputError
from ..formulations.json_files import format_of, load
from .run_document import RUN, RunDocument, RunState, read_run
from .run_names import RUN_FILE, STORE_FILE

MAX_DEPTH = 6
"""How many folders deep runs are looked for."""

_TUNING_FILE = "tuning.json"
_NOT_ENTERED = frozenset({"node_modules", "site-packages", "__pycache__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run.

    `command`, `networks`, `units`, `engine`, `device`, `simulated`, `gapless`, `started_at`, `line`: as in
    run.json; empty where the folder has none, or it is not known yet. `best`, `deployment`: what won, and
    what it runs; empty: nothing was measured. `measured`, `candidates`: how many of how many candidates were
    measured.
    """

    path: str  # its folder
    state: RunState  # how far it has come
    command: str = ""
    networks: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    engine: str = ""
    device: str = ""
    simulated: bool = False
    gapless: str = ""
    started_at: str = ""
    line: str = ""
    board: str = ""  # what ssh was told of the board where it took place; empty: it was none
    best: str = ""
    deployment: str = ""
    pace: str = "period"  # what `period_us` is the time of: "period", "makespan" or "latency"
    period_us: Spread | None = None  # times of the winner over its visits; None: nothing was measured
    measured: int = 0
    candidates: int = 0
    verdict: str = ""  # what came of it, in words
    problem: str = ""  # why a file of the run cannot be read; empty: all can


def find_runs(places: Sequence[str | Path] = (".",)) -> tuple[RunSummary, ...]:
    """Return the runs in some folders and below them, the latest first.

    Hidden folders and links to folders are not entered.

    Raises InvalidInputError: a place is no folder.
    """
    found = dict.fromkeys(path for place in places for path in _run_folders(Path(place)))
    return tuple(sorted(map(summary_of, found), key=lambda run: run.started_at, reverse=True))


def summary_of(place: Path) -> RunSummary:
    """Return what is known of the run of a folder; what cannot be read is named in it."""
    document, tuning, problem = None, None, ""
    try:
        document = read_run(place)
        tuning = tuning_of(place)
    except InvalidInputError as error:
        problem = error.message
    about: dict[str, Any] = {} if document is None else _about(document)
    if document is None:
        interrupted = tuning is None or tuning.interrupted
        about["state"] = RunState.INTERRUPTED if interrupted else RunState.FINISHED
    winner = None if tuning is None else tuning.winner
    if tuning is not None:
        about |= {
            "measured": tuning.measured,
            "candidates": len(tuning.rows),
            "pace": tuning.pace,
        }
        about.setdefault("device", tuning.device)
    if winner is not None:
        deployment = winner.candidate.deployment
        about |= {
            "best": winner.candidate.label,
            "deployment": str(deployment),
            "period_us": winner.period_us,
        }
        about.setdefault("networks", deployment.networks)
    verdict = _verdict(document, tuning) if not problem else ""
    return RunSummary(path=str(place), verdict=verdict, problem=problem, **about)


def tuning_of(place: Path) -> TuningResult | None:
    """Return what tuning found in a run folder, or None; errors as for `load`."""
    path = place / _TUNING_FILE
    return load(path, TUNING) if path.is_file() and format_of(path) == TUNING.format else None


def _about(document: RunDocument) -> dict[str, Any]:
    names = (
        "command", "networks", "units", "engine", "device", "simulated", "gapless", "started_at", "line"
    )  # fmt: skip
    board = "" if document.board is None else document.board.destination
    return {"state": document.standing, "board": board, **{name: getattr(document, name) for name in names}}


def _verdict(document: RunDocument | None, tuning: TuningResult | None) -> str:
    """Return what came of a run, in few words."""
    if tuning is None:
        profiled = document is not None and document.command == "profile" and document.written_at
        return "profiled" if profiled else ""
    if tuning.winner is None:
        return "nothing measured"
    if not tuning.has_verdict:
        return "no verdict"
    if tuning.baseline_wins:
        return "a baseline wins"
    if len(tuning.ties) > 1:
        return f"{len(tuning.ties)} tie"
    beaten = tuning.best(CandidateKind.BASELINE)
    if beaten is None or beaten.ratio is None:
        return "no baseline measured"
    return f"{beaten.ratio:.2f} x the best baseline's speed"


def is_run(place: Path) -> bool:
    """Return whether a folder holds a run; one of an earlier gapless goes by what it holds."""
    if not (place / RUN_FILE).is_file():
        return all((place / name).is_file() for name in (_TUNING_FILE, STORE_FILE))
    try:
        return format_of(place / RUN_FILE) == RUN.format
    except InvalidInputError:
        return True  # a broken one is shown as such


def _run_folders(top: Path) -> Iterator[Path]:
    if not top.is_dir():
        raise InvalidInputError(f"{top} is no folder; `gapless list runs` lists the runs below folders")
    start = len(top.parts)
    for name, folders, _ in os.walk(top):
        place = Path(name)
        if is_run(place):
            yield place
        deep = len(place.parts) - start >= MAX_DEPTH
        known = () if deep else (f for f in folders if not f.startswith(".") and f not in _NOT_ENTERED)
        folders[:] = sorted(known)
