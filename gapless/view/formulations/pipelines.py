"""How plans of pipelines over devices are shown: devices, links between them, and who sets which pace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ...answers.blocks import Block, Cell, Column, Section, Sentence, Table, Tone, Unit, table, with_unused
from ...answers.layers import layer_map
from ...answers.traces import titled_chart, traced_chart
from ...answers.words import MOST_NAMED, capital, counted, listed, millis, share, size
from ...formulations.cluster import Link
from ...formulations.deployment import UNQUEUED, Deployment
from ...formulations.history import History, link_name
from ...formulations.pipelines.plans import Stage, pipe_names
from ...formulations.pipelines.quantities import PipelineValues
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ...formulations.simulate import simulate
from ..presenter import Presenter, UnitTime

_PLAYED = 20
"""Items that are simulated for `show`."""

_MOST_LINKS = 24


_Row: TypeAlias = tuple[int, int, Stage]
"""Number of a pipeline, place in it, and what is done there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What sets the pace of one pipeline."""

    name: str  # of the pipeline; empty for a single one
    period_us: int
    by: tuple[str, ...]  # the devices and links that take that long
    closest: tuple[str, int] | None
    """Of the others the one that takes longest, and how long; None: there is no other."""


class PipelinesPresenter(Presenter):
    """One network through one or more pipelines of devices."""

    plan_title: ClassVar[str] = "pipelines"
    alternatives: ClassVar[int] = 12
    """Devices of one kind in each other's place do not count."""

    busy_span: ClassVar[str] = "of each device for one item"

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most."""
        return ("throughput", "latency", "devices")

    def legend(self, problem: Problem) -> str:
        """Return what they mean."""
        return (
            "interval: time between two results of all pipelines together; unqueued latency: one item from "
            "entry to exit of the slowest pipeline; 0-3 a | 4-9 b: layers 0 to 3 on a, which sends its "
            "results to b; || between pipelines"
        )

    def plan_text(self, plan: Plan) -> str:
        """Return the pipelines without their names."""
        return _path(plan)

    def plan_name(self, plan: Plan) -> str:
        """Return the pipelines in brackets."""
        return f"[{_path(plan)}]"

    def shape(self, problem: Problem, plan: Plan) -> object:
        """Return a plan with kinds of devices: devices that are alike are interchangeable."""
        cluster = cluster_of(problem)
        pipes = problem.formulation.code(problem, plan)
        return sorted(tuple((i, j, cluster.kinds[d]) for i, j, d in pipe) for pipe in pipes)

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return the times of the layers, and the links."""
        yield layer_map(problem.network, problem.costs, layers=layers, plan=plan)
        yield Section("links, from the device or type on the left:", (_links(cluster_of(problem)),))
        yield Sentence("; ".join(text for _, text in self.facts(problem)))

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return what each device of each pipeline does for an item, and who sets the pace."""
        values = _values(problem, plan)
        yield Sentence(_headline(values), Tone.STRONG)
        yield _stages(values)
        yield Sentence(self.pace_words(problem, plan))

    def best_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the devices, and the plan at work."""
        trace = simulate(problem, plan, requests=min(12, len(plan.chunks) + 3 * max(1, len(plan.order))))
        return [*self.plan_parts(problem, plan, judged), titled_chart(trace, self.trace_title(trace))]

    def file_parts(self, problem: Problem, plan: Plan, *, layers: range | None) -> Iterable[Block]:
        """Return the plan at work, and where its chunks lie in the layer times."""
        played = traced_chart(simulate(problem, plan, requests=_PLAYED))
        costs = problem.charged(plan).costs
        return [played, layer_map(problem.network, costs, layers=layers, plan=plan)]

    def trace_title(self, trace: History) -> str:
        """Return how many items pass how many pipelines."""
        count, pipelines = len(trace.arrivals_us), len(trace.streams)
        return f"simulation of {counted(count, 'item')} through {counted(pipelines, 'pipeline')}"

    def trace_rows(self, problem: Problem, trace: History) -> Iterator[tuple[str, str]]:
        """Yield the makespan, and of each pipeline its items and its period."""
        latencies = trace.latency_us
        yield "makespan", millis(trace.makespan_us)
        yield "latency of the first item", millis(latencies[0])
        yield "longest latency", millis(max(latencies))
        if trace.plan is None:
            return
        paces = paces_of(_values(problem, trace.plan))
        for index, pace in enumerate(paces):
            items = len({event.request for event in trace.events if event.stream == index})
            of = f"{pace.name}: " if pace.name else ""
            yield f"{of}items", str(items)
            yield f"{of}period", millis(pace.period_us)

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which device or link sets the pace of each pipeline, and what is next to it."""
        values = _values(problem, plan)
        if problem.objective.first == "latency":
            return _way(values)
        found = list(zip(paces_of(values), values.stages, strict=True))
        whole = [pace for pace, stages in found if len(stages) == 1 and pace.closest is None]
        others = [pace for pace, _ in found if pace not in whole]
        words = [_pace_sentence(pace) for pace in others[: MOST_NAMED + 1]]
        hidden = len(others) - len(words)
        words += [f"{hidden} more pipelines are in the table."] if hidden else []
        return " ".join([*words, *_whole_sentence(whole)])

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return how many pipelines of the network there are."""
        names, count = listed(deployment.networks), len(deployment.streams)
        used, there = len(deployment.units), len(problem.platform.units)
        what, noun = "one pipeline" if count == 1 else f"{count} pipelines", _noun(cluster_of(problem))
        return f"{capital(what)} of {names} over {used} of {counted(there, noun)},"

    def chunk_columns(
        self, problem: Problem, deployment: Deployment
    ) -> tuple[tuple[str, ...], Mapping[tuple[str, int], tuple[str, ...]]]:
        """Return to whom each device sends, how long that takes, and its share of the period."""
        if deployment.plan is None:
            return (), {}
        values = _values(problem, deployment.plan)
        cluster, found = values.cluster, {}
        linked = _has_messages(values)
        for stream, stages, period in zip(deployment.streams, values.stages, values.periods_us, strict=True):
            for index, stage in enumerate(stages):
                sends = stage.send_us
                target = _target(cluster, stages, index) if sends else "-"
                time = millis(sends) if sends else "-"
                messages = (target, time) if linked else ()
                found[stream.name, index] = (*messages, share(stage.stage_us, period))
        return (*(("sends to", "message") if linked else ()), "share of its period"), found

    def pace_verb(self, problem: Problem, deployment: Deployment, pace: str) -> str:
        """Return that results come, or how long one takes."""
        if pace == "latency":
            return f"has an {UNQUEUED} of"
        return "give a result every" if len(deployment.streams) > 1 else "gives a result every"

    def latency(self, judged: Score) -> tuple[int | None, str]:
        """Return that of an item that does not wait."""
        return judged.value("latency"), UNQUEUED

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield what joins the devices, and what is asked of pipelines over them."""
        data = cluster_of(problem).data
        most = "any number of pipelines" if data.most is None else f"at most {counted(data.most, 'pipeline')}"
        yield "pipelines", f"{most}, each on {_noun(cluster_of(problem))}s of its own"
        if not data.links:
            yield "messages", "no links: what moving tensors costs is in the times of the layers"
            return
        how = "while it computes the next" if data.overlap else "and computes the next one only then"
        words = [f"a device sends one result {how}"]
        words += [f"inputs come from {data.host} and results return to it"] if data.host else []
        slots = data.in_slots + data.out_slots
        words += [f"{slots} messages can wait at each device"] if slots else []
        if data.switch_bytes_per_second is not None:
            words.append(f"all links together carry {size(data.switch_bytes_per_second)}/s")
        yield "messages", "; ".join(words)

    def unit_times(self, problem: Problem, plan: Plan) -> tuple[UnitTime, ...]:
        """Return what each device does in a period of its pipeline."""
        values = _values(problem, plan)
        found = []
        for device in range(values.cluster.device_count):
            busy = values.busy_us.get(device)
            period = 0 if busy is None else values.periods_us[values.place[device]]
            found.append(UnitTime(busy=(busy or 0) / 1000, idle=(period - (busy or 0)) / 1000))
        return tuple(found)


def paces_of(values: PipelineValues) -> list[Pace]:
    """Return what sets the pace of each pipeline of a plan."""
    found = []
    cluster = values.cluster
    for name, stages, period in zip(
        pipe_names(len(values.pipes)), values.stages, values.periods_us, strict=True
    ):
        times = dict(_times(cluster, stages))
        by = tuple(what for what, time in times.items() if time == period)
        rest = [(time, what) for what, time in times.items() if time < period]
        closest = max(rest, key=lambda entry: entry[0]) if rest else None
        found.append(Pace(name=name, period_us=period, by=by, closest=closest and (closest[1], closest[0])))
    return found


def _times(cluster: Cluster, stages: Sequence[Stage]) -> Iterator[tuple[str, int]]:
    """Yield what each device and each link takes for an item; without overlap a device has its messages."""
    for index, stage in enumerate(stages):
        name = cluster.devices[stage.device]
        if not cluster.data.overlap:
            yield f"{name}{' with its messages' if stage.message_us else ''}", stage.stage_us
            continue
        yield name, stage.compute_us
        if stage.receive_us:
            yield f"the link {link_name(cluster.data.host, name)}", stage.receive_us
        if stage.send_us:
            yield f"the link {link_name(name, _target(cluster, stages, index))}", stage.send_us


def _target(cluster: Cluster, stages: Sequence[Stage], index: int) -> str:
    return cluster.devices[stages[index + 1].device] if index + 1 < len(stages) else cluster.data.host


def _values(problem: Problem, plan: Plan) -> PipelineValues:
    charged = problem.charged(plan)
    return PipelineValues(cluster_of(charged), charged.formulation.code(charged, plan))


def _headline(values: PipelineValues) -> str:
    """Return pipelines, devices and rate."""
    count, used, there = values.pipelines, values.devices, values.cluster.device_count
    return (
        f"{counted(count, 'pipeline')} over {used} of {counted(there, _noun(values.cluster))}: "
        f"{_rate(sum(1e6 / period for period in values.periods_us))}"
    )


def _noun(cluster: Cluster) -> str:
    """Return what runs layers: devices that links join, or units of one board."""
    return "device" if cluster.data.links else "unit"


def _rate(items: float) -> str:
    return f"{items:,.1f} items/s" if items >= 100 else f"{items:.3g} items/s"


def _has_messages(values: PipelineValues) -> bool:
    return any(stage.message_us for stages in values.stages for stage in stages)


def _stages(values: PipelineValues) -> Table:
    """Return one line a device in use, by pipeline: what takes its time, and its share of the period."""
    cluster, linked = values.cluster, _has_messages(values)
    rows = [
        (number, place, stage)
        for number, stages in enumerate(values.stages)
        for place, stage in enumerate(stages)
    ]

    def layers(row: _Row) -> str:
        start, stop, _ = values.pipes[row[0]][row[1]]
        return f"{start}-{stop - 1}"

    def messages(row: _Row) -> Cell:
        enters, sends = row[2].receive_us, row[2].send_us
        longest = max(enters, sends) if cluster.data.overlap else enters + sends
        return marked(longest, row) if longest else Cell(None)

    def marked(time_us: int, row: _Row) -> Cell:
        """Return a time; what sets the pace is set in colour."""
        return Cell(time_us, Tone.GOOD if time_us == values.periods_us[row[0]] else Tone.PLAIN)

    def part(row: _Row) -> Cell:
        taken, period = row[2].stage_us, values.periods_us[row[0]]
        return Cell(share(taken, period), Tone.GOOD if taken == period else Tone.PLAIN)

    several: list[Column[_Row]] = [Column("", Unit.COUNT, lambda row: "" if row[1] else row[0] + 1)]
    columns: list[Column[_Row]] = [
        *(several if values.pipelines > 1 else []),
        Column(_noun(cluster), Unit.NAME, lambda row: cluster.devices[row[2].device]),
        Column("layers", Unit.TEXT, layers),
        Column("computes", Unit.MICROSECONDS, lambda row: marked(row[2].compute_us, row)),
        *([Column("messages", Unit.MICROSECONDS, messages)] if linked else []),
        Column("share", Unit.COUNT, part),
        Column("memory", Unit.BYTES, lambda row: row[2].memory_bytes),
    ]
    unused = [name for device, name in enumerate(cluster.devices) if device not in values.place]
    shown = table("Devices", columns, rows, most=len(rows))
    return with_unused(shown, unused, at=int(values.pipelines > 1))


def _whole_sentence(paces: Sequence[Pace]) -> list[str]:
    """Return which devices run the whole network, each for itself."""
    if not paces:
        return []
    names = [name for pace in paces for name in pace.by]
    if len(paces) == 1:
        return [f"{names[0]} runs the whole network, one item every {millis(paces[0].period_us)}."]
    return [f"{listed(names)} run the whole network each."]


def _pace_sentence(pace: Pace) -> str:
    verb = "set" if len(pace.by) > 1 else "sets"
    of = f"{capital(pace.name)}: " if pace.name else ""
    words = f"{of}{listed(pace.by)} {verb} the pace with {millis(pace.period_us)}"
    if pace.closest is None:
        return f"{words}."
    what, time = pace.closest
    return f"{words}; {what} comes next with {share(time, pace.period_us)} of that."


def _way(values: PipelineValues) -> str:
    """Return where an item of the slowest pipeline spends its time."""
    stages = max(values.stages, key=lambda found: sum(s.compute_us + s.message_us for s in found))
    whole = sum(stage.compute_us + stage.message_us for stage in stages)
    longest = sorted(stages, key=lambda stage: -stage.compute_us)
    parts = [f"{share(s.compute_us, whole)} on {values.cluster.devices[s.device]}" for s in longest]
    sent = sum(stage.message_us for stage in stages)
    parts += [f"{share(sent, whole)} on links"] if sent else []
    return f"Of the {millis(whole)} that an item takes, it spends {listed(parts)}."


def _path(plan: Plan) -> str:
    return " || ".join(
        " | ".join(f"{c.start}-{c.stop - 1} {c.unit}" for c in plan.of(name)) for name in plan.order or ("",)
    )


def _links(cluster: Cluster) -> Table:
    """Return the links as they were given."""
    columns: list[Column[Link]] = [
        Column("from", Unit.NAME, lambda link: link.source),
        Column("to", Unit.NAME, lambda link: link.target),
        Column("speed", Unit.COUNT, lambda link: f"{link.bytes_per_second / 1e6:,.3g} MB/s"),
        Column("latency", Unit.MICROSECONDS, lambda link: link.latency_us),
    ]
    return table("Links", columns, cluster.data.links, most=_MOST_LINKS)


PRESENTER = PipelinesPresenter()
