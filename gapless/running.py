"""Running under the eyes of a user: choices of the command line, progress, and the files that are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from .device import engine_for, this_device
from .execution import open_pipeline, profile
from .executor.graph.shapes import parse_shapes
from .executor.machine.load import machine_load
from .executor.model import Model
from .executor.pipeline.pipeline import Pipeline
from .executor.pipeline.verify import References, verify
from .executor.runner import Budget
from .executor.tuning.options import TuningMode, TuningOptions
from .formulations.errors import GaplessError, InvalidInputError
from .formulations.hardware import Platform, Precision
from .formulations.plan import Plan
from .formulations.problem import Problem
from .formulations.simulate import simulate
from .model_options import parse_emulation, parse_names
from .models import models_of, open_models
from .options import parse_permille
from .problems import load_problem
from .profiler.profile import Profile
from .report.progress import StepLine
from .rules_file import load_rules
from .run_files import load_deployment, save_trace
from .tuning import Tuned, tune, tune_simulated

BUSY = 0.15
"""Share of the cores that others may keep busy before a warning is due."""

TRACE_REQUESTS = 20
MAX_WARNINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceChoice:
    """What the command line says of the device; the engine is chosen by the model when None."""

    engine: str | None
    units: tuple[str, ...]
    emulate: dict[str, int]
    precision: Precision

    @classmethod
    def of(
        cls,
        engine: str | None,
        *,
        units: str | None,
        emulate: Sequence[str] | None,
        precision: Precision,
    ) -> Self:
        """Return the choice from the texts of the command line."""
        return cls(
            engine=engine,
            units=parse_names(units),
            emulate=parse_emulation(emulate),
            precision=precision,
        )

    def engine_of(self, model: Model) -> str:
        """Return the engine for a model."""
        return self.engine or engine_for(model)

    def platform(self, engine: str) -> Platform:
        """Return this device with the chosen units."""
        return this_device(units=self.units, emulate=self.emulate, engine=engine, precision=self.precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneChoice:
    """What the command line says of tuning."""

    objective: str | None
    rules: Path | None
    backends: tuple[str, ...]
    top: int
    costs: str
    time_limit_s: float | None
    mode: str
    budget_s: float | None
    seed: int
    store: Path
    resume: bool

    @property
    def options(self) -> TuningOptions:
        """How to tune.

        Raises
        ------
        InvalidInputError
            There is no such mode.
        """
        if self.mode not in set(TuningMode):
            raise InvalidInputError(f"--mode is {self.mode!r}, must be one of {', '.join(TuningMode)}")
        return TuningOptions(mode=TuningMode(self.mode), budget_s=self.budget_s, seed=self.seed)

    @property
    def shared(self) -> dict[str, Any]:
        """What all kinds of tuning are told."""
        return {
            "backends": self.backends,
            "top": self.top,
            "objective": self.objective,
            "rules": () if self.rules is None else load_rules(self.rules),
            "options": self.options,
            "time_limit_s": self.time_limit_s,
            "store": self.store,
            "resume": self.resume,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A plan at work, and what the user should know of it."""

    pipeline: Pipeline
    model: Model
    notes: list[str]

    def verify(self) -> list[str]:
        """Compare the numbers with those of the uncut model; return the note that says so.

        Raises
        ------
        OutputMismatchError
            They differ.
        """
        found = verify(self.pipeline, References({self.model.network.name: self.model}))
        return [
            f"numbers agree with the uncut model: largest relative error {found.worst_error:.1e} "
            f"(at most {found.tolerance:g} is allowed)"
        ]


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


def open_all(
    locators: Sequence[str], shape: Sequence[str] | None, granularity: str, *, materialize: bool
) -> Model:
    """Open the models that are named on the command line."""
    return open_models(
        locators, shapes=parse_shapes(shape or ()), granularity=granularity, materialize=materialize
    )


def subject_of(
    subjects: Sequence[str], shape: Sequence[str] | None, granularity: str, *, materialize: bool
) -> Model | Problem:
    """Return what to tune: a profiled problem when one JSON file is named, else the models."""
    if len(subjects) == 1 and subjects[0].endswith(".json"):
        return load_problem(subjects[0])
    return open_all(subjects, shape, granularity, materialize=materialize)


def budget(seconds: float | None, requests: int | None, warm_up: int) -> Budget:
    """Return for how long to run: five seconds when nothing is said."""
    if seconds is None and requests is None:
        seconds = 5.0
    return Budget(seconds=seconds, requests=requests, warm_up_requests=warm_up)


def profile_watched(
    model: Model, device: DeviceChoice, *, store: Path, resume: bool
) -> tuple[Profile, list[str]]:
    """Profile with progress; return the profile, and notes."""
    engine = device.engine_of(model)
    platform = device.platform(engine)
    notes = _busy_notes()
    with StepLine() as line:
        taken = profile(
            model, platform=platform, engine=engine, store=store, resume=resume, report=line.report
        )
    return taken, notes


def tune_watched(
    subject: Model | Problem, device: DeviceChoice, choice: TuneChoice
) -> tuple[Tuned, list[str]]:
    """Tune with progress; return what was found, and notes."""
    if isinstance(subject, Problem):
        if device.units or device.emulate:
            raise InvalidInputError(
                "the units of a problem file were chosen when it was profiled: --units and --emulate are "
                "for models"
            )
        engine = device.engine or engine_for(models_of(subject.networks[0]))
        platform = None
    else:
        engine = device.engine_of(subject)
        platform = device.platform(engine)
    notes = _busy_notes()
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
    subjects: Sequence[str], choice: TuneChoice, *, costs: str, truth: str, noise: str
) -> Tuned:
    """Tune a shipped problem, or a problem file, on a simulated device."""
    if len(subjects) != 1:
        raise InvalidInputError("--engine simulated takes one shipped problem or problem file")
    name = subjects[0]
    if Path(name).exists():
        planned = obeyed = load_problem(name)
    else:
        planned, obeyed = load_problem(name, costs=costs), load_problem(name, costs=truth)
    with StepLine() as line:
        return tune_simulated(
            planned,
            obeyed,
            noise_permille=parse_permille("--noise", noise) or 0,
            seed=choice.seed,
            report=line.report,
            **choice.shared,
        )


@contextmanager
def opened(
    problem: str,
    plan: Path,
    *,
    engine: str | None,
    at: Sequence[str] | None,
    restarts: int = 0,
    task_slots: int | None = None,
) -> Iterator[Work]:
    """Open a plan file as a running pipeline.

    Raises
    ------
    InvalidInputError, ExecutionError
        A file is not valid, or the plan cannot be run here.
    """
    asked = load_problem(problem)
    deployment = load_deployment(plan, asked)
    if task_slots is not None:
        streams = tuple(replace(stream, task_slots=task_slots) for stream in deployment.streams)
        deployment = replace(deployment, streams=streams)
    model = models_of(asked.networks[0], at=_places(at))
    notes: list[str] = []
    with open_pipeline(
        asked,
        deployment,
        model=model,
        engine=engine or engine_for(model),
        restarts=restarts,
        report=lambda step: notes.append(step.text),
    ) as pipeline:
        yield Work(pipeline=pipeline, model=model, notes=notes)


def run_file(pipeline: Pipeline, source: Path, target: Path | None) -> int:
    """Run all requests of an .npz file, write the outputs to another one, return their number.

    Raises
    ------
    InvalidInputError
        A file cannot be read or written, or its arrays have different lengths.
    """
    import numpy as np

    try:
        with np.load(source, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"cannot read {source} as .npz arrays: {error}") from error
    counts = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
    if len(set(counts.values())) != 1 or None in counts.values():
        raise InvalidInputError(f"{source}: the first dimensions must count the same requests, got {counts}")
    (count,) = set(counts.values())
    frames = ({name: array[index] for name, array in arrays.items()} for index in range(count or 0))
    results = list(pipeline.map(frames))
    if target is not None and results:
        stacked = {name: np.stack([result[name] for result in results]) for name in results[0]}
        try:
            with target.open("wb") as file:
                np.savez(file, allow_pickle=False, **stacked)
        except OSError as error:
            raise InvalidInputError(f"cannot write {target}: {error.strerror}") from error
    return len(results)


def write_trace(pipeline: Pipeline, out: Path | None) -> list[str]:
    """Run some requests and write their trace where `--trace` says."""
    if out is None:
        return []
    save_trace(pipeline.trace(requests=TRACE_REQUESTS), out)
    return [f"wrote {out}: open it at ui.perfetto.dev"]


def write_simulated_trace(problem: str, plan: Path, *, requests: int, out: Path) -> int:
    """Play a plan on its table and write the trace; return the number of events."""
    asked = load_problem(problem)
    deployment = load_deployment(plan, asked)
    if len(deployment.streams) > 1:
        raise InvalidInputError(f"{plan} holds replicas; --simulated is for plans")
    return save_trace(simulate(asked, Plan(chunks=deployment.streams[0].chunks), requests=requests), out)


def text(words: str) -> Any:
    """Return a line for the terminal."""
    from rich.text import Text

    return Text(words)


def trace_winner(tuned: Tuned, out: Path, *, engine: str | None) -> list[str]:
    """Run what tuning chose once more and write its trace; return the note that says so."""
    deployment = tuned.deployment
    if deployment is None or tuned.result.interrupted:
        return []
    try:
        model = models_of(tuned.problem.networks[0])
        with open_pipeline(
            tuned.problem, deployment, model=model, engine=engine or engine_for(model)
        ) as pipeline:
            return write_trace(pipeline, out)
    except GaplessError as error:  # the result of tuning is more than its picture
        return [f"{out} is not written: {error}"]


def _places(texts: Sequence[str] | None) -> dict[str, str]:
    places = {}
    for item in texts or ():
        old, sign, new = item.partition("=")
        if not sign or not new:
            raise InvalidInputError(f"--at {item!r}: expected OLD=NEW, the model's old and new place")
        places[old] = new
    return places


def _busy_notes() -> list[str]:
    load = machine_load()
    if load is None or load < BUSY:
        return []
    return [
        f"other programs keep {100 * load:.0f} % of the cores busy: measurements will be unsteady; "
        "end them, or choose other cores with --units"
    ]
