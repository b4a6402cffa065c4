"""A subject as the page shows it, and several subjects side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from ...answers import explaining
from ...answers.charts import Bars, HeatMap, Plane
from ...answers.layers import layer_chart
from ...answers.memory import memory_chart
from ...answers.race import predicted_chart
from ...answers.receipts import receipts_table
from ...answers.tuning import (
    TRUST,
    candidates,
    effort,
    evidence,
    finalists,
    quality,
    quality_notes,
    rivals,
    sustained_words,
)
from ...answers.words import (
    capital,
    listed,
    microseconds,
    objective_words,
    percent,
    size,
    term_name,
    term_value,
)
from ...executor.engine import PlacementReceipt
from ...executor.measurement import LinkTimes
from ...executor.simulation import charged_for
from ...executor.tuning.result import TuningResult
from ...formulations.costs import Provenance
from ...formulations.hardware import ProcessingUnit
from ...formulations.history import is_message, link_name
from ...formulations.limits import LIMIT_NAMES
from ...formulations.reordering import order_words
from ..explaining.explanation import Explanation
from ..explaining.reasons import alternative_words
from ..graph_drawing import GraphDrawing
from ..presenter import presenter_of
from .answers import Answers, answers, standing
from .execution import achieved, predicted_pace_us, race_row
from .headline import Headline, difference, headline, utilised
from .subject import Subject
from .table import Table, TableCell, columns, grid, numbers, table
from .texts import clipped
from .timeline import Timeline, timeline
from .utilisation import chunk_table, utilisation


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """Receipts as a table; what to think of them in a word; how many mismatch, what is emulated in words."""

    tag: str
    words: str
    kind: str
    table: Table


def receipts(subject: Subject) -> Receipts | None:
    """Return the receipts of a subject: of its execution, or else of the race; None: there are none."""
    found = _known(subject)
    if not found:
        return None
    wrong = sum(bool(receipt.mismatches) for receipt in found)
    emulated = {r.unit: r.quota_permille for r in found if r.quota_permille is not None}
    if subject.observed != "measured":
        return Receipts(
            tag="simulated",
            words="No engine was asked for anything: the device is simulated.",
            kind="warn",
            table=grid(receipts_table(found)),
        )
    words = [
        "All sessions were granted as asked."
        if not wrong
        else f"{wrong} of {len(found)} sessions were not granted as asked."
    ]
    words += [
        f"{unit} is emulated: a quota of {quota / 10:g} % of its cores' time."
        for unit, quota in emulated.items()
    ]
    unknown = sum(receipt.compared is False for receipt in found)
    if unknown:
        words.append(f"Numbers of {unknown} of {len(found)} were not compared with those of the uncut model.")
    return Receipts(
        tag="mismatch" if wrong else "as asked",
        words=" ".join(words),
        kind="bad" if wrong else "good",
        table=grid(receipts_table(found)),
    )


def _known(subject: Subject) -> Sequence[PlacementReceipt]:
    if subject.measurement is not None and subject.measurement.receipts:
        return subject.measurement.receipts
    row = race_row(subject)
    return () if row is None else row.receipts


_MOST_LETTERS = 2000

Fact = tuple[str, str]
"""Name and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginSection:
    """Where everything comes from: facts, tables of costs, units, rules."""

    facts: tuple[Fact, ...]
    tables: Table
    units: Table
    rules: Table


def origin(subject: Subject) -> OriginSection:
    """Return where a subject comes from."""
    problem = subject.problem
    rules = (
        (TableCell(text=rule.name, kind="name"), TableCell(text=rule.text or "(no words)", kind="text"))
        for rule in problem.rules
    )
    return OriginSection(
        facts=tuple((name, text) for name, text in _facts(subject) if text),
        tables=_tables(subject),
        units=_origin_units(subject),
        rules=table("Rules", columns("rule", "what it asks"), rules),
    )


def _facts(subject: Subject) -> Iterator[Fact]:
    problem = subject.problem
    yield "problem", f"fingerprint {problem.fingerprint}"
    yield "objective", objective_words(problem.formulation.terms, problem.objective)
    limits = ((name, getattr(problem.limits, name)) for name in LIMIT_NAMES)
    yield "limits", ", ".join(f"{name} {value}" for name, value in limits if value is not None) or "none"
    for network in problem.networks:
        models = ", ".join(f"{model.locator} (digest {model.digest[:12]})" for model in network.models)
        moved = f"in the order {clipped(order_words(network.order), _MOST_LETTERS)}" if network.order else ""
        words = [f"{len(network.layers)} layers", moved, models or network.source]
        yield f"network {network.name}", "; ".join(filter(None, words))
    memory = problem.platform.memory_bytes
    capacity = "memory not known" if memory is None else f"memory {size(memory)}"
    words = [f"{len(problem.platform.units)} units", capacity, problem.platform.source]
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


def _tables(subject: Subject) -> Table:
    problem = subject.problem
    known = [("costs", problem.costs.provenance)]
    beside = problem.co_run_costs or ()
    if problem.by_set:  # all of one kind
        known.append((f"costs on {len(beside)} sets of units", beside[0].provenance))
    else:
        known += [(f"costs on {used} units", costs.provenance) for used, costs in enumerate(beside, start=2)]
    if problem.interference is not None:
        known.append(("interference", problem.interference.provenance))
    titles = columns("table", "method", "device, engine, when", "source, notes")
    return table("Tables of costs", titles, (_provenance(name, entry) for name, entry in known))


def _provenance(name: str, entry: Provenance) -> list[TableCell | str]:
    taken = "; ".join(filter(None, (entry.device, entry.engine, entry.taken_at)))
    return [
        name,
        TableCell(text="estimated", kind="warn", note=entry.method)
        if entry.estimated
        else TableCell(text=entry.method or "-"),
        TableCell(text=taken or "-", kind="text"),
        TableCell(text=entry.source or "-", kind="long", note=entry.notes),
    ]


def _origin_units(subject: Subject) -> Table:
    units = (_unit(unit) for unit in subject.problem.platform.units)
    return table("Units", columns("unit", "kind", "cores", "threads", "engine", "speed"), units)


def _unit(unit: ProcessingUnit) -> list[TableCell | str]:
    engine = unit.engine
    return [
        TableCell(text=unit.name, kind="name"),
        str(unit.kind),
        ", ".join(map(str, unit.cores)) or "-",
        "-" if unit.threads is None else str(unit.threads),
        f"{engine.name} {engine.backend}, precision {engine.precision}, memory {engine.memory}".strip(),
        "as it is" if unit.quota_permille is None else f"emulated: {percent(unit.quota_permille)}",
    ]


_FAR = 0.2
"""Error of a prediction, as a share, from which on it is marked."""


def messages(subject: Subject) -> Table | None:
    """Return the messages of an execution by link; None: none were measured."""
    links = () if subject.measurement is None else subject.measurement.links
    if not links:
        return None
    predicted_by_name = _predicted_us(subject)
    titles = (
        *columns("pipeline", "link"),
        *numbers("bytes", "predicted", "took", "p95", "error", "waited before"),
    )
    caption = "Messages between devices: predicted, and measured (median)"
    return table(caption, titles, [_row(link, predicted_by_name) for link in links])


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


def _row(link: LinkTimes, predicted_by_name: Mapping[str, float]) -> list[TableCell | str]:
    name = link_name(link.source, link.target)
    predicted_us = predicted_by_name.get(name)
    error = None if predicted_us is None else predicted_us / link.time_us.median - 1
    return [
        TableCell(text=link.stream, kind="name"),
        TableCell(text=name, kind="name"),
        size(link.size),
        microseconds(predicted_us),
        microseconds(link.time_us.median),
        microseconds(link.time_us.p95),
        TableCell(text="-")
        if error is None
        else TableCell(text=f"{100 * error:+.0f} %", kind="warn" if abs(error) > _FAR else ""),
        microseconds(link.queued_us.median),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory: over time (None: no trace is known), and of each unit."""

    chart: Plane | None
    units: Table


def memory(subject: Subject) -> Memory | None:
    """Return what is known of the memory of a subject; None: nothing."""
    usage, has_units = subject.memory, subject.score is not None or subject.measurement is not None
    drawn = usage is not None and bool(usage.steps) and usage.peak_bytes > 0
    if not drawn and not has_units:
        return None
    platform = subject.problem.platform
    by_unit = any(unit.memory_bytes is not None for unit in platform.units)
    chart = memory_chart(usage, platform.memory_bytes, by_unit=by_unit) if usage and drawn else None
    return Memory(chart=chart, units=_units(subject))


def _units(subject: Subject) -> Table:
    judged, found = subject.score, subject.measurement
    count = len(subject.problem.platform.units)
    by_unit = (None if judged is None else judged.columns.get("memory_bytes")) or (None,) * count
    worker = {} if found is None else {unit.unit: unit.rss_bytes for unit in found.units}
    titles = columns(
        "unit", *numbers("plan", "own capacity", "share"), *(numbers("its worker") if worker else ())
    )
    rows = []
    for index, unit in enumerate(subject.problem.platform.units):
        needs = by_unit[index]
        if needs is None and unit.name not in worker:
            continue
        row: list[TableCell | str] = [TableCell(text=unit.name, kind="name"), size(needs)]
        if unit.memory_bytes is None:
            row += ["none of its own", "-"]
        else:
            part = None if needs is None else round(1000 * needs / max(1, unit.memory_bytes))
            row += [size(unit.memory_bytes), percent(part)]
        rows.append(row + ([size(worker.get(unit.name))] if worker else []))
    return table("Memory of each unit", titles, rows)


_MOST_TITLE = 120
"""Letters; subjects without a title are called by what runs, which can be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything that the page shows of one subject; None: that is not known."""

    key: str  # beginning of the names of its places on the page
    title: str
    headline: Headline
    chunks: Table
    graph: GraphDrawing | None
    timeline: Timeline | None
    utilisation: Bars | None
    race: RaceSection | None
    answers: Answers | None
    memory: Memory | None
    heat_maps: tuple[HeatMap, ...]
    reasoning: Reasoning | None
    messages: Table | None
    receipts: Receipts | None
    origin: OriginSection

    @property
    def busy_title(self) -> str:
        """Title of the section with the chunks."""
        return "How busy the units are" if self.utilisation else "Chunks"

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """(place, title) of the sections that are there."""
        found = (
            ("time", "Who runs when", self.timeline),
            ("busy", self.busy_title, self.chunks),
            ("graph", "Layers by part", self.graph),
            ("why", "Why this plan", self.reasoning),
            ("race", self.race.title if self.race else "", self.race),
            ("answers", "Exact against heuristic", self.answers),
            ("memory", "Memory", self.memory),
            ("layers", "Layer times", self.heat_maps),
            ("messages", "Messages", self.messages),
            ("receipts", "Receipts", self.receipts),
            ("origin", "Where this comes from", self.origin),
        )
        return tuple((f"{self.key}-{place}", title) for place, title, there in found if there)


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


def contents(subject: Subject, key: str, rows: int = MOST_ROWS) -> Contents:
    """Return what the page shows of a subject."""
    return Contents(
        key=key,
        title=clipped(subject.title, _MOST_TITLE),
        headline=headline(subject),
        chunks=chunk_table(subject),
        graph=None
        if subject.plan is None
        else presenter_of(subject.problem).drawing(subject.problem, subject.plan),
        timeline=timeline(subject),
        utilisation=utilisation(subject),
        race=race(subject),
        answers=answers(subject),
        memory=memory(subject),
        heat_maps=heat_maps(subject, rows),
        reasoning=reasoning(subject),
        messages=messages(subject),
        receipts=receipts(subject),
        origin=origin(subject),
    )


def _unless_measured(subject: Subject) -> str:
    """Return what the column of measured times holds of a subject where they are not measured."""
    return "" if subject.observed == "measured" else subject.observed


def comparison_table(subjects: Sequence[Subject], keys: Sequence[str]) -> Table:
    """Return a table that compares subjects, with links to each."""
    titles = columns(
        "what",
        "runs",
        "on",
        *numbers("predicted", "measured", "difference", "utilisation", "peak memory"),
        "standing",
    )
    rows = (_compared(subject, key) for subject, key in zip(subjects, keys, strict=True))
    return table("What is compared", titles, rows)


def _compared(subject: Subject, key: str) -> list[TableCell | str]:
    infos, pace = subject.problem.formulation.terms, subject.pace
    predicted, found, judged = predicted_pace_us(subject), achieved(subject), subject.score
    off, state = difference(predicted, found), standing(subject)
    return [
        TableCell(text=clipped(subject.title, _MOST_TITLE), kind="name", link=key),
        TableCell(text=clipped(str(subject.deployment)), kind="code"),
        TableCell(text=subject.problem.platform.name, kind="name"),
        "-" if predicted is None else f"{term_value(infos, pace, predicted)} ({term_name(infos, pace)})",
        "-" if found is None else TableCell(text=microseconds(found.pace_us), note=_unless_measured(subject)),
        "-" if off is None else f"{off:+.1f} %",
        utilised(subject),
        size(None if judged is None else judged.terms.get("peak_bytes") or None),
        TableCell(text=state.label, kind=state.kind),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceSection:
    """A race and how far its answer can be trusted.

    `verdict`, `kind`: how far its answer can be trusted, in a line, and what to think of it ("good", "warn",
    "bad"). `quality`, `quality_words`: how good predictions were, and why some of it is not known.
    `sustained`, `sustained_words`: what the finalists did for longer; no words where that was not asked for.
    """

    observed: str  # what its times are: "measured" or "simulated"
    words: str  # how it went
    verdict: str
    kind: str
    evidence: Table  # what that is based on
    scatter: Plane | None  # predicted against measured; None: nothing to compare
    quality: Table
    quality_words: str
    candidates: Table  # all of them; those that did not run stand last, and the title counts them
    sustained: Table
    sustained_words: str

    @property
    def title(self) -> str:
        """Title of the section."""
        return f"Predicted against {self.observed}"


def race(subject: Subject) -> RaceSection | None:
    """Return the race that a subject took part in, or None."""
    result = subject.tuning
    if result is None:
        return None
    verdict = result.verdict
    return RaceSection(
        observed=subject.observed,
        words=_race_words(result),
        verdict="" if verdict is None else verdict.line,
        kind="" if verdict is None else TRUST[verdict.trust],
        evidence=grid(evidence(result)),
        scatter=predicted_chart(result, result.tables),
        quality=grid(quality(result)),
        quality_words="; ".join(quality_notes(result)),
        candidates=grid(candidates(result, subject.deployment.deployment_id)),
        sustained=grid(finalists(result)),
        sustained_words=" ".join(sustained_words(result)),
    )


def _race_words(result: TuningResult) -> str:
    parts = [f"{capital(effort(result))}."]
    if result.simulated:
        parts.insert(0, f"Simulated: no device ran, times are those of the {result.device}.")
    if result.pace == "latency":
        parts.append("The latency counts first, so one request was run at a time.")
    if result.winner is not None:
        parts.append(f"The winner is {result.winner.candidate.label}.")
    return " ".join([*parts, *rivals(result)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Why a plan is as it is.

    `cuts`, `units`, `demands`, `sets`: what is otherwise with other cuts, units, demands or sets of units;
    `flight`: which period a number of requests in flight gives.
    """

    values: str  # values of the objective terms, in words
    proven: bool  # whether it is proved that no plan of the class is better
    looked: str  # among which plans, by whom and within what time the other plans were looked for
    cuts: Table
    units: Table
    demands: Table
    sets: Table
    flight: Table
    next_best: tuple[str, str]  # the next best plan, and what it costs
    left_out: str  # what there was no time to look at; may be empty


def reasoning(subject: Subject) -> Reasoning | None:
    """Return the explanation of a subject, or None."""
    known = subject.explanation
    if known is None:
        return None
    problem, name = subject.problem, presenter_of(subject.problem).plan_name
    other = known.next_best
    return Reasoning(
        values=explaining.values_words(problem, known),
        proven=known.proven,
        looked=_looked(subject, known),
        cuts=grid(explaining.cuts(problem, known)),
        units=grid(explaining.units(problem, known)),
        demands=grid(explaining.demands(problem, known)),
        sets=grid(explaining.sets(problem, known)),
        flight=grid(explaining.flight(known)),
        next_best=(
            "" if other.plan is None else name(other.plan),
            alternative_words(problem.formulation.terms, known, other),
        ),
        left_out="; ".join(known.left_out),
    )


def _looked(subject: Subject, known: Explanation) -> str:
    """Return what was searched here: the answers of a comparison come from searches of their own."""
    within = "" if known.limit_s is None else f" within {known.limit_s:g} s"
    words = f"Looked among {known.plan_class}, by {known.backend}{within}."
    if known.told_by:
        return (
            f"{words} The plans and proofs of {listed(known.told_by)} count here, too: the next best plan is "
            "the best other one that any of these searches met."
        )
    if subject.answers:
        words += " The answers of other backends on this page come from searches that are not known here."
    return words
