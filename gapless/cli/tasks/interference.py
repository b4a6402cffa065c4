"""Interference as the command line asks for it: of tables, of networks, of plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from ...executor.tuning.documents import MEASUREMENT
from ...formulations.errors import InvalidInputError, InvalidModelError, SchemaVersionError
from ...formulations.files import format_of, load, load_plan
from ...formulations.nearness import near
from ...formulations.problem import Problem
from ...profiler.platforms.catalog import platform_names, shipped_names
from ...profiler.profile import PROFILE, Profile
from ...profiler.slowdown.interference.ratios import INTERFERENCE, InterferenceRatios
from ...profiler.slowdown.turns import CoRunOptions
from ...question.subjects import Machine, Opening
from ..base.progress import StepLine
from .measuring import busy_notes, platform_of


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
    store: Path | None
    resume: bool

    @property
    def shared(self) -> dict[str, Any]:
        """What all kinds of measuring are told."""
        store = ":memory:" if self.store is None else self.store
        return {"options": self.options, "store": store, "resume": self.resume}

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
            stored = ["--store"] if self.store else []
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
        models = self._opened()
        runner = resolve_engine(self.machine.engine, *models).name
        platform, notes = platform_of(self.machine, runner), busy_notes()
        with StepLine() as line:
            found = measure_interference(
                models,
                platform=platform,
                engine=runner,
                beside=self.beside,
                report=line.report,
                **self.shared,
            )
        return found, notes

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
                report=line.report,
                **self.shared,
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
