"""Coordination for people: one line for each policy, and what each application got of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.coordination import (
    bound_cells,
    bound_class,
    bound_columns,
    bound_title,
    condition_words,
    deadline_words,
    decision_words,
    energy_words,
    legend,
    percentiles,
    rate,
    share_words,
)
from ...answers.words import counted, microseconds, percent, span_seconds
from ...api.coordination import Coordination
from ...api.coordination_bound import CoordinationBound
from ...formulations.coordination.record import Record, percentile
from ...formulations.coordination.simulation import Conditions
from ...solvers.coordination.policies import SHIPPED, policy_names
from ..layout import indented, plain_table

_MOST_AWAY = 20


def coordination_view(found: Coordination) -> RenderableType:
    """Return what `gapless requests coordinate` shows."""
    scenario, platform = found.scenario, found.setting.platform
    title = Text(scenario.name, style="bold")
    served = found.records[0]
    words = (
        f" on {platform.name}, {counted(len(platform.units), 'unit')}: "
        f"{counted(len(served.requests), 'request')} in {span_seconds(scenario.duration_us)}; simulated"
    )
    title.append(words, style="not bold")
    parts: list[RenderableType] = [
        title,
        *_conditions(found.conditions),
        "",
        indented(policies(found.records)),
    ]
    if len(served.applications) > 1:
        parts += ["", indented(_applications(found.records))]
    return Group(*parts, *_away(found.records), "", Text(legend(found.records), style="dim"))


def here_view(measured: Coordination, simulated: Coordination) -> RenderableType:
    """Return what `gapless requests coordinate --here` shows: each policy as measured and as simulated."""
    scenario, platform = measured.scenario, measured.setting.platform
    title = Text(scenario.name, style="bold")
    words = (
        f" on the units {', '.join(platform.unit_names)} of this machine: "
        f"{counted(len(measured.records[0].requests), 'request')} in {span_seconds(scenario.duration_us)}"
    )
    title.append(words, style="not bold")
    numbers = ("in time", "median", "90 %", "99 %", "busy", "decision")
    table = plain_table("policy", "", *numbers, numbers=numbers)
    for pair in zip(measured.records, simulated.records, strict=True):
        for record, how in zip(pair, ("measured", "simulated"), strict=True):
            busy = percent(round(1000 * sum(record.utilisation) / len(record.units)))
            share = share_words(record.share_in_time())
            times = (microseconds(value) for value in percentiles(record))
            name = record.policy if how == "measured" else ""
            table.add_row(name, how, share, *times, busy, decision_words(record)[0])
        errors = (
            "-" if not was or said is None else f"{100 * (said / was - 1):+.0f} %"
            for was, said in zip(*map(percentiles, pair), strict=True)
        )
        table.add_row("", "error", "", *errors, "", "")
    words = "simulated: by the times of each network alone before; error: of the simulation; " + legend(
        measured.records
    )
    return Group(title, "", indented(table), "", Text(words, style="dim"))


def bound_view(found: CoordinationBound) -> RenderableType:
    """Return how far each policy is from the best that is known, and from what is proven."""
    table = plain_table("who", *bound_columns(found), numbers=bound_columns(found))
    for cells in bound_cells(found):
        table.add_row(*cells)
    about = Text(bound_class(found), style="dim")
    return Group(Text(bound_title(found), style="bold"), "", indented(table), about)


def deadlines_view(runs: Sequence[Coordination]) -> RenderableType:
    """Return what `requests coordinate --multipliers` shows: the share in time by deadline and policy."""
    first = runs[0]
    title = Text(first.scenario.name, style="bold")
    title.append(f" on {first.setting.platform.name}: share of requests in time; simulated", style="not bold")
    names = [record.policy for record in first.records]
    table = plain_table("deadline", *names, numbers=names)
    for found in runs:
        table.add_row(
            deadline_words(found), *(share_words(record.share_in_time()) for record in found.records)
        )
    words = "deadline: so many times the 99th percentile of a network alone on its fastest unit"
    return Group(title, *_conditions(first.conditions), "", indented(table), "", Text(words, style="dim"))


def overview() -> RenderableType:
    """Return which scenarios and policies there are."""
    from ...profiler.coordination.catalog import scenario_names, shipped_scenario

    scenarios = plain_table("scenario", "asks for", "what")
    for name in scenario_names():
        scenario = shipped_scenario(name)
        scenarios.add_row(name, ", ".join(scenario.networks), scenario.source)
    policies = plain_table("policy", "what it does")
    for name in policy_names():
        policies.add_row(name, SHIPPED[name].text if name in SHIPPED else "of another package")
    return Group(indented(scenarios), "", indented(policies))


def policies(records: Sequence[Record]) -> Table:
    """Return a line for each policy: rates, shares in time, latencies, use of the units, decisions."""
    frames = any(record.frames for record in records)
    timed = any(record.share_in_time() is not None for record in records)
    drops = any(record.dropped() for record in records)
    energy = any(record.energy_mj is not None for record in records)
    numbers = [
        *(["frames/s"] if frames else ["requests/s"]),
        *(["in time"] if timed else []),
        *(["dropped"] if drops else []),
        "median",
        "90 %",
        "99 %",
        "busy",
        *(["energy"] if energy else []),
        "decision",
        "decisions/s",
    ]
    table = plain_table("policy", *numbers, numbers=numbers)
    for record in records:
        cells = [f"{rate(record):,.2f}"]
        cells += [share_words(record.share_in_time())] if timed else []
        cells += [f"{record.dropped():,}"] if drops else []
        cells += [microseconds(value) for value in percentiles(record)]
        cells += [percent(round(1000 * sum(record.utilisation) / len(record.units)))]
        cells += [energy_words(record)] if energy else []
        table.add_row(record.policy, *cells, *decision_words(record))
    return table


def _conditions(how: Conditions) -> Iterator[Text]:
    if words := condition_words(how):
        yield Text(f"{words[0].upper()}{words[1:]}.")


def _applications(records: Sequence[Record]) -> Table:
    numbers = ("requests", "in time", "dropped", "median", "99 %")
    table = plain_table("application", "policy", *numbers, numbers=numbers)
    for index, name in enumerate(records[0].applications):
        for record in records:
            latencies = record.latencies_us(index)
            table.add_row(
                name if record is records[0] else "",
                record.policy,
                f"{len(record.of(index)):,}",
                share_words(record.share_in_time(index)),
                f"{record.dropped(index):,}",
                microseconds(percentile(latencies, 500)),
                microseconds(percentile(latencies, 990)),
            )
    return table


def _away(records: Sequence[Record]) -> Iterator[RenderableType]:
    lines = [
        f"{record.policy}: {record.units[span.unit]} was away from {span_seconds(round(span.start_us))} "
        + ("to the end" if span.end_us is None else f"to {span_seconds(round(span.end_us))}")
        + f" ({span.cause})"
        for record in records
        for span in record.away
    ]
    if lines:
        yield ""
        yield from (Text(line) for line in lines[:_MOST_AWAY])
        if len(lines) > _MOST_AWAY:
            yield Text(f"... and {len(lines) - _MOST_AWAY} more times")
