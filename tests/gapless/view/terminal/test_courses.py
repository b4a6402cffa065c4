"""How fast backends came to good plans, in the terminal."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

import gapless
from gapless.answers.blocks import Section, Table
from gapless.answers.comparing import WIDTH, comparison_blocks
from gapless.api.comparison import Comparison
from gapless.solvers.result import Milestone, SolveResult
from gapless.view.terminal.blocks import blocks_view


def paces(comparison: Comparison) -> list[Table]:
    """Return the tables of how fast plans got good: none or one."""
    sections = (block for block in comparison_blocks(comparison) if isinstance(block, Section))
    return [block for section in sections for block in section.blocks if isinstance(block, Table)]


def told(comparison: Comparison) -> list[str]:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(blocks_view(paces(comparison)))
    return captured.get().splitlines()


def compared(*courses: tuple[tuple[float, int | None], ...]) -> Comparison:
    problem = gapless.table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")
    best = gapless.plan(problem)
    results: list[SolveResult] = [
        replace(best, course=tuple(Milestone(at_s=at_s, value=value) for at_s, value in course))
        for course in courses
    ]
    return Comparison(
        problem=problem, results=tuple(results), failures=(), disagreements=(), time_limit_s=10.0
    )


def test_a_line_falls_as_plans_get_better() -> None:
    lines = told(compared(((0.001, 4000), (0.1, 2100), (1.0, 2000)), ((10.0, 2010),)))
    first, second = (line.split("  ")[-1] for line in lines[1:3])
    assert first == "▇" * 11 + "▄" * 6 + "▁" * 7  # 12 of 24 characters for two of four decades
    assert second.strip() == "▂"
    assert len(first) == WIDTH
    assert "1.0 ms" in lines[1]
    assert "1.00 s" in lines[1]
    assert "10.00 s" in lines[2]
    # The first: 1 ms of nothing, 99 ms at half of the best, then 900 ms at 1 - 20/21.
    assert "93.4 ms" in lines[1]


def test_without_courses_nothing_is_told() -> None:
    assert not paces(compared(()))
