"""Exact against heuristic: what each backend answered to the same problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...answers.charts import Axis, Bar, Bars, Part, Plane, Tone, Track
from ...answers.courses import Course, courses_chart
from ...answers.words import amount, seconds, start_words, stop_words
from ...formulations.terms import TermInfo
from ...solvers.protocol import Guarantee, SolveStatus, StopReason
from ...solvers.sources import Source, StartMode
from .standing import best_bound
from .subject import SolverAnswer, Subject
from .table import Table, TableCell, TableColumn, columns, numbers, table
from .texts import clipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the backends answered: in words, as ranges between bound and plan, as a table, and over time."""

    words: str
    ranges: Bars | None
    ends: tuple[str, str]
    table: Table
    courses: Plane | None
    pace: Table  # how fast plans got good


_STATUS = {
    SolveStatus.OPTIMAL: ("proved best", "good"),
    SolveStatus.FEASIBLE: ("found, not proved", "warn"),
    SolveStatus.INFEASIBLE: ("proved: none valid", "bad"),
    SolveStatus.NO_SOLUTION: ("nothing found", "bad"),
}


def answers(subject: Subject) -> Answers | None:
    """Return what the backends answered to the problem of a subject; None: none was asked."""
    found = subject.answers
    if not found:
        return None
    term = subject.problem.formulation.terms[subject.problem.objective.terms[0]]
    values = [value for a in found for value in (a.objective, a.bound) if value is not None]
    low, high = min(values, default=0), max(values, default=0)
    return Answers(
        words=_words(found, term, best_bound(subject), subject.problem.plan_class),
        ranges=_ranges(found, term, low, high) if high > low else None,
        ends=(amount(term.dimension, low), amount(term.dimension, high)),
        table=_table(found, term),
        courses=courses_chart(
            [Course(name=a.label, milestones=a.course) for a in found],
            term,
            max((a.runtime_s for a in found if a.course), default=0.0),
        ),
        pace=_pace_table(found),
    )


def _words(
    found: tuple[SolverAnswer, ...], term: TermInfo, bound: tuple[int, str] | None, plan_class: str
) -> str:
    """Return who is best, and by how much heuristics miss what exact backends have found."""
    known = [a for a in found if a.objective is not None]
    if not known:
        none = [a.label for a in found if a.status == SolveStatus.INFEASIBLE]
        proof = f" Proved by {', '.join(none)}: none is valid among {plan_class}." if none else ""
        return f"No backend has found a plan.{proof}"
    best = min(a.objective for a in known if a.objective is not None)
    first = [a.label for a in known if a.objective == best]
    words = [f"Least {term.label}: {amount(term.dimension, best)} ({', '.join(first)})"]
    proved = [a.label for a in known if a.status == SolveStatus.OPTIMAL]
    if proved:
        words.append(f"proved by {', '.join(proved)} among {plan_class}")
    elif bound is not None and bound[0] < best:
        least = f"{amount(term.dimension, bound[0])} ({bound[1]})"
        words.append(f"not proved; no valid one has less than {least} among {plan_class}")
    else:
        words.append("not proved")
    missed = [a for a in known if a.guarantee != Guarantee.EXACT and (a.objective or 0) > best > 0]
    words += [f"{a.label} misses it by {100 * ((a.objective or 0) / best - 1):.2f} %" for a in missed]
    return f"{'; '.join(words)}."


def _ranges(found: tuple[SolverAnswer, ...], term: TermInfo, low: int, high: int) -> Bars:
    """Return the plan and the bound of each backend on the axis of the objective."""
    bars = []
    for one in found:
        known = {"plan": one.objective, "bound": one.bound}
        parts = [f"{what} {amount(term.dimension, v)}" for what, v in known.items() if v is not None]
        still: tuple[Part, ...] = ()
        if one.objective is not None and one.bound is not None:
            still = (Part(start=one.bound, length=one.objective - one.bound, colour=Tone.OPEN),)
        said = ", ".join(parts) or "no plan, no bound"
        track = Track(parts=still, plan=one.objective, bound=one.bound, note=said)
        bars += [] if one.failure else [Bar(name=one.label, note=one.guarantee, tracks=(track,))]
    return Bars(
        title="Plan and bound of each backend; the table below has the numbers",
        across=Axis(name=term.label, low=low, high=high),
        rows=tuple(bars),
    )


def _table(found: tuple[SolverAnswer, ...], term: TermInfo) -> Table:
    titles = columns(
        "backend",
        "guarantee",
        "status",
        *numbers(term.label, "bound", "gap", "to best bound", "time"),
        TableColumn(title="its best plan, or why there is none"),
    )
    best = min((a.objective for a in found if a.objective is not None), default=None)
    strong = [i for i, a in enumerate(found) if a.objective is not None and a.objective == best]
    if len(strong) == len(found):
        strong = []
    return table("What each backend answered", titles, (_row(a, term) for a in found), strong=strong)


def _row(answer: SolverAnswer, term: TermInfo) -> list[TableCell | str]:
    name = TableCell(text=answer.label, kind="name", note=answer.version)
    if answer.failure:
        failed = TableCell(text="gave no answer", kind="bad")
        return [
            name,
            answer.guarantee or "-",
            failed,
            *["-"] * 5,
            TableCell(text=answer.failure, kind="text"),
        ]
    status, kind = _STATUS[SolveStatus(answer.status)]
    stop = StopReason(answer.stop) if answer.stop else StopReason.COMPLETE
    stopped = "" if stop is StopReason.COMPLETE else stop_words(stop)
    return [
        name,
        TableCell(text=answer.guarantee or "-", note=answer.searches),
        TableCell(text=status, kind=kind, note=stopped),
        TableCell(text=amount(term.dimension, answer.objective), note=_handed(answer.plan_source)),
        TableCell(text=amount(term.dimension, answer.bound), note=_handed(answer.bound_source)),
        *(
            "-" if value is None else f"{100 * value:.2f} %"
            for value in (answer.gap, answer.gap_to_best_bound)
        ),
        TableCell(text=seconds(answer.runtime_s), note=_times(answer)),
        TableCell(text=clipped(answer.plan or "-"), kind="code"),
    ]


def _handed(source: Source | None) -> str:
    """Return that a plan or a bound was handed over before the search, if it was."""
    return "given" if source is Source.START else ""


def _times(answer: SolverAnswer) -> str:
    """Return what the time of a search contains, and what it does not."""
    begun = (
        f"start: {start_words(answer.start, answer.start_s)}; " if answer.start is StartMode.NATIVE else ""
    )
    return f"{begun}loading {seconds(answer.startup_s)}"


def _pace_table(found: tuple[SolverAnswer, ...]) -> Table:
    titles = columns("backend", *numbers("first plan", "within 1 % of the best", "primal integral"))
    rows: Iterator[list[TableCell | str]] = (
        [
            TableCell(text=answer.label, kind="name"),
            *(
                "-" if value is None else seconds(value)
                for value in (
                    answer.pace.first_plan_s,
                    answer.pace.near_best_s,
                    answer.pace.primal_integral_s,
                )
            ),
        ]
        for answer in found
        if not answer.failure
    )
    return table("How fast plans got good", titles, rows)
