"""Measuring beside load as the command line asks for it; interference of tables, networks, and plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...api.engines import resolve_engine
from ...api.models import open_all
from ...api.problems import load_problem
from ...api.slowdown.interference import (
    interference_of_tables,
    is_shipped_subject,
    measure_interference,
    measure_plan_interference,
)
from ...executor.model import Model
from ...executor.tuning.result import MEASUREMENT
from ...formulations.errors import InvalidInputError, InvalidModelError, SchemaVersionError
from ...formulations.files import format_of, load, load_plan
from ...formulations.problem import Problem
from ...formulations.validation import near
from ...profiler.platforms.catalog import platform_names, shipped_names
from ...profiler.profile import PROFILE, Profile
from ...profiler.slowdown.interference.ratios import INTERFERENCE, InterferenceRatios
from ...profiler.slowdown.turns import CoRunOptions
from ...question.subjects import Machine, Opening
from ..base.progress import StepLine
from .measuring import busy_notes, platform_of

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where measurements are kept; InvalidInputError: `--resume` without a file."""

    store: Path | None
    resume: bool

    def __post_init__(self) -> None:
        if self.resume and self.store is None:
            raise InvalidInputError("--resume goes on with what a file holds; name it with --store")

    @property
    def words(self) -> dict[str, Any]:
        """The same for the functions that measure."""
        return {"store": ":memory:" if self.store is None else self.store, "resume": self.resume}


def measured(
    measure: Callable[..., Found],
    models: Sequence[Model],
    machine: Machine,
    *,
    estimated: Sequence[Model] = (),
    **asked: Any,
) -> tuple[Found, list[str]]:
    """Measure networks beside others on this machine, and return what was found, and notes.

    `estimated`: networks that run alone only.
    """
    runner = resolve_engine(machine.engine, *models, *estimated).name
    platform, notes = platform_of(machine, runner), busy_notes()
    also = {"estimated": estimated} if estimated else {}
    with StepLine() as line:
        found = measure(models, platform=platform, engine=runner, report=line.report, **also, **asked)
    return found, notes


@dataclass(frozen=True, slots=True, kw_only=True)
class InterferenceChoice:
    """What the command line says."""

    subjects: Sequence[str]
    machine: Machine
    opening: Opening
    beside: Sequence[tuple[str, ...]]
    plans: Sequence[Path]
    measured: Sequence[Path]
    options: CoRunOptions
    kept: Kept

    def found(self) -> tuple[InterferenceRatios, list[str]]:
        """Return what is asked for, and notes."""
        first = self.subjects[0]
        if self.plans:
            chosen = [*self.opening.options(), *self._beside, *self.machine.options("units", "emulate")]
            self._refuse("with --plan", chosen)
            self._require_one("--plan")
            return self._of_plans(first)
        self._refuse("without --plan", ["--measured"] if self.measured else [])
        is_file = first.endswith(".json")
        if is_file or is_shipped_subject(first):
            stored = ["--store"] if self.kept.store else []
            chosen = [*self.opening.options(), *self._beside, *stored, *self.machine.options()]
            self._refuse(f"for {first}, where nothing is measured", chosen)
            self._require_one(first)
            return (_of_file(first) if is_file else interference_of_tables(first)), []
        return self._of_models()

    @property
    def _beside(self) -> list[str]:
        return ["--beside"] if self.beside else []

    def _refuse(self, where: str, wrong: Sequence[str]) -> None:
        if wrong:
            raise InvalidInputError(f"{', '.join(wrong)} means nothing {where}; leave it out")

    def _require_one(self, what: str) -> None:
        if len(self.subjects) > 1:
            raise InvalidInputError(f"{what} takes one subject, got {' '.join(self.subjects)}")

    def _of_models(self) -> tuple[InterferenceRatios, list[str]]:
        return measured(
            measure_interference,
            self._opened(),
            self.machine,
            beside=self.beside,
            options=self.options,
            **self.kept.words,
        )

    def _opened(self) -> list[Model]:
        try:
            return open_all(self.subjects, self.opening)
        except InvalidModelError as error:
            shipped = near(self.subjects[0], [*platform_names(), *shipped_names()])
            if not shipped:
                raise
            raise InvalidModelError(f"{error}; of shipped tables, {' or '.join(shipped)} is near") from error

    def _of_plans(self, subject: str) -> tuple[InterferenceRatios, list[str]]:
        is_profile = format_of(subject) == PROFILE.format
        problem: Profile | Problem = load(subject, PROFILE) if is_profile else load_problem(subject)
        plans = [load_plan(path) for path in self.plans]
        measured = [load(path, MEASUREMENT) for path in self.measured]
        notes = busy_notes()
        with StepLine() as line:
            found = measure_plan_interference(
                problem,
                plans,
                engine=self.machine.engine,
                measured=measured,
                options=self.options,
                report=line.report,
                **self.kept.words,
            )
        return found, notes


def _of_file(path: str) -> InterferenceRatios:
    if format_of(path) == PROFILE.format:
        return interference_of_tables(load(path, PROFILE))
    try:
        return load(path, INTERFERENCE)
    except SchemaVersionError as error:
        raise SchemaVersionError(
            f"{error}; without --plan, name the profile.json of `gapless profile` or what "
            "`gapless costs interference --out` wrote"
        ) from None
