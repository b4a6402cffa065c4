"""Scenarios and behaviours of units for people: who asks for what and when, and how units are at work."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import millis, percent, span_seconds
from ...formulations.coordination.behaviour import Behaviour, UnitBehaviour
from ...formulations.coordination.scenario import Application, Arrivals, Scenario
from ..layout import indented, plain_table


def scenario_view(scenario: Scenario) -> RenderableType:
    """Return what `gapless show` says of a scenario."""
    title = Text(scenario.name, style="bold")
    title.append(f", requests come for {span_seconds(scenario.duration_us)}", style="not bold")
    parts: list[RenderableType] = [title]
    if scenario.applications:
        table = plain_table("application", "network", "asks", "deadline", "weight", numbers=("weight",))
        for each in scenario.applications:
            cells = (each.name, each.network, _arrivals(each.arrivals), _deadline(each), str(each.weight))
            table.add_row(*cells)
        parts += ["", indented(table)]
    for workflow in scenario.workflows:
        table = plain_table(workflow.name, "network", "mean", "after", numbers=("mean",))
        for step in workflow.steps:
            mean = f"{step.mean:g}" + (" exactly" if step.exact else "")
            table.add_row(step.name, step.network, mean, step.after or "the frame's arrival")
        words = "one frame after the other" if workflow.arrivals is None else _arrivals(workflow.arrivals)
        if workflow.crowded_permille < 1000:
            words += f"; the {percent(workflow.crowded_permille)} with most requests"
        parts += ["", Text(words), indented(table)]
    parts += [Text(f"{span_seconds(e.at_us)}: {e.unit} is {e.change}") for e in scenario.events]
    return Group(*parts, *([Text(scenario.source, style="dim")] if scenario.source else ()))


def behaviour_view(behaviour: Behaviour) -> RenderableType:
    """Return what `gapless show` says of how the units of a platform are at work."""
    table = plain_table("unit", "in company", "busy, idle", "cold", "sometimes", "too hot")
    for unit in behaviour.units:
        table.add_row(unit.unit, *_cells(unit))
    base = "" if behaviour.base_mw is None else f"; the rest of the device takes {_watt(behaviour.base_mw)}"
    title = Text(f"Units of {behaviour.platform} at work{base}", style="bold")
    return Group(title, "", indented(table), Text(behaviour.source, style="dim"))


def _arrivals(arrivals: Arrivals) -> str:
    if arrivals.period_us is not None:
        return f"every {millis(arrivals.period_us)}"
    if arrivals.rate_per_s is not None:
        return f"{arrivals.rate_per_s:g} a second (Poisson)"
    return f"{len(arrivals.at_us or ())} times"


def _deadline(application: Application) -> str:
    if application.deadline_us is not None:
        return millis(application.deadline_us)
    if application.deadline_permille is not None:
        return f"{application.deadline_permille / 1000:g} x the 99 % alone"
    return "-"


def _cells(unit: UnitBehaviour) -> Iterator[str]:
    shared = ", ".join(f"x {each / 1000:g}" for each in unit.sharing_permille)
    yield shared or "in turns"
    powers = (unit.busy_mw, unit.idle_mw)
    yield ", ".join("-" if each is None else _watt(each) for each in powers)
    cold = f"x {unit.cold_permille / 1000:g} after {span_seconds(unit.cold_after_us)}"
    yield cold if unit.cold_permille > 1000 else "-"
    share = percent(unit.tail_share_permille)
    yield f"x {unit.tail_permille / 1000:g} in {share}" if unit.tail_share_permille else "-"
    yield "-" if unit.heat is None else f"at {unit.heat.limit_c:g} C, back at {unit.heat.back_c:g} C"


def _watt(power_mw: int) -> str:
    return f"{power_mw / 1000:g} W"
