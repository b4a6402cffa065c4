"""Plans for workloads, for people: requests, units, who runs when."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...formulations.flow_shop.tables import shop_of, workload_in
from ...formulations.history import History
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ...formulations.simulate import simulate_workload
from ..words import millis, percent, size
from .gantt import block_name, gantt_view
from .layout import indented, plain_table

MAX_REQUESTS_SHOWN = 40


def order_words(plan: Plan) -> str:
    """Return the requests in the order of a plan; long orders are cut short."""
    shown = " ".join(plan.order[:MAX_REQUESTS_SHOWN])
    return shown if len(plan.order) <= MAX_REQUESTS_SHOWN else f"{shown} ... ({len(plan.order)} requests)"


def workload_plan_view(problem: Problem, plan: Plan, score: Score) -> list[RenderableType]:
    """Return the requests and units of a plan, and the plan at work."""
    trace = simulate_workload(problem, plan)
    return [
        indented(_requests(problem, trace)),
        "",
        indented(_units(problem, score)),
        "",
        Text.assemble(
            (f"simulation of {len(plan.order)} requests", "bold"),
            ": each block is one request on one unit, dots are idle time",
        ),
        gantt_view(trace),
    ]


def workload_trace_view(problem: Problem, trace: History) -> Group:
    """Return what `gapless simulate` shows for a workload."""
    slowed = sum(event.slowdown_ns for event in trace.events) // 1000
    table = plain_table("what", "value", numbers=("value",))
    table.add_row("makespan", millis(trace.makespan_us))
    table.add_row("longest latency", millis(max(trace.latency_us)))
    table.add_row("time lost to slowdown", millis(slowed))
    for unit in trace.units:
        bubble = trace.bubble_us(unit)
        table.add_row(f"bubbles of {unit}", "not used" if bubble is None else millis(bubble))
    return Group(gantt_view(trace), "", indented(_requests(problem, trace)), "", indented(table))


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


def workload_view(problem: Problem) -> list[RenderableType]:
    """Return the requests, networks and interference of a problem, for `gapless show`."""
    workload = workload_in(problem)
    assert workload is not None
    words = [f"{len(workload.requests)} requests in {workload.order} order", str(workload.mode)]
    words += [str(workload.execution), f"weights {workload.load_policy}"]
    if workload.task_slots is not None:
        words.append(f"at most {workload.task_slots} on their way")
    parts: list[RenderableType] = [Text("; ".join(words)), "", indented(_networks(problem))]
    if problem.interference is not None:
        parts += ["", Text("slowdown of a unit (row) by another one (column):"), indented(_slowdown(problem))]
    return parts


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
