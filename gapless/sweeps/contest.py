"""Comparisons over many problems: every backend solves every one of them, and all answers are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..api.planning import default_backends
from ..executor.progress import Report, silent
from ..files.run import Entry
from ..formulations.errors import InvalidInputError
from ..formulations.plugins import is_reference
from ..formulations.problem import Problem
from ..solvers.families import runs_of
from ..solvers.protocol import SolveOptions
from ..solvers.registry import backend_names, get_backend, get_backends
from ..solvers.result import Milestone
from ..solvers.sources import StartMode, label_of, start_mode
from .findings import disagreements
from .folder import COMPARE, CSV_FILE, SweepOptions, opened
from .instances import Instances, InstanceSet, instances_of
from .run import Work
from .spec import MOST_TASKS, Base, GivenProblem
from .table import SweepRow, row_of, save_csv
from .tasks import Solving, SweepTask, keyed


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceAnswer:
    """What one backend answered to one problem.

    Attributes
    ----------
    instance
        Name of the problem.
    backend
        Who answered, "(cold)" behind it where it began with nothing by choice.
    row
        The answer, as in the table of a sweep; its `model` is the name of the problem.
    """

    instance: str
    backend: str
    row: SweepRow

    @property
    def course(self) -> tuple[Milestone, ...]:
        """Which plan and which bound it had when."""
        return self.row.course

    @property
    def end_s(self) -> float:
        """Seconds of the search."""
        return self.row.runtime_s


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceComparison:
    """What several backends answered to many problems.

    Attributes
    ----------
    title
        What the problems are called together.
    instances
        Names of the problems.
    backends
        Who was asked, as in `InstanceAnswer`.
    answers
        One for each problem and backend that has an answer or has failed, by problem.
    time_limit_s
        Seconds that each backend had for each problem; None: as many as it wanted.
    total
        How many answers were asked for.
    resumed
        How many of them were there before.
    notes
        What was left out, and which tasks lost their workers.
    interrupted
        Whether the user stopped it: what has no answer is not done.
    """

    title: str
    instances: tuple[str, ...]
    backends: tuple[str, ...]
    answers: tuple[InstanceAnswer, ...]
    time_limit_s: float | None
    total: int
    resumed: int = 0
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def failed(self) -> tuple[InstanceAnswer, ...]:
        """The tasks that have no answer."""
        return tuple(one for one in self.answers if one.row.failed)

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Proofs that contradict each other, in words: any of them is a bug in a backend."""
        return disagreements([one.row for one in self.answers])

    def save_csv(self, path: str | Path) -> None:
        """Write all answers as a CSV file, which spreadsheets cannot take for formulas."""
        save_csv([one.row for one in self.answers], path)


def compare_instances(
    instances: str | Path | InstanceSet | Iterable[GivenProblem],
    *,
    backends: Sequence[str] | None = None,
    objective: str = "",
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    start: str = StartMode.NONE,
    seed: int = 0,
    threads: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    jobs: int = 1,
    report: Report = silent,
) -> InstanceComparison:
    """Solve many problems with several backends, so that heuristics can be judged against exact plans.

    Parameters
    ----------
    instances
        A folder of problem files, a file of format gapless.instances, a Python file with a function
        `problems`, shipped names or patterns of them such as `pixel7a/*`, an `InstanceSet`; or problems, or
        pairs of a name and a problem.
    backends
        Names, or "module:Class" or "file.py:Class" of backends of your own, which are run in a child process
        and ended at the time limit. None: those that `compare` has for all of the problems.
    objective
        Overrides that of the problems; empty: it does not.
    time_limit_s, memory_limit_bytes, seed, threads
        As for `plan`, for each problem and backend; without a time limit, workloads get the usual one.
    start
        As for `compare`, but "none" unless said: what is compared is each backend's own work.
    out
        Folder in which answers are kept as they come. None: nothing is written.
    resume
        Go on with the comparison of the folder: what has an answer is not solved again, what failed is.
    overwrite
        Remove the comparison of the folder first.
    jobs
        How many answers are looked for at once. More than one makes times longer.
    report
        Called when an answer is there.

    Returns
    -------
    InstanceComparison
        Tasks that cannot be solved are answers with an error.

    Raises
    ------
    InvalidInputError
        A name, a file or an option is not valid, or the folder holds something else.
    ExecutionError
        Answers cannot be kept, e.g. because the disk is full.
    KeyboardInterrupt
        The user stopped it; what was answered is kept.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.studies.compare_instances("pixel7a/*", backends=["native", "exhaustive"])
    >>> [(one.instance, one.backend, one.row.status) for one in found.answers[:2]]
    [('pixel7a/alexnet-dense', 'native', 'optimal'), ('pixel7a/alexnet-dense', 'exhaustive', 'optimal')]
    """
    options = SolveOptions(
        time_limit_s=time_limit_s,
        memory_limit_bytes=memory_limit_bytes,
        start=start_mode(start),
        seed=seed,
        threads=threads,
    )
    kept = SweepOptions(
        out=None if out is None else Path(out), entry=Entry(resume=resume, overwrite=overwrite), jobs=jobs
    )
    result = run_contest(instances_of(instances, objective), backends, options, kept, report)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def run_contest(
    instances: Instances,
    backends: Sequence[str] | None,
    options: SolveOptions,
    kept: SweepOptions,
    report: Report = silent,
) -> InstanceComparison:
    """Do what `compare_instances` does; one that the user stops returns what it has by then, and says so."""
    problems = [problem for _, problem in instances.problems]
    names = tuple(usual_backends(problems) if backends is None else backends)
    if not names:
        raise InvalidInputError(f"no backends are given; choose from {', '.join(backend_names())}")
    labels = _labels(names)
    tasks = [
        (name, f"{labels[backend]}{label}", task)
        for name, problem in instances.problems
        for backend in names
        for label, task in _tasks(name, problem, backend, options)
    ]
    if len(tasks) > MOST_TASKS:
        raise InvalidInputError(f"there are {len(tasks)} plans to make, at most {MOST_TASKS} are taken")
    with opened(kept, COMPARE) as store:
        work = Work([task for *_, task in tasks], store, report, COMPARE)
        work.run(kept)
        answers = []
        for number, (instance, backend, task) in enumerate(tasks, start=1):
            found = work.answer(task)
            if found is not None:
                row = row_of(number, task, found, {})
                answers.append(InstanceAnswer(instance=instance, backend=backend, row=row))
        result = InstanceComparison(
            title=instances.title,
            instances=tuple(name for name, _ in instances.problems),
            backends=tuple(dict.fromkeys(backend for _, backend, _ in tasks)),
            answers=tuple(answers),
            time_limit_s=options.time_limit_s or _usual_limit_s(problems),
            total=len(tasks),
            resumed=work.resumed,
            notes=(*instances.notes, *work.notes),
            interrupted=work.interrupted,
        )
        if kept.out is not None:
            result.save_csv(kept.out / CSV_FILE)
    return result


def usual_backends(problems: Iterable[Problem]) -> tuple[str, ...]:
    """Return the backends that `compare` has for all of some problems."""
    kinds = {problem.formulation.name: default_backends(problem).names for problem in problems}
    first, *others = kinds.values()
    return tuple(name for name in first if all(name in names for names in others))


def _usual_limit_s(problems: Iterable[Problem]) -> float | None:
    """Return the longest time limit that problems get if nothing is said; None: one of them has none."""
    limits = {default_backends(problem).time_limit_s for problem in problems}
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Return what backends are called: by their own names, where these differ."""
    own = {name: worker.name for name, worker in zip(names, get_backends(names), strict=True)}
    twice = {label for label in own.values() if list(own.values()).count(label) > 1}
    return {name: name if label in twice else label for name, label in own.items()}


def _tasks(
    name: str, problem: Problem, backend: str, options: SolveOptions
) -> Iterable[tuple[str, SweepTask]]:
    """Yield what one backend is asked about one problem, with what is added to its name."""
    for _, begun in runs_of(problem, [get_backend(backend)], options.start):
        yield (
            label_of("", begun),
            keyed(
                SweepTask(
                    base=Base(model=name, made=problem),
                    objective="",
                    limits="",
                    rules="",
                    solving=Solving(
                        backend=backend,
                        time_limit_s=options.time_limit_s,
                        memory_limit_bytes=options.memory_limit_bytes,
                        seed=options.seed,
                        threads=options.threads,
                        start=begun or StartMode.NATIVE,
                        isolate=is_reference(backend),
                    ),
                )
            ),
        )
