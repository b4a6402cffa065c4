"""What is shown alike of several requests, as a workload and as schedules: networks, slowdown, chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...formulations.chain import Chain
from ...formulations.deployment import FROM_ARRIVAL, Deployment
from ...formulations.history import History
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.requests import asked_of
from ...formulations.scores import Score
from ..layout import indented, plain_table
from ..presenter import Presenter
from ..words import counted, listed, millis, percent

MOST_REQUESTS = 40
"""Requests that a table shows."""


class RequestPresenter(Presenter):
    """Requests of several networks, served once or over and over."""

    short_plans: ClassVar[bool] = False
    busy_span: ClassVar[str] = "of each unit until all requests are done"

    def shape(self, problem: Problem, plan: Plan) -> object:
        """Return a plan with what a request is in place of its name: equal requests are interchangeable."""
        requests = {request.name: replace(request, name="-") for request in asked_of(problem).requests}
        chunks = {name: tuple((c.start, c.stop, c.unit) for c in plan.of(name)) for name in requests}
        return [(requests[name], chunks[name]) for name in plan.order]

    def trace_title(self, trace: History) -> str:
        """Return nothing: the table of requests says it."""
        return ""

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return how many requests there are, of which networks."""
        names = [network.name for network in problem.formulation.placed(problem)]
        return f"{counted(len(asked_of(problem).requests), 'request')} ({listed(names)})"

    def latency(self, judged: Score) -> tuple[int | None, str]:
        """Return that of the slowest request."""
        return max(judged.request_latency_us), FROM_ARRIVAL


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
    if known.slices:
        intensities = [own.intensity_permille for own in known.slices]
        least = problem.interference.high_from_permille
        high = " in part high" if least is not None and max(intensities) >= least else ""
        return _range(intensities) + high, _range([own.sensitivity_permille for own in known.slices])
    high = " high" if problem.interference.is_high(network) else ""
    return percent(known.intensity_permille) + high, percent(known.sensitivity_permille)


def _range(permille: Sequence[int]) -> str:
    """Return between which numbers those of slices are."""
    low, high = min(permille), max(permille)
    return percent(low) if low == high else f"{percent(low)} to {percent(high)}"


def _slowdown(problem: Problem) -> Table:
    assert problem.interference is not None
    units = problem.interference.units
    table = plain_table("", *units, numbers=units)
    for unit, row in zip(units, problem.interference.slowdown_permille, strict=True):
        table.add_row(unit, *(percent(value) if value else "-" for value in row))
    return table
