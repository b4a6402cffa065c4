"""Scenarios and behaviours of units: who asks for what and when, and what a server did."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..executor.coordination.tally import Fate, ModelCounts, Statistics, UnitCounts
from ..formulations.coordination.behaviour import Behaviour, UnitBehaviour
from ..formulations.coordination.scenario import Application, Arrivals, FrameStep, Scenario, Workflow
from .blocks import Block, Column, Section, Sentence, Tone, Unit, table
from .words import counted, millis, percent, span_seconds


def scenario_blocks(scenario: Scenario) -> Iterator[Block]:
    """Yield what `gapless show` answers about a scenario."""
    yield Sentence(f", requests come for {span_seconds(scenario.duration_us)}", lead=scenario.name)
    asks: list[Column[Application]] = [
        Column("application", Unit.NAME, lambda each: each.name),
        Column("network", Unit.NAME, lambda each: each.network),
        Column("asks", Unit.TEXT, lambda each: _arrivals(each.arrivals)),
        Column("deadline", Unit.TEXT, _deadline),
        Column("weight", Unit.COUNT, lambda each: str(each.weight)),
    ]
    yield table("Applications", asks, scenario.applications)
    for workflow in scenario.workflows:
        steps: list[Column[FrameStep]] = [
            Column(workflow.name, Unit.NAME, lambda step: step.name),
            Column("network", Unit.NAME, lambda step: step.network),
            Column("mean", Unit.COUNT, lambda step: f"{step.mean:g}{' exactly' if step.exact else ''}"),
            Column("after", Unit.TEXT, lambda step: step.after or "the frame's arrival"),
        ]
        yield Section(_frames(workflow), (table(workflow.name, steps, workflow.steps),))
    yield from (Sentence(f"{span_seconds(e.at_us)}: {e.unit} is {e.change}") for e in scenario.events)
    if scenario.source:
        yield Sentence(scenario.source, Tone.SOFT)


def _frames(workflow: Workflow) -> str:
    words = "one frame after the other" if workflow.arrivals is None else _arrivals(workflow.arrivals)
    crowded = workflow.crowded_permille
    return words if crowded >= 1000 else f"{words}; the {percent(crowded)} with most requests"


def behaviour_blocks(behaviour: Behaviour) -> Iterator[Block]:
    """Yield what `gapless show` answers about how the units of a platform are at work."""
    base = "" if behaviour.base_mw is None else f"; the rest of the device takes {_watt(behaviour.base_mw)}"
    yield Sentence("", lead=f"Units of {behaviour.platform} at work{base}")
    columns: list[Column[UnitBehaviour]] = [
        Column("unit", Unit.NAME, lambda unit: unit.unit),
        Column("in company", Unit.TEXT, _company),
        Column("busy, idle", Unit.TEXT, lambda unit: f"{_watt(unit.busy_mw)}, {_watt(unit.idle_mw)}"),
        Column("cold", Unit.TEXT, _cold),
        Column("sometimes", Unit.TEXT, _tail),
        Column("too hot", Unit.TEXT, _hot),
    ]
    yield table("Units", columns, behaviour.units)
    yield Sentence(behaviour.source, Tone.SOFT)


def _arrivals(arrivals: Arrivals) -> str:
    if arrivals.period_us is not None:
        return f"every {millis(arrivals.period_us)}"
    if arrivals.rate_per_s is not None:
        return f"{arrivals.rate_per_s:g} a second (Poisson)"
    return f"{len(arrivals.at_us or ())} times"


def _deadline(application: Application) -> str | None:
    if application.deadline_us is not None:
        return millis(application.deadline_us)
    if application.deadline_permille is not None:
        return f"{application.deadline_permille / 1000:g} x the 99 % alone"
    return None


def _company(unit: UnitBehaviour) -> str:
    return ", ".join(f"x {each / 1000:g}" for each in unit.sharing_permille) or "in turns"


def _cold(unit: UnitBehaviour) -> str | None:
    cold = f"x {unit.cold_permille / 1000:g} after {span_seconds(unit.cold_after_us)}"
    return cold if unit.cold_permille > 1000 else None


def _tail(unit: UnitBehaviour) -> str | None:
    share = percent(unit.tail_share_permille)
    return f"x {unit.tail_permille / 1000:g} in {share}" if unit.tail_share_permille else None


def _hot(unit: UnitBehaviour) -> str | None:
    return None if unit.heat is None else f"at {unit.heat.limit_c:g} C, back at {unit.heat.back_c:g} C"


def _watt(power_mw: int | None) -> str:
    return "-" if power_mw is None else f"{power_mw / 1000:g} W"


def served_blocks(found: Statistics) -> Iterator[Block]:
    """Yield what `gapless serve` answers in the end."""
    decided = "" if found.decision_us is None else f", {found.decision_us:.0f} us a decision in the median"
    words = f" in {found.seconds:.0f} s; {counted(found.decisions, 'chunk')}{decided}"
    yield Sentence(words, lead=counted(sum(found.total(fate) for fate in Fate), "request"))

    def counts(fate: Fate) -> Callable[[ModelCounts], int]:
        return lambda model: model.fates[fate]

    models: list[Column[ModelCounts]] = [
        Column("model", Unit.NAME, lambda model: model.name),
        *(Column(fate, Unit.COUNT, counts(fate)) for fate in Fate),
        Column("p50", Unit.MEASURED, lambda model: model.p50_us),
        Column("p90", Unit.MEASURED, lambda model: model.p90_us),
        Column("p99", Unit.MEASURED, lambda model: model.p99_us),
    ]
    yield table("Models", models, found.models, most=len(found.models))
    units: list[Column[UnitCounts]] = [
        Column("unit", Unit.NAME, lambda unit: unit.name),
        Column("chunks", Unit.COUNT, lambda unit: unit.chunks),
        Column("busy", Unit.SHARE, lambda unit: unit.busy_us / (1e6 * found.seconds)),
        Column("restarts", Unit.COUNT, lambda unit: unit.restarts),
        Column("memory", Unit.BYTES, lambda unit: unit.rss_bytes),
    ]
    yield table("Units", units, found.units)
