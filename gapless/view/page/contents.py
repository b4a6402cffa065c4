"""A subject as the page shows it, and several subjects side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations

from ...answers import explaining
from ...answers.blocks import Block, Cell, Column, Section, Sentence, Table, Tone, Unit, table
from ...answers.charts import Bars, HeatMap
from ...answers.comparing import answers_blocks
from ...answers.layers import layer_chart
from ...answers.measured import links_table, receipts_table
from ...answers.problems import limits_words, units
from ...answers.traces import memory_chart
from ...answers.tuning import tuning_blocks
from ...answers.words import counted, objective_words, size, term_name, term_value
from ...executor.engine import PlacementReceipt
from ...executor.simulated import charged_for
from ...formulations.costs import Provenance
from ...formulations.hardware import ProcessingUnit
from ...formulations.history import is_message, link_name
from ...formulations.reordering import order_words
from ...formulations.rules import AnyRule
from ..presenter import presenter_of
from .headline import difference, headline, standing, utilised
from .played import achieved, predicted_pace_us, race_row
from .subject import Subject
from .texts import clipped
from .timeline import timeline
from .utilisation import chunk_table, utilisation


def receipts(subject: Subject) -> Iterator[Block]:
    """Yield the receipts of a subject: of its execution, or else of the race."""
    found = _known(subject)
    if not found:
        return
    wrong = sum(bool(receipt.mismatches) for receipt in found)
    emulated = {r.unit: r.quota_permille for r in found if r.quota_permille is not None}
    unknown = sum(receipt.compared is False for receipt in found)
    if subject.observed != "measured":
        words = " No engine was asked for anything: the device is simulated."
        yield Sentence(words, Tone.WARN, lead="simulated")
    else:
        words = (
            f" {wrong} of {len(found)} sessions were not granted as asked."
            if wrong
            else " All sessions were granted as asked."
        )
        for unit, quota in emulated.items():
            words += f" {unit} is emulated: a quota of {quota / 10:g} % of its cores' time."
        if unknown:
            words += f" Numbers of {unknown} of {len(found)} were not compared with those of the uncut model."
        tone, lead = (Tone.BAD, "mismatch") if wrong else (Tone.GOOD, "as asked")
        yield Sentence(words, tone, lead=lead)
    yield receipts_table(found)


def _known(subject: Subject) -> Sequence[PlacementReceipt]:
    if subject.measurement is not None and subject.measurement.receipts:
        return subject.measurement.receipts
    row = race_row(subject)
    return () if row is None else row.receipts


_MOST_LETTERS = 2000

Fact = tuple[str, str]
"""Name and value."""


def origin(subject: Subject) -> Iterator[Table]:
    """Yield where a subject comes from: facts, tables of costs, units, rules."""
    facts: list[Column[Fact]] = [
        Column("what", Unit.NAME, lambda one: one[0]),
        Column("value", Unit.LONG, lambda one: one[1]),
    ]
    yield table("What it is about", facts, [fact for fact in _facts(subject) if fact[1]])
    costs: list[Column[tuple[str, Provenance]]] = [
        Column("table", Unit.TEXT, lambda one: one[0]),
        Column("method", Unit.TEXT, lambda one: _method(one[1])),
        Column("device, engine, when", Unit.LONG, lambda one: _taken(one[1])),
        Column("source, notes", Unit.LONG, lambda one: Cell(one[1].source or None, note=one[1].notes)),
    ]
    yield table("Tables of costs", costs, _tables(subject))
    yield units(subject.problem.platform)
    rules: list[Column[AnyRule]] = [
        Column("rule", Unit.NAME, lambda rule: rule.name),
        Column("what it asks", Unit.LONG, lambda rule: rule.text or "(no words)"),
    ]
    yield table("Rules", rules, subject.problem.rules)


def _facts(subject: Subject) -> Iterator[Fact]:
    problem = subject.problem
    yield "problem", f"fingerprint {problem.fingerprint}"
    yield "objective", objective_words(problem.formulation.terms, problem.objective)
    yield "limits", limits_words(problem)
    for network in problem.networks:
        models = ", ".join(f"{model.locator} (digest {model.digest[:12]})" for model in network.models)
        moved = f"in the order {clipped(order_words(network.order), _MOST_LETTERS)}" if network.order else ""
        words = [counted(len(network.layers), "layer"), moved, models or network.source]
        yield f"network {network.name}", "; ".join(filter(None, words))
    memory = problem.platform.memory_bytes
    capacity = "memory not known" if memory is None else f"memory {size(memory)}"
    words = [counted(len(problem.platform.units), "unit"), capacity, problem.platform.source]
    yield f"platform {problem.platform.name}", "; ".join(filter(None, words))
    yield from presenter_of(problem).facts(problem)
    plan = subject.plan
    yield "plan", "replicas, no plan" if plan is None else f"plan_id {plan.plan_id}"
    yield "deployment", f"deployment_id {subject.deployment.deployment_id}"
    yield "runs", clipped(str(subject.deployment), _MOST_LETTERS)
    yield from _execution_facts(subject)
    yield "files", ", ".join(subject.sources)


def _execution_facts(subject: Subject) -> Iterator[Fact]:
    found, result = subject.measurement, subject.tuning
    if found is not None:
        times = f"{found.requests:,} requests in {found.seconds:.1f} s"
        yield subject.observed, "; ".join(filter(None, (found.device, found.taken_at, times)))
    if result is not None:
        session = f"run {result.run}, {result.measured_s:.1f} s {subject.observed}"
        yield "race", "; ".join(filter(None, (result.device, session)))


def _tables(subject: Subject) -> Iterator[tuple[str, Provenance]]:
    problem = subject.problem
    yield "costs", problem.costs.provenance
    beside = problem.co_run_costs or ()
    if problem.by_set:  # all of one kind
        yield f"costs on {len(beside)} sets of units", beside[0].provenance
    else:
        for used, costs in enumerate(beside, start=2):
            yield f"costs on {used} units", costs.provenance
    if problem.interference is not None:
        yield "interference", problem.interference.provenance


def _method(one: Provenance) -> Cell:
    return Cell("estimated", Tone.WARN, one.method) if one.estimated else Cell(one.method or None)


def _taken(one: Provenance) -> str | None:
    return "; ".join(filter(None, (one.device, one.engine, one.taken_at))) or None


def messages(subject: Subject) -> Table:
    """Return the messages of an execution by link, as far as they were measured."""
    links = () if subject.measurement is None else subject.measurement.links
    return links_table(links, _predicted_us(subject))


def _predicted_us(subject: Subject) -> Mapping[str, float]:
    """Return what a message takes on each link in the simulation.

    What goes there and back inside a group is one message in it, which nothing measured compares with.
    """
    trace = subject.predicted
    if trace is None:
        return {}
    layers = {chunk.unit: (chunk.start, chunk.stop) for stream in trace.streams for chunk in stream.chunks}
    inside = {link_name(*pair) for pair in permutations(layers, 2) if len({layers[one] for one in pair}) == 1}
    return {
        event.unit: (event.end_ns - event.start_ns) / 1000
        for event in trace.events
        if is_message(event, trace.streams) and event.unit not in inside
    }


def memory(subject: Subject) -> Iterator[Block]:
    """Yield what is known of the memory of a subject: over time, and of each unit."""
    usage, has_units = subject.memory, subject.score is not None or subject.measurement is not None
    if usage is not None and usage.steps and usage.peak_bytes > 0:
        platform = subject.problem.platform
        by_unit = any(unit.memory_bytes is not None for unit in platform.units)
        chart = memory_chart(usage, platform.memory_bytes, by_unit=by_unit)
        yield chart
        yield Sentence(f"Predicted: {chart.words}", Tone.SOFT)
    elif has_units:
        yield Sentence("Memory over time is not known here.", Tone.SOFT)
    yield _units(subject)


def _units(subject: Subject) -> Table:
    judged, found = subject.score, subject.measurement
    platform = subject.problem.platform
    by_unit = (None if judged is None else judged.columns.get("memory_bytes")) or (None,) * len(
        platform.units
    )
    needs = dict(zip(platform.unit_names, by_unit, strict=True))
    worker = {} if found is None else {unit.unit: unit.rss_bytes for unit in found.units}

    def share(unit: ProcessingUnit) -> float | None:
        needed = needs[unit.name]
        own = unit.memory_bytes
        return None if needed is None or own is None else needed / max(1, own)

    titles: list[Column[ProcessingUnit]] = [
        Column("unit", Unit.NAME, lambda unit: unit.name),
        Column("plan", Unit.BYTES, lambda unit: needs[unit.name]),
        Column("own capacity", Unit.BYTES, lambda unit: unit.memory_bytes or "none of its own"),
        Column("share", Unit.SHARE, share),
        Column("its worker", Unit.BYTES, lambda unit: worker.get(unit.name), optional=True),
    ]
    known = [unit for unit in platform.units if needs[unit.name] is not None or unit.name in worker]
    return table("Memory of each unit", titles, known)


MOST_TITLE = 120
"""Letters; subjects without a title are called by what runs, which can be long."""


MOST_ROWS = 400
"""Rows of all heat maps of one report together."""

_LEAST_ROWS = 40


def heat_maps(subject: Subject, most: int = MOST_ROWS) -> tuple[HeatMap, ...]:
    """Return the times of all networks that a deployment runs."""
    streams = subject.deployment.streams
    used = {stream.network for stream in streams}
    networks = [network for network in subject.problem.networks if network.name in used]
    costs = charged_for(subject.problem, subject.deployment).costs
    return tuple(
        layer_chart(
            network,
            subject.problem.platform.unit_names,
            costs.of(network.name).layer_us,
            [stream.placed for stream in streams if stream.network == network.name],
            most=max(_LEAST_ROWS, most // max(1, len(networks))),
        )
        for network in networks
    )


def reasoning(subject: Subject) -> Iterable[Block]:
    """Return why a plan is as it is, where that is known."""
    plan, known = subject.plan, subject.explanation
    if plan is None or known is None:
        return ()
    return explaining.explanation_blocks(subject.problem, plan, known, others=bool(subject.answers))


def race(subject: Subject) -> Iterable[Block]:
    """Return the race that a subject took part in."""
    found = subject.tuning
    return () if found is None else tuning_blocks(found, subject.deployment.deployment_id)


def answers(subject: Subject) -> Iterable[Block]:
    """Return what the backends answered to the problem of a subject, if any was asked."""
    return answers_blocks(subject.problem, subject.answers) if subject.answers else ()


def subject_blocks(subject: Subject, rows: int = MOST_ROWS, *, raced: bool = True) -> Iterator[Block]:
    """Yield what a report says of a subject: its headline, then cards; `raced`: whether with its race."""
    yield from headline(subject)
    busy, chart, drawn = utilisation(subject), timeline(subject), None
    if subject.plan is not None:
        drawn = presenter_of(subject.problem).drawing(subject.problem, subject.plan)
    cards: tuple[tuple[str, str, Iterable[Block]], ...] = (
        ("time", "Who runs when", [chart] if chart else []),
        ("busy", "How busy the units are" if busy else "Chunks", _busy(subject, busy)),
        ("graph", "Layers by part", [drawn] if drawn else []),
        ("why", "Why this plan", reasoning(subject)),
        ("race", "The race", race(subject) if raced else ()),
        ("answers", "Exact against heuristic", answers(subject)),
        ("memory", "Memory", memory(subject)),
        ("layers", "Layer times", heat_maps(subject, rows)),
        ("messages", "Messages", [messages(subject)]),
        ("receipts", "Receipts", receipts(subject)),
        ("origin", "Where this comes from", origin(subject)),
    )
    yield from (Section(title, tuple(blocks), place=place) for place, title, blocks in cards)


def _busy(subject: Subject, found: Bars | None) -> Iterator[Block]:
    if found is not None:
        yield found
    yield chunk_table(subject)


def comparison(subjects: Sequence[Subject], keys: Sequence[str]) -> Section:
    """Return a table that compares subjects, with links to each."""
    places = dict(zip(map(id, subjects), keys, strict=True))

    def predicted(subject: Subject) -> str | None:
        infos, pace, value = subject.problem.formulation.terms, subject.pace, predicted_pace_us(subject)
        return None if value is None else f"{term_value(infos, pace, value)} ({term_name(infos, pace)})"

    def measured(subject: Subject) -> Cell:
        found = achieved(subject)
        note = "" if subject.observed == "measured" else subject.observed
        return Cell(None) if found is None else Cell(found.pace_us, note=note)

    def off(subject: Subject) -> float | None:
        percent = difference(predicted_pace_us(subject), achieved(subject))
        return None if percent is None else percent / 100

    def memory(subject: Subject) -> int | None:
        return (None if subject.score is None else subject.score.terms.get("peak_bytes")) or None

    def rank(subject: Subject) -> Cell:
        state = standing(subject)
        return Cell(state.label, state.kind)

    titles: list[Column[Subject]] = [
        Column("what", Unit.NAME, lambda one: Cell(clipped(one.title, MOST_TITLE), link=places[id(one)])),
        Column("runs", Unit.CODE, lambda one: str(one.deployment)),
        Column("on", Unit.NAME, lambda one: one.problem.platform.name),
        Column("predicted", Unit.MICROSECONDS, predicted),
        Column("measured", Unit.MEASURED, measured),
        Column("difference", Unit.CHANGE, off),
        Column("utilisation", Unit.SHARE, utilised),
        Column("peak memory", Unit.BYTES, memory),
        Column("standing", Unit.TEXT, rank),
    ]
    return Section("Compared", (table("What is compared", titles, subjects),), place="compared")
