"""Runs below a folder: what each is about, how far it has come, what it found, and how two differ."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from pathlib import Path
from typing import Any

from ..executor.measurement import Spread
from ..executor.tuning.candidates import CandidateKind
from ..executor.tuning.result import TUNING, TuningResult, TuningRow
from ..formulations.errors import InvalidInputError
from ..formulations.files import load_problem
from ..formulations.json_files import format_of, load
from ..formulations.problem import Problem
from .run_document import RUN, RUN_FILE, STORE_FILE, RunDocument, RunState, read_run

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


CHANCE = 0.05
"""How often the visits of two equal runs may lie apart by chance."""

_MOST_SHARED = 20


class Noise(StrEnum):
    """Whether a difference of times means anything.

    BEYOND
        Every visit of one run was slower than every visit of the other one, and there were enough of them.
    WITHIN
        The visits of both overlap.
    FEW
        There were too few visits to tell.
    OTHER
        The times are not of the same thing: other networks, or period against latency.
    """

    BEYOND = "beyond the noise"
    WITHIN = "within the noise"
    FEW = "too few visits to tell"
    OTHER = "not the same thing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that both runs say; empty: it is not known of that run."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeDifference:
    """Times of both runs over their visits.

    `first`, `second`: its times, microseconds.
    """

    what: str  # what ran
    first: Spread
    second: Spread
    percent: float  # how much longer it took in the second run, by the medians
    noise: Noise  # whether that means anything


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifferences:
    """Two runs side by side.

    `first`, `second`: both.
    """

    first: RunSummary
    second: RunSummary
    facts: tuple[Fact, ...]  # what they say differently
    same: tuple[str, ...]  # names of what they say alike
    best: TimeDifference | None  # the winner of each; None where nothing was measured
    shared: tuple[TimeDifference, ...]  # deployments that both have measured, the fastest first


def run_differences(first: Path, second: Path) -> RunDifferences:
    """Return what differs between the runs of two folders; errors as for `load`."""
    one, other = summary_of(first), summary_of(second)
    facts = list(_facts(one, other, _problem(first), _problem(second)))
    alike = one.networks == other.networks and one.pace == other.pace
    best = None
    if one.period_us is not None and other.period_us is not None:
        what = one.deployment if one.deployment == other.deployment else "the fastest of each run"
        best = _difference(what, one.period_us, other.period_us, alike=alike)
    return RunDifferences(
        first=one,
        second=other,
        facts=tuple(fact for fact in facts if fact.first != fact.second),
        same=tuple(fact.name for fact in facts if fact.first == fact.second and fact.first),
        best=best,
        shared=tuple(_shared(tuning_of(first), tuning_of(second), alike=alike)),
    )


def noise_of(first: Spread, second: Spread) -> Noise:
    """Return whether two sets of visits lie apart, and could hardly do so by chance.

    Of two equal runs with m and n visits, all of one lie above all of the other in 2 of the C(m + n, m)
    orders: with three visits each in every tenth case, with four in every 35th.
    """
    if 2 / comb(first.count + second.count, first.count) > CHANCE:
        return Noise.FEW
    apart = first.most < second.least or second.most < first.least
    return Noise.BEYOND if apart else Noise.WITHIN


def _difference(what: str, first: Spread, second: Spread, *, alike: bool) -> TimeDifference:
    return TimeDifference(
        what=what,
        first=first,
        second=second,
        percent=100 * (second.median / first.median - 1),
        noise=noise_of(first, second) if alike else Noise.OTHER,
    )


def _shared(
    first: TuningResult | None, second: TuningResult | None, *, alike: bool
) -> Iterator[TimeDifference]:
    if first is None or second is None or not alike:
        return
    others = {row.candidate.key: row for row in second.rows}
    pairs = [(row, others[row.candidate.key]) for row in first.rows if row.candidate.key in others]
    known = [(a, b) for a, b in pairs if a.period_us is not None and b.period_us is not None]
    for row, other in sorted(known, key=lambda pair: _median(pair[0]))[:_MOST_SHARED]:
        assert row.period_us is not None
        assert other.period_us is not None
        yield _difference(str(row.candidate.deployment), row.period_us, other.period_us, alike=True)


def _median(row: TuningRow) -> float:
    return row.period_us.median if row.period_us is not None else 0.0


def _facts(
    first: RunSummary, second: RunSummary, planned: Problem | None, other: Problem | None
) -> Iterator[Fact]:
    """Yield what both runs say, alike or not."""

    def fact(name: str, one: str, two: str) -> Fact:
        return Fact(name=name, first=one, second=two)

    yield fact("networks", ", ".join(first.networks), ", ".join(second.networks))
    yield fact("models", _models(planned), _models(other))
    yield fact("units", ", ".join(first.units), ", ".join(second.units))
    yield fact("engine", first.engine, second.engine)
    yield fact("gapless", first.gapless, second.gapless)
    yield fact("device", first.device, second.device)
    yield fact("objective", _objective(planned), _objective(other))
    yield fact("costs", _costs(planned), _costs(other))
    yield fact("problem", planned.fingerprint if planned else "", other.fingerprint if other else "")
    yield fact("state", first.state, second.state)
    yield fact("winner", first.best, second.best)
    yield fact("runs", first.deployment, second.deployment)
    yield fact("verdict", first.verdict, second.verdict)
    yield fact("begun", first.started_at, second.started_at)
    yield fact("command", first.line, second.line)


def _problem(place: Path) -> Problem | None:
    try:
        return load_problem(place / "problem.json")
    except InvalidInputError:
        return None


def _models(problem: Problem | None) -> str:
    networks = () if problem is None else problem.networks
    models = (model for network in networks for model in network.models)
    return ", ".join(f"{model.locator} (digest {model.digest[:12]})" for model in models)


def _objective(problem: Problem | None) -> str:
    return "" if problem is None else str(problem.objective)


def _costs(problem: Problem | None) -> str:
    return "" if problem is None else problem.costs.provenance.method
