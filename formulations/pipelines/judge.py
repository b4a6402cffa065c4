"""What a plan of pipelines breaks, in exact integers; independent of every encoding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ..errors import MalformedPlanError
from ..plan import Plan
from ..scores import Violation, shared_cores
from .plans import Pipe, Pipes, ordered
from .quantities import PipelineValues
from .tables import Cluster


def well_formed(cluster: Cluster, plan: Plan) -> Pipes:
    """Return the chunks of a plan by index, pipeline by pipeline."""
    unknown = tuple(_unknown(cluster, plan))
    if unknown:
        raise MalformedPlanError(plan, unknown)
    names = dict.fromkeys(chunk.request for chunk in plan.chunks)
    place = {name: index for index, name in enumerate(cluster.devices)}
    pipes = tuple(tuple((c.start, c.stop, place[c.unit]) for c in plan.of(name)) for name in names)
    wrong = tuple(_malformations(cluster, pipes))
    if wrong:
        raise MalformedPlanError(plan, wrong)
    return ordered(pipes)


def _unknown(cluster: Cluster, plan: Plan) -> Iterator[Violation]:
    yield from cluster.chain.unknown(plan, noun="device")
    named = {chunk.request for chunk in plan.chunks}
    if plan.order and set(plan.order) != named:
        yield Violation(rule="names", message=f"its pipelines are {sorted(named)}, it lists {plan.order}")


def _malformations(cluster: Cluster, pipes: Pipes) -> Iterator[Violation]:
    """Yield what keeps a plan from having a score at all."""
    seen: set[int] = set()
    for number, pipe in enumerate(pipes, start=1):
        of = f" of pipeline {number}" if len(pipes) > 1 else ""
        at = 0
        for start, stop, device in pipe:
            if start != at:
                kind = "are covered twice" if start < at else "are not covered"
                text = f"layers {min(start, at)} to {max(start, at) - 1}{of} {kind}"
                yield Violation(rule="coverage", message=text)
            if device in seen:
                text = f"{_where(cluster, (start, stop, device))} is a second chunk on that device"
                yield Violation(rule="contiguity", message=text)
            if not cluster.runs(start, stop, device):
                text = f"{_where(cluster, (start, stop, device))}: the device cannot run all these layers"
                yield Violation(rule="support", message=text)
            seen.add(device)
            at = max(at, stop)
        if at != cluster.chain.layer_count:
            text = f"layers {at} to {cluster.chain.layer_count - 1}{of} are not covered"
            yield Violation(rule="coverage", message=text)


def _where(cluster: Cluster, part: tuple[int, int, int]) -> str:
    start, stop, device = part
    return f"chunk [{start}, {stop}) on {cluster.devices[device]!r}"


def broken(values: PipelineValues) -> Iterator[Violation]:
    """Yield which facts of the devices a well-formed plan breaks."""
    cluster = values.cluster
    if len(values.pipes) > cluster.most_pipelines:
        text = f"{len(values.pipes)} pipelines, at most {cluster.most_pipelines} are allowed"
        yield Violation(rule="most", message=text)
    yield from shared_cores(values.place, cluster.chain.exclusive, cluster.devices)
    for pipe in values.pipes:
        yield from _broken_by(values, pipe)
    capacity = cluster.chain.device_memory
    if capacity is not None and values.peak_bytes > capacity:
        text = f"the plan needs {values.peak_bytes} bytes, the platform has {capacity}"
        yield Violation(rule="device_memory", message=text)
    most = cluster.data.switch_bytes_per_second
    if most is not None and values.switch_bytes_per_second > most:
        text = f"{values.switch_bytes_per_second} bytes a second cross the switch, it carries {most}"
        yield Violation(rule="switch", message=text)


def _broken_by(values: PipelineValues, pipe: Pipe) -> Iterator[Violation]:
    cluster = values.cluster
    for part in pipe:
        start, stop, device = part
        if stop not in cluster.chain.cuts:
            text = f"{_where(cluster, part)} ends where no cut is allowed"
            yield Violation(rule="cut", message=text)
        if not cluster.fits(start, stop, device):
            text = f"{_where(cluster, part)} needs {values.memory_bytes[device]} bytes, has "
            yield Violation(rule="unit_memory", message=f"{text}{cluster.chain.unit_memory[device]}")
    for (_, _, one), (_, _, other) in pairwise(pipe):
        if cluster.link_us[one][other][0] is None:
            text = f"there is no link from {cluster.devices[one]!r} to {cluster.devices[other]!r}"
            yield Violation(rule="link", message=text)
    first, last = pipe[0][2], pipe[-1][2]
    if cluster.enter_us[first] is None or cluster.leave_us[last] is None:
        device = first if cluster.enter_us[first] is None else last
        text = f"there is no link between the host and {cluster.devices[device]!r}"
        yield Violation(rule="link", message=text)
