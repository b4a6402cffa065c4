"""What `gapless report` is given: files and run folders, sorted by what they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...answers.comparing import SolverAnswer, written_answers
from ...executor.measurement import Measurement
from ...executor.pipeline.trace_file import TRACE_FORMAT, load_trace
from ...executor.tuning.candidates import CandidateKind
from ...executor.tuning.result import MEASUREMENT, TUNING, TuningResult
from ...files.comparison_file import COMPARISON, WrittenComparison, load_comparison
from ...files.pareto_file import PARETO
from ...files.plans import (
    DEPLOYMENT,
    fitting,
    forgotten,
    load_deployment,
    named_plan,
    on_problem,
    require_valid,
)
from ...files.run_folder import refuse_sweep
from ...formulations.canonical import may_be
from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError
from ...formulations.files import PLAN, PLANS, PROBLEM, Origin, format_of, load
from ...formulations.history import History
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...profiler.platforms.catalog import is_shipped_name
from ..presenter import presenter_of

FOLDER_FILES = (
    "problem.json",
    "deployment.json",
    "tuning.json",
    "measurement.json",
    "trace.json",
    "comparison.json",
)
"""What is read from a run folder, as far as it is there; plan.json where there is no deployment.json."""

Resolve = Callable[[Origin], Problem]
"""Returns the problem that an origin names (`origins.remembered_problem`), with what else was asked for."""


@dataclass(slots=True, kw_only=True)
class Known:
    """What the files say about one deployment.

    `measured`, `measurement`, `tuning`, `answers`: as far as they were given.
    """

    title: str  # the file or folder that named it first
    problem: Problem  # what was planned
    plan: Plan | None = None  # the plan, where a plan file named it
    deployment: Deployment | None = None
    """What runs; None: only a problem was given, and the best plan is wanted."""
    measured: History | None = None
    measurement: Measurement | None = None
    tuning: TuningResult | None = None
    answers: tuple[SolverAnswer, ...] = ()
    compared: bool = False  # whether its folder tells answers, of its plans or of those that may come back
    sources: list[str] = field(default_factory=list)  # the files


def sort_files(
    arguments: Sequence[str], resolve: Resolve, number: int | None = None
) -> tuple[list[Known], list[str]]:
    """Read files and folders, and sort them by the deployment that they are about.

    A problem counts for everything behind it, up to the next one. A plan or deployment begins a subject of
    its own; executions, races and comparisons belong to the subject with the same chunks.

    `arguments`: problems (files or shipped names), plans, deployments, measurements, traces, results of
    tuning and comparisons, and folders of `gapless tune`, in any number; `resolve`: makes a problem of what a
    plan file or the user calls it; `number`: which plan of a list, of a comparison, or of a run (None:
    the best, and of a run what won).
    Returns the subjects, and notes about what was left out.
    Raises InvalidInputError: a file is not valid, belongs to no problem that was given, or has no such plan.
    """
    reader = _Reader(resolve, number)
    for argument in arguments:
        reader.take(argument)
    reader.finish()
    if number is not None and not reader.chosen:
        raise InvalidInputError(
            f"--plan is {number}, but {', '.join(arguments)} lists no plans: name a file that `gapless plan "
            "--top` or `gapless compare --top` wrote, or a folder of `gapless tune`"
        )
    return reader.known, reader.notes


class _Reader:
    """Files read so far."""

    def __init__(self, resolve: Resolve, number: int | None = None) -> None:
        self.chosen = False
        self._number = number
        self.known: list[Known] = []
        self.notes: list[str] = []
        self._resolve = resolve
        self._problem: Problem | None = None
        self._named = ""
        self._used = True
        self._readers: dict[str, Callable[[Path], None]] = {
            PROBLEM.format: self._take_problem_file,
            PLAN.format: self._take_plan,
            PLANS.format: self._take_plan,
            PARETO.format: self._take_plan,
            DEPLOYMENT.format: self._take_deployment,
            MEASUREMENT.format: self._take_measurement,
            TUNING.format: self._take_tuning,
            TRACE_FORMAT: self._take_trace,
            COMPARISON.format: self._take_comparison,
        }

    def take(self, argument: str) -> None:
        path = Path(argument)
        if path.is_dir():
            self._take_folder(path)
        elif not path.exists() and is_shipped_name(argument):
            self._take_problem(argument)
        else:
            self._take_file(path)

    def finish(self) -> None:
        """Note a problem that no file behind it is about: its best plan is wanted."""
        if self._problem is not None and not self._used:
            self.known.append(Known(title=self._named, problem=self._problem, sources=[self._named]))
        self._used = True

    def _take_file(self, path: Path) -> None:
        kind = format_of(path)
        if kind not in self._readers:
            says = "does not say what it is" if kind is None else f"is a {kind} file"
            raise InvalidInputError(
                f"{path} {says}; a report takes problems, plans, deployments, measurements, traces, results "
                "of `gapless tune` and `gapless compare --out`, and folders of `gapless tune`"
            )
        self._readers[kind](path)

    def _take_folder(self, folder: Path) -> None:
        names = [name for name in FOLDER_FILES if (folder / name).exists()]
        if "deployment.json" not in names and (folder / "plan.json").exists():
            names.insert(names.index("problem.json") + 1 if "problem.json" in names else 0, "plan.json")
        if not names:
            refuse_sweep(folder)
            raise InvalidInputError(
                f"{folder} is no folder of `gapless tune` or `gapless profile`: it holds none of "
                f"{', '.join(FOLDER_FILES)}, plan.json"
            )
        chosen = "" if self._number is None else f": plan {self._number}"
        if chosen and "tuning.json" in names:
            # What won is another plan, so its deployment begins nothing, and its trace may be left out.
            names = [name for name in names if name not in ("deployment.json", "tuning.json")]
            names.insert(names.index("problem.json") + 1 if "problem.json" in names else 0, "tuning.json")
        before = len(self.known)
        if "problem.json" in names:
            names.remove("problem.json")
            self._begin_problem(*self._planned(folder))
        for name in names:
            try:
                self._take_file(folder / name)
            except _OtherProblemError as other:
                self.notes.append(f"left out: {other}")
        self.finish()
        of_folder = self.known[before:]
        for place, known in enumerate(of_folder):
            known.compared = any(one.answers for one in of_folder)
            known.title = f"{folder}: the fastest plan that is no baseline" if place else f"{folder}{chosen}"
        self._problem, self._named = None, ""  # the problem of a folder is for its own files

    def _planned(self, folder: Path) -> tuple[str, Problem]:
        """Return the file of the problem that plans were made for, and the problem: the compared one."""
        paths, asked = [folder / "problem.json"], None
        if (folder / "comparison.json").exists():
            asked = load_comparison(folder / "comparison.json").problem.fingerprint
            paths += sorted(folder.glob("problem-*.json"))
        problems = ((str(path), self._resolve(Origin(asked={"problem": str(path)}))) for path in paths)
        first = next(problems)
        if may_be(asked, first[1].fingerprint):
            return first
        return next((each for each in problems if each[1].fingerprint == asked), first)

    def _take_problem_file(self, path: Path) -> None:
        self._take_problem(str(path))

    def _take_problem(self, name: str) -> None:
        self._begin_problem(name, self._resolve(Origin(asked={"problem": name})))

    def _begin_problem(self, name: str, problem: Problem) -> None:
        self.finish()
        self._problem, self._named, self._used = problem, name, False

    def _take_plan(self, path: Path) -> None:
        named = named_plan(path, self._number)
        self.chosen = True
        origin, plan = named.origin, named.plan
        self.notes += named.notes
        if self._problem is None:
            if not origin.asked:
                raise InvalidInputError(
                    f"{path} does not say which problem it is for; name the problem before it"
                )
            problem = self._resolve(origin)
            self.notes += forgotten(origin, problem)
        elif "workload" in origin.asked and not self._problem.formulation.arrivals(self._problem):
            problem = self._resolve(on_problem(origin, self._named))
        else:
            problem = self._problem
        if Path(self._named).parent == path.parent:  # the folder of a race
            problem = fitting(problem, [plan])
        require_valid(problem, plan, path)
        self._begin(path, problem, presenter_of(problem).arranged(problem, plan)).plan = plan

    def _take_deployment(self, path: Path) -> None:
        problem = self._current(path)
        deployment = load_deployment(path, problem)
        self._begin(path, fitting(problem, deployment.parts), deployment)

    def _take_measurement(self, path: Path) -> None:
        found = load(path, MEASUREMENT)
        self._about(path, found.deployment).measurement = found

    def _take_trace(self, path: Path) -> None:
        found = load_trace(path)
        assert found.deployment is not None
        self._about(path, found.deployment).measured = found

    def _take_tuning(self, path: Path) -> None:
        found = load(path, TUNING)
        if found.winner is None:
            raise InvalidInputError(f"{path}: nothing was measured, there is nothing to report")
        if self._number is not None:
            self._about(path, self._tuned(path, found)).tuning = found
            self.chosen = True
            return
        self._about(path, found.winner.candidate.deployment).tuning = found
        best = found.best(CandidateKind.PLAN)
        if found.winner.candidate.deployment.plan is None and best is not None:
            # Replicas won. What the fastest other plan looks like, and why it lost, is what users ask next.
            self._about(path, best.candidate.deployment).tuning = found

    def _tuned(self, path: Path, found: TuningResult) -> Deployment:
        """Return the tuned plan of the number that is asked for."""
        ranked = {row.candidate.rank: row.candidate.deployment for row in found.rows}
        if self._number not in ranked:
            listed = ", ".join(str(rank) for rank in sorted(rank for rank in ranked if rank is not None))
            raise InvalidInputError(f"--plan is {self._number}, but {path} has the plans {listed or 'none'}")
        return ranked[self._number]

    def _take_comparison(self, path: Path) -> None:
        found = load_comparison(path)
        self.finish()
        if not self.known:
            self._begin_compared(path, found)
        asked, last = found.problem.fingerprint, self.known[-1]
        alike = [known for known in self.known if may_be(asked, known.problem.fingerprint)]
        if not alike:
            raise _OtherProblemError(
                f"{path} compares backends on the problem {asked}, with other costs, rules or limits, or "
                f"another objective, than {last.title} has ({last.problem.fingerprint})"
            )
        for known in alike:
            known.answers = written_answers(found, known.problem)
            known.sources.append(str(path))

    def _begin_compared(self, path: Path, found: WrittenComparison) -> None:
        """Begin with the best plan of a comparison, on the problem that its file names."""
        if not found.asked:
            self._current(path)  # which there is not: the error says so
        problem, plans = self._resolve(found.origin), found.plans
        self.notes += forgotten(found.origin, problem)
        if self._number is not None and self._number > len(plans):
            raise InvalidInputError(
                f"--plan is {self._number}, but the best answer in {path} has {len(plans)} plans; `gapless "
                "compare --top` asks for more"
            )
        if not plans:
            self._begin_problem(str(path), problem)
            self.finish()
        else:
            self.chosen = True
            plan = plans[(self._number or 1) - 1]
            require_valid(problem, plan, path)
            self._begin(path, problem, presenter_of(problem).arranged(problem, plan)).plan = plan

    def _current(self, path: Path) -> Problem:
        if self._problem is None:
            raise InvalidInputError(
                f"{path} does not say which problem it is for; name the problem before it"
            )
        return self._problem

    def _begin(self, path: Path, problem: Problem, deployment: Deployment) -> Known:
        sources = [str(path)] if self._used or not self._named else [self._named, str(path)]
        known = Known(title=str(path), problem=problem, deployment=deployment, sources=sources)
        self.known.append(known)
        self._used = True
        return known

    def _about(self, path: Path, deployment: Deployment) -> Known:
        """Return the subject with this deployment; a new one if it is the first that is said of it."""
        for known in reversed(self.known):
            if known.deployment is not None and _chunks(known.deployment) == _chunks(deployment):
                known.sources.append(str(path))
                return known
        problem = self._current(path)
        if self._number is not None and self.chosen:
            raise _OtherProblemError(f"{path} is about another plan than number {self._number}")
        problem = fitting(problem, deployment.parts)
        for plan in deployment.plans:
            require_valid(problem, plan, path)
        return self._begin(path, problem, deployment)


class _OtherProblemError(InvalidInputError):
    """A file is about another problem, or another plan, than those that it stands beside."""


def _chunks(deployment: Deployment) -> tuple[tuple[str, Any], ...]:
    return tuple((stream.name, stream.chunks) for stream in deployment.streams)
