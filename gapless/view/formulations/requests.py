"""What is shown alike of several requests, as a workload and as schedules: networks, slowdown, chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import ClassVar

from ...answers.blocks import Block, Cell, Column, Section, Table, Tone, Unit, grid, matrix, table
from ...answers.traces import block_name, titled_chart
from ...answers.words import counted, listed, millis, percent, share
from ...formulations.chain import Chain
from ...formulations.deployment import FROM_ARRIVAL, Deployment
from ...formulations.history import History, Interval
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.requests import asked_of
from ...formulations.scores import Score
from ...formulations.simulate import simulate
from ..presenter import Presenter

MOST_REQUESTS = 40
"""Requests that a table shows."""


class RequestPresenter(Presenter):
    """Requests of several networks, served once or over and over."""

    short_plans: ClassVar[bool] = False
    busy_span: ClassVar[str] = "of each unit until all requests are done"
    ordered: ClassVar[str]
    """What the order of a plan is about."""

    def shape(self, problem: Problem, plan: Plan) -> object:
        """Return a plan with what a request is in place of its name: equal requests are interchangeable."""
        requests = {request.name: replace(request, name="-") for request in asked_of(problem).requests}
        chunks = {name: tuple((c.start, c.stop, c.unit) for c in plan.of(name)) for name in requests}
        return [(requests[name], chunks[name]) for name in plan.order]

    def plan_text(self, plan: Plan) -> str:
        """Return the requests in the order of their chunks; one after the other count as one.

        Long orders are cut short.
        """
        names = [name for name, _ in groupby(plan.order)]
        shown = " ".join(names[:MOST_REQUESTS])
        hidden = len(names) > MOST_REQUESTS
        return f"{shown} ... ({counted(len(plan.order), self.ordered)})" if hidden else shown

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the requests and units of a plan, and the plan at work."""
        trace = simulate(problem, plan)
        yield requests_table(problem, trace)
        yield self.units_table(problem, plan, judged)
        yield titled_chart(trace, f"simulation of {counted(len(trace.streams), 'request')}")

    @abstractmethod
    def units_table(self, problem: Problem, plan: Plan, judged: Score) -> Table:
        """Return how busy the units are."""

    def trace_parts(self, problem: Problem, trace: History) -> Iterable[Block]:
        """Return the requests."""
        return [requests_table(problem, trace)]

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

    def trace_rows(self, problem: Problem, trace: History) -> Iterator[tuple[str, str]]:
        """Yield the makespan, the longest latency, and what slowdown takes where there is any."""
        yield "makespan", millis(trace.makespan_us)
        yield f"longest {FROM_ARRIVAL}", millis(max(trace.latency_us))
        if problem.interference is not None:
            yield "time lost to slowdown", millis(sum(event.slowdown_ns for event in trace.events) // 1000)


def network_parts(problem: Problem, chains: Sequence[Chain], chain_of: Sequence[int]) -> Iterator[Block]:
    """Yield the networks with their times, and what units cost each other.

    `chain_of`: by request its network, as an index of the chains.
    """
    yield _networks(problem, chains, chain_of)
    if problem.interference is not None:
        yield Section("slowdown of a unit (row) by another one (column):", (_slowdown(problem),))


def requests_table(problem: Problem, trace: History) -> Table:
    """Return one line a request, in the order of their first chunks: what runs where, and when.

    There is no column about releases, deadlines or slowdown where no request has one.
    """
    assert trace.plan is not None
    plan, asked = trace.plan, asked_of(problem)
    index = {name: number for number, name in enumerate(trace.names)}
    own = {name: [e for e in trace.events if e.stream == place] for name, place in index.items()}

    def end_us(name: str) -> int:
        return max(event.end_ns for event in own[name]) // 1000

    def due_us(name: str) -> int | None:
        deadline_us = asked.requests[index[name]].deadline_us
        return None if deadline_us is None else asked.entered_us[index[name]] + deadline_us

    def late(name: str) -> Cell:
        late_us = max(0, end_us(name) - (due_us(name) or 0)) if due_us(name) is not None else 0
        return Cell(late_us or None, Tone.BAD if late_us else Tone.PLAIN)

    columns: list[Column[str]] = [
        Column("", Unit.TEXT, lambda name: block_name(trace, index[name])),
        Column("request", Unit.NAME, lambda name: name),
        Column("layers by unit", Unit.NAME, lambda name: chunks_words(problem, plan.of(name))),
    ]
    if any(asked.entered_us):
        columns.append(Column("release", Unit.MICROSECONDS, lambda name: asked.entered_us[index[name]]))
    columns += [
        Column("start", Unit.MICROSECONDS, lambda name: min(e.start_ns for e in own[name]) // 1000),
        Column("end", Unit.MICROSECONDS, end_us),
    ]
    if any(request.deadline_us is not None for request in asked.requests):
        columns += [Column("due", Unit.MICROSECONDS, due_us), Column("late by", Unit.MICROSECONDS, late)]
    if problem.tables.losses.contended:
        columns.append(Column("slowdown", Unit.COUNT, lambda name: lost_words(own[name])))
    return table("Requests", columns, dict.fromkeys(plan.order), most=MOST_REQUESTS)


def lost_words(events: Sequence[Interval]) -> str:
    """Return what slowdown adds to the work of what ran."""
    lost = sum(event.slowdown_ns for event in events)
    return share(lost, sum(event.end_ns - event.start_ns for event in events) - lost)


def chunks_words(problem: Problem, chunks: Sequence[Chunk]) -> str:
    """Return the units and layers of the chunks of a request."""
    layers = {network.name: len(network.layers) for network in problem.networks}
    return " | ".join(_chunk_words(chunk, layers[chunk.network]) for chunk in chunks)


def _chunk_words(chunk: Chunk, layers: int) -> str:
    whole = (chunk.start, chunk.stop) == (0, layers)
    return f"{chunk.unit} whole" if whole else f"{chunk.unit} {chunk.start}-{chunk.stop - 1}"


def _networks(problem: Problem, chains: Sequence[Chain], chain_of: Sequence[int]) -> Table:
    """Return one line per network: requests, layers, time on each unit, contention."""
    units = problem.platform.unit_names
    rows = []
    for index, chain in enumerate(chains):
        times = (
            chain.busy_us(0, chain.layer_count, unit)
            if chain.runs(0, chain.layer_count, unit)
            else f"{chain.blocked[unit][-1]} layers no"
            for unit in range(len(units))
        )
        counts = (chain_of.count(index), chain.layer_count)
        rows.append((chain.network, *counts, *times, *_contention(problem, chain.network)))
    heads = [("network", Unit.NAME), ("requests", Unit.COUNT), ("layers", Unit.COUNT)]
    heads += [(unit, Unit.MICROSECONDS) for unit in units]
    return grid("Networks", [*heads, ("intensity", Unit.TEXT), ("sensitivity", Unit.TEXT)], rows)


def _contention(problem: Problem, network: str) -> tuple[str, str]:
    """Return intensity and sensitivity of a network."""
    if problem.interference is None:
        return "-", "-"
    known = problem.interference.of(network)
    if known.slices:
        intensities = [own.intensity_permille for own in known.slices]
        high = " in part high" if problem.interference.is_high_intensity(max(intensities)) else ""
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
    rows = zip(units, problem.interference.slowdown_permille, strict=True)
    cells = ((unit, *(percent(value) if value else None for value in row)) for unit, row in rows)
    return matrix("Slowdown", "", units, cells)
