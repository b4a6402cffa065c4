"""Reports: what the files do not say is solved and explained, with progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...answers.blocks import Block, Sentence
from ...answers.files import differences
from ...answers.words import size
from ...api.asked import problem_of
from ...api.comparison import Comparison
from ...api.planning import default_backends
from ...files.pareto_file import PARETO, front_of, load_front
from ...files.plans import named_plan, problem_of_plan, question_of, remembered_problem
from ...files.rules_file import add_rules
from ...files.runs import RunDifferences, is_run, run_differences
from ...formulations.files import Origin, format_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...question.question import Question
from ...solvers.protocol import SolveOptions
from ...solvers.result import SolveResult
from ...solvers.sources import StartMode
from ...view.page.results import write_page
from ...view.page.sources import Known, sort_files
from ...view.page.subject import Subject
from ...view.page.subjects import EXPLAIN_S, subject, write_report
from ..base.progress import StepLine
from .solving import compare_watched, plan_watched

NO_BACKENDS = "none"

MOST_OF_A_FRONT = 2
"""Files that a page of trade-offs is made of: their problem and themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What the user wants to see.

    `objective`, `rules`: what the plans were made for, where the files do not say it.
    """

    title: str  # of the page; empty: made from the problem
    number: int | None
    """Which plan of a list, or of those that were tuned, from 1; None: the best, or what won."""
    objective: str | None
    rules: Path | None
    requests: int | None  # of the predicted trace, or None
    backends: tuple[str, ...]  # names, or "none"; empty: the usual ones
    solving: SolveOptions
    explain: bool  # whether to say why
    command: str  # how the page was made

    def problem(self, origin: Origin) -> Problem:
        """Return the problem that a file names, with the objective and the rules of the user."""
        found = remembered_problem(origin) if self.rules is None else problem_of(question_of(origin))
        if self.objective is not None:
            found = found.with_objective(self.objective)
        return found if self.rules is None else add_rules(found, self.rules)


class NoPlanError(Exception):
    """There is nothing to report: a problem that was given without a plan has none, as the answer says."""

    def __init__(self, problem: Problem, result: SolveResult) -> None:
        super().__init__(f"no plan: {result.status}")
        self.problem, self.result = problem, result


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    """A page that was written."""

    path: str  # the file
    size_bytes: int
    subjects: tuple[tuple[str, str], ...]  # title and deployment of each subject
    runs: tuple[RunDifferences, ...] = ()  # of several runs, how each differs from the first


def report_watched(given: Sequence[str], asked: ReportOptions, out: Path) -> tuple[WrittenReport, list[str]]:
    """Write the report of some files and folders; return what was written, and notes."""
    found, notes = sort_files(given, asked.problem, asked.number)
    compared: dict[str, Comparison] = {}
    subjects = []
    for known in found:
        key = known.problem.fingerprint
        told = known.answers or (known.compared and not asked.backends)
        if not told and asked.backends != (NO_BACKENDS,) and key not in compared:
            compared[key] = _compared(known.problem, asked)
        subjects.append(_subject(known, compared.get(key), asked))
    folders = [Path(name) for name in given if is_run(Path(name))]
    runs = tuple(run_differences(folders[0], other) for other in folders[1:])
    write_report(out, subjects, title=asked.title, command=asked.command, runs=runs)
    return (
        WrittenReport(
            path=str(out),
            size_bytes=out.stat().st_size,
            subjects=tuple((one.title, str(one.deployment)) for one in subjects),
            runs=runs,
        ),
        notes,
    )


def is_front(given: Sequence[str]) -> bool:
    """Return whether a file of trade-offs is given, alone or behind its problem."""
    path = Path(given[-1])
    return len(given) <= MOST_OF_A_FRONT and path.is_file() and format_of(path) == PARETO.format


def front_reported(
    given: Sequence[str], out: Path, *, title: str, command: str
) -> tuple[WrittenReport, list[str]]:
    """Write the page of a file of trade-offs; return what was written, and notes.

    Raises InvalidInputError: a file is not valid, or the trade-offs are of another problem.
    """
    named = named_plan(given[-1])
    problem, notes = problem_of_plan(named, Question(problem=None if len(given) == 1 else given[0]))
    document, _ = load_front(given[-1])
    front = front_of(document, problem, given[-1])
    write_page(front, out, problem=problem, title=title, command=command)
    subjects = tuple((str(rank), str(one.candidate.plan)) for rank, one in enumerate(front.points, start=1))
    return WrittenReport(path=str(out), size_bytes=out.stat().st_size, subjects=subjects), list(notes)


def _compared(problem: Problem, asked: ReportOptions) -> Comparison:
    names = asked.backends or default_backends(problem).names
    comparison, _ = compare_watched(problem, names, asked.solving)
    return comparison


def _subject(known: Known, compared: Comparison | None, asked: ReportOptions) -> Subject:
    deployment = known.plan or known.deployment or _best(known, compared, asked)
    with StepLine() as line:
        return subject(
            known.problem,
            deployment,
            title=known.title,
            requests=asked.requests,
            measured=known.measured,
            measurement=known.measurement,
            tuning=known.tuning,
            answers=known.answers or compared or (),
            explained=EXPLAIN_S if asked.explain else None,
            sources=known.sources,
            report=line.report,
        )


def _best(known: Known, compared: Comparison | None, asked: ReportOptions) -> Plan:
    """Return the best plan of a problem that was given without one."""
    best = None if compared is None else compared.best
    if best is None:
        best = plan_watched(known.problem, None, replace(asked.solving, start=StartMode.NATIVE))
    if best.plan is None:
        raise NoPlanError(known.problem, best)
    return best.plan


def written_blocks(written: WrittenReport) -> Iterator[Block]:
    """Yield where the page is and what it shows."""
    words = f" ({size(written.size_bytes)}): open it in a browser; it needs no network"
    yield Sentence(words, lead=written.path)
    yield from (Sentence(f"  {title}: {deployment}") for title, deployment in written.subjects)
    yield from map(differences, written.runs)
