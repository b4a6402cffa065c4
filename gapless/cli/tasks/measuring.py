"""Profiling and tuning as the command line asks for it, with progress."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ...api.asked import order_note
from ...api.closed_loop import check_rounds
from ...api.device import this_device
from ...api.engines import engines_for, engines_of, resolve_engine
from ...api.execution import models_for, profile
from ...api.models import open_each, open_models, opening_notes
from ...api.problems import load_problem, with_workload
from ...api.samples import named_with, tried_with
from ...api.slowdown.side_by_side import Together, profile_together
from ...api.tuned import Tuned
from ...api.tuning import default_costs, tune, tune_simulated
from ...executor.graph.choices import Granularity
from ...executor.graph.shapes import parse_shapes
from ...executor.machine.load import machine_load
from ...executor.model import Model
from ...executor.samples import Samples
from ...executor.tuning.options import TuningMode, TuningOptions
from ...files.rules_file import load_rules
from ...files.run import Entry, Run, begin
from ...formulations.co_run import LEARNED
from ...formulations.costs import CostTable
from ...formulations.errors import InvalidInputError
from ...formulations.files import PLATFORM, load
from ...formulations.hardware import Platform, Precision
from ...formulations.network import Network
from ...formulations.objective import Objective
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from ...profiler.platforms.catalog import is_shipped_name, shipped_tables
from ...profiler.platforms.detected import select_units
from ...profiler.profile import Profile, ProfileOptions
from ...profiler.quality import ANY_NOISE, MOST_FAR
from ...profiler.slowdown.side_by_side import check_different
from ...question.question import Question
from ...question.values import Place, read_percent
from ...solvers.diverse import check_distance
from ..base.progress import StepLine
from ..options.models import parse_emulation, parse_names

BUSY = 0.15
"""Share of the cores that others may keep busy before a warning is due."""

MAX_WARNINGS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceChoice:
    """What the command line says of the device; the engine, or several, are chosen by the model when None.

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

    def platform(self, engine: str) -> Platform:
        """Return this device with the chosen units: as it is, or as a platform file describes it."""
        if self.file is not None:
            described = load(self.file, PLATFORM)
            return select_units(described, self.units) if self.units else described
        return this_device(units=self.units, emulate=self.emulate, engine=engine, precision=self.precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneChoice:
    """What the command line says of tuning."""

    question: Question  # workload, pipelines, order of the layers, objective, limits
    groups: str | None
    rules: Path | None
    pareto: str | None
    backends: tuple[str, ...]
    top: int
    distance: int
    costs: str | None
    rounds: int
    sustain_s: float | None
    time_limit_s: float | None
    options: TuningOptions
    store: Path | None

    def subject(
        self,
        subjects: Sequence[str],
        shape: Sequence[str] | None,
        granularity: str,
        *,
        chained: bool,
        **how: Any,
    ) -> Model | list[Model] | Problem:
        """Return what to tune: a profiled problem when one JSON file is named, else the models."""
        check_rounds(self.rounds, objective=self.wanted)  # before anything is profiled
        check_distance(self.distance, defined=self.groups is None)
        if not chained:
            self._refuse_for_several()
        if self.groups is not None:
            if granularity not in {Granularity.AUTO, Granularity.LAYER, Granularity.PIECE}:
                raise InvalidInputError(
                    f"--groups needs the pieces of a network, --granularity is {granularity}: leave it out"
                )
            granularity = Granularity.PIECE
        if len(subjects) == 1 and subjects[0].endswith(".json"):
            return load_problem(subjects[0])
        how = opening(shape, granularity, **how)
        return open_models(subjects, **how) if chained else open_each(subjects, **how)

    def _refuse_for_several(self) -> None:
        """Refuse what is about one network, where several share the units."""
        for option, given in (
            ("--groups", self.groups),
            ("--pipelines", self.question.pipelines),
            ("--layer-order", self.question.layer_order),
        ):
            if given is not None:
                raise InvalidInputError(
                    f"{option} is about one network, and several share the units: leave it out, or make one "
                    "network of several models with --chain"
                )

    @property
    def wanted(self) -> Objective | None:
        """The objective, where one is given."""
        return None if self.question.objective is None else Objective.parse(self.question.objective)

    @property
    def usual_costs(self) -> str:
        """Name of the table that a shipped problem is planned with, or obeys, unless it is given."""
        wanted = self.wanted if self.question.workload is None else None
        return default_costs(wanted or Objective())

    def shared(self, run: Run) -> dict[str, Any]:
        """Return what all kinds of tuning are told."""
        return {
            "backends": self.backends,
            "top": self.top,
            "distance": self.distance,
            "rounds": self.rounds,
            "pipelines": self.question.pipelines,
            "sustain_s": self.sustain_s,
            "objective": self.question.objective,
            "limits": self.question.limits,
            "pareto": self.pareto,
            "rules": () if self.rules is None else load_rules(self.rules),
            "options": self.options,
            "time_limit_s": self.time_limit_s,
            "store": self.store or run.store,
            "resume": run.resumed,
        }


def tuning_options(mode: str, *, budget_s: float | None, seed: int) -> TuningOptions:
    """Return how to tune."""
    if mode not in set(TuningMode):
        raise InvalidInputError(f"--mode is {mode!r}, must be one of {', '.join(TuningMode)}")
    return TuningOptions(mode=TuningMode(mode), budget_s=budget_s, seed=seed)


def opening(
    shape: Sequence[str] | None, granularity: str, *, materialize: bool, simplify: str
) -> dict[str, Any]:
    """Return how the models that are named on the command line are to be opened."""
    return {
        "shapes": parse_shapes(shape or ()),
        "granularity": granularity,
        "materialize": materialize,
        "simplify": simplify,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is measured, by whom and on which units: all that can be refused before a run begins.

    `engine`, `platform`: who runs it, and where; None: the engines of the units, and the units of a problem.
    """

    subject: Model | list[Model] | Problem
    """A model, several that share the units, or a problem that was profiled before."""
    engine: str | None
    platform: Platform | None = None
    samples: Samples | None = None  # what the networks of a problem are tried with; models have their own

    @classmethod
    def of(
        cls,
        subject: Model | list[Model] | Problem,
        device: DeviceChoice,
        samples: Samples | None = None,
        *,
        competing: bool = True,
    ) -> Self:
        """Return what the command line asks for.

        Engines compete over one network unless it is said that they may not; several networks have one.
        """
        if isinstance(subject, Problem):
            if device.units or device.emulate or device.file is not None:
                raise InvalidInputError(
                    "the units of a problem file were chosen when it was profiled: --device, --units and "
                    "--emulate are for models"
                )
            operation_of(subject).check_executable(subject)
            opened = named_with(models_for(subject), samples)
            engines_of(subject, device.engine, *opened.values())
            return cls(subject=subject, engine=device.engine, samples=samples)
        models = tried_with(subject if isinstance(subject, list) else [subject], samples)
        check_different([model.network.name for model in models])
        if isinstance(subject, list) or not competing:
            engine = resolve_engine(device.engine, *models).name
            tried = models if isinstance(subject, list) else models[0]
            return cls(subject=tried, engine=engine, platform=device.platform(engine))
        (model,) = models
        platform = device.platform(device.engine or ",".join(engines_for(model)))
        return cls(subject=model, engine=device.engine, platform=platform)

    @property
    def notes(self) -> list[str]:
        """What a user should know of how models were opened: simplified less than usual, or divided."""
        if isinstance(self.subject, Problem):
            return []
        models = self.subject if isinstance(self.subject, list) else [self.subject]
        return opening_notes(models, divided=True)

    @property
    def networks(self) -> Problem | list[Network]:
        """What a run of it is about."""
        if isinstance(self.subject, Problem):
            return self.subject
        models = self.subject if isinstance(self.subject, list) else [self.subject]
        return [model.network for model in models]


def begun(
    command: str, subject: Problem | Sequence[Network], out: Path, entry: Entry, *, simulated: bool = False
) -> AbstractContextManager[Run]:
    """Begin the run of a command in the folder that --out names; errors as for `begin`."""
    line = ["gapless", *sys.argv[1:]]
    return begin(out, command, subject, entry=entry, simulated=simulated, line=line)


def profile_options(*, steady: bool, item_s: float | None, accept_noise: bool) -> ProfileOptions:
    """Return how to profile, as the options of the command line say it."""
    usual = ProfileOptions(steady=steady, most_far=ANY_NOISE if accept_noise else MOST_FAR)
    if item_s is None:
        return usual
    longest_s = max(usual.max_seconds_per_item, item_s)
    return replace(usual, min_seconds_per_item=item_s, max_seconds_per_item=longest_s)


def profile_watched(
    target: Target, run: Run, store: Path | None = None, options: ProfileOptions = ProfileOptions()
) -> tuple[Profile | Together, list[str]]:
    """Profile with progress; return the profile, or those of networks that share the units, and notes."""
    notes = [*busy_notes(), *target.notes]
    how: dict[str, Any] = {"platform": target.platform, "engine": target.engine, "options": options}
    how |= {"store": store or run.store, "resume": run.resumed}
    with StepLine() as line:
        if isinstance(target.subject, list):
            found = profile_together(target.subject, report=line.report, **how)
            return found, [*notes, *found.warnings[:MAX_WARNINGS]]
        assert not isinstance(target.subject, Problem)
        return profile(target.subject, report=line.report, **how), notes


def tune_watched(target: Target, choice: TuneChoice, run: Run) -> tuple[Tuned, list[str]]:
    """Tune with progress; return what was found, and notes. Models in a list share the units."""
    subject, platform = target.subject, target.platform
    if isinstance(subject, list):
        found, notes = profile_watched(target, run, choice.store)
        assert isinstance(found, Together)
        subject, platform = found.problem, None
        notes += shared_notes(target) if choice.question.workload is None else []
    else:
        notes = [*busy_notes(), *target.notes]
    if isinstance(subject, Problem) and choice.question.workload is not None:
        subject = with_workload(subject, choice.question.workload)
    with StepLine() as line:
        tuned = tune(
            subject,
            platform=platform,
            engine=target.engine,
            costs=choice.costs,
            groups=choice.groups,
            layer_order=choice.question.layer_order,
            samples=target.samples,
            report=line.report,
            **choice.shared(run),
        )
    if choice.question.layer_order == "best":
        notes.append(order_note(tuned.problem.network))
    if tuned.profile is not None:
        notes += tuned.profile.warnings[:MAX_WARNINGS]
    return tuned, notes


def simulated_problems(
    subjects: Sequence[str], choice: TuneChoice, *, truth: str | None
) -> tuple[Problem, Problem]:
    """Return what is planned on a simulated device, and what the device obeys."""
    if choice.groups is not None:
        raise InvalidInputError("--groups measures tiles of a model: leave it out, or --engine simulated")
    if choice.question.layer_order is not None:
        raise InvalidInputError("--layer-order is for models and profiles here: leave out --engine simulated")
    if len(subjects) != 1:
        raise InvalidInputError("--engine simulated takes one shipped problem or problem file")
    name = subjects[0]
    if Path(name).exists():
        planned = obeyed = load_problem(name)
    else:
        planned = load_problem(name, costs=choice.costs or choice.usual_costs)
        obeyed = load_problem(name, costs=truth or choice.usual_costs)
    if choice.question.workload is not None:
        planned, obeyed = (with_workload(problem, choice.question.workload) for problem in (planned, obeyed))
    return planned, obeyed


def simulated_tables(subjects: Sequence[str], choice: TuneChoice) -> tuple[CostTable, ...]:
    """Return the tables that tuning on a simulated device learns from: those of a shipped problem."""
    (name,) = subjects
    shipped = is_shipped_name(name) and not Path(name).exists()
    return shipped_tables(name) if shipped and choice.costs in (None, LEARNED) else ()


def tune_simulated_watched(
    planned: Problem,
    obeyed: Problem,
    choice: TuneChoice,
    run: Run,
    *,
    noise: str,
    measured: Sequence[CostTable] = (),
) -> Tuned:
    """Tune on a simulated device, with progress."""
    with StepLine() as line:
        return tune_simulated(
            planned,
            obeyed,
            measured=measured,
            noise_permille=read_percent(Place("--noise"), noise),
            seed=choice.options.seed,
            report=line.report,
            **choice.shared(run),
        )


def shared_notes(target: Target) -> list[str]:
    """Return what several models are taken for where nothing is said."""
    if not isinstance(target.subject, list) or len(target.subject) == 1:
        return []
    names = [model.network.name for model in target.subject]
    other = ",".join([f"{names[0]}x2", *names[1:]])
    return [
        f"{', '.join(names[:-1])} and {names[-1]} share the units, with one request of each at a time; "
        f'--workload "{other}" (of plan and tune) asks for others, --chain makes one network of them'
    ]


def busy_notes() -> list[str]:
    """Return a warning if other programs keep this machine busy."""
    load = machine_load()
    if load is None or load < BUSY:
        return []
    return [
        f"other programs keep {100 * load:.0f} % of the cores busy: measurements will be unsteady; "
        "end them, or choose other cores with --units"
    ]
