"""How plans of groups of devices are shown: groups, the rows of each device, halos, and who sets the pace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...formulations.cooperation.plans import Stage
from ...formulations.cooperation.quantities import GroupValues
from ...formulations.cooperation.tables import Groups, groups_of
from ...formulations.groups import Cooperation
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ...formulations.terms import Dimension
from ..layout import indented, plain_table
from ..presenter import Presenter, UnitTime
from ..terminal.layer_times import layer_map
from ..words import amount, counted, millis, share, size


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

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> list[RenderableType]:
        """Return the times of the layers, and what is asked of groups."""
        times: RenderableType = layer_map(problem.network, problem.costs, layers=layers)
        return [times, "", Text("; ".join(text for _, text in self.facts(problem)))]

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> list[RenderableType]:
        """Return what each device of each group does for a request, and who sets the pace."""
        values = _values(problem, plan)
        devices = f"{values.devices} of {counted(values.groups.device_count, 'device')}"
        rate = 1e6 / max(1, values.period_us)
        head = f"{counted(values.chunks, 'chunk')} over {devices}: {rate:,.3g} requests/s"
        table = indented(_groups_table(values))
        words = f"{self.pace_words(problem, plan)}{_energy_words(values)}"
        words += f" Cuts are {self._cuts(values.groups.data)}."
        return [Text(head, style="bold"), "", table, "", Text(words)]

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which group sets the pace, and what takes its time."""
        values = _values(problem, plan)
        slowest = max(values.stages, key=lambda stage: stage.stage_us)
        compute_us, sent = max(slowest.service.compute_us), _messages_us(slowest)
        group = "+".join(values.groups.devices[device] for device in slowest.service.part[2])
        words = f"{group} sets the pace with {millis(slowest.stage_us)}"
        if sent:
            words += f": {millis(compute_us)} of computing and {millis(sent)} of messages"
        return f"{words}."

    def pace_setters(self, problem: Problem, judged: Score) -> tuple[str, ...]:
        """Return the devices of the groups that take longest."""
        stage_us = judged.columns["stage_us"]
        longest = max(time for time in stage_us if time is not None)
        names = problem.platform.unit_names
        return tuple(name for name, time in zip(names, stage_us, strict=True) if time == longest)

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield how groups work, and what messages take."""
        groups = groups_of(problem)
        data = groups.data
        yield "groups", f"at most {counted(groups.most_group, 'device')} in each, along {data.axis}"
        yield "cuts", self._cuts(data)
        links = data.devices.links
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


def _messages_us(stage: Stage) -> int:
    return stage.service.message_us + stage.receive_us + stage.send_us


def _groups_table(values: GroupValues) -> Table:
    """Return one line a device in use, by chunk: its rows, what it computes, its halo, its memory."""
    numbers = ("rows", "computes", "busy", "messages", "group takes", "done twice", "weights", "memory")
    table = plain_table("layers", "device", *numbers, numbers=numbers)
    groups = values.groups
    for stage in values.stages:
        service = stage.service
        start, stop, group = service.part
        tiles = groups.tiles(service.rows)
        for place, device in enumerate(group):
            first = place == 0
            table.add_row(
                f"{start}-{stop - 1}" if first else "",
                _named(groups, device, leads=device == service.leader and len(group) > 1),
                _rows(tiles[place]) if len(group) > 1 else "all",
                millis(service.compute_us[place]),
                share(service.compute_us[place], values.period_us),
                (millis(_messages_us(stage)) if _messages_us(stage) else "-") if first else "",
                _paced(stage, values) if first else "",
                f"{service.extra_permille[place] / 10:.1f} %" if len(group) > 1 else "-",
                size(service.weight_bytes),
                size(service.memory_bytes[place]),
            )
    unused = [name for device, name in enumerate(groups.devices) if device not in values.place]
    if unused:
        table.add_row("", ", ".join(unused), "not used", style="dim")
    return table


def _named(groups: Groups, device: int, *, leads: bool) -> str:
    return f"{groups.devices[device]} (leads)" if leads else groups.devices[device]


def _rows(tile: tuple[int, int]) -> str:
    return f"{tile[0]}-{tile[1] - 1}"


def _paced(stage: Stage, values: GroupValues) -> Text:
    style = "green" if stage.stage_us == values.period_us else ""
    return Text(millis(stage.stage_us), style=style)


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
