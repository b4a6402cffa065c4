"""How plans of one network are shown: chunks, and a stream of requests that passes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from ...answers.blocks import Block, Cell, Column, Section, Table, Tone, Unit, matrix, table, with_unused
from ...answers.layers import layer_map
from ...answers.traces import titled_chart, traced_chart
from ...answers.words import listed, millis, share
from ...formulations.chunking.tables import chain_of
from ...formulations.costs import CostRows, CostTable
from ...formulations.deployment import UNQUEUED, Deployment
from ...formulations.history import History
from ...formulations.judge import score
from ...formulations.parts import widened
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ...formulations.simulate import simulate
from ..presenter import Presenter

_BAR_CELLS = 24
_PLAYED = 20
"""Requests that are simulated for `show`."""

_MOST_UNITS = 12
_MOST_SETS = 20


class ChunkingPresenter(Presenter):
    """One network as an endless stream."""

    busy_span: ClassVar[str] = "of each unit in one period"

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most."""
        return ("period", "gapness", "latency", "bubbles")

    def legend(self, problem: Problem) -> str:
        """Return what they mean."""
        return (
            "period: time between two outputs = busy time of the busiest unit; gapness: busiest minus "
            "least busy unit in use; unqueued latency: one request from entry to exit without waiting; "
            "bubbles: idle time of the units in use"
        )

    def distance_words(self) -> str:
        """Return that layers are counted."""
        return "layers on other units than in plan 1"

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return the times; with co-run costs those of plans on all units, and how the others differ."""
        if problem.by_set:
            return _set_parts(problem, layers=layers, plan=plan)
        tables = (problem.costs, *(problem.co_run_costs or ()))
        shown = layer_map(problem.network, tables[-1], layers=layers, plan=plan)
        if problem.co_run_costs is None:
            return [shown]
        method = problem.costs.provenance.method or "co-run"
        head = (
            f"{method} costs depend on how many units a plan uses; these are the times of plans on all units:"
        )
        note = "All layers together, compared with plans on one unit (in brackets: layer by layer):"
        return [Section(head, (shown,)), Section(note, (_ratios(problem, tables),))]

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the chunks with their share of the period."""
        return [_chunks(problem, plan, judged)]

    def best_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the chunks, and the plan at work."""
        trace = simulate(problem, plan, requests=min(10, len(plan.chunks) + 3))
        return [*self.plan_parts(problem, plan, judged), titled_chart(trace, self.trace_title(trace))]

    def file_parts(self, problem: Problem, plan: Plan, *, layers: range | None) -> Iterable[Block]:
        """Return the plan at work, and where its chunks lie in the layer times."""
        charged = problem.charged(plan).costs
        played = simulate(problem, plan, requests=_PLAYED)
        return [traced_chart(played), layer_map(problem.network, charged, layers=layers, plan=plan)]

    def trace_rows(self, problem: Problem, trace: History) -> Iterator[tuple[str, str]]:
        """Yield the period, and the latency at both ends."""
        latencies = trace.latency_us
        yield "makespan", millis(trace.makespan_us)
        yield "time between the last two outputs", millis(trace.period_us)
        yield "latency of the first request", millis(latencies[0])
        yield "latency of the last request", millis(latencies[-1])

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which unit sets the period, and how busy the others are."""
        judged = score(problem, plan)
        busy = self._loads(problem, judged)
        period = judged.period_us
        busiest = [unit for unit, time in busy.items() if time == period]
        if problem.objective.first == "latency":
            return _ways(busy, judged.latency_us)
        shares = [share(time, period) for time in sorted(busy.values()) if time < period]
        if len(busy) == 1:
            return f"Everything runs on {busiest[0]}, one request every {millis(period)}."
        verb = "set" if len(busiest) > 1 else "sets"
        words = f"{listed(busiest)} {verb} the pace with {millis(period)}"
        if not shares:
            return f"{words}: all units in use are equally busy."
        if len(shares) == 1:
            other = next(unit for unit, time in busy.items() if time < period)
            return f"{words}; {other} is busy for {shares[0]} of that."
        return f"{words}; the other {len(shares)} units in use are busy for {_range(shares)} of that."

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return the network and its chunks, or how many replicas there are."""
        streams = deployment.streams
        if len(streams) > 1:
            return f"{len(streams)} replicas of {listed(deployment.networks)}"
        count = len(streams[0].chunks)
        return f"{streams[0].network} in {count} chunk{'s' if count > 1 else ''}"

    def pace_verb(self, problem: Problem, deployment: Deployment, pace: str) -> str:
        """Return that results come, or how long one takes."""
        if pace == "latency":
            return f"has an {UNQUEUED} of"
        return "give a result every" if len(deployment.streams) > 1 else "gives a result every"

    def _loads(self, problem: Problem, judged: Score) -> dict[str, int]:
        """Return the busy time of each unit in use."""
        pairs = zip(problem.platform.unit_names, judged.busy_us, strict=True)
        return {unit: busy for unit, busy in pairs if busy is not None}

    def latency(self, judged: Score) -> tuple[int | None, str]:
        """Return that of a request that does not wait."""
        return judged.latency_us, UNQUEUED

    def glossary(self, problem: Problem) -> tuple[tuple[str, str], ...]:
        """Return nothing: the glossary has it all."""
        return ()


def _chunks(problem: Problem, plan: Plan, judged: Score) -> Table:
    names, charged = problem.network.layer_names, problem.charged(plan)
    chain, codes = chain_of(charged), charged.formulation.code(charged, plan)
    busy_us = {chunk: chain.busy_us(*code) for chunk, code in zip(plan.chunks, codes, strict=True)}
    period = judged.period_us

    def layers(chunk: Chunk) -> str:
        ends = dict.fromkeys((names[chunk.start], names[chunk.stop - 1]))
        return f"{chunk.start}-{chunk.stop - 1} ({' to '.join(ends)})"

    def bar(chunk: Chunk) -> Cell:
        full = max(1, busy_us[chunk] * _BAR_CELLS // period)
        return Cell(f"{'#' * full:-<{_BAR_CELLS}}", Tone.GOOD if busy_us[chunk] == period else Tone.PLAIN)

    columns: list[Column[Chunk]] = [
        Column("unit", Unit.NAME, lambda chunk: chunk.unit),
        Column("layers", Unit.NAME, layers),
        Column("busy time", Unit.MICROSECONDS, lambda chunk: busy_us[chunk]),
        Column("share of the period", Unit.TEXT, bar),
        Column("", Unit.COUNT, lambda chunk: share(busy_us[chunk], period)),
    ]
    unused = [u for u, us in zip(problem.platform.unit_names, judged.busy_us, strict=True) if us is None]
    return with_unused(table("Chunks", columns, plan.chunks, most=len(plan.chunks)), unused)


def _set_parts(problem: Problem, *, layers: range | None, plan: Plan | None) -> Iterable[Block]:
    """Return the times of units that are alone, and how they differ beside each other one."""
    method = problem.costs.provenance.method or "co-run"
    head = f"{method} costs depend on which units a plan uses; these are the times of plans on one unit:"
    note = "All layers together beside others, compared with one unit alone (in brackets: layer by layer):"
    shown = layer_map(problem.network, problem.costs, layers=layers, plan=plan)
    return [Section(head, (shown,)), Section(note, (_set_ratios(problem),))]


def _set_ratios(problem: Problem) -> Table:
    """Return how many times as long layers take on each unit in each company, the small ones first."""
    names = problem.platform.unit_names[:_MOST_UNITS]
    alone = problem.costs.of(problem.network.name).layer_us
    rows = []
    for one in (problem.co_run_costs or ())[:_MOST_SETS]:
        beside = widened(one, problem.costs).of(problem.network.name).layer_us
        rows.append((", ".join(one.units), *(_ratio(alone, beside, unit) for unit in range(len(names)))))
    return matrix("Sets of units", "units in use", names, rows)


def _ratios(problem: Problem, tables: Sequence[CostTable]) -> Table:
    """Return how many times as long layers take on each unit when 2, 3, ... units are in use."""
    rows = [table.of(problem.network.name).layer_us for table in tables][:_MOST_UNITS]
    counts = [f"{used} units" for used in range(2, len(rows) + 1)]
    lines = (
        (name, *(_ratio(rows[0], beside, unit) for beside in rows[1:]))
        for unit, name in enumerate(problem.platform.unit_names[:_MOST_UNITS])
    )
    return matrix("Units", "unit", counts, lines)


def _ratio(alone: CostRows, beside: CostRows, unit: int) -> str:
    pairs = [(a[unit], b[unit]) for a, b in zip(alone, beside, strict=True)]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return "-"
    whole = sum(b for _, b in known) / sum(a for a, _ in known)
    each = [b / a for a, b in known]
    return f"x{whole:.2f} ({min(each):.2f} to {max(each):.2f})"


def _ways(busy: Mapping[str, int], latency_us: int) -> str:
    """Return where a request spends its time, the longest visit first."""
    if len(busy) == 1:
        return f"A request takes {millis(latency_us)}, all of it on {listed(list(busy))}."
    longest = sorted(busy, key=lambda unit: -busy[unit])
    parts = [f"{share(busy[unit], latency_us)} on {unit}" for unit in longest]
    return f"Of the {millis(latency_us)} that a request takes, it spends {listed(parts)}."


def _range(shares: Sequence[str]) -> str:
    low, high = shares[0], shares[-1]
    return low if low == high else f"{low} to {high}"


PRESENTER = ChunkingPresenter()
