"""Comparisons over many problems for people: who proves, who is best, who is fast."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.sweeps import class_words
from ...sweeps.contest import InstanceComparison
from ...sweeps.instances import InstanceSet
from ...sweeps.standings import Profile, profiles, standings
from ..contest_words import COLUMNS, MEANINGS, head_words, standing_cells
from ..layout import indented, plain_table

_RATIOS = (1.0, 1.01, 1.1, 2.0, 10.0, 100.0)
_MOST_FAILED = 10
_SPEED = COLUMNS.index("time to 1 %")
"""From here on the columns are about speed; they stand in a table of their own."""


def contest_view(found: InstanceComparison) -> RenderableType:
    """Return what `gapless compare --instances` shows."""
    plans, speed = COLUMNS[1:_SPEED], COLUMNS[_SPEED:]
    tables = [plain_table(COLUMNS[0], *names, numbers=names) for names in (plans, speed)]
    for name, *cells in map(standing_cells, standings(found)):
        tables[0].add_row(name, *cells[: len(plans)])
        tables[1].add_row(name, *cells[len(plans) :])
    head = Text(found.title or "Comparison", style="bold")
    head.append(f": {head_words(found)}", style="not bold")
    if found.resumed:
        head.append(f"; {found.resumed:,} answers from before", style="not bold")
    words = "\n".join(f"{name}: {meaning[:1].lower()}{meaning[1:]}" for name, meaning in MEANINGS)
    parts: list[RenderableType] = [head]
    for table in tables:
        parts += ["", indented(table)]
    about = class_words(one.row for one in found.answers)
    parts.append(Text(f"{words}\n{about}" if about else words, style="dim"))
    for profile in profiles(found):
        parts += ["", *_profile(profile)] if any(profile.lines.values()) else []
    parts += [Text(f"contradiction: {text}", style="bold red") for text in found.disagreements]
    return Group(*parts, *_failures(found))


def _profile(profile: Profile) -> Iterator[RenderableType]:
    """Yield a profile at a few ratios."""
    ratios = [ratio for ratio in _RATIOS if ratio == 1.0 or ratio <= profile.most]
    heads = [f"x{ratio:g}" for ratio in ratios]
    table = plain_table("backend", *heads, "worst", numbers=(*heads, "worst"))
    for backend, line in profile.lines.items():
        shares = [max((share for at, share in line if at <= ratio), default=0.0) for ratio in ratios]
        worst = f"x{line[-1][0]:.3g}" if line else "-"
        table.add_row(backend, *(f"{100 * share:.0f} %" for share in shares), worst)
    yield Text(f"{profile.title}: on how many problems within a multiple of the best", style="bold")
    yield indented(table)


def _failures(found: InstanceComparison) -> Iterator[RenderableType]:
    if not found.failed:
        return
    yield Text("\nfailed", style="bold red")
    for one in found.failed[:_MOST_FAILED]:
        yield Text(f"  {one.backend} on {one.instance}: {one.row.error}")
    if len(found.failed) > _MOST_FAILED:
        yield Text(f"  ... and {len(found.failed) - _MOST_FAILED} more: see the table")


def instance_set_view(given: InstanceSet) -> RenderableType:
    """Return what a file of problems to compare on asks for."""
    table = plain_table("what", "which")
    for problem in given.problems:
        table.add_row("problem", problem if isinstance(problem, str) else " ".join(problem.values()))
    for family in given.drawn:
        table.add_row("drawn", ", ".join(f"{name} {value}" for name, value in family.items()))
    return Group(Text(given.title or "Problems to compare on", style="bold"), indented(table))
