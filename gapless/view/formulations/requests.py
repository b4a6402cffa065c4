"""What is shown alike of several requests, as a workload and as schedules: networks, slowdown, chunks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...formulations.chain import Chain
from ...formulations.plan import Chunk
from ...formulations.problem import Problem
from ..layout import indented, plain_table
from ..words import millis, percent

MOST_REQUESTS = 40
"""Requests that a table shows."""


def network_parts(problem: Problem, chains: Sequence[Chain], chain_of: Sequence[int]) -> list[RenderableType]:
    """Return the networks with their times, and what units cost each other.

    `chain_of`: by request its network, as an index of the chains.
    """
    parts: list[RenderableType] = [indented(_networks(problem, chains, chain_of))]
    if problem.interference is not None:
        head = Text("slowdown of a unit (row) by another one (column):")
        parts += ["", head, indented(_slowdown(problem))]
    return parts


def add_hidden(table: Table, count: int) -> None:
    """Add a line about the requests that a table has no room for."""
    if count > MOST_REQUESTS:
        table.add_row("", f"... and {count - MOST_REQUESTS} more (--json shows all)")


def chunk_words(chunk: Chunk, layers: int) -> str:
    """Return the unit and layers of a chunk; `layers`: how many its network has."""
    whole = (chunk.start, chunk.stop) == (0, layers)
    return f"{chunk.unit} whole" if whole else f"{chunk.unit} {chunk.start}-{chunk.stop - 1}"


def _networks(problem: Problem, chains: Sequence[Chain], chain_of: Sequence[int]) -> Table:
    """Return one line per network: requests, layers, time on each unit, contention."""
    units = problem.platform.unit_names
    table = plain_table(
        "network",
        "requests",
        "layers",
        *units,
        "intensity",
        "sensitivity",
        numbers=("requests", "layers", *units),
    )
    for index, chain in enumerate(chains):
        times = [
            millis(chain.busy_us(0, chain.layer_count, unit))
            if chain.runs(0, chain.layer_count, unit)
            else f"{chain.blocked[unit][-1]} layers no"
            for unit in range(len(units))
        ]
        table.add_row(
            Text(chain.network, style="bold"),
            str(chain_of.count(index)),
            str(chain.layer_count),
            *times,
            *_contention(problem, chain.network),
        )
    return table


def _contention(problem: Problem, network: str) -> tuple[str, str]:
    """Return intensity and sensitivity of a network."""
    if problem.interference is None:
        return "-", "-"
    known = problem.interference.of(network)
    high = " high" if problem.interference.is_high(network) else ""
    return percent(known.intensity_permille) + high, percent(known.sensitivity_permille)


def _slowdown(problem: Problem) -> Table:
    assert problem.interference is not None
    units = problem.interference.units
    table = plain_table("", *units, numbers=units)
    for unit, row in zip(units, problem.interference.slowdown_permille, strict=True):
        table.add_row(unit, *(percent(value) if value else "-" for value in row))
    return table
