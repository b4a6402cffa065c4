"""Profiling and tuning as the command line asks for it, with progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ...api.closed_loop import check_rounds
from ...api.device import common_engine, engine_for, this_device
from ...api.execution import models_for, profile, resolve_engine
from ...api.models import open_each, open_models
from ...api.problems import load_problem, with_workload
from ...api.slowdown.side_by_side import Together, profile_together
from ...api.tuning import Tuned, default_costs, tune, tune_simulated
from ...executor.graph.shapes import parse_shapes
from ...executor.machine.load import machine_load
from ...executor.model import Model
from ...executor.tuning.options import TuningMode, TuningOptions
from ...files.origins import parse_permille
from ...files.rules_file import load_rules
from ...formulations.errors import InvalidInputError
from ...formulations.files import PLATFORM, load
from ...formulations.hardware import Platform, Precision
from ...formulations.objective import Objective
from ...formulations.problem import Problem
from ...profiler.platforms.detected import select_units
from ...profiler.profile import Profile
from ...solvers.diverse import check_distance
from ..base.progress import StepLine
from ..options.models import parse_emulation, parse_names

BUSY = 0.15
"""Share of the cores that others may keep busy before a warning is due."""

MAX_WARNINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceChoice:
    """What the command line says of the device; the engine is chosen by the model when None.

    `file` is a platform file that describes the units; None: they are detected.
    """

    engine: str | None
    units: tuple[str, ...]
    emulate: dict[str, int]
    precision: Precision
    file: Path | None = None

    @classmethod
    def of(
        cls,
        engine: str | None,
        *,
        units: str | None,
        emulate: Sequence[str] | None,
        precision: Precision,
        file: Path | None = None,
    ) -> Self:
        """Return the choice from the texts of the command line."""
        if file is not None and (emulate or precision is not Precision.HIGH):
            raise InvalidInputError(
                f"{file} says how fast and how exact its units are: change it there, or leave out --device"
            )
        return cls(
            engine=engine,
            units=parse_names(units),
            emulate=parse_emulation(emulate),
            precision=precision,
            file=file,
        )

    def engine_of(self, model: Model) -> str:
        """Return the engine for a model."""
        return self.engine or engine_for(model)

    def platform(self, engine: str) -> Platform:
        """Return this device with the chosen units: as it is, or as a platform file describes it."""
        if self.file is not None:
            described = load(self.file, PLATFORM)
            return select_units(described, self.units) if self.units else described
        return this_device(units=self.units, emulate=self.emulate, engine=engine, precision=self.precision)


NO_DEVICE_CHOICE = DeviceChoice(engine=None, units=(), emulate={}, precision=Precision.HIGH)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneChoice:
    """What the command line says of tuning."""

    workload: str | None
    objective: str | None
    rules: Path | None
    backends: tuple[str, ...]
    top: int
    distance: int
    costs: str | None
    rounds: int
    time_limit_s: float | None
    options: TuningOptions
    store: Path
    resume: bool

    def subject(
        self, subjects: Sequence[str], shape: Sequence[str] | None, granularity: str, *, materialize: bool
    ) -> Model | list[Model] | Problem:
        """Return what to tune: a profiled problem when one JSON file is named, else the models."""
        check_rounds(
            self.rounds, workload=self.workload is not None, objective=self.wanted
        )  # before anything is profiled
        check_distance(self.distance, defined=self.workload is None)
        if len(subjects) == 1 and subjects[0].endswith(".json"):
            return load_problem(subjects[0])
        how = opening(shape, granularity, materialize=materialize)
        return open_models(subjects, **how) if self.workload is None else open_each(subjects, **how)

    @property
    def wanted(self) -> Objective | None:
        """The objective, where one is given."""
        return None if self.objective is None else Objective.parse(self.objective)

    @property
    def usual_costs(self) -> str:
        """Name of the table that a shipped problem is planned with, or obeys, unless it is given."""
        wanted = self.wanted if self.workload is None else None
        return default_costs(wanted or Objective())

    @property
    def shared(self) -> dict[str, Any]:
        """What all kinds of tuning are told."""
        return {
            "backends": self.backends,
            "top": self.top,
            "distance": self.distance,
            "rounds": self.rounds,
            "objective": self.objective,
            "rules": () if self.rules is None else load_rules(self.rules),
            "options": self.options,
            "time_limit_s": self.time_limit_s,
            "store": self.store,
            "resume": self.resume,
        }


def tuning_options(mode: str, *, budget_s: float | None, seed: int) -> TuningOptions:
    """Return how to tune.

    Raises
    ------
    InvalidInputError
        There is no such mode.
    """
    if mode not in set(TuningMode):
        raise InvalidInputError(f"--mode is {mode!r}, must be one of {', '.join(TuningMode)}")
    return TuningOptions(mode=TuningMode(mode), budget_s=budget_s, seed=seed)


def folder(path: Path) -> Path:
    """Make the folder for the results of a command, and return it.

    Raises
    ------
    InvalidInputError
        It cannot be made or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".gapless-probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise InvalidInputError(f"cannot write to the folder {path}: {error.strerror}") from error
    return path


def opening(shape: Sequence[str] | None, granularity: str, *, materialize: bool) -> dict[str, Any]:
    """Return how the models that are named on the command line are to be opened."""
    return {"shapes": parse_shapes(shape or ()), "granularity": granularity, "materialize": materialize}


def profile_watched(
    model: Model, device: DeviceChoice, *, store: Path, resume: bool
) -> tuple[Profile, list[str]]:
    """Profile with progress; return the profile, and notes."""
    engine = device.engine_of(model)
    platform = device.platform(engine)
    notes = busy_notes()
    with StepLine() as line:
        taken = profile(
            model, platform=platform, engine=engine, store=store, resume=resume, report=line.report
        )
    return taken, notes


def profile_together_watched(
    models: Sequence[Model], device: DeviceChoice, *, store: Path, resume: bool
) -> tuple[Together, list[str]]:
    """Profile networks that are to share the units, with progress."""
    engine = device.engine or common_engine(models)
    notes = busy_notes()
    with StepLine() as line:
        found = profile_together(
            models,
            platform=device.platform(engine),
            engine=engine,
            store=store,
            resume=resume,
            report=line.report,
        )
    return found, [*notes, *found.warnings[:MAX_WARNINGS]]


def tune_watched(
    subject: Model | list[Model] | Problem, device: DeviceChoice, choice: TuneChoice
) -> tuple[Tuned, list[str]]:
    """Tune with progress; return what was found, and notes. Models in a list share the units."""
    notes: list[str] = []
    if isinstance(subject, list):
        found, notes = profile_together_watched(subject, device, store=choice.store, resume=choice.resume)
        tuned, more = tune_watched(found.problem, NO_DEVICE_CHOICE, choice)
        return tuned, notes + more
    if isinstance(subject, Problem):
        subject = subject if choice.workload is None else with_workload(subject, choice.workload)
        if device.units or device.emulate or device.file is not None:
            raise InvalidInputError(
                "the units of a problem file were chosen when it was profiled: --device, --units and "
                "--emulate are for models"
            )
        engine = resolve_engine(device.engine, *models_for(subject).values()).name
        platform = None
    else:
        engine = device.engine_of(subject)
        platform = device.platform(engine)
    notes += busy_notes()
    with StepLine() as line:
        tuned = tune(
            subject,
            platform=platform,
            engine=engine,
            costs=choice.costs,
            report=line.report,
            **choice.shared,
        )
    if tuned.profile is not None:
        notes += tuned.profile.warnings[:MAX_WARNINGS]
    return tuned, notes


def tune_simulated_watched(
    subjects: Sequence[str],
    choice: TuneChoice,
    *,
    truth: str | None,
    noise: str,
) -> tuple[Tuned, list[str]]:
    """Tune a shipped problem, or a problem file, on a simulated device; no notes."""
    if len(subjects) != 1:
        raise InvalidInputError("--engine simulated takes one shipped problem or problem file")
    name = subjects[0]
    if Path(name).exists():
        planned = obeyed = load_problem(name)
    else:
        planned = load_problem(name, costs=choice.costs or choice.usual_costs)
        obeyed = load_problem(name, costs=truth or choice.usual_costs)
    if choice.workload is not None:
        planned, obeyed = (with_workload(problem, choice.workload) for problem in (planned, obeyed))
    with StepLine() as line:
        tuned = tune_simulated(
            planned,
            obeyed,
            noise_permille=parse_permille("--noise", noise),
            seed=choice.options.seed,
            report=line.report,
            **choice.shared,
        )
    return tuned, []


def busy_notes() -> list[str]:
    """Return a warning if other programs keep this machine busy."""
    load = machine_load()
    if load is None or load < BUSY:
        return []
    return [
        f"other programs keep {100 * load:.0f} % of the cores busy: measurements will be unsteady; "
        "end them, or choose other cores with --units"
    ]
