"""How plans of groups run: one stream, whose chunks are divided into tiles of rows or columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..chain import Chain
from ..cluster import Pipelines, refuse_devices
from ..deployment import Deployment, replicas
from ..groups import Cooperation
from ..history import History, Usage, is_message, usage_of
from ..operation import ServerKind
from ..plan import Chunk, Plan
from ..problem import Problem
from ..remaining import DevicesOperation, Entries, unchanged
from ..stations import Station, Work, later, message
from ..streams import Stream, Tile
from .judge import well_formed
from .plans import Parts, plan_of, services_of, stages_of
from .rules import some_group
from .service import Part, Service, in_steps, together
from .tables import Groups, groups_of


def stations_of(groups: Groups, services: Sequence[Service]) -> tuple[Station, ...]:
    """Return the stations of a plan in order: the largest time of one is the period.

    The devices of a group are one station: they begin each step together, and the slowest sets its time.
    Without overlap its messages belong to it; with overlap they are stations of their own. Inputs and
    results of the other devices of a group are one message of its leader.
    """
    found: list[Station] = []
    stages = stages_of(groups, services)
    leaders = [groups.devices[stage.service.leader] for stage in stages]
    host, first = groups.data.devices.host, 0
    for index, stage in enumerate(stages):
        group = stage.service.part[2]
        own = first + group.index(stage.service.leader)
        target = leaders[index + 1] if index + 1 < len(stages) else host
        others = "+".join(groups.devices[device] for device in group if device != stage.service.leader)
        before = (
            *message(host, leaders[index], own, stage.receive_us),
            *message(leaders[index], others, own, stage.service.message_us),
        )
        behind = message(leaders[index], target, own, stage.send_us)
        line = (*before, _computing(groups, stage.service, first), *behind)
        found += line if groups.data.devices.overlap else [_joined(line)]
        first += sum(len(step.part[2]) for step in stage.service.steps)
    return tuple(found)


def _computing(groups: Groups, service: Service, first: int) -> Station:
    """Return the station of a group that computes; `first`: the index of its first chunk."""
    works, at, copies = list[Work](), 0, groups.chain
    for step in service.steps:
        works += [
            Work(
                row=groups.devices[device],
                chunk=first + len(works) + place,
                start_us=at,
                end_us=at + time_us,
                engine_us=(
                    at + copies.transfer_in_us[step.part[0]][device],
                    at + time_us - copies.transfer_out_us[step.part[1]][device],
                ),
            )
            for place, (device, time_us) in enumerate(zip(step.part[2], step.compute_us, strict=True))
        ]
        at += max(step.compute_us)
    return Station(time_us=at, works=tuple(works), unit=works[0].row)


def _joined(line: tuple[Station, ...]) -> Station:
    """Return stations as one, which does what they do one after the other."""
    at, works = 0, list[Work]()
    for station in line:
        works += later(station.works, at)
        at += station.time_us
    unit = next(station.unit for station in line if station.kind is ServerKind.COMPUTES)
    return Station(time_us=at, works=tuple(works), unit=unit)


class CooperationOperation(DevicesOperation):
    """An endless stream through groups of the units of a board, or of the devices of a cluster."""

    def streams(self, problem: Problem, plan: Plan, task_slots: int | None = None) -> tuple[Stream, ...]:
        """Return the stream."""
        groups = groups_of(problem)
        stream = _stream(groups, services_of(groups, well_formed(groups, plan)))
        return (replace(stream, task_slots=task_slots),)

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return the stream that runs."""
        return self.deploy(problem, plan)

    def stations(self, problem: Problem, stream: Stream) -> tuple[Station, ...]:
        """Return the groups of a stream, and their links."""
        groups = groups_of(problem)
        return stations_of(groups, _services(groups, stream))

    def shown(self, problem: Problem, plan: Plan, stream: Stream, works: Sequence[Work]) -> list[Work]:
        """Return the same: a plan lists the devices of a group by name, a stream by their tiles."""
        shown = [replace(work, chunk=plan.chunks.index(stream.chunks[work.chunk])) for work in works]
        return shown if groups_of(problem).data.steps else super().shown(problem, plan, stream, shown)

    def check_executable(self, problem: Problem) -> None:
        """Refuse devices that links join."""
        if groups_of(problem).data.devices.links:
            refuse_devices("links", "groups of several devices")

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem of plans in which devices share a chunk, then of several pipelines, and of one.

        Where layers are short against the period, devices in line have less of it than a group, which does
        halos twice: prediction alone would leave groups out.
        """
        data = groups_of(problem).data.devices
        yield problem.with_rules(some_group(2))
        if problem.rules or not set(problem.objective.terms) <= {"period", "latency", "energy"}:
            return
        for most in (None, 1):
            yield replace(problem, data=replace(data, overlap=True, most=most), rules=())

    def devices(self, problem: Problem) -> Pipelines:
        """Return what joins the devices of the groups."""
        return groups_of(problem).data.devices

    def data(self, problem: Problem, devices: Pipelines, entries: Entries = unchanged) -> Cooperation:
        """Return the data with other devices, and with what is said about each of them."""
        data = groups_of(problem).data
        idle_mw = entries(data.idle_mw) if data.idle_mw else ()
        return replace(data, devices=devices, idle_mw=idle_mw, fixed_us=tuple(map(entries, data.fixed_us)))

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each device alone, and its replicas on several; those make no item faster."""
        groups = groups_of(problem)
        layers = groups.chain.layer_count
        for names in sets:
            if len(names) == 1:
                part = (0, layers, (groups.devices.index(names[0]),))
                yield f"serial on {names[0]}", self.deploy(problem, plan_of(groups, (part,)))
            elif self.pace(problem) != "latency":
                yield f"replicas on {'+'.join(names)}", replicas(groups.chain.network, layers, names)

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network for each stream."""
        return (groups_of(problem).chain,) * len(deployment.streams)

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return how long each device computes its tile."""
        groups = groups_of(problem)
        return tuple(
            tuple(time for part in _parts(groups, stream) for time in _compute_us(groups, part))
            for stream in deployment.streams
        )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time: all that devices reserve is there from the beginning."""
        assert history.plan is not None
        numbers = problem.formulation.numbers(problem, problem.formulation.code(problem, history.plan))
        events = [event for event in history.events if not is_message(event, history.streams)]
        return usage_of(
            [(0, 0)],
            ((event.request, *event.span_us) for event in events),
            base=numbers.term("peak_memory"),
            requests=len({event.request for event in events}),
        )


def _stream(groups: Groups, services: Sequence[Service]) -> Stream:
    """Return the stream of a plan: a chunk for each device of a group, in the order of their tiles."""
    network, side = groups.chain.network, groups.data.side
    chunks, tiles, leaders = list[Chunk](), list[Tile | None](), list[int]()
    for step in (step for service in services for step in service.steps):
        start, stop, group = step.part
        leaders.append(len(chunks) + group.index(step.leader))
        for device, (first, last) in zip(group, groups.tiles(step.rows), strict=True):
            chunks.append(Chunk(network=network, start=start, stop=stop, unit=groups.devices[device]))
            tiles.append(Tile(axis=side, start=first, stop=last) if len(group) > 1 else None)
    is_divided = any(tiles)
    return Stream(
        name=network,
        chunks=tuple(chunks),
        tiles=tuple(tiles) if is_divided else (),
        leaders=tuple(leaders) if is_divided else (),
    )


def _parts(groups: Groups, stream: Stream) -> Parts:
    """Return the chunks of a stream by index, or each step of them, with their groups."""
    return tuple(
        (
            stream.chunks[group[0]].start,
            stream.chunks[group[0]].stop,
            tuple(sorted(groups.devices.index(stream.chunks[index].unit) for index in group)),
        )
        for group in stream.groups
    )


def _services(groups: Groups, stream: Stream) -> tuple[Service, ...]:
    """Return what a request takes of the groups of a stream, in the steps that it has."""
    steps = [step for part in _parts(groups, stream) if (step := groups.at_once(part)) is not None]
    if not groups.data.steps:
        return tuple(steps)
    return tuple(
        in_steps(group, [step for step in steps if start <= step.part[0] < stop]) if len(group) > 1 else only
        for start, stop, group in together([step.part for step in steps])
        for only in [next(step for step in steps if step.part[0] == start)]
    )


def _compute_us(groups: Groups, part: Part) -> tuple[int | None, ...]:
    service = groups.at_once(part)
    return (None,) * len(part[2]) if service is None else service.compute_us
