"""What backends answered to one problem: proofs, plans, gaps, and how fast they came to good plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase

from ..api.comparison import BackendFailure, Comparison
from ..files.comparison_file import WrittenComparison, WrittenResult, searches_of
from ..formulations.errors import BackendUnavailableError, UnsupportedFeatureError
from ..formulations.problem import Problem
from ..formulations.terms import TermInfo
from ..solvers.course import NEAR, Pace, credited, primal_gap
from ..solvers.protocol import SolveStatus, StopReason
from ..solvers.registry import support_of
from ..solvers.result import Answer, Milestone, SolveResult, figures
from ..solvers.sources import Source, StartMode
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Tone, Unit, table
from .charts import DRAWN, Axis, Bar, Bars, Kind, Line, Mark, Part, Plane, Series, Stroke, Track
from .charts import Tone as Colour
from .words import SOURCES, amount, seconds, start_words

WIDTH = 24
"""Characters of a line of plans over time."""

_LEVELS = ((0.0, "▁"), (NEAR, "▂"), (0.03, "▃"), (0.1, "▄"), (0.3, "▅"), (1.0, "▇"))
"""Most primal gap of each character; nothing stands where there is no plan."""

GIVEN = "·"
"""Stands where there is only a plan that the backend was given."""

_SHORTEST_S = 1e-4
"""Where lines begin at the earliest: their scale is logarithmic, and has no 0."""

_STATUS: dict[str, tuple[str, Tone, str]] = {
    SolveStatus.OPTIMAL: ("OPTIMAL", Tone.GOOD, "proved best"),
    SolveStatus.FEASIBLE: ("FEASIBLE", Tone.WARN, "found, not proved"),
    SolveStatus.INFEASIBLE: ("INFEASIBLE", Tone.BAD, "proved: none valid"),
    SolveStatus.NO_SOLUTION: ("NO ANSWER", Tone.BAD, "nothing found"),
}
"""The name of a status, what to think of it, and what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverAnswer(Answer):
    """What tables show of the answer of one backend, or why it gave none."""

    version: str = ""
    guarantee: str = ""  # what its answers are: "exact", "heuristic", ... (`solvers.protocol.Guarantee`)
    searches: str = ""  # the plans that it looks at, in words, where these are not all of the class
    objective: int | None = None  # of the first term; None: not known
    values: tuple[int, ...] = ()  # of all terms of the objective; empty: not known
    plans: int = 0  # how many it gave
    plan: str = ""  # its best plan in words; empty without one
    gap: float | None = None  # how far the objective may be from the optimum, by its own bound
    gap_to_best_bound: float | None = None  # the same, by the best bound of all answers
    pace: Pace = Pace()  # how fast it came to a good plan, by the best plan of all answers
    failure: str = ""  # why it gave no answer; empty if it did


def answers_of(comparison: Comparison) -> tuple[SolverAnswer, ...]:
    """Return the answers of a comparison, one for each backend; failures last."""
    problem = comparison.problem
    failed = ((failure.backend, str(failure.error), failure.start) for failure in comparison.failures)
    return (
        *(
            replace(
                answer_of(result, problem),
                values=result.values or (),
                gap_to_best_bound=comparison.gap_to_best_bound(result),
                pace=comparison.pace(result),
            )
            for result in comparison.results
        ),
        *(no_answer(backend, reason, problem, start) for backend, reason, start in failed),
    )


def written_answers(written: WrittenComparison, problem: Problem | None = None) -> tuple[SolverAnswer, ...]:
    """Return the answers of a comparison file; `problem`: what it is about, None: not known."""
    found = (
        replace(answer_of(one, problem), pace=one.pace, gap_to_best_bound=one.gap_to_best_bound)
        for one in written.results
    )
    return (*found, *(no_answer(one.backend, one.message, problem, one.start) for one in written.failures))


def answer_of(result: SolveResult | WrittenResult, problem: Problem | None) -> SolverAnswer:
    """Return the answer of one backend, as it was given or as a comparison file has it."""
    support = None if problem is None else support_of(result.backend, problem)
    return SolverAnswer(
        **figures(result),
        version=result.version,
        guarantee=support.guarantee if support else "",
        searches=(result.searches or "") if problem is None else searches_of(result, problem),
        objective=result.objective,
        gap=result.gap,
        plan="" if result.plan is None else str(result.plan),
        plans=len(result.candidates),
    )


def no_answer(
    backend: str, reason: str, problem: Problem | None, start: StartMode | None = None
) -> SolverAnswer:
    """Return that a backend gave no answer, and why."""
    support = None if problem is None else support_of(backend, problem)
    return SolverAnswer(
        backend=backend,
        start=start,
        guarantee=support.guarantee if support else "",
        searches=support.searches if support else "",
        failure=reason,
    )


def comparison_blocks(comparison: Comparison) -> Iterator[Block]:
    """Yield what `gapless compare` answers, without the best plan in detail."""
    found = [answer for answer in answers_of(comparison) if not answer.failure]
    wrong = (Sentence(f"  {text}", Tone.BAD, "DISAGREEMENT") for text in comparison.disagreements)
    notes = (*map(_failure, comparison.failures), *wrong)
    yield from answers_blocks(comparison.problem, found, notes, comparison.horizon_s)


def answers_blocks(
    problem: Problem, found: Sequence[SolverAnswer], notes: Sequence[Block] = (), horizon_s: float = 0.0
) -> Iterator[Block]:
    """Yield what backends answered: plans and bounds, who has a proof of what, and plans over time.

    `notes`: what stands below the table; `horizon_s`: as of `paces`.
    """
    terms = [problem.formulation.terms[term] for term in problem.objective.terms]
    yield from _ranges(found, terms[0])
    yield backends(found, terms)
    yield from notes
    yield _verdict(problem, found)
    classes = _classes(found).items()
    yield from (Sentence(f"class {letter}: {words}.", shown=Shown.BRIEF) for words, letter in classes)
    if any(one.course for one in found) and any(one.objective is not None for one in found):
        courses = [(one.label, one.course) for one in found]
        end_s = max(one.runtime_s for one in found if one.course)
        chart = courses_chart(courses, terms[0], end_s)
        words = (
            "Plans are judged before they are drawn; bounds below half of the best one lie at the lower edge."
        )
        drawn = (chart, Sentence(words, Tone.SOFT, shown=Shown.PAGE)) if chart else ()
        yield Section("", (*drawn[:1], paces(found, horizon_s), *drawn[1:]))


def _ranges(found: Sequence[SolverAnswer], term: TermInfo) -> Iterator[Block]:
    """Yield the plan and the bound of each backend on the axis of the objective, where they are apart."""
    values = [value for one in found for value in (one.objective, one.bound) if value is not None]
    low, high = min(values, default=0), max(values, default=0)
    if low == high:
        return
    bars = []
    for one in (one for one in found if not one.failure):
        known = {"plan": one.objective, "bound": one.bound}
        parts = [f"{what} {amount(term.dimension, v)}" for what, v in known.items() if v is not None]
        still: tuple[Part, ...] = ()
        if one.objective is not None and one.bound is not None:
            still = (Part(start=one.bound, length=one.objective - one.bound, colour=Colour.OPEN),)
        said = ", ".join(parts) or "no plan, no bound"
        track = Track(parts=still, plan=one.objective, bound=one.bound, note=said)
        bars.append(Bar(name=one.label, note=one.guarantee, tracks=(track,)))
    across = Axis(name=term.label, low=low, high=high)
    yield Bars(title="Plan and bound of each backend", across=across, rows=tuple(bars))
    yield Sentence(
        f"From {amount(term.dimension, low)} to {amount(term.dimension, high)}. A dot is a plan, a bar a "
        "bound: no plan of the class lies to its left. What lies between is open.",
        Tone.SOFT,
        shown=Shown.PAGE,
    )


def written_blocks(written: WrittenComparison) -> tuple[Block, ...]:
    """Return what backends answered, from the file of a comparison; of which terms it does not say."""
    found = [replace(one, version="") for one in written_answers(written)]
    objective = TermInfo("objective", "value of the first term")
    return (
        Sentence("", Tone.STRONG, f"backends on the problem {written.problem.fingerprint}"),
        backends(found, [objective]),
        *(paces(found) for one in found[:1] if one.pace != Pace()),
    )


def backends(found: Sequence[SolverAnswer], terms: Sequence[TermInfo]) -> Table:
    """Return what each backend answered, by the terms of the objective."""
    best = min((one.objective for one in found if one.objective is not None), default=None)
    every = all(one.objective == best for one in found)

    def tone(one: SolverAnswer) -> Tone:
        strong = one.objective is not None and one.objective == best and not every
        return Tone.STRONG if strong else Tone.PLAIN

    columns = [*_who(found), *_how_good(found, terms, best), *_when(found)]
    return table("What each backend answered", columns, found, tone=tone)


def _who(found: Sequence[SolverAnswer]) -> Iterator[Column[SolverAnswer]]:
    """Yield who answered, and at which plans it looked."""
    letters = _classes(found)
    yield Column("backend", Unit.NAME, lambda one: Cell(one.label, note=one.version))
    yield Column(
        "guarantee", Unit.TEXT, lambda one: Cell(one.guarantee or None, note=one.searches), Shown.DETAILED
    )
    if letters:
        yield Column("class", Unit.TEXT, lambda one: letters.get(one.searches, "all"), Shown.BRIEF)
    yield Column("status", Unit.TEXT, _status)


def _how_good(
    found: Sequence[SolverAnswer], terms: Sequence[TermInfo], best: int | None
) -> Iterator[Column[SolverAnswer]]:
    """Yield plans and bounds, and how far they are from each other."""
    first = terms[0]

    def above(one: SolverAnswer) -> float | None:
        if one.objective is None or best is None:
            return None
        more = one.objective - best
        return more / best if best else None if more else 0.0

    yield from (_value(info, place) for place, info in enumerate(terms))
    yield Column("bound", Unit(first.dimension), lambda one: one.bound, Shown.DETAILED)
    yield Column("above", Unit.SHARE, above, note=f"how much more {first.label} than the best plan here")
    own = "how far the plan may be from the optimum, by the bound that the row has itself"
    yield Column("gap", Unit.SHARE, lambda one: one.gap, digits=2, note=own)
    to_best = _bound_words(found, first)
    yield Column("to best", Unit.SHARE, lambda one: one.gap_to_best_bound, digits=2, note=to_best)
    if any(one.start is not None for one in found):
        who = "who found the plan: the backend itself, or native algorithms before it began (the start)"
        yield Column("plan by", Unit.TEXT, lambda one: _source(one.plan_source), note=who)
        yield Column(
            "bound by", Unit.TEXT, lambda one: _source(one.bound_source), note="the same of the bound"
        )


def _when(found: Sequence[SolverAnswer]) -> Iterator[Column[SolverAnswer]]:
    """Yield how long each took, why it ended, and its best plan or why it has none."""
    if any(one.start is not None for one in found):
        taken = "what that took of the time; (cold): without"
        yield Column("start", Unit.TEXT, lambda one: start_words(one.start, one.start_s), note=taken)
    yield Column(
        "loading",
        Unit.SECONDS,
        lambda one: None if one.failure else one.startup_s,
        note="before the clock started",
    )
    yield Column("time", Unit.SECONDS, lambda one: None if one.failure else one.runtime_s)
    if any(one.plans > 1 for one in found):
        yield Column("plans", Unit.COUNT, lambda one: one.plans or None)
    yield Column("limit", Unit.TEXT, _limit, note="what ended it")
    yield Column("best plan", Unit.CODE, _best_plan, Shown.DETAILED)


def _source(source: Source | None) -> str | None:
    return None if source is None else SOURCES[source]


def _best_plan(one: SolverAnswer) -> Cell:
    return Cell(one.failure, unit=Unit.LONG) if one.failure else Cell(one.plan or None)


def _value(info: TermInfo, place: int) -> Column[SolverAnswer]:
    def value(one: SolverAnswer) -> int | None:
        return one.objective if not place else one.values[place] if one.values else None

    return Column(info.label, Unit(info.dimension), value, optional=place > 0)


def _status(one: SolverAnswer) -> Cell:
    return status_cell("" if one.failure else one.status)


def status_cell(status: str) -> Cell:
    """Return what is known by a status, with what it means; any other word: it failed."""
    name, tone, words = _STATUS.get(status, ("FAILED", Tone.BAD, ""))
    return Cell(name, tone, words)


def _limit(one: SolverAnswer) -> str:
    stop = StopReason(one.stop) if one.stop else StopReason.COMPLETE
    return "" if stop is StopReason.COMPLETE else stop.removesuffix("_limit")


def _classes(found: Sequence[SolverAnswer]) -> dict[str, str]:
    """Return a letter for each part of the plans that some backend looks at alone, by its words."""
    words = dict.fromkeys(one.searches for one in found if one.searches)
    return dict(zip(words, ascii_lowercase, strict=False))


def _bound_words(found: Sequence[SolverAnswer], term: TermInfo) -> str:
    """Return what the gaps are gaps to."""
    bounds = [one.bound for one in found if one.bound is not None]
    least = min((one.objective for one in found if one.objective is not None), default=None)
    bound = max(bounds, default=None)
    if bound is None or (least is not None and bound > least):
        return "the same by the best bound, where one is proved"
    equal = [one for one in found if one.bound == bound]
    own = [one for one in equal if one.bound_source is not Source.START]
    provers = ", ".join(one.label for one in own) or f"the start of {equal[0].label}"
    return f"the same by the best bound here, {amount(term.dimension, bound)}, which {provers} proved"


def _failure(failure: BackendFailure) -> Sentence:
    left_out = isinstance(failure.error, BackendUnavailableError | UnsupportedFeatureError)
    word, tone = ("left out", Tone.WARN) if left_out else ("FAILED", Tone.BAD)
    return Sentence(str(failure.error), tone, f"{failure.label} {word}: ")


def _verdict(problem: Problem, found: Sequence[SolverAnswer]) -> Sentence:
    """Return who has a proof of what, and among which plans proofs and bounds hold."""
    proven = [one for one in found if one.status in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)]
    if not proven:
        has = "a proof" if any(one.objective is not None for one in found) else "a plan or a proof"
        about = f" Bounds are of {problem.plan_class}." if any(one.bound is not None for one in found) else ""
        return Sentence(f"No backend has {has}.{about}", Tone.WARN)
    names = ", ".join(one.label for one in proven)
    none = proven[0].status == SolveStatus.INFEASIBLE
    what = "that none is valid" if none else "the optimum" if len(proven) == 1 else "the same optimum"
    if len(proven) == 1:
        return Sentence(f"Proved by {names}: {what} among {problem.plan_class}.")
    text = f"{len(proven)} backends prove {what} among {problem.plan_class}: {names}."
    return Sentence(text, Tone.GOOD)


def paces(found: Sequence[SolverAnswer], horizon_s: float = 0.0) -> Table:
    """Return how the plans of each backend got better, until the horizon or when the last one was done."""
    answered = [one for one in found if not one.failure]
    end_s = horizon_s or max((one.runtime_s for one in answered), default=0.0)
    start_s, last_s = _span(answered, end_s)
    best = min((one.objective for one in answered if one.objective is not None), default=None)

    def line(one: SolverAnswer) -> str | None:
        return None if best is None else "".join(_line(one.course, best, start_s, last_s))

    integral = f"area under the distance to the best plan here, until {seconds(end_s)} (Berthold 2013)"
    given = f"{GIVEN}: only what it was given, nothing: no plan"
    levels = "▁ the best, ▂ within 1 %, ▃ 3 %, ▄ 10 %, ▅ 30 %, ▇ worse"
    over = f"from {seconds(start_s)} to {seconds(last_s)}, logarithmic: {levels}, {given}"
    columns: list[Column[SolverAnswer]] = [
        Column("backend", Unit.NAME, lambda one: one.label),
        Column(
            "first plan",
            Unit.SECONDS,
            lambda one: one.pace.first_plan_s,
            note="from when the backend was loaded; plans that it was given count once it has proved them",
        ),
        Column("within 1 %", Unit.SECONDS, lambda one: one.pace.near_best_s, note="of the best"),
        Column("primal integral", Unit.SECONDS, lambda one: one.pace.primal_integral_s, note=integral),
        Column("plans over time", Unit.TEXT, line, Shown.TERMINAL, note=over),
    ]
    return table("How fast plans got good", columns, answered)


def _span(found: Sequence[SolverAnswer], end_s: float) -> tuple[float, float]:
    """Return from when to when a logarithmic line of courses goes, in seconds."""
    times = [one.at_s for answer in found for one in answer.course if one.value is not None]
    start_s = max(_SHORTEST_S, min(times, default=_SHORTEST_S))
    return start_s, max(end_s, *times, 2 * start_s)


def _line(course: Sequence[Milestone], best: int, start_s: float, end_s: float) -> Iterator[str]:
    """Yield a character for what there was at the end of each part of the time."""
    for place in range(1, WIDTH + 1):
        # A hair later: the last one ends where the last plan came.
        at_s = start_s * math.exp(math.log(end_s / start_s) * place / WIDTH) * 1.000001
        had = [one for one in course if one.at_s <= at_s and one.value is not None]
        value = credited(had[-1]) if had else None
        apart = None if value is None else primal_gap(value, best)
        if apart is None:
            yield GIVEN if had else " "
        else:
            yield next(sign for most, sign in _LEVELS if apart <= most)


_LOWEST = 0.5
"""Bounds below this share of the best plan lie at the lower edge: what is above it can be told apart."""

MOST_MARKS = 60
"""Of one backend; lines are drawn whole."""

_STROKES = (
    (Stroke.SOLID, "best plan"),
    (Stroke.DASHED, "bound, its own"),
    (Stroke.DOTTED, "bound that it was given"),
    (Stroke.MIXED, "plan that it was given"),
)

Course = tuple[str, Sequence[Milestone]]
"""A backend, and what it had when."""


def courses_chart(courses: Sequence[Course], term: TermInfo, end_s: float) -> Plane | None:
    """Return plans and bounds over time until at least `end_s`; None: nobody has a plan."""
    drawn = [(name, course) for name, course in courses if course]
    divisor, unit = DRAWN[term.dimension]
    steps = [one for _, course in drawn for one in course]
    plans = [one.value / divisor for one in steps if one.value is not None]
    if not plans:
        return None
    bounds = [max(_LOWEST * min(plans), one.bound / divisor) for one in steps if one.bound is not None]
    times = [max(one.at_s, _SHORTEST_S) for one in steps]
    end_s = max(end_s, 1.1 * min(times), *times)
    return Plane(
        kind=Kind.LINES,
        title="Plans and bounds over time",
        noun="step",
        across=Axis.around("time of the search", [*times, end_s], unit="s", logarithmic=True),
        upwards=Axis.around(term.label, [*plans, *bounds], unit=unit),
        series=tuple(
            Series(
                name=name,
                lines=tuple(_lines(course, divisor, end_s)),
                marks=tuple(_marks(name, course, term)),
            )
            for name, course in drawn
        ),
        strokes=_STROKES,
    )


def _lines(course: Sequence[Milestone], divisor: int, end_s: float) -> Iterator[Line]:
    """Yield the stairs of a course that are not empty."""
    wanted: tuple[tuple[str, Stroke, Callable[[Milestone], float | None]], ...] = (
        ("", Stroke.SOLID, credited),
        ("given plan", Stroke.MIXED, lambda one: one.value if credited(one) is None else None),
        ("bound own", Stroke.DASHED, lambda one: one.bound if one.bound_source is Source.OWN else None),
        ("bound start", Stroke.DOTTED, lambda one: one.bound if one.bound_source is Source.START else None),
    )
    for name, stroke, value_of in wanted:
        points = [(max(one.at_s, _SHORTEST_S), value_of(one)) for one in course]
        points.append((end_s, points[-1][1]))
        if any(value is not None for _, value in points):
            scaled = tuple((at_s, None if value is None else value / divisor) for at_s, value in points)
            yield Line(points=scaled, stroke=stroke, name=name, stairs=True)


def _marks(name: str, course: Sequence[Milestone], term: TermInfo) -> list[Mark]:
    """Return better plans and better bounds as marks, some of many."""
    found: list[Mark] = []
    before, divisor = Milestone(at_s=0.0), DRAWN[term.dimension][0]
    for one in course:
        for value, old, source, what in (
            (one.value, before.value, one.plan_source, "plan"),
            (one.bound, before.bound, one.bound_source, "bound"),
        ):
            if value is None or value == old:
                continue
            facts = (
                ("backend", name),
                (what, amount(term.dimension, value)),
                ("after", seconds(one.at_s)),
                ("source", "given" if source is Source.START else "its own"),
            )
            at_s = max(one.at_s, _SHORTEST_S)
            found.append(Mark(x=at_s, y=value / divisor, facts=facts, hollow=what == "bound"))
        before = one
    return found[:: -(-len(found) // MOST_MARKS) or 1]
