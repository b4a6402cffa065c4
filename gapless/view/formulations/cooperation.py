"""How plans of groups of devices are shown: groups, the rows of each device, halos, and who sets the pace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ...answers.blocks import Block, Cell, Column, Sentence, Table, Tone, Unit, table, with_unused
from ...answers.layers import layer_map
from ...answers.words import amount, counted, listed, millis, share
from ...formulations.cooperation.plans import Stage
from ...formulations.cooperation.quantities import GroupValues
from ...formulations.cooperation.service import Service
from ...formulations.cooperation.tables import Groups, groups_of
from ...formulations.deployment import Deployment
from ...formulations.groups import Cooperation
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ...formulations.spatial import Interval
from ...formulations.terms import Dimension
from ...formulations.tiles import needs, sources_of, tile_of
from ..presenter import Presenter, UnitTime


@dataclass(frozen=True, slots=True)
class _Work:
    """What one device of a group does in a step: its place in the group, and its rows."""

    stage: Stage
    step: Service
    place: int
    tile: tuple[int, int]

    @property
    def shared(self) -> bool:
        return len(self.step.part[2]) > 1


class CooperationPresenter(Presenter):
    """One network through chunks, each served by a group of devices."""

    plan_title: ClassVar[str] = "groups"
    alternatives: ClassVar[int] = 12
    """Devices of one kind in each other's place do not count."""

    busy_span: ClassVar[str] = "of each device for one request"

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most."""
        return ("period", "latency", "redundancy", "devices")

    def legend(self, problem: Problem) -> str:
        """Return what they mean."""
        return (
            f"{super().legend(problem)}; 0-3 a+b | 4-9 c: a and b compute the layers 0 to 3 together, each "
            "some rows of the result, which goes to c"
        )

    def plan_text(self, plan: Plan) -> str:
        """Return the chunks with their groups."""
        return _path(plan)

    def plan_name(self, plan: Plan) -> str:
        """Return the chunks with their groups in brackets."""
        return f"[{_path(plan)}]"

    def shape(self, problem: Problem, plan: Plan) -> object:
        """Return the chunks with their groups: in which steps these compute them is no part of a plan."""
        return problem.formulation.code(problem, plan)

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return the times of the layers, and what is asked of groups."""
        yield layer_map(problem.network, problem.costs, layers=layers)
        yield Sentence("; ".join(text for _, text in self.facts(problem)))

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return what each device of each group does for a request, and who sets the pace."""
        values = _values(problem, plan)
        devices = f"{values.devices} of {counted(values.groups.device_count, _noun(values.groups))}"
        rate = 1e6 / max(1, values.period_us)
        head = f"{counted(values.chunks, 'chunk')} over {devices}: {rate:,.1f} requests/s"
        yield Sentence(head, Tone.STRONG)
        yield _groups_table(values)
        words = f"{self.pace_words(problem, plan)}{_energy_words(values)}"
        yield Sentence(f"{words} Cuts are {self._cuts(values.groups.data)}.")

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which group sets the pace, and what takes its time."""
        values = _values(problem, plan)
        slowest = max(values.stages, key=lambda stage: stage.stage_us)
        compute_us, sent = slowest.service.time_us, _messages_us(slowest)
        group = "+".join(values.groups.devices[device] for device in slowest.service.part[2])
        words = f"{group} sets the pace with {millis(slowest.stage_us)}"
        if sent:
            words += f": {millis(compute_us)} of computing and {millis(sent)} of messages"
        return f"{words}."

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield how groups work, and what messages take."""
        groups = groups_of(problem)
        data = groups.data
        yield "groups", f"at most {counted(groups.most_group, _noun(groups))} in each, along {data.axis}"
        yield "cuts", self._cuts(data)
        links = data.devices.links
        if data.steps:
            yield (
                "steps",
                "a group computes its chunk in one step or several: in tiles, or one unit of it alone",
            )
            yield "messages", "none: results lie in shared memory, and copies are in the times of the layers"
            return
        if not links:
            yield "messages", "no links: messages take no time"
            return
        words = ["a group sends a result while it computes the next" if data.devices.overlap else ""]
        words.append("" if data.interstage else "from group to group they take no time (as PICO counts)")
        yield "messages", "; ".join(word for word in words if word) or "they add to computing"

    def _cuts(self, data: Cooperation) -> str:
        """Return between what plans are compared: what "optimal" means."""
        found = data.over_graph
        if found is None:
            return "between the pieces of the network: plans are compared given these"
        return (
            f"anywhere in the graph: all chains of its {found.sets} down-sets were compared; given its "
            f"pieces, the least period is {millis(found.given_pieces_us)} "
            f"({share(found.given_pieces_us - found.period_us, found.period_us)} more)"
        )

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return how many units or devices share chunks."""
        names, used, there = listed(deployment.networks), len(deployment.units), len(problem.platform.units)
        over = f"over {used} of {counted(there, _noun(groups_of(problem)))}"
        return f"{names} {over}{', which share chunks,' if deployment.is_divided else ''}"

    def chunk_columns(
        self, problem: Problem, deployment: Deployment
    ) -> tuple[tuple[str, ...], Mapping[tuple[str, int], tuple[str, ...]]]:
        """Return the tile of each chunk, what it reads of its largest input, and what others do, too."""
        if not deployment.is_divided:
            return (), {}
        groups, found = groups_of(problem), {}
        for stream in deployment.streams:
            for group in stream.groups:
                chunk = stream.chunks[group[0]]
                tiles = [tile for index in group if (tile := stream.tile(index)) is not None]
                if not tiles:
                    found[stream.name, group[0]] = ("all", "-", "-")
                extra = groups.extra(chunk.start, chunk.stop, tuple(tile.stop - tile.start for tile in tiles))
                for index, tile, (more, done) in zip(group, tiles, extra, strict=False):
                    read = _reads(groups, chunk, (tile.start, tile.stop))
                    found[stream.name, index] = (str(tile), read, f"{100 * more / max(1, done):.1f} %")
        return ("tile", "reads", "done twice"), found

    def unit_times(self, problem: Problem, plan: Plan) -> tuple[UnitTime, ...]:
        """Return what each device does in a period."""
        values = _values(problem, plan)
        busy = [values.busy_us.get(device) for device in range(values.groups.device_count)]
        return tuple(
            UnitTime(busy=(us or 0) / 1000, idle=0 if us is None else (values.period_us - us) / 1000)
            for us in busy
        )


def _values(problem: Problem, plan: Plan) -> GroupValues:
    return GroupValues(groups_of(problem), problem.formulation.code(problem, plan))


def _noun(groups: Groups) -> str:
    """Return what is in groups: devices that links join, or units of one board."""
    return "unit" if groups.data.steps else "device"


def _reads(groups: Groups, chunk: Chunk, rows: Interval) -> str:
    """Return which rows of its largest input a tile reads, its halo included."""
    data = groups.data
    members = [node for node, piece in enumerate(data.pieces) if chunk.start <= piece < chunk.stop]
    asked = tile_of(data.spatial, members, rows, data.side)
    needed = needs(data.spatial, members, asked, data.side)
    sources = [source for source in sources_of(data.spatial, members) if source in needed]
    largest = max(sources, key=lambda source: data.spatial.nodes[source].bytes)
    first, last = needed[largest]
    return f"{data.axis} {first}-{last - 1} of {data.spatial.nodes[largest].size[data.side]}"


def _messages_us(stage: Stage) -> int:
    return stage.service.message_us + stage.receive_us + stage.send_us


def _groups_table(values: GroupValues) -> Table:
    """Return one line a device in use, by chunk and step: its rows, time, halo and memory."""
    groups, in_steps = values.groups, any(stage.service.ways for stage in values.stages)
    rows = [
        _Work(stage, step, place, groups.tiles(step.rows)[place])
        for stage in values.stages
        for step in stage.service.steps
        for place in range(len(step.part[2]))
    ]

    def takes(one: _Work) -> str:
        """Return what holds for all of a group, which stands in its first line."""
        if one.place:
            return ""
        messages_us = _messages_us(one.stage)
        return millis(one.step.time_us) if in_steps else millis(messages_us) if messages_us else "-"

    def paced(one: _Work) -> Cell:
        stage_us, first = one.stage.stage_us, one.step is one.stage.service.steps[0] and not one.place
        tone = Tone.GOOD if stage_us == values.period_us else Tone.PLAIN
        return Cell(stage_us, tone) if first else Cell("")

    def named(one: _Work) -> str:
        device = one.step.part[2][one.place]
        leads = device == one.step.leader and one.shared and not groups.data.steps
        return f"{groups.devices[device]} (leads)" if leads else groups.devices[device]

    def twice(one: _Work) -> float | None:
        return one.step.extra_permille[one.place] / 1000 if one.shared else None

    columns: list[Column[_Work]] = [
        Column(
            "layers", Unit.TEXT, lambda one: "" if one.place else f"{one.step.part[0]}-{one.step.part[1] - 1}"
        ),
        Column(_noun(groups), Unit.NAME, named),
        Column("rows", Unit.COUNT, lambda one: f"{one.tile[0]}-{one.tile[1] - 1}" if one.shared else "all"),
        Column("computes", Unit.MICROSECONDS, lambda one: one.step.compute_us[one.place]),
        Column("busy", Unit.COUNT, lambda one: share(one.step.compute_us[one.place], values.period_us)),
        Column("step takes" if in_steps else "messages", Unit.COUNT, takes),
        Column("group takes", Unit.MICROSECONDS, paced),
        Column("done twice", Unit.SHARE, twice),
        Column("weights", Unit.BYTES, lambda one: one.step.weight_bytes[one.place]),
        Column("memory", Unit.BYTES, lambda one: one.step.memory_bytes[one.place]),
    ]
    unused = [name for device, name in enumerate(groups.devices) if device not in values.place]
    return with_unused(table("Groups", columns, rows, most=len(rows)), unused, at=1)


def _energy_words(values: GroupValues) -> str:
    if not values.groups.data.devices.power_mw:
        return ""
    computing, standby = (sum(of.values()) for of in (values.computing_nj, values.standby_nj))
    parts = f"{amount(Dimension.NANOJOULES, computing)} of computing"
    if values.groups.data.idle_mw:
        parts += f" and {amount(Dimension.NANOJOULES, standby)} of standby of all devices"
    return f" Energy of a request, estimated from the powers that the platform says: {parts}."


def _path(plan: Plan) -> str:
    found: dict[tuple[int, int], list[str]] = {}
    for chunk in plan.chunks:
        found.setdefault((chunk.start, chunk.stop), []).append(chunk.unit)
    return " | ".join(f"{start}-{stop - 1} {'+'.join(units)}" for (start, stop), units in found.items())


PRESENTER = CooperationPresenter()
