"""The page of a comparison over many problems: standings, performance profiles, every answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...answers import standings as tables
from ...answers.blocks import Block, Section, Sentence, Tone
from ...answers.courses import profile_chart
from ...answers.sweeps import class_words
from ...answers.words import counted
from ...formulations.files import save
from ...sweeps.contest import InstanceComparison
from ...sweeps.standings import profiles, standings
from .page import sections_page
from .texts import GLOSSARY

_TERMS = ("bound, gap", "exact, heuristic")
_WORDS = (
    "Performance profiles (E. D. Dolan and J. J. Moré, Mathematical Programming 91, 2002): how many of the "
    "problems a backend solves within a given multiple of what the best one of them needs. Higher is better: "
    "a line begins at the share of problems on which it is the best, and ends at the share that it solves."
)


def write_instance_report(
    found: InstanceComparison, out: str | Path, *, title: str = "", command: str = ""
) -> Path:
    """Write the page of a comparison over many problems: one self-contained file that needs no network.

    Parameters
    ----------
    found
        From `gapless.studies.compare_instances`.
    out
        Where the page goes.
    title
        Of the page; empty: that of the problems.
    command
        The command that made it; empty: not said.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        The place cannot be written.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.studies.compare_instances("pixel7a/octree", backends=["native", "exhaustive"])
    >>> path = gapless.reports.write_instance_report(found, "instances.html")  # doctest: +SKIP
    """
    save(contest_page(found, title=title, command=command), out)
    return Path(out)


def contest_page(found: InstanceComparison, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    charts = [chart for one in profiles(found) if (chart := profile_chart(one))]
    profiled: tuple[Block, ...] = (Sentence(_WORDS, Tone.SOFT), *charts) if charts else ()
    return sections_page(
        "comparison",
        title or found.title or "Comparison of backends",
        _summary(found),
        [
            Section("Standings", (tables.standings_table(found),), place="standings"),
            Section("Performance profiles", profiled, place="profiles"),
            Section("What failed", (tables.failures(found),), place="failures"),
            Section("All answers", (tables.answers(found),), place="answers"),
        ],
        wrong=found.disagreements,
        glossary=tuple(entry for entry in GLOSSARY if entry[0] in _TERMS),
        command=command,
    )


def _summary(found: InstanceComparison) -> Iterator[str]:
    yield f"{tables.head_words(found)}."
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
