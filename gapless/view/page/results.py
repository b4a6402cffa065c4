"""Pages of results: trade-offs, a sweep, a comparison of backends over many problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from ...answers import sweeps
from ...answers.blocks import Block, Section, Sentence, Table, Tone
from ...answers.charts import Bars
from ...answers.courses import profile_chart
from ...answers.front import front_chart, front_table, status_words
from ...answers.standings import answers, failures, head_words, standings_table
from ...answers.sweeps import class_words, growth_chart, outcomes_chart, platforms_chart, proofs_chart
from ...answers.words import capital, counted, seconds, term_name
from ...formulations.errors import InvalidInputError
from ...formulations.files import save
from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront
from ...sweeps.contest import InstanceComparison
from ...sweeps.findings import contests, disagreements, growths, records
from ...sweeps.run import SweepResult
from ...sweeps.standings import profiles, standings
from ..presenter import presenter_of
from .page import sections_page
from .texts import GLOSSARY

_MOST_CHARTS = 24

_OF_PLATFORMS = (
    "Of each platform the best plan, over all backends; numbers of devices that differ in price are "
    "platforms of their own."
)
_OF_DEVICES = (
    "The best plan with each number of devices (of a board: with that many of its units at most). Blue: what "
    "the next smaller number reaches; green: what is new."
)

_OF_SWEEPS = (
    (
        "of the best",
        "Rate of a plan over the best rate of the chart; for times, the best time over that of the plan.",
    ),
    ("for its price", "The same divided by the price, as a share of the largest."),
    ("size", "Layers x units: the cells of the table of costs."),
)
_OF_PROFILES = (
    "Performance profiles (E. D. Dolan and J. J. Moré, Mathematical Programming 91, 2002): how many of the "
    "problems a backend solves within a given multiple of what the best one of them needs. Higher is better: "
    "a line begins at the share of problems on which it is the best, and ends at the share that it solves."
)


def write_page(
    found: SweepResult | InstanceComparison | ParetoFront,
    out: str | Path,
    *,
    problem: Problem | None = None,
    title: str = "",
    command: str = "",
) -> Path:
    """Write the page of a result: one self-contained HTML file that needs no network.

    Parameters
    ----------
    found
        From `gapless.sweep`, `gapless.studies.compare_instances` or `gapless.pareto`.
    out
        Where the page goes.
    problem
        What a front is about.
    title
        Of the page; empty: that of the sweep or of the problems.
    command
        The command that made it; empty: not said.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        A front has no plans, or comes without its problem; or the place cannot be written.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.sweep(gapless.studies.Sweep(models=["octree"], platforms=["pixel7a", "oneplus11"]))
    >>> path = gapless.reports.write_page(found, "sweep.html")  # doctest: +SKIP
    """
    match found:
        case SweepResult():
            text = sweep_page(found, title=title, command=command)
        case InstanceComparison():
            text = contest_page(found, title=title, command=command)
        case ParetoFront():
            if problem is None:
                raise InvalidInputError("a front is shown with its problem: give it with problem=...")
            text = front_page(found, problem, title=title, command=command)
        case _:
            raise InvalidInputError(
                f"a {type(found).__name__} has no page: give what gapless.sweep, gapless.pareto or "
                "gapless.studies.compare_instances returns"
            )
    save(text, out)
    return Path(out)


def _terms(*names: str) -> tuple[tuple[str, str], ...]:
    """Return what some terms mean."""
    return tuple(entry for entry in GLOSSARY if entry[0] in names)


def front_page(front: ParetoFront, problem: Problem, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    if not front.points:
        raise InvalidInputError("the front has no plans: there is nothing to report")
    networks = ", ".join(network.name for network in problem.networks)
    plans = front_table(problem, front, presenter_of(problem))
    names = [term_name(problem.formulation.terms, term) for term in front.terms]
    charts = (front_chart(front, problem, pair, plans) for pair in combinations(front.terms, 2))
    return sections_page(
        "trade-offs",
        title or f"Trade-offs of {networks} on {problem.platform.name}",
        [
            f"{capital(' against '.join(names))}: {status_words(front)}.",
            f"Solved by {front.backend} in {seconds(front.runtime_s)}, {front.solves:,} problems.",
        ],
        [
            Section("Trade-offs", tuple(charts), place="pictures"),
            Section("Plans", (plans,), place="plans"),
        ],
        glossary=_terms("unit", "period", "bound, gap", "layer, cut, chunk"),
        command=command,
    )


def sweep_page(found: SweepResult, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    rows, currency = found.rows, found.sweep.currency
    proofs = proofs_chart(rows)
    about = [Sentence(proofs.words, Tone.SOFT)] if proofs is not None and proofs.words else []
    compared = [(platforms_chart(one, currency), sweeps.platforms(one, currency)) for one in contests(rows)]
    grown = [(growth_chart(one), sweeps.devices(one)) for one in growths(rows)]
    told: list[Block] = [outcomes_chart(rows), sweeps.backends(rows), sweeps.sizes(rows)]
    told += [proofs, *about] if proofs else []
    return sections_page(
        "sweep",
        title or found.sweep.title or "Sweep",
        _swept(found),
        [
            Section("Which platform to buy", tuple(_charts(_OF_PLATFORMS, compared)), place="platforms"),
            Section("What one more device brings", tuple(_charts(_OF_DEVICES, grown)), place="devices"),
            Section("Which backend proves what", tuple(told), place="backends"),
            Section("What failed", (sweeps.failures(found.failed),), place="failures"),
            Section("All plans", (sweeps.plans(rows, currency),), place="plans"),
        ],
        wrong=disagreements(rows),
        glossary=(*_terms("unit", "period", "bound, gap", "exact, heuristic"), *_OF_SWEEPS),
        command=command,
    )


def _swept(found: SweepResult) -> Iterator[str]:
    rows = found.rows
    proved = sum(record.proved for record in records(rows))
    yield f"{len(rows):,} of {found.total:,} plans, {proved:,} of them proved; {len(found.failed):,} failed."
    if words := class_words(rows):
        yield words
    if found.interrupted:
        yield "The sweep was interrupted: what is shown is what was answered until then."
    spent = sum(row.total_s for row in rows)
    yield f"Solved in {seconds(spent)} of work, {seconds(spent / max(1, len(rows)))} a plan."
    estimated = {row.platform for row in rows if row.estimated}
    if estimated:
        yield f"Costs on {', '.join(sorted(estimated))} are estimates, not measurements."
    again = sum(row.attempts > 1 for row in rows)
    if again:
        yield f"Tried again because a worker was lost: {again:,} of them."


def _charts(words: str, found: Sequence[tuple[Bars, Table]]) -> Iterator[Block]:
    """Yield charts, each with its table below one title, after a sentence; nothing where there are none."""
    if not found:
        return
    yield Sentence(words, Tone.SOFT)
    yield from (Section(pair[0].title, pair) for pair in found[:_MOST_CHARTS])
    if len(found) > _MOST_CHARTS:
        words = f"… and {len(found) - _MOST_CHARTS} more: see the table of the sweep."
        yield Sentence(words, Tone.SOFT)


def contest_page(found: InstanceComparison, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    charts = [chart for one in profiles(found) if (chart := profile_chart(one))]
    profiled: tuple[Block, ...] = (Sentence(_OF_PROFILES, Tone.SOFT), *charts) if charts else ()
    return sections_page(
        "comparison",
        title or found.title or "Comparison of backends",
        _compared(found),
        [
            Section("Standings", (standings_table(found),), place="standings"),
            Section("Performance profiles", profiled, place="profiles"),
            Section("What failed", (failures(found),), place="failures"),
            Section("All answers", (answers(found),), place="answers"),
        ],
        wrong=found.disagreements,
        glossary=_terms("bound, gap", "exact, heuristic"),
        command=command,
    )


def _compared(found: InstanceComparison) -> Iterator[str]:
    yield f"{head_words(found)}."
    if about := class_words(one.row for one in found.answers):
        yield about
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
    yield from found.notes
