"""Backends compared on many problems: who proves, who is best, who is fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..solvers.sources import Source
from ..sweeps.contest import InstanceAnswer, InstanceComparison
from ..sweeps.instances import InstanceSet
from ..sweeps.standings import SHIFT_S, Case, Profile, Standing, cases, profiles, standings
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Tone, Unit, table
from .charts import Axis, Kind, Line, Mark, Plane, Series
from .comparing import MOST_MARKS, status_cell
from .sweeps import MOST_FAILED, class_words, contradictions
from .words import all_terms, counted, seconds, term_name

MOST_ROWS = 600
_RATIOS = (1.0, 1.01, 1.1, 2.0, 10.0, 100.0)


_OF_PROFILES = (
    "Performance profiles (E. D. Dolan and J. J. Moré, Mathematical Programming 91, 2002): how many of the "
    "problems a backend solves within a given multiple of what the best one of them needs. Higher is better: "
    "a line begins at the share of problems on which it is the best, and ends at the share that it solves."
)


def contest_blocks(found: InstanceComparison) -> Iterator[Block]:
    """Yield what `gapless compare --instances` answers."""
    pages = Shown.PAGES
    before = f"; {found.resumed:,} answers from before" if found.resumed else ""
    yield Sentence(f": {_head_words(found)}{before}.", lead=found.title or "Comparison")
    yield from map(Sentence, filter(None, _remarks(found)))
    yield from (Sentence(note, shown=pages) for note in found.notes)
    yield contradictions(found.disagreements)
    yield Section("Standings", (standings_table(found),), place="standings")
    profiled = [_profiled(one) for one in profiles(found) if any(one.lines.values())]
    about = [Sentence(_OF_PROFILES, Tone.SOFT, shown=pages)] if profiled else []
    yield Section("Performance profiles", (*about, *profiled), place="profiles")
    yield Section("What failed", (failures(found),), place="failures")
    yield Section("All answers", (answers(found),), place="answers", shown=pages)


def _remarks(found: InstanceComparison) -> Iterator[str]:
    """Yield what is to be known about all answers."""
    yield class_words(one.row for one in found.answers)
    if found.interrupted:
        yield "The comparison was interrupted: what is shown is what was answered until then."
    ranked = [one for one in standings(found) if one.answered]
    if ranked:
        proven, best = max(ranked, key=lambda one: one.proven), max(ranked, key=lambda one: one.best)
        if proven.proven:
            yield f"Most proofs: {proven.backend}, on {counted(proven.proven, 'problem')}."
        yield f"Most often the best plan: {best.backend}, on {counted(best.best, 'problem')}."
    if any(one.row.estimated for one in found.answers):
        yield "Some costs are estimates or drawn, not measurements."


def _profiled(profile: Profile) -> Section:
    """Return a profile as a chart, where a line can be drawn, and at a few ratios."""
    chart, told = profile_chart(profile), _profile_table(profile)
    return Section(told.title, (*([chart] if chart else []), told))


def instances_blocks(given: InstanceSet) -> tuple[Block, ...]:
    """Return what a file of problems to compare on asks for."""
    named = (one if isinstance(one, str) else " ".join(one.values()) for one in given.problems)
    drawn = (", ".join(f"{name} {value}" for name, value in family.items()) for family in given.drawn)
    columns: list[Column[tuple[str, str]]] = [
        Column("what", Unit.TEXT, lambda row: row[0]),
        Column("which", Unit.NAME, lambda row: row[1]),
    ]
    rows = [*(("problem", name) for name in named), *(("drawn", words) for words in drawn)]
    title = given.title or "Problems to compare on"
    return Sentence("", lead=title), table(title, columns, rows)


def standings_table(found: InstanceComparison) -> Table:
    """Return what came of the problems, by backend."""
    return table("What came of the problems, by backend", [*_counts(), *_means()], standings(found))


def _counts() -> Iterator[Column[Standing]]:
    given = (
        "on how many problems its plan is the one that it was given (--start native) and has not proved to "
        "be best: such a plan counts as none in the columns behind and in the profiles"
    )
    yield Column("backend", Unit.NAME, lambda one: one.backend)
    yield Column("answered", Unit.COUNT, lambda one: one.answered)
    yield Column("failed", Unit.COUNT, lambda one: one.failed)
    yield Column("proved", Unit.COUNT, lambda one: one.proven)
    yield Column("given", Unit.COUNT, lambda one: one.given, note=given)
    yield Column("best", Unit.COUNT, lambda one: one.best, note="its plan is the best of all backends")
    yield Column("within 1 %", Unit.COUNT, lambda one: one.near, note="its plan is close to the best")


def _means() -> Iterator[Column[Standing]]:
    own = (
        "mean distance of its plans from bounds that it proved itself, not from those that it was given, as "
        "a share of the plan, and on how many problems it has one"
    )
    times = (
        f"shifted geometric mean (shift {SHIFT_S:g} s) of the times of the search until a plan within 1 % of "
        "the best, and to a proof; who did not get there took as long as there was"
    )
    integral = (
        "mean area under the distance to the best plan over time, as a share of the time; 100 %: never a "
        "plan (Berthold 2013)"
    )
    above = "mean distance of its plans from the best, as a share of the best"
    best = "the same from the best bound of all backends"

    def gap(one: Standing) -> Cell:
        return Cell(one.own_gap, note="" if one.own_gap is None else f"({one.own_bounds})")

    yield Column("above best", Unit.SHARE, lambda one: one.above, digits=2, note=above)
    yield Column("gap", Unit.SHARE, gap, digits=2, note=own)
    yield Column("to best bound", Unit.SHARE, lambda one: one.gap_to_best_bound, digits=2, note=best)
    yield Column("time to 1 %", Unit.SECONDS, lambda one: one.time_s, note=times)
    yield Column("time to proof", Unit.SECONDS, lambda one: one.proof_s)
    yield Column("primal integral", Unit.SHARE, lambda one: one.primal, digits=2, note=integral)


def profile_chart(profile: Profile) -> Plane | None:
    """Return a performance profile; None: nobody has solved anything."""
    if not any(profile.lines.values()):
        return None
    end = max(1.2 * profile.most, 1.05)
    return Plane(
        kind=Kind.PROFILE,
        title=profile.title,
        noun="step",
        across=Axis(name="times the best", low=1.0, high=end, logarithmic=True),
        upwards=Axis(name="problems", low=0, high=100, unit="%"),
        series=tuple(_profile(name, steps, end) for name, steps in profile.lines.items()),
    )


def _profile(name: str, steps: Sequence[tuple[float, float]], end: float) -> Series:
    """Return the stairs of a backend from none of the problems up."""
    points = [(1.0, 0.0), *((ratio, 100 * part) for ratio, part in steps)]
    marks = (
        Mark(
            x=ratio,
            y=100 * part,
            facts=(
                ("backend", name),
                ("problems", f"{100 * part:.0f} %"),
                ("at most", f"{ratio:.3g} times the best"),
            ),
        )
        for ratio, part in steps[:: -(-len(steps) // MOST_MARKS) or 1]
    )
    line = Line(points=(*points, (end, points[-1][1])), stairs=True)
    return Series(name=name, lines=(line,), marks=tuple(marks))


def _profile_table(profile: Profile) -> Table:
    """Return a profile at a few ratios."""
    Steps = tuple[str, Sequence[tuple[float, float]]]

    def share(ratio: float) -> Callable[[Steps], float]:
        return lambda line: max((part for at, part in line[1] if at <= ratio), default=0.0)

    columns: list[Column[Steps]] = [
        Column("backend", Unit.NAME, lambda line: line[0]),
        *(
            Column(f"x{ratio:g}", Unit.SHARE, share(ratio), digits=0)
            for ratio in _RATIOS
            if ratio <= max(1.0, profile.most)
        ),
        Column("worst", Unit.COUNT, lambda line: f"x{line[1][-1][0]:.3g}" if line[1] else None),
    ]
    title = f"{profile.title}: on how many problems within a multiple of the best"
    return table(title, columns, list(profile.lines.items()))


def failures(found: InstanceComparison) -> Table:
    """Return the tasks without an answer, and why."""
    columns: list[Column[InstanceAnswer]] = [
        Column("problem", Unit.NAME, lambda one: one.instance),
        Column("backend", Unit.NAME, lambda one: one.backend),
        Column("tries", Unit.COUNT, lambda one: one.row.attempts),
        Column("why", Unit.LONG, lambda one: one.row.error),
    ]
    return table("Tasks without an answer", columns, found.failed, most=MOST_FAILED)


def answers(found: InstanceComparison) -> Table:
    """Return every answer to every problem."""
    Answer = tuple[Case, InstanceAnswer]
    terms = all_terms()

    def amount(value: int | None, one: InstanceAnswer, source: Source | None) -> Cell:
        unit = Unit(terms[one.row.term].dimension) if one.row.term else Unit.COUNT
        return Cell(value, unit=unit, note="(given)" if source == Source.START else "")

    def start(taken_s: float) -> str | None:
        return f"native, {seconds(taken_s)}" if taken_s else None

    def above(case: Case, one: InstanceAnswer) -> float | None:
        ratio = case.ratio(one)
        return None if ratio is None else ratio - 1

    columns: list[Column[Answer]] = [
        Column("problem", Unit.NAME, lambda row: row[1].instance),
        Column("backend", Unit.NAME, lambda row: row[1].backend),
        Column("status", Unit.TEXT, lambda row: status_cell(row[1].row.status)),
        Column("objective", Unit.TEXT, lambda row: term_name(terms, row[1].row.term)),
        Column("value", Unit.COUNT, lambda r: amount(r[1].row.value, r[1], r[1].row.plan_source)),
        Column("above best", Unit.SHARE, lambda row: above(*row), digits=2),
        Column("bound", Unit.COUNT, lambda r: amount(r[1].row.bound, r[1], r[1].row.bound_source)),
        Column("gap", Unit.SHARE, lambda row: row[1].row.gap, digits=2),
        Column("to best bound", Unit.SHARE, lambda row: row[0].gap(row[1]), digits=2),
        Column("first plan", Unit.SECONDS, lambda row: row[0].pace(row[1]).first_plan_s),
        Column("within 1 %", Unit.SECONDS, lambda row: row[0].pace(row[1]).near_best_s),
        Column("start", Unit.COUNT, lambda row: start(row[1].row.start_s)),
        Column("time", Unit.SECONDS, lambda row: row[1].end_s),
    ]
    rows = [
        (case, case.answers[name]) for case in cases(found) for name in found.backends if name in case.answers
    ]
    return table("All answers", columns, rows, most=MOST_ROWS)


def _head_words(found: InstanceComparison) -> str:
    """Return what was compared."""
    limit = found.time_limit_s
    each = "" if limit is None else f", {limit:g} s each"
    done = "" if len(found.answers) == found.total else f"; {len(found.answers):,} of {found.total:,} answers"
    return f"{len(found.instances):,} problems, {len(found.backends)} backends{each}{done}"
