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
from ...api.models import open_all, opening_notes
from ...api.problems import load_problem, with_states, with_workload
from ...api.samples import named_with, tried_with
from ...api.slowdown.side_by_side import Together, profile_together
from ...api.tuned import Tuned
from ...api.tuning import TuneWords, default_costs, tune, tune_simulated
from ...executor.graph.choices import Granularity
from ...executor.joined import join
from ...executor.machine.state import machine_load
from ...executor.model import Model
from ...executor.samples import Samples
from ...executor.tuning.racing import TuningOptions
from ...files.rules_file import load_rules
from ...files.run import Entry, Run, begin
from ...formulations.co_run import LEARNED
from ...formulations.costs import CostTable
from ...formulations.errors import InvalidInputError
from ...formulations.files import PLATFORM, load
from ...formulations.hardware import Platform
from ...formulations.network import Network
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from ...formulations.terms import Objective
from ...profiler.platforms.catalog import is_shipped_name, shipped_tables
from ...profiler.platforms.detected import select_units
from ...profiler.profile import Profile, ProfileOptions
from ...profiler.slowdown.side_by_side import check_different
from ...profiler.summary import ANY_NOISE, MOST_FAR
from ...question.question import Question
from ...question.subjects import Machine, Measuring, Opening, Race, Search
from ...solvers.diverse import check_distance
from ..base.progress import StepLine

BUSY = 0.15
"""Share of the cores that others may keep busy before a warning is due."""

MAX_WARNINGS = 4


def platform_of(machine: Machine, engine: str) -> Platform:
    """Return this device with the chosen units: as it is, or as a platform file describes it."""
    if machine.device is None:
        return this_device(
            units=machine.units, emulate=machine.emulate, engine=engine, precision=machine.precision
        )
    described = load(machine.device, PLATFORM)
    return select_units(described, machine.units) if machine.units else described


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What the command line says of tuning."""

    question: Question  # workload, pipelines, order of the layers, objective, limits
    search: Search
    race: Race
    rules: Path | None

    def subject(
        self, subjects: Sequence[str], opening: Opening, *, chained: bool
    ) -> Model | list[Model] | Problem:
        """Return what to tune: a profiled problem when one JSON file is named, else the models."""
        check_rounds(self.race.rounds, objective=self.wanted)  # before anything is profiled
        check_distance(self.search.distance, defined=self.race.groups is None)
        if not chained:
            stray = [
                *self.race.options("groups"),
                *self.question.options("pipelines", "layer_order", "state"),
            ]
            for option in stray:
                raise InvalidInputError(
                    f"{option} is about one network, and several share the units: leave it out, or make one "
                    "network of several models with --chain"
                )
        if self.race.groups is not None:
            if opening.granularity not in {Granularity.AUTO, Granularity.LAYER, Granularity.PIECE}:
                raise InvalidInputError(
                    f"--groups needs the pieces of a network, --granularity is {opening.granularity}: leave "
                    "it out"
                )
            opening = replace(opening, granularity=Granularity.PIECE)
        if len(subjects) == 1 and subjects[0].endswith(".json"):
            return load_problem(subjects[0])
        opened = open_all(subjects, opening)
        return join(opened) if chained else opened

    @property
    def wanted(self) -> Objective | None:
        """The objective, where one is given."""
        return None if self.question.objective is None else Objective.parse(self.question.objective)

    @property
    def usual_costs(self) -> str:
        """Name of the table that a shipped problem is planned with, or obeys, unless it is given."""
        wanted = self.wanted if self.question.workload is None else None
        return default_costs(wanted or Objective())

    def words(self, run: Run) -> TuneWords:
        """Return what all kinds of tuning are told."""
        search, race = self.search, self.race
        return TuneWords(
            backends=race.backends,
            top=search.top,
            distance=search.distance,
            rounds=race.rounds,
            pipelines=self.question.pipelines,
            sustain_s=race.sustain_s,
            objective=self.question.objective,
            limits=self.question.limits,
            pareto=search.pareto,
            time_limit_s=search.time_limit_s,
            rules=() if self.rules is None else load_rules(self.rules),
            options=race.made(TuningOptions, seed=search.seed),
            store=race.store or run.store,
            resume=run.resumed,
        )


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
        device: Machine,
        samples: Samples | None = None,
        *,
        competing: bool = True,
    ) -> Self:
        """Return what the command line asks for.

        Engines compete over one network unless it is said that they may not; several networks have one.
        """
        if isinstance(subject, Problem):
            if device.units or device.emulate or device.device is not None:
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
            return cls(subject=tried, engine=engine, platform=platform_of(device, engine))
        (model,) = models
        platform = platform_of(device, device.engine or ",".join(engines_for(model)))
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


def profile_options(said: Measuring) -> ProfileOptions:
    """Return how to profile, as the options of the command line say it."""
    usual = ProfileOptions(
        steady=said.steady,
        most_workers=said.most_workers or 1,
        most_far=ANY_NOISE if said.accept_noise else MOST_FAR,
    )
    if said.item_seconds is None:
        return usual
    longest_s = max(usual.max_seconds_per_item, said.item_seconds)
    return replace(usual, min_seconds_per_item=said.item_seconds, max_seconds_per_item=longest_s)


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


def tune_watched(target: Target, asked: Tuning, run: Run) -> tuple[Tuned, list[str]]:
    """Tune with progress; return what was found, and notes. Models in a list share the units."""
    subject, platform, question = target.subject, target.platform, asked.question
    if isinstance(subject, list):
        found, notes = profile_watched(target, run, asked.race.store)
        assert isinstance(found, Together)
        subject, platform = found.problem, None
        notes += shared_notes(target) if question.workload is None else []
    else:
        notes = [*busy_notes(), *target.notes]
    if isinstance(subject, Problem) and question.workload is not None:
        subject = with_workload(subject, question.workload)
    with StepLine() as line:
        tuned = tune(
            subject,
            platform=platform,
            engine=target.engine,
            samples=target.samples,
            report=line.report,
            costs=asked.race.costs,
            groups=asked.race.groups,
            layer_order=question.layer_order,
            state=question.state,
            **asked.words(run),
        )
    if question.layer_order == "best":
        notes.append(order_note(tuned.problem.network))
    if tuned.profile is not None:
        notes += tuned.profile.warnings[:MAX_WARNINGS]
    return tuned, notes


def simulated_problems(subjects: Sequence[str], asked: Tuning) -> tuple[Problem, Problem]:
    """Return what is planned on a simulated device, and what the device obeys."""
    race, workload = asked.race, asked.question.workload
    if race.groups is not None:
        raise InvalidInputError("--groups measures tiles of a model: leave it out, or --engine simulated")
    if asked.question.layer_order is not None:
        raise InvalidInputError("--layer-order is for models and profiles here: leave out --engine simulated")
    if len(subjects) != 1:
        raise InvalidInputError("--engine simulated takes one shipped problem or problem file")
    name = subjects[0]
    if Path(name).exists():
        planned = obeyed = load_problem(name)
    else:
        planned = load_problem(name, costs=race.costs or asked.usual_costs)
        obeyed = load_problem(name, costs=race.truth or asked.usual_costs)
    if asked.question.state is not None:
        planned, obeyed = (with_states(problem, asked.question.state) for problem in (planned, obeyed))
    if workload is not None:
        planned, obeyed = (with_workload(problem, workload) for problem in (planned, obeyed))
    return planned, obeyed


def simulated_tables(subjects: Sequence[str], asked: Tuning) -> tuple[CostTable, ...]:
    """Return the tables that tuning on a simulated device learns from: those of a shipped problem."""
    (name,) = subjects
    shipped = is_shipped_name(name) and not Path(name).exists()
    return shipped_tables(name) if shipped and asked.race.costs in (None, LEARNED) else ()


def tune_simulated_watched(
    planned: Problem, obeyed: Problem, asked: Tuning, run: Run, *, measured: Sequence[CostTable] = ()
) -> Tuned:
    """Tune on a simulated device, with progress."""
    with StepLine() as line:
        return tune_simulated(
            planned,
            obeyed,
            measured=measured,
            noise_permille=asked.race.noise_permille,
            seed=asked.search.seed,
            report=line.report,
            **asked.words(run),
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
