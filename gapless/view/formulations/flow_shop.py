"""How plans for a workload are shown: requests, units, who runs when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...formulations.deployment import FROM_ARRIVAL, Deployment
from ...formulations.flow_shop.tables import shop_of, workload_of
from ...formulations.history import History
from ...formulations.judge import score
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ...formulations.simulate import simulate
from ..layout import indented, plain_table
from ..presenter import Presenter, UnitTime
from ..terminal.gantt import block_name, titled_chart
from ..words import capital, listed, millis, part_of, percent, size

MAX_REQUESTS_SHOWN = 40
_MS = 1e6
"""Nanoseconds in a millisecond."""


class FlowShopPresenter(Presenter):
    """Requests of several networks, in one order."""

    plan_title: ClassVar[str] = "order"
    short_plans: ClassVar[bool] = False
    alternatives: ClassVar[int] = 32
    """Equal requests in each other's place do not count."""

    busy_span: ClassVar[str] = "of each unit until all requests are done"

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most."""
        return ("makespan", "bubbles", "peak_memory", "contention")

    def legend(self, problem: Problem) -> str:
        """Return what they mean."""
        return (
            "makespan: end of the last request; bubbles: idle time of the units between their first start "
            "and last end; contention: pairs of high-contention requests that are close in the order, "
            "weighted"
        )

    def plan_text(self, plan: Plan) -> str:
        """Return the requests in the order of a plan; long orders are cut short."""
        shown = " ".join(plan.order[:MAX_REQUESTS_SHOWN])
        hidden = len(plan.order) > MAX_REQUESTS_SHOWN
        return f"{shown} ... ({len(plan.order)} requests)" if hidden else shown

    def shape(self, problem: Problem, plan: Plan) -> object:
        """Return a plan with what a request is in place of its name: equal requests are interchangeable."""
        requests = {request.name: replace(request, name="-") for request in workload_of(problem).requests}
        return [(requests[name], [(c.start, c.stop, c.unit) for c in plan.of(name)]) for name in plan.order]

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> list[RenderableType]:
        """Return the requests, networks and interference."""
        workload = workload_of(problem)
        words = [f"{len(workload.requests)} requests in {workload.order} order", str(workload.mode)]
        words += [str(workload.execution), f"weights {workload.load_policy}"]
        if workload.task_slots is not None:
            words.append(f"at most {workload.task_slots} on their way")
        parts: list[RenderableType] = [Text("; ".join(words)), "", indented(_networks(problem))]
        if problem.interference is not None:
            head = Text("slowdown of a unit (row) by another one (column):")
            parts += ["", head, indented(_slowdown(problem))]
        return parts

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> list[RenderableType]:
        """Return the requests and units of a plan, and the plan at work."""
        trace = simulate(problem, plan)
        title = f"simulation of {len(plan.order)} requests"
        return [
            indented(_requests(problem, trace)),
            "",
            indented(_units(problem, judged)),
            "",
            *titled_chart(trace, title),
        ]

    def trace_title(self, trace: History) -> str:
        """Return nothing: the table of requests says it."""
        return ""

    def trace_parts(self, problem: Problem, trace: History) -> list[RenderableType]:
        """Return the requests."""
        return ["", indented(_requests(problem, trace))]

    def trace_rows(self, problem: Problem, trace: History) -> Iterator[tuple[str, str]]:
        """Yield the longest latency, and what slowdown takes."""
        slowed = sum(event.slowdown_ns for event in trace.events) // 1000
        yield "makespan", millis(trace.makespan_us)
        yield f"longest {FROM_ARRIVAL}", millis(max(trace.latency_us))
        yield "time lost to slowdown", millis(slowed)

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which request ends last, which unit works most, and what bubbles and slowdown take."""
        judged, trace = score(problem, plan), simulate(problem, plan)
        last = max(trace.events, key=lambda event: event.end_ns)
        makespan = judged.makespan_us
        spent = {unit: sum(e.end_ns - e.start_ns for e in trace.on(unit)) // 1000 for unit in trace.units}
        busiest = max(spent, key=lambda unit: spent[unit])
        slowed = sum(event.slowdown_ns for event in trace.events) // 1000
        words = f"{trace.names[last.stream]} ends last, at {millis(makespan)} on {last.unit}; "
        words += f"{busiest} works most, {percent(1000 * spent[busiest] // makespan)} of that time"
        lost = [f"bubbles take {millis(judged.bubbles_us)}"] if judged.bubbles_us else []
        if slowed:
            work = sum(spent.values()) - slowed
            share = part_of(slowed, work)
            lost.append(f"slowdown {'' if lost else 'takes '}{millis(slowed)} ({share} of the work)")
        return f"{words}. {capital(' and '.join(lost))} over all units." if lost else f"{words}."

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return how many requests there are, of which networks."""
        names = [network.name for network in problem.formulation.placed(problem)]
        count = len(workload_of(problem).requests)
        return f"A workload of {count} request{'s' if count > 1 else ''} ({listed(names)})"

    def pace_verb(self, problem: Problem, deployment: Deployment, pace: str) -> str:
        """Return that it ends, or that results come."""
        return "ends after" if deployment.is_batch else "gives one result of each request every"

    def latency(self, judged: Score) -> tuple[int | None, str]:
        """Return that of the slowest request."""
        return max(judged.request_latency_us), FROM_ARRIVAL

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield what is asked of the requests."""
        workload = workload_of(problem)
        slots = "" if workload.task_slots is None else f", {workload.task_slots} task slots"
        yield (
            "workload",
            f"{len(workload.requests)} requests, {workload.mode}, order {workload.order}, "
            f"execution {workload.execution}, weights {workload.load_policy}{slots}",
        )

    def glossary(self, problem: Problem) -> tuple[tuple[str, str], ...]:
        """Return nothing: the glossary has it all."""
        return ()

    def unit_times(self, problem: Problem, plan: Plan) -> tuple[UnitTime, ...]:
        """Return work, what slowdown takes, and bubbles, until all requests are done."""
        trace = simulate(problem, plan)
        found = []
        for unit in problem.platform.unit_names:
            events = trace.on(unit)
            lost_ns = sum(event.slowdown_ns for event in events)
            work_ns = sum(event.end_ns - event.start_ns for event in events) - lost_ns
            idle = (trace.bubble_us(unit) or 0) / 1000
            found.append(UnitTime(busy=work_ns / _MS, lost=lost_ns / _MS, idle=idle))
        return tuple(found)


def _requests(problem: Problem, trace: History) -> Table:
    """Return one line a request, in the order of the plan."""
    table = plain_table(
        "", "request", "layers by unit", "start", "end", "slowdown", numbers=("start", "end", "slowdown")
    )
    index = {name: request for request, name in enumerate(trace.names)}
    layer_counts = {network.name: len(network.layers) for network in problem.networks}
    assert trace.plan is not None
    for name in trace.plan.order[:MAX_REQUESTS_SHOWN]:
        own = [event for event in trace.events if event.stream == index[name]]
        chunks = trace.plan.of(name)
        lost = sum(event.slowdown_ns for event in own)
        work = sum(event.end_ns - event.start_ns for event in own) - lost
        table.add_row(
            block_name(trace, index[name]),
            Text(name, style="bold"),
            " | ".join(_chunk_words(chunk, layer_counts[chunk.network]) for chunk in chunks),
            millis(min(event.start_ns for event in own) // 1000),
            millis(max(event.end_ns for event in own) // 1000),
            percent(1000 * lost // work),
        )
    hidden = len(trace.plan.order) - MAX_REQUESTS_SHOWN
    if hidden > 0:
        table.add_row("", f"... and {hidden} more (--json shows all)")
    return table


def _chunk_words(chunk: Chunk, layers: int) -> str:
    whole = (chunk.start, chunk.stop) == (0, layers)
    return f"{chunk.unit} whole" if whole else f"{chunk.unit} {chunk.start}-{chunk.stop - 1}"


def _units(problem: Problem, score: Score) -> Table:
    numbers = ("busy", "of the makespan", "bubbles", "largest chunk")
    table = plain_table("unit", *numbers, numbers=numbers)
    whole = score.makespan_us
    rows = zip(problem.platform.unit_names, score.busy_us, score.bubble_us, score.memory_bytes, strict=True)
    for unit, busy, bubble, memory in rows:
        share = None if busy is None else 1000 * busy // whole
        table.add_row(unit, millis(busy), percent(share), millis(bubble), size(memory))
    return table


def _networks(problem: Problem) -> Table:
    """Return one line a network: requests, layers, time on each unit, contention."""
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
    shop = shop_of(problem)
    for index, chain in enumerate(shop.chains):
        times = [
            millis(chain.busy_us(0, chain.layer_count, unit))
            if chain.runs(0, chain.layer_count, unit)
            else f"{chain.blocked[unit][-1]} layers no"
            for unit in range(len(units))
        ]
        table.add_row(
            Text(chain.network, style="bold"),
            str(shop.chain_of.count(index)),
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


PRESENTER = FlowShopPresenter()
