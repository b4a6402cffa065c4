"""Sweeps: every task is answered by one of a few workers, and what is answered is kept at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..api.asked import network_named
from ..executor.progress import Ledger, Report, Step, silent
from ..files.run import Entry
from ..formulations.errors import BackendFailedError, GaplessError
from ..formulations.json_files import dump, parse
from ..formulations.network import Network
from .answers import ANSWER, TaskAnswer, answer
from .folder import CSV_FILE, PARQUET_FILE, SWEEP, SweepOptions, opened, plan_file
from .spec import GivenProblem, Sweep, SweepFile, given_problems, load_sweep
from .table import SweepRow, require_parquet, row_of, save_csv, save_parquet
from .tasks import SweepTask, tasks_of
from .workers import LocalWorkers, Outcome, Workers

MOST_ATTEMPTS = 3
"""How often a task is tried whose worker is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """What a sweep found.

    Attributes
    ----------
    sweep
        What was asked.
    rows
        One for each task that has an answer or has failed, in the order of the tasks.
    total
        Number of tasks.
    resumed
        How many of them had an answer before.
    notes
        Which tasks lost their workers, and what came of it.
    interrupted
        Whether the user stopped it: tasks without a row are not done.
    """

    sweep: Sweep
    rows: tuple[SweepRow, ...]
    total: int
    resumed: int = 0
    notes: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """The tasks that have no answer."""
        return tuple(row for row in self.rows if row.failed)

    def save_csv(self, path: str | Path) -> None:
        """Write the table as a CSV file, which spreadsheets cannot take for formulas."""
        save_csv(self.rows, path)

    def save_parquet(self, path: str | Path) -> None:
        """Write the table as a Parquet file; needs the extra `parquet`."""
        save_parquet(self.rows, path)


def sweep(
    spec: Sweep | str | Path,
    *,
    problems: Iterable[GivenProblem] = (),
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    jobs: int | None = None,
    address: str | None = None,
    allow_no_token: bool = False,
    plans: bool = False,
    parquet: bool = False,
    report: Report = silent,
) -> SweepResult:
    """Plan everything that a sweep asks for, several plans at once.

    Parameters
    ----------
    spec
        A `Sweep`, or the path of a sweep file (JSON or Python).
    problems
        Further problems, or pairs of a name and a problem, by every objective, limits and backend.
    out
        Folder for everything that is written: answers as they come, the table, plans. None: nothing is
        written, and the sweep cannot be resumed.
    resume
        Go on with the sweep of the folder: what has an answer is not solved again, what failed is.
    overwrite
        Remove the sweep of the folder first.
    jobs
        How many tasks are solved at once; None: as many as there are cores for, which this process may use.
    address
        "HOST:PORT" of the head of a Ray cluster that solves the tasks (`pip install 'gapless[cluster]'`),
        which this machine has joined; None: child processes of this one do.
    allow_no_token
        Whether a Ray cluster that takes orders from everybody who reaches it is good enough.
    plans
        Whether each plan is kept as a file in the folder.
    parquet
        Whether the table is also written as a Parquet file (`pip install 'gapless[parquet]'`).
    report
        Called when a task is done.

    Returns
    -------
    SweepResult
        A row for each task. Tasks that cannot be solved are rows with an error.

    Raises
    ------
    InvalidInputError
        The sweep or an option is not valid (all defects are named), or the folder holds another sweep.
    ExecutionError
        Answers cannot be kept, e.g. because the disk is full; or the Ray cluster cannot be used.
    KeyboardInterrupt
        The user stopped it; what was answered is kept.

    Examples
    --------
    >>> import gapless
    >>> asked = gapless.studies.Sweep(models=["octree"], platforms=["pixel7a", "oneplus11"])
    >>> found = gapless.sweep(asked, jobs=1)
    >>> [(row.platform, row.period_us, row.status) for row in found.rows]
    [('pixel7a', 2413, 'optimal'), ('oneplus11', 2759, 'optimal')]
    """
    options = SweepOptions(
        out=None if out is None else Path(out),
        entry=Entry(resume=resume, overwrite=overwrite),
        jobs=jobs,
        address=address,
        allow_no_token=allow_no_token,
        plans=plans,
        parquet=parquet,
    )
    asked = SweepFile(sweep=spec) if isinstance(spec, Sweep) else load_sweep(spec)
    asked = replace(asked, problems=(*asked.problems, *given_problems(problems)))
    result = run_sweep(asked, options, report)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def run_sweep(asked: SweepFile, options: SweepOptions, report: Report = silent) -> SweepResult:
    """Do what `sweep` does; one that the user stops returns what it has by then, and says so."""
    if options.parquet:
        require_parquet()
    tasks = tasks_of(asked.sweep, asked.problems)
    with opened(options, SWEEP) as store:
        work = Work(tasks, store, report, SWEEP)
        work.run(options)
        result = _result(work, tasks, asked.sweep, options)
        if options.out is not None:
            result.save_csv(options.out / CSV_FILE)
            if options.parquet:
                result.save_parquet(options.out / PARQUET_FILE)
    return result


class Work:
    """Tasks and their answers as far as they are known; equal tasks are answered once.

    `command`: under whose name answers are kept: SWEEP or COMPARE.
    """

    def __init__(self, tasks: Sequence[SweepTask], store: Ledger, report: Report, command: str) -> None:
        self._tasks = tasks
        self._store = store
        self._command = command
        self._report = report
        self._answers: dict[str, TaskAnswer] = {}
        self._attempts: dict[int, int] = {}
        self.notes: list[str] = []  # which tasks lost their workers, and what came of it
        self.resumed = 0  # how many of the tasks had an answer before
        self.interrupted = False  # whether the user stopped it

    def run(self, options: SweepOptions) -> None:
        """Have the tasks answered, until they all are or the user stops it."""
        if options.entry.resume:
            self._recall()
        try:
            self._finish(options)
        except KeyboardInterrupt:
            self.interrupted = True

    def answer(self, task: SweepTask) -> TaskAnswer | None:
        """Return the answer to a task; None: it has none yet."""
        return self._answers.get(task.key)

    def _recall(self) -> None:
        """Take the answers that were kept before; what failed is tried again."""
        for task in self._tasks:
            text = self._store.find(self._command, task.key)
            if text is not None:
                found = parse(text.encode(), ANSWER, name="an answer of the store")
                if not found.error:
                    self._answers[task.key] = found
        self.resumed = sum(task.key in self._answers for task in self._tasks)

    def _finish(self, options: SweepOptions) -> None:
        """Have all tasks answered that are not yet."""
        left: dict[str, int] = {}
        for number, task in enumerate(self._tasks):
            if task.key not in self._answers:
                left.setdefault(task.key, number)
        if not left:
            return
        networks = self._networks([self._tasks[number] for number in left.values()])
        with _workers(self._tasks, networks, options, len(left)) as workers:
            self._work_off(deque(left.values()), workers)

    def _work_off(self, waiting: deque[int], workers: Workers) -> None:
        total, busy = len(waiting) + len(self._answers), 0
        ready: list[Outcome] = []
        try:
            while waiting or busy:
                while waiting and workers.free:
                    number = waiting.popleft()
                    workers.give(number, self._tasks[number].solving.time_limit_s)
                    busy += 1
                while ready:  # kept while the workers are at the next ones
                    self._keep(ready[-1])
                    ready.pop()
                for outcome in workers.outcomes():
                    busy -= 1
                    if self._is_tried_again(outcome):
                        waiting.append(outcome.number)
                    else:
                        ready.append(outcome)
                    done, text = len(self._answers) + len(ready), str(self._tasks[outcome.number])
                    self._report(Step(text=f"plans: {text}", done=done, total=total))
        finally:
            for outcome in ready:
                self._keep(outcome)

    def _is_tried_again(self, outcome: Outcome) -> bool:
        """Count a lost worker; return whether the task gets another try."""
        number, reason = outcome.number, outcome.reason
        tried = self._attempts[number] = self._attempts.get(number, 0) + 1
        if outcome.answer is not None:
            if not outcome.answer.lost:
                return False
            reason = outcome.answer.error
        again = tried < MOST_ATTEMPTS
        coming = f"tried again ({tried + 1} of {MOST_ATTEMPTS})" if again else f"given up after {tried} times"
        self.notes.append(f"task {number + 1} ({self._tasks[number]}): {reason}; {coming}")
        return again

    def _keep(self, outcome: Outcome) -> None:
        """Keep an answer for good; a task without one has failed."""
        failed = TaskAnswer(error=outcome.reason, failure=BackendFailedError.__name__)
        found = replace(outcome.answer or failed, attempts=self._attempts[outcome.number])
        key = self._tasks[outcome.number].key
        self._store.keep(self._command, key, dump(found, ANSWER))
        self._answers[key] = found

    def _networks(self, tasks: Iterable[SweepTask]) -> dict[str, Network]:
        """Return the models that are planned over clusters: each is opened once, before workers start."""
        found: dict[str, Network] = {}
        for task in tasks:
            key = _model_key(task)
            if key is not None and key not in found:
                self._report(Step(text=f"opening {task.base.asked.problem}"))
                try:
                    found[key] = network_named(task.base.asked)
                except GaplessError:
                    continue  # the task will say so
        return found


def _result(work: Work, tasks: Sequence[SweepTask], sweep: Sweep, options: SweepOptions) -> SweepResult:
    """Return everything that is known, and keep the plans as files where that is asked."""
    prices, rows = dict(sweep.prices or {}), []
    for number, task in enumerate(tasks, start=1):
        found = work.answer(task)
        if found is not None:
            rows.append(row_of(number, task, found, prices, plan_file(task, found, options)))
    return SweepResult(
        sweep=sweep,
        rows=tuple(rows),
        total=len(tasks),
        resumed=work.resumed,
        notes=tuple(work.notes),
        interrupted=work.interrupted,
    )


def _model_key(task: SweepTask) -> str | None:
    """Return what names the model of a task over a cluster; None: it opens none."""
    asked = task.base.asked
    if asked.workload is not None or asked.problem is None or asked.platform is None:
        return None
    return f"{asked.problem} {asked.shape}"


def _workers(
    tasks: Sequence[SweepTask], networks: Mapping[str, Network], options: SweepOptions, most: int
) -> Workers:
    def network(task: SweepTask) -> Network | None:
        return networks.get(_model_key(task) or "")

    if options.address is not None:
        from .over_ray import RayWorkers

        return RayWorkers(
            tasks, network, options.address, options.jobs, allow_no_token=options.allow_no_token
        )
    threads = max(task.solving.threads for task in tasks)
    jobs = options.jobs or max(1, len(os.sched_getaffinity(0)) // threads)
    return LocalWorkers(lambda number: answer(tasks[number], network(tasks[number])), min(jobs, most))
