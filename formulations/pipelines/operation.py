"""How plans of pipelines run, and what a run leaves: items that pass devices and links in line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..chain import Chain
from ..cluster import Pipelines, refuse_devices
from ..deployment import Deployment
from ..history import History, Usage
from ..plan import Plan
from ..problem import Problem
from ..remaining import DevicesOperation, Entries, unchanged
from ..stations import Station, computing, later, message, usage_of_chunks
from ..streams import Stream
from .judge import well_formed
from .plans import Pipe, Pipes, pipe_names, plan_of, stages_of
from .tables import Cluster, cluster_of


class PipelinesOperation(DevicesOperation):
    """Endless streams on disjoint devices; the runtime serves those on one board, others are played."""

    def streams(self, problem: Problem, plan: Plan, task_slots: int | None = None) -> tuple[Stream, ...]:
        """Return one stream for each pipeline, in the canonical order of plans."""
        cluster = cluster_of(problem)
        pipes = well_formed(cluster, plan)
        whole = plan_of(cluster, pipes)
        return tuple(
            Stream(name=name or cluster.chain.network, chunks=whole.of(name), task_slots=task_slots)
            for name in pipe_names(len(pipes))
        )

    def stations(self, problem: Problem, stream: Stream) -> tuple[Station, ...]:
        """Return the devices of a pipeline, and its links."""
        cluster = cluster_of(problem)
        return stations_of(cluster, pipe_of(cluster, stream))

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

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time.

        Weights, the runtime of each device in use and the slots of its queues are always there; a chunk that
        runs needs its live tensors. Where no queue has a slot, a tensor between two chunks takes its own
        bytes.
        """
        cluster = cluster_of(problem)
        return usage_of_chunks(
            history,
            held=partial(_resident, cluster),
            running=cluster.memory_bytes,
            waiting=() if cluster.data.in_slots or cluster.data.out_slots else cluster.boundary_bytes,
        )


def _resident(cluster: Cluster, start: int, stop: int) -> int:
    """Return what a chunk keeps on its device all the time: weights, slots of queues, the runtime."""
    data, sizes = cluster.data, cluster.boundary_bytes
    waiting = data.in_slots * sizes[start] + data.out_slots * sizes[stop]
    return cluster.chain.weights.between(start, stop) + waiting + data.resident_bytes


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
        before = message(cluster.data.host, device, index, enters, received=True)
        behind = message(device, target, index, sends)
        if cluster.data.overlap:
            found += [*before, computing(device, index, stage.compute_us, copies), *behind]
            continue
        whole = computing(device, index, stage.stage_us, (enters + copies[0], sends + copies[1]))
        messages = (
            *(work for station in before for work in station.works),
            *(work for station in behind for work in later(station.works, enters + stage.compute_us)),
        )
        found.append(replace(whole, works=(*whole.works, *messages)))
    return tuple(found)


def pipe_of(cluster: Cluster, stream: Stream) -> Pipe:
    """Return the chunks of a stream by index."""
    return tuple((c.start, c.stop, cluster.devices.index(c.unit)) for c in stream.chunks)


def _copies_us(cluster: Cluster, part: tuple[int, int, int]) -> tuple[int, int]:
    """Return how long the copies in and out of a chunk take on its device."""
    start, stop, device = part
    if cluster.inner_us[device] is not None:
        return 0, 0
    return cluster.chain.transfer_in_us[start][device], cluster.chain.transfer_out_us[stop][device]
