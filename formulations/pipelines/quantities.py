"""The quantities of pipelines: what is minimised and what rules speak about; and what plans break."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ..deployment import UNQUEUED
from ..expr import Expr
from ..scores import Violation, shared_cores
from ..terms import (
    Index,
    PlanNumbers,
    Quantities,
    Quantity,
    QuantityInfo,
    Term,
    TermInfo,
    quantity_table,
    table,
)
from .plans import Pipe, Pipeline, Pipes, stages_of
from .tables import Cluster


def interval_excess(cluster: Cluster, interval_ns: int) -> Expr:
    """Return an expression that is at most 0 exactly if the interval is at most `interval_ns`."""
    rate = Quantities(QUANTITIES, cluster).number(Quantity.RATE)
    # A rate that no plan has is as good as any larger one, and stays within 64 bits.
    return min(cluster.least_rate(interval_ns), rate.high + 1) - rate


class PipelineValues(PlanNumbers):
    """Every quantity of one well-formed plan, in exact integers.

    `pipes`: the chunks (start, stop, device) of each pipeline, in order of their layers; no device twice.
    """

    def __init__(self, cluster: Cluster, pipes: Pipes) -> None:
        self.cluster = cluster
        self.pipes = pipes
        self.stages = tuple(stages_of(cluster, pipe) for pipe in pipes)
        self.place = {device: index for index, pipe in enumerate(pipes) for _, _, device in pipe}
        """Index of the pipeline of each device in use."""
        every = [stage for stages in self.stages for stage in stages]
        self.busy_us = {stage.device: stage.compute_us for stage in every}
        self.stage_us = {stage.device: stage.stage_us for stage in every}
        self.memory_bytes = {stage.device: stage.memory_bytes for stage in every}
        self.periods_us = tuple(max(stage.stage_us for stage in stages) for stages in self.stages)
        self.period_us = max(self.periods_us)
        self.rate = sum(map(cluster.rate, self.periods_us))
        self.interval_ns = cluster.interval_ns(self.rate)
        self.latency_us = max(map(_latency_us, self.stages))
        self.gapness_us = max(_gapness_us(stages) for stages in self.stages)
        self.devices = len(every)
        self.pipelines = len(pipes)
        self.energy_nj = max(sum(stage.energy_nj for stage in stages) for stages in self.stages)
        self.traffic_bytes = max(sum(stage.sent_bytes for stage in stages) for stages in self.stages)
        self.peak_bytes = sum(self.memory_bytes.values())

    @property
    def switch_bytes_per_second(self) -> int:
        """Load of a switch that all links share, rounded up for each pipeline."""
        return sum(
            -(-sum(stage.sent_bytes for stage in stages) * 1_000_000 // period)
            for stages, period in zip(self.stages, self.periods_us, strict=True)
        )

    def on(self, layer: int, device: int) -> int:
        """Return whether the device runs the layer."""
        return int(any(i <= layer < j and d == device for pipe in self.pipes for i, j, d in pipe))

    def uses(self, device: int) -> int:
        """Return whether the device runs at least one layer."""
        return int(device in self.place)

    def sends(self, source: int, target: int) -> int:
        """Return whether the first device sends its results to the second."""
        pairs = (pair for pipe in self.pipes for pair in pairwise(pipe))
        return int(any(one[2] == source and other[2] == target for one, other in pairs))

    def _with(self, one: int, other: int) -> int:
        return int(self.place.get(one, -1) == self.place.get(other, -2))


def _latency_us(stages: Pipeline) -> int:
    return sum(stage.receive_us + stage.compute_us + stage.send_us for stage in stages)


def _gapness_us(stages: Pipeline) -> int:
    times = [stage.stage_us for stage in stages]
    return max(times) - min(times)


def most_message_us(cluster: Cluster, device: int) -> int:
    """Return an upper bound on the time of all messages of a device for one item."""
    sent = max((time or 0 for row in cluster.link_us[device] for time in row), default=0)
    return sent + (cluster.enter_us[device] or 0) + (cluster.leave_us[device] or 0)


def most_busy_us(cluster: Cluster, device: int) -> int:
    """Return an upper bound on the time that a device computes for one item."""
    inner = cluster.inner_us[device]
    return cluster.chain.most_busy_us(device) if inner is None else max(map(max, inner))


def most_stage_us(cluster: Cluster, device: int) -> int:
    """Return an upper bound on the time that one item takes of a device."""
    return most_busy_us(cluster, device) + most_message_us(cluster, device)


def _most_period_us(cluster: Cluster) -> int:
    return max(most_stage_us(cluster, device) for device in range(cluster.device_count))


def most_memory_bytes(cluster: Cluster, *_: int) -> int:
    """Return an upper bound on the bytes that a device needs."""
    chain, data, sizes = cluster.chain, cluster.data, cluster.boundary_bytes
    held = chain.weights.whole + max(chain.working_bytes, default=0)
    return held + (data.in_slots + data.out_slots) * max(sizes) + data.resident_bytes


def _most_latency_us(cluster: Cluster) -> int:
    return sum(most_stage_us(cluster, device) for device in range(cluster.device_count))


def _most_energy_nj(cluster: Cluster) -> int:
    power = cluster.data.power_mw
    return sum(most_busy_us(cluster, device) * watts for device, watts in enumerate(power))


def _most_traffic_bytes(cluster: Cluster) -> int:
    return sum(sorted(cluster.boundary_bytes)[-cluster.device_count - 1 :])


_LAYER = Index(name="layer", allowed=lambda cluster, *_: range(cluster.chain.layer_count))
_DEVICE = Index(name="device", allowed=lambda cluster, *_: range(cluster.device_count))
_OTHER = Index(
    name="device", allowed=lambda cluster, one: [d for d in range(cluster.device_count) if d != one]
)
_LATER = Index(name="device", allowed=lambda cluster, one: range(one + 1, cluster.device_count))

TERMS = table(
    (
        TermInfo(
            Term.THROUGHPUT,
            "time between two results of all pipelines together: the less, the more items a second",
            label="interval",
            excess=interval_excess,
        ),
        TermInfo(
            Term.PERIOD,
            "largest period of a pipeline: the longest time that one item takes of any device",
            most=_most_period_us,
        ),
        TermInfo(
            Term.LATENCY,
            "one item from entry to exit of the slowest pipeline, without waiting: all chunks and all "
            "messages",
            label=UNQUEUED,
            most=_most_latency_us,
        ),
        TermInfo(
            Term.GAPNESS,
            "largest minus smallest time that one item takes of the devices of a pipeline, of the "
            "pipeline where that is most",
            most=_most_period_us,
        ),
        TermInfo(Term.DEVICES, "number of devices in use", most=lambda cluster: cluster.device_count),
        TermInfo(
            Term.ENERGY,
            "energy that devices take to compute one item, of the pipeline that takes most; 0 where "
            "powers are not known",
            label="energy per item",
            most=_most_energy_nj,
        ),
        TermInfo(
            Term.TRAFFIC,
            "bytes that one item sends over links, of the pipeline that sends most",
            label="traffic per item",
            most=_most_traffic_bytes,
        ),
        TermInfo(
            Term.PEAK_MEMORY,
            "bytes that all devices need together",
            label="memory",
            most=lambda cluster: cluster.device_count * most_memory_bytes(cluster),
        ),
    )
)
"""What can be minimised (clusters, sections 1 and 3)."""

QUANTITIES = quantity_table(
    (
        QuantityInfo(Quantity.ON, "the device runs the layer", (_LAYER, _DEVICE)),
        QuantityInfo(Quantity.USES, "the device runs at least one layer", (_DEVICE,)),
        QuantityInfo(Quantity.SENDS, "the first device sends its results to the second", (_DEVICE, _OTHER)),
        QuantityInfo(
            Quantity.WITH,
            "both devices are in one pipeline",
            (_DEVICE, _LATER),
            read=PipelineValues._with,
        ),
        QuantityInfo(
            Quantity.BUSY,
            "time that a device computes for one item, 0 when not used",
            (_DEVICE,),
            most=most_busy_us,
        ),
        QuantityInfo(
            Quantity.STAGE,
            "time that one item takes of a device, with its messages, 0 when not used",
            (_DEVICE,),
            most=most_stage_us,
        ),
        QuantityInfo(
            Quantity.MEMORY,
            "bytes that a device needs, 0 when not used",
            (_DEVICE,),
            most=most_memory_bytes,
        ),
        QuantityInfo(Quantity.PIPELINES, "number of pipelines", most=lambda cluster: cluster.most_pipelines),
        QuantityInfo(
            Quantity.RATE,
            "items that all pipelines finish in a fixed time",
            most=lambda cluster: cluster.device_count * cluster.scale,
        ),
    ),
    TERMS,
)
"""What rules can speak about."""

PipelineValues.terms, PipelineValues.quantities = TERMS, QUANTITIES


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
        yield from cluster.chain.uncut(*part)
        start, stop, device = part
        if not cluster.fits(start, stop, device):
            text = f"{cluster.chain.where(*part)} needs {values.memory_bytes[device]} bytes, has "
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
