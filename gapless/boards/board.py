"""A board in Python: the functions that need a device, on one that ssh reaches."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ..api.comparison import Comparison
from ..api.slowdown.side_by_side import Together
from ..api.tuned import LOOP, Tuned
from ..executor.engines.bench import EngineBench
from ..executor.engines.conformance import ConformanceCheck
from ..executor.graph.choices import Granularity, Simplification
from ..executor.measurement import Measurement
from ..executor.progress import Report, Step, silent
from ..executor.tuning.racing import TuningMode
from ..executor.tuning.result import TUNING
from ..files.comparison_file import load_comparison
from ..files.pareto_file import front_of, load_front
from ..formulations.deployment import Deployment
from ..formulations.errors import BoardError
from ..formulations.files import PLATFORM, dump, load, load_problem, save
from ..formulations.hardware import Platform, Precision
from ..formulations.limits import LIMITS, Limits
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.terms import Objective
from ..formulations.validation import FileContent
from ..profiler.profile import PROFILE, Profile
from ..question.fields import Field, fields_of, given, said
from ..question.question import Question
from ..question.subjects import (
    CHAIN,
    ENGINE,
    RULES,
    Folder,
    Inputs,
    Machine,
    Measuring,
    Opening,
    Race,
    Running,
    Search,
)
from ..question.values import YES, names_in, span_form
from .checks import BoardDiagnosis, diagnose_board
from .running import Ran, run_there, sent
from .ssh import Address

_CHAIN, _ENGINE, _RULES = (
    replace(field, name=name) for field, name in ((CHAIN, "chain"), (ENGINE, "engine"), (RULES, "rules"))
)
_LEAST = said("Least time for each unit.", span_form("1s", least="0us", most="10min"), name="seconds")
_TESTED = said("Put the engine to its tests.", YES, flag=True, name="check")
_UNITS = fields_of(Machine, only=("engine", "units", "emulate"))
_ASKED = ("workload", "state", "pipelines", "layer_order", "objective", *LIMITS)
_SEARCHED = ("pareto", "top", "distance", "time_limit_s", "seed")

OPTIONS: Mapping[str, Sequence[Field]] = {
    "device detect": _UNITS,
    "device bench": [
        *fields_of(Opening, only=("shape",)),
        *fields_of(Inputs),
        *fields_of(Machine, only=("engine", "units", "emulate", "precision")),
        _LEAST,
        _TESTED,
    ],
    "profile": fields_of(Opening, Inputs, Machine, _CHAIN, Measuring),
    "tune": [
        *fields_of(_CHAIN, Opening, Inputs, Machine, _RULES, Race),
        *fields_of(Question, only=_ASKED),
        *fields_of(Search, only=_SEARCHED),
    ],
    "run": [*fields_of(_ENGINE, Running), *fields_of(Inputs, only=("input_range",))],
}
"""Of each command that takes place on a board."""


class DeviceOptions(TypedDict, total=False):
    """What `device detect` is told."""

    engine: str | Sequence[str] | None
    units: Sequence[str]
    emulate: Mapping[str, int] | str | None


class BenchOptions(DeviceOptions, total=False):
    """What `device bench` is told; times in seconds, or as texts with their unit."""

    shape: Mapping[str, Sequence[int]] | None
    feed: str | Path | None
    input_range: Sequence[str]
    precision: str | Precision
    seconds: float | str
    check: bool


class _ModelOptions(DeviceOptions, total=False):
    shape: Mapping[str, Sequence[int]] | None
    granularity: str | Granularity
    materialize: bool
    simplify: str | Simplification
    feed: str | Path | None
    input_range: Sequence[str]
    device: Platform | str | Path | None
    precision: str | Precision
    chain: bool


class ProfileOptions(_ModelOptions, total=False):
    """What `profile` is told."""

    side_by_side: bool
    batch: int | Sequence[int] | str
    steady: bool
    item_seconds: float | str | None
    most_workers: int | None
    accept_noise: bool


class TuneOptions(_ModelOptions, total=False):
    """What `tune` is told; times in seconds, or as texts with their unit."""

    workload: str | None
    state: Mapping[str, str] | None
    pipelines: str | int | None
    layer_order: str | None
    objective: str | Objective | None
    limits: Limits | None
    rules: str | Path | None
    pareto: str | Sequence[str] | None
    top: int
    distance: int
    time_limit_s: float | str | None
    seed: int
    groups: str | int | None
    backends: Sequence[str]
    costs: str | None
    rounds: int
    mode: str | TuningMode
    budget_s: float | str | None
    sustain_s: float | str | None


class RunOptions(TypedDict, total=False):
    """What `run` is told; times in seconds, or as texts with their unit."""

    engine: str | Sequence[str] | None
    seconds: float | str | None
    requests: int | None
    warm_up: int
    task_slots: int | None
    restart: bool
    check: bool
    feed: str | Path | None
    input_range: Sequence[str]
    output: str | Path | None
    trace: str | Path | None


_NUMBERED = re.compile(r"profile-(\d+)\.json")


def load_profiled(place: Path) -> Profile | Together:
    """Return what was profiled; several networks that share the units were profiled together."""
    numbered = sorted(
        (int(found[1]), path) for path in place.iterdir() if (found := _NUMBERED.fullmatch(path.name))
    )
    if not numbered:
        return load(place / "profile.json", PROFILE)
    profiles = tuple(load(path, PROFILE) for _, path in numbered)
    return Together(profiles=profiles, problem=load_problem(place / "problem.json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Benches(FileContent):
    units: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checks(FileContent):
    engine: str
    checks: tuple[ConformanceCheck, ...]


def checks_of(ran: Ran) -> tuple[str, tuple[ConformanceCheck, ...]]:
    """Return which engine `gapless device bench --check` has tried on a board, and what came of its tests."""
    found = ran.read(_Checks, "a result of `gapless device bench --check`")
    return found.engine, found.checks


def benches(ran: Ran) -> list[tuple[str, EngineBench]]:
    """Return what `gapless device bench` on a board has found, with the names of units."""
    what = "a result of `gapless device bench`"
    named = [(each.pop("unit", None), each) for each in ran.read(_Benches, what).units]
    if not all(isinstance(unit, str) for unit, _ in named):
        raise BoardError(f"{ran.board} sent {what} without the names of its units")
    return [(str(unit), sent(each, EngineBench, ran.board, what)) for unit, each in named]


def load_tuned(place: Path) -> Tuned:
    """Return what tuning found; opaque rules, which no file can keep, are not in its problem."""
    rounds, profile, traded = place / "rounds.json", place / "profile.json", place / "pareto.json"
    result = load(place / "tuning.json", TUNING)
    if traded.is_file():
        written, _ = load_front(traded)
        problem = _planned(place, written.problem)
        comparison = Comparison(problem=problem, results=(), failures=(), disagreements=())
        front = front_of(written, problem, traded)
    else:
        compared = load_comparison(place / "comparison.json")
        problem = _planned(place, compared.problem.fingerprint)
        comparison, front = compared.answers(problem), None
    return Tuned(
        problem=problem,
        profile=load(profile, PROFILE) if profile.is_file() else None,
        comparison=comparison,
        result=result,
        loop=load(rounds, LOOP) if rounds.is_file() else None,
        front=front,
    )


def _planned(place: Path, fingerprint: str | None) -> Problem:
    """Return the problem that was planned: of several cost models, the one that the backends were given."""
    problems = (load_problem(path) for path in sorted(place.glob("problem*.json")))
    found = next((problem for problem in problems if problem.fingerprint == fingerprint), None)
    return load_problem(place / "problem.json") if found is None else found


def on(destination: str, *, ssh: Sequence[str] = (), python: Sequence[str] = ()) -> Board:
    """Return a board that ssh reaches without a password; nothing is done yet.

    Parameters
    ----------
    destination
        What ssh takes: an alias of ~/.ssh/config, `user@host`, or `ssh://user@host:port`.
    ssh
        The ssh program with further options, as words; empty: `$GAPLESS_SSH`, or "ssh".
    python
        What runs Python there, as words; empty: `$GAPLESS_REMOTE_PYTHON`, or "python3".

    Raises
    ------
    InvalidInputError
        It can be no destination.

    Examples
    --------
    >>> import gapless
    >>> board = gapless.on("pi@board")
    >>> tuned = board.tune("squeezenet", top=5, budget_s=60, out="squeezenet")  # doctest: +SKIP
    """
    usual = Address.of(destination)
    return Board(
        Address(destination=destination, ssh=tuple(ssh) or usual.ssh, python=tuple(python) or usual.python)
    )


@dataclass(frozen=True, slots=True)
class Board:
    """A board that ssh reaches.

    Its methods take what the commands take: models as locators (or problems), and the options of the command
    by their names in Python: `--budget 60s` is budget_s=60, or with its unit budget_s="1min". Files among
    them are copied to the board once, by their content; results come back as the values that the functions of
    the same names return. All of them raise `BoardError` when the board cannot be reached, lacks something,
    or the connection is lost, and what the command there has raised.

    Attributes
    ----------
    address
        Where it is.
    """

    address: Address

    def doctor(self, *, report: Report = silent) -> BoardDiagnosis:
        """Return what the board has of what gapless needs, and how to install the rest; raises nothing."""
        return diagnose_board(self.address, report=report)

    def this_device(self, **options: Unpack[DeviceOptions]) -> Platform:
        """Return the board as a platform, as `gapless.this_device` does there.

        Parameters
        ----------
        options
            Those of `gapless device detect`: units, emulate, engine.
        """
        return self._run("device detect", options, silent).read(Platform, "a platform")

    def profile(
        self,
        *models: str | Path,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        report: Report = silent,
        **options: Unpack[ProfileOptions],
    ) -> Profile | Together:
        """Measure models there, as `gapless.profile` does, or `profile_together` with `side_by_side=True`.

        Parameters
        ----------
        models
            Their locators.
        out, resume, overwrite
            The run folder here, whether to go on with it, and whether to remove it first; None: none is kept.
        report
            Told of each line that the board writes.
        options
            Those of `gapless profile`, e.g. units, shape, device (a platform, or its file).
        """
        with _folder(out) as folder:
            place = Folder(out=folder, resume=resume, overwrite=overwrite)
            self._run("profile", options, report, models, place)
            return load_profiled(folder)

    def tune(
        self,
        *subjects: str | Path | Problem,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        report: Report = silent,
        **options: Unpack[TuneOptions],
    ) -> Tuned:
        """Profile, plan and measure there, as `gapless.tune` does.

        Parameters
        ----------
        subjects
            Locators of models, or one problem that was profiled before.
        out, resume, overwrite, report
            As for `profile`.
        options
            Those of `gapless tune`, e.g. units, top, budget_s, objective.
        """
        with _folder(out) as folder:
            place = Folder(out=folder, resume=resume, overwrite=overwrite)
            self._run("tune", _by_field(options), report, subjects, place)
            return load_tuned(folder)

    def run(
        self,
        problem: Problem,
        plan: Plan | Deployment,
        *,
        report: Report = silent,
        **options: Unpack[RunOptions],
    ) -> Measurement:
        """Run a plan there and measure it, as `gapless.run` does.

        Parameters
        ----------
        problem, plan
            What to run; the models of the problem are found here, or on the board.
        report
            As for `profile`.
        options
            Those of `gapless run`, e.g. seconds, requests, warm_up, engine, trace (a file here).
        """
        deployment = operation_of(problem).deploy(problem, plan) if isinstance(plan, Plan) else plan
        return self._run("run", options, report, (problem, deployment)).read(Measurement, "a measurement")

    def bench_engine(
        self, model: str | Path, *, report: Report = silent, **options: Unpack[BenchOptions]
    ) -> dict[str, EngineBench]:
        """Run a whole model on each unit alone, as `gapless device bench` does; return the results by unit.

        Parameters
        ----------
        model
            Its locator.
        report
            As for `profile`.
        options
            Those of `gapless device bench`, e.g. units, seconds, engine.
        """
        return dict(benches(self._run("device bench", options, report, (model,))))

    def _run(
        self,
        command: str,
        options: Mapping[str, Any],
        report: Report,
        subjects: Sequence[Any] = (),
        folder: Folder | None = None,
    ) -> Ran:
        def show(text: str) -> None:
            report(Step(text=text.strip()))

        with tempfile.TemporaryDirectory(prefix="gapless-board-") as scratch:
            if isinstance(device := options.get("device"), Platform):
                options = {**options, "device": Path(scratch, "platform.json")}
                save(dump(device, PLATFORM), options["device"])
            ran = run_there(
                self.address,
                command,
                given(OPTIONS[command], options),
                subjects,
                folder,
                line=f"gapless.on({self.address.destination!r}).{command.replace('-', '_')}(...)",
                report=report,
                show=show,
            )
        ran.raise_error()
        return ran


def _by_field(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Python says of tuning by the names of fields: each limit is one, and terms are a text."""
    named = {name: value for name, value in options.items() if name != "limits"}
    if (limits := options.get("limits")) is not None:
        named |= Question(limits=limits).limits.in_use()
    if isinstance(terms := options.get("pareto"), list | tuple):
        named["pareto"] = ",".join(names_in("pareto", ",".join(terms)))
    return named


@contextmanager
def _folder(out: str | Path | None = None) -> Iterator[Path]:
    """Yield the folder that is asked for, or one that is removed afterwards."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="gapless-board-") as folder:
        yield Path(folder)
