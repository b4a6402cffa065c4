"""Plans of pipelines by index, what keeps them from having a score, and what each of their stages takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..chain import Part
from ..errors import MalformedPlanError
from ..plan import Chunk, Plan
from ..scores import Violation
from .tables import Cluster

Pipe = tuple[Part, ...]
"""One pipeline: its chunks (start, stop, device) in order of their layers."""

Pipes = tuple[Pipe, ...]
"""A plan: its pipelines, ordered by their first device in the order of the platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One device of a pipeline, for one item.

    `receive_us`, `send_us`: how long the input from the host takes, and what it sends: to the next device, or
    to the host.
    """

    device: int  # index of the device
    compute_us: int  # how long it computes
    receive_us: int
    send_us: int
    stage_us: int  # how long the item takes it, both together: `Cluster.stage_us`
    sent_bytes: int  # what it sends to the next device over a link
    memory_bytes: int  # what it needs
    energy_nj: int  # what it takes to compute

    @property
    def message_us(self) -> int:
        """How long all its messages take."""
        return self.receive_us + self.send_us


Pipeline = tuple[Stage, ...]
"""The stages of one pipeline, in order."""


def stages_of(cluster: Cluster, pipe: Pipe) -> Pipeline:
    """Return what each device of a pipeline does for one item (EPipe, Eq. 4 and 5; errata E1 and E2).

    A message over a link that is not there takes no time here; the judge reports it.
    """
    found = []
    for place, (start, stop, device) in enumerate(pipe):
        last = place == len(pipe) - 1
        receives = (cluster.enter_us[device] or 0) if place == 0 else 0
        if last:
            sends, size = cluster.leave_us[device] or 0, 0
        else:
            sends = cluster.link_us[device][pipe[place + 1][2]][stop] or 0
            size = cluster.boundary_bytes[stop] if cluster.data.links else 0
        compute = cluster.compute_us(start, stop, device)
        power = cluster.data.power_mw[device] if cluster.data.power_mw else 0
        found.append(
            Stage(
                device=device,
                compute_us=compute,
                receive_us=receives,
                send_us=sends,
                stage_us=cluster.stage_us(compute, sends, receives),
                sent_bytes=size,
                memory_bytes=cluster.memory_bytes(start, stop),
                energy_nj=power * compute,
            )
        )
    return tuple(found)


def ordered(pipes: Pipes) -> Pipes:
    """Return pipelines in the order of plans: by the device of each that comes first on the platform."""
    return tuple(sorted(pipes, key=lambda pipe: min(device for _, _, device in pipe)))


def whole_plans(cluster: Cluster) -> Iterator[Pipes]:
    """Yield the plans that cut nothing, on one device each that can run all layers."""
    last = cluster.chain.layer_count
    for device in range(cluster.device_count):
        if cluster.runs(0, last, device):
            yield (((0, last, device),),)


def plan_of(cluster: Cluster, pipes: Pipes) -> Plan:
    """Return a plan by name; of several pipelines each has a name of its own."""
    names = pipe_names(len(pipes))
    chunks = (
        Chunk(
            network=cluster.chain.network, start=start, stop=stop, unit=cluster.devices[device], request=name
        )
        for name, pipe in zip(names, pipes, strict=True)
        for start, stop, device in pipe
    )
    return Plan(chunks=tuple(chunks), order=names if len(pipes) > 1 else ())


def pipe_names(count: int) -> tuple[str, ...]:
    """Return the names of the pipelines of a plan: numbers from 1, none for a single one."""
    return (
        tuple(f"pipeline {number:0{len(str(count))}}" for number in range(1, count + 1))
        if count > 1
        else ("",)
    )


def well_formed(cluster: Cluster, plan: Plan) -> Pipes:
    """Return the chunks of a plan by index, pipeline by pipeline."""
    unknown = tuple(_unknown(cluster, plan))
    if unknown:
        raise MalformedPlanError(plan, unknown)
    names = dict.fromkeys(chunk.request for chunk in plan.chunks)
    place = {name: index for index, name in enumerate(cluster.devices)}
    pipes = tuple(tuple((c.start, c.stop, place[c.unit]) for c in plan.of(name)) for name in names)

    def stuck(*part: int) -> str:
        return "" if cluster.runs(*part) else "the device cannot run all these layers"

    wrong, seen = list[Violation](), set[int]()
    for number, pipe in enumerate(pipes, start=1):
        of = f" of pipeline {number}" if len(pipes) > 1 else ""
        wrong += cluster.chain.malformed(pipe, seen, stuck, noun="device", of=of)
    if wrong:
        raise MalformedPlanError(plan, tuple(wrong))
    return ordered(pipes)


def _unknown(cluster: Cluster, plan: Plan) -> Iterator[Violation]:
    yield from cluster.chain.unknown(plan, noun="device")
    named = {chunk.request for chunk in plan.chunks}
    if plan.order and set(plan.order) != named:
        yield Violation(rule="names", message=f"its pipelines are {sorted(named)}, it lists {plan.order}")
