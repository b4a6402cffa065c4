"""How plans of pipelines run, and what a run leaves: items that pass devices and links in line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ..chain import Chain
from ..cluster import Pipelines, refuse_devices
from ..deployment import Deployment
from ..flight import checked_slots, served, slots_in_line
from ..history import History, Interval, Usage, is_message, link_name, simulated, usage_of
from ..operation import Line, Server, ServerKind
from ..plan import Plan
from ..problem import Problem
from ..remaining import DevicesOperation, Entries, unchanged
from ..stations import Station, Work, intervals, later, message
from ..streams import Stream
from .judge import well_formed
from .plans import Pipe, Pipes, pipe_names, plan_of, stages_of
from .tables import Cluster, cluster_of


class PipelinesOperation(DevicesOperation):
    """Endless streams on disjoint devices; the runtime serves those on one board, others are played."""

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream for each pipeline, of one item at a time where the latency counts first."""
        alone = task_slots is None and self.pace(problem) == "latency"
        return deploy(cluster_of(problem.charged(plan)), plan, task_slots=1 if alone else task_slots)

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return one stream for each pipeline."""
        return deploy(cluster_of(problem.charged(plan)), plan)

    def check_executable(self, problem: Problem) -> None:
        """Refuse devices that links join, and devices that are pipelines themselves."""
        data = cluster_of(problem).data
        what = ("links" if data.links else "") or ("devices with units of their own" if data.inner else "")
        if what:
            refuse_devices(what)

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with one pipeline, where several may be."""
        cluster = cluster_of(problem)
        if cluster.most_pipelines > 1 and self.pace(problem) != "latency":
            yield replace(problem, data=replace(cluster.data, most=1))

    def devices(self, problem: Problem) -> Pipelines:
        """Return the data of the problem."""
        return cluster_of(problem).data

    def data(self, problem: Problem, devices: Pipelines, entries: Entries = unchanged) -> Pipelines:
        """Return what joins the devices: there is nothing else."""
        return devices

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each device alone, and its replicas on several; those make no item faster."""
        cluster = cluster_of(problem)
        for names in sets:
            places = sorted(cluster.devices.index(name) for name in names)
            pipes: Pipes = tuple(((0, cluster.chain.layer_count, place),) for place in places)
            if len(names) == 1 or self.pace(problem) != "latency":
                label = f"{'serial' if len(names) == 1 else 'replicas'} on {'+'.join(names)}"
                yield label, self.deploy(problem, plan_of(cluster, pipes))

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network for each stream."""
        return (cluster_of(problem).chain,) * len(deployment.streams)

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return how long each chunk computes, on devices with units of their own, too."""
        cluster = cluster_of(problem)
        return tuple(
            tuple(
                cluster.compute_us(*part) if cluster.runs(*part) else None
                for part in pipe_of(cluster, stream)
            )
            for stream in deployment.streams
        )

    def stations(self, problem: Problem, deployment: Deployment) -> Iterator[tuple[Sequence[Station], int]]:
        """Yield the devices of each pipeline, and its links."""
        cluster = cluster_of(problem)
        for stream in deployment.streams:
            line = stations_of(cluster, pipe_of(cluster, stream))
            yield line, stream.task_slots or slots_in_line(len(stream.chunks), len(line))

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the stations of each pipeline."""
        cluster = cluster_of(problem)
        pipes: Pipes = problem.formulation.code(problem, plan)
        names = pipe_names(len(pipes))
        return tuple(
            Line(
                name=name,
                servers=tuple(_server(cluster, pipe, station) for station in stations_of(cluster, pipe)),
            )
            for name, pipe in zip(names, pipes, strict=True)
        )

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a number of items.

        With an interval, items are dealt to the pipelines as if all were there (`deal`). Without one, each
        pipeline gets items at its own period, from the beginning on.
        """
        requests, slots = checked_slots(requests, interval_us, task_slots)
        cluster = cluster_of(problem.charged(plan))
        pipes = well_formed(cluster, plan)
        lines = [stations_of(cluster, pipe) for pipe in pipes]
        arrivals: dict[tuple[int, int], int] = {}
        events: list[Interval] = []
        dealt = deal(lines, requests, from_start=interval_us is None)
        for stream, line in enumerate(lines):
            own = [number for number, taken in enumerate(dealt) if taken == stream]
            pace = _period_us(line)
            times = [
                count * pace if interval_us is None else number * interval_us
                for count, number in enumerate(own)
            ]
            arrivals |= {(count, stream): time for count, time in enumerate(times)}
            visits = served([station.time_us for station in line], times, slots)
            events += intervals(line, visits, stream, engines=False)
        return simulated(
            plan_of(cluster, pipes),
            events,
            units=cluster.devices,
            arrivals_us=tuple(arrivals[key] for key in sorted(arrivals)),
        )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time.

        Weights, the runtime of each device in use and the slots of its queues are always there; a chunk that
        runs needs its live tensors. Where no queue has a slot, a tensor between two chunks takes its own
        bytes.
        """
        assert history.plan is not None
        cluster = cluster_of(problem.charged(history.plan))
        chunks = [chunk for stream in history.streams for chunk in stream.chunks]
        numbers = {
            key: place for place, key in enumerate(sorted({(e.request, e.stream) for e in history.events}))
        }
        return usage_of(
            _changes(cluster, history),
            ((numbers[e.request, e.stream], *e.span_us) for e in _on_devices(history)),
            base=sum(_resident(cluster, chunk.start, chunk.stop) for chunk in chunks),
            requests=len(numbers),
        )


def _on_devices(trace: History) -> Iterator[Interval]:
    return (event for event in trace.events if not is_message(event, trace.streams))


def _changes(cluster: Cluster, trace: History) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of tensors."""
    data = cluster.data
    reserved = bool(data.in_slots or data.out_slots)
    items: defaultdict[tuple[int, int], list[Interval]] = defaultdict(list)
    for event in _on_devices(trace):
        items[event.stream, event.request].append(event)
    for (stream, _), events in items.items():
        chunks = trace.streams[stream].chunks
        events.sort(key=lambda event: event.chunk)
        for event in events:
            chunk, (start_us, end_us) = chunks[event.chunk], event.span_us
            running = cluster.memory_bytes(chunk.start, chunk.stop) - _resident(
                cluster, chunk.start, chunk.stop
            )
            yield start_us, running
            yield end_us, -running
        for event, following in pairwise(events if not reserved else []):
            waiting = cluster.boundary_bytes[chunks[event.chunk].stop]
            yield event.span_us[1], waiting
            yield following.span_us[0], -waiting


def _resident(cluster: Cluster, start: int, stop: int) -> int:
    """Return what a chunk keeps on its device all the time: weights, slots of queues, the runtime."""
    data, sizes = cluster.data, cluster.boundary_bytes
    waiting = data.in_slots * sizes[start] + data.out_slots * sizes[stop]
    return cluster.chain.weights.between(start, stop) + waiting + data.resident_bytes


def deploy(cluster: Cluster, plan: Plan, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for each pipeline, in the canonical order of plans.

    `task_slots`: of each stream; None: as `Stream` says.
    Raises MalformedPlanError: the plan is not well formed.
    """
    pipes = well_formed(cluster, plan)
    whole = plan_of(cluster, pipes)
    return Deployment(
        streams=tuple(
            Stream(
                name=name or cluster.chain.network,
                chunks=whole.of(name),
                task_slots=task_slots,
            )
            for name in pipe_names(len(pipes))
        )
    )


def _server(cluster: Cluster, pipe: Pipe, station: Station) -> Server:
    """Return what a station is to items that pass it: a device, or what it does beside computing."""
    work = station.works[0]
    device = cluster.devices[pipe[work.chunk][2]]
    kind = ServerKind.COMPUTES if work.row == device else ServerKind.SENDS
    if work.row == link_name(cluster.data.host, device):
        kind = ServerKind.RECEIVES
    return Server(kind=kind, unit=device, time_us=station.time_us)


def deal(lines: Sequence[tuple[Station, ...]], count: int, *, from_start: bool = False) -> list[int]:
    """Return which pipeline takes each of some items that are all there: the one that is done with it first.

    That is the least time for all of them: pipeline p is done with its n-th item at latency + (n - 1) period,
    and no other choice has fewer items behind the largest of these times (clusters, section 3).

    `from_start`: give them to the pipeline that can begin first instead: none of them waits for its first
    item.
    """
    latency = [0 if from_start else sum(station.time_us for station in line) for line in lines]
    taken = [0] * len(lines)
    found = []
    for _ in range(count):
        ends = [latency[p] + taken[p] * _period_us(line) for p, line in enumerate(lines)]
        chosen = ends.index(min(ends))
        taken[chosen] += 1
        found.append(chosen)
    return found


def _period_us(line: tuple[Station, ...]) -> int:
    return max(station.time_us for station in line)


def stations_of(cluster: Cluster, pipe: Pipe) -> tuple[Station, ...]:
    """Return the stations of a pipeline in order: the largest time of one is the period.

    A device that sends while it computes is one station, and each link another one. Without overlap the
    device is taken by its messages, too, and both are one station. Messages of no time are left out.
    """
    found: list[Station] = []
    stages = stages_of(cluster, pipe)
    for index, stage in enumerate(stages):
        device = cluster.devices[stage.device]
        enters, sends = stage.receive_us, stage.send_us
        target = cluster.devices[pipe[index + 1][2]] if index + 1 < len(pipe) else cluster.data.host
        copies = _copies_us(cluster, pipe[index])
        before = message(link_name(cluster.data.host, device), index, enters)
        behind = message(link_name(device, target), index, sends)
        if cluster.data.overlap:
            whole = _computes(device, index, 0, stage.compute_us, copies)
            found += [*before, Station(time_us=stage.compute_us, works=(whole,)), *behind]
            continue
        done = enters + stage.compute_us
        engine = (enters + copies[0], done - copies[1])
        whole = Work(row=device, chunk=index, start_us=0, end_us=done + sends, engine_us=engine)
        messages = (
            *(work for station in before for work in station.works),
            *(work for station in behind for work in later(station.works, done)),
        )
        found.append(Station(time_us=stage.stage_us, works=(whole, *messages)))
    return tuple(found)


def pipe_of(cluster: Cluster, stream: Stream) -> Pipe:
    """Return the chunks of a stream by index."""
    return tuple((c.start, c.stop, cluster.devices.index(c.unit)) for c in stream.chunks)


def _computes(device: str, index: int, start_us: int, time_us: int, copies: tuple[int, int]) -> Work:
    end_us = start_us + time_us
    engine = (start_us + copies[0], end_us - copies[1])
    return Work(row=device, chunk=index, start_us=start_us, end_us=end_us, engine_us=engine)


def _copies_us(cluster: Cluster, part: tuple[int, int, int]) -> tuple[int, int]:
    """Return how long the copies in and out of a chunk take on its device."""
    start, stop, device = part
    if cluster.inner_us[device] is not None:
        return 0, 0
    return cluster.chain.transfer_in_us[start][device], cluster.chain.transfer_out_us[stop][device]
