"""The quantities of groups: what is minimised, rules speak about and the judge computes."""

from __future__ import annotations

from ..deployment import UNQUEUED
from ..terms import Index, PlanNumbers, Quantity, QuantityInfo, Term, TermInfo, quantity_table, table
from .plans import Parts, services_of, stages_of
from .tables import Groups


class GroupValues(PlanNumbers):
    """Every quantity of one well-formed plan, in exact integers.

    `parts`: the chunks in order of their layers, each with its group; no device twice.
    """

    def __init__(self, groups: Groups, parts: Parts) -> None:
        self.groups, self.parts = groups, parts
        services = services_of(groups, parts)
        self.stages = stages_of(groups, services)
        self.place = {device: index for index, part in enumerate(parts) for device in part[2]}
        """Index of the chunk of each device in use."""

        def by_device(name: str) -> dict[int, int]:
            return {
                device: value
                for service in services
                for device, value in zip(service.part[2], getattr(service, name), strict=True)
            }

        self.rows = by_device("rows")
        self.busy_us = by_device("compute_us")
        self.extra_permille = by_device("extra_permille")
        self.memory_bytes = by_device("memory_bytes")
        self.weight_bytes = by_device("weight_bytes")
        self.leaders = frozenset(service.leader for service in services)
        self.stage_us = {d: self.stages[place].stage_us for d, place in self.place.items()}
        self.period_us = max(stage.stage_us for stage in self.stages)
        self.latency_us = sum(stage.latency_us for stage in self.stages)
        self.chunks, self.devices = len(parts), len(self.place)
        self.extra_flops = sum(service.extra_flops for service in services)
        self.energy_nj = sum(s.energy_nj for s in services) + self.period_us * sum(groups.idle_mw)
        self.peak_bytes = sum(self.memory_bytes.values())

    @property
    def computing_nj(self) -> dict[int, int]:
        """By device in use the energy of computing for one request."""
        power = self.groups.power_mw
        return {device: power[device] * busy_us for device, busy_us in self.busy_us.items()}

    @property
    def standby_nj(self) -> dict[int, int]:
        """By device, in use or not, the energy of waiting from one result to the next."""
        idle = enumerate(self.groups.idle_mw)
        return {d: mw * (self.period_us - self.busy_us.get(d, 0)) for d, mw in idle}

    def on(self, layer: int, device: int) -> int:
        """Return whether the device is in the group that serves the layer."""
        return int(any(i <= layer < j and device in group for i, j, group in self.parts))

    def together(self, one: int, other: int) -> int:
        """Return whether both devices are in one group."""
        return int(self.place.get(one, -1) == self.place.get(other, -2))

    def _size(self, layer: int) -> int:
        return sum(len(group) for i, j, group in self.parts if i <= layer < j)


def most_message_us(groups: Groups) -> int:
    """Return an upper bound on the time of all messages of a group for one request."""
    size = sum(node.bytes for node in groups.data.spatial.nodes) + max(groups.boundary_bytes)
    links = [link for row in groups.links for link in row if link is not None]
    slowest = max((link.time_us(3 * size) for link in links), default=0)
    return 2 * groups.device_count * slowest + sum(2 * link.latency_us for link in links)


def most_busy_us(groups: Groups, device: int) -> int:
    """Return an upper bound on the time that a device computes for one request."""
    found = groups.chain.most_busy_us(device) + 1
    if not groups.data.steps:
        return found
    rows = (*groups.chain.transfer_in_us, *groups.chain.transfer_out_us)
    return found + sum(row[device] for row in rows)


def most_stage_us(groups: Groups) -> int:
    """Return an upper bound on the time that one request takes of a group."""
    each = [most_busy_us(groups, device) for device in range(groups.device_count)]
    busy = sum(each) if groups.data.steps else max(each)
    return busy + 2 * most_message_us(groups)


def _most_latency_us(groups: Groups) -> int:
    return groups.device_count * most_stage_us(groups)


def most_memory_bytes(groups: Groups, *_: int) -> int:
    """Return an upper bound on the bytes that a device needs."""
    chain, data, sizes = groups.chain, groups.data.devices, groups.boundary_bytes
    steps = chain.layer_count if groups.data.steps else 1
    own = max(chain.working_bytes, default=0) + (data.in_slots + data.out_slots) * max(sizes)
    return chain.weights.copied + steps * (own + data.resident_bytes + 1)


def _most_energy_nj(groups: Groups) -> int:
    power = max(groups.power_mw, default=0)
    busy = sum(most_busy_us(groups, device) for device in range(groups.device_count))
    return busy * power + most_stage_us(groups) * sum(groups.idle_mw)


def _most_extra_flops(groups: Groups) -> int:
    whole = sum(max(1, node.flops) for node in groups.data.spatial.nodes)
    return 2 * groups.device_count * whole


_LAYER = Index(name="layer", allowed=lambda groups, *_: range(groups.chain.layer_count))
_DEVICE = Index(name="device", allowed=lambda groups, *_: range(groups.device_count))
_LATER = Index(name="device", allowed=lambda groups, one: range(one + 1, groups.device_count))


TERMS = table(
    (
        TermInfo(
            Term.PERIOD,
            "the longest time that one request takes of a group: computing, and messages",
            most=most_stage_us,
        ),
        TermInfo(
            Term.LATENCY,
            "one request from entry to exit, without waiting: all chunks and all messages",
            label=UNQUEUED,
            most=_most_latency_us,
        ),
        TermInfo(
            Term.ENERGY,
            "energy of all devices from one result to the next, computing and waiting; 0 where powers "
            "are not known",
            label="energy per request",
            most=_most_energy_nj,
        ),
        TermInfo(
            Term.REDUNDANCY,
            "operations of one request that are done by more than one device: halos",
            label="redundant operations",
            most=_most_extra_flops,
        ),
        TermInfo(Term.DEVICES, "number of devices in use", most=lambda groups: groups.device_count),
        TermInfo(
            Term.PEAK_MEMORY,
            "bytes that all devices need together",
            label="memory",
            most=lambda groups: groups.device_count * most_memory_bytes(groups),
        ),
    )
)
"""What can be minimised (cooperation, sections 2 and 6)."""

QUANTITIES = quantity_table(
    (
        QuantityInfo(Quantity.ON, "the device is in the group that serves the layer", (_LAYER, _DEVICE)),
        QuantityInfo(
            Quantity.USES,
            "the device is in a group",
            (_DEVICE,),
            read=lambda values, device: int(device in values.place),
        ),
        QuantityInfo(
            Quantity.LEADS,
            "the device leads its group",
            (_DEVICE,),
            read=lambda values, device: int(device in values.leaders),
        ),
        QuantityInfo(Quantity.TOGETHER, "both devices are in one group", (_DEVICE, _LATER)),
        QuantityInfo(
            Quantity.SIZE,
            "number of devices that serve the layer",
            (_LAYER,),
            most=lambda groups, _: groups.device_count,
            read=GroupValues._size,
        ),
        QuantityInfo(
            Quantity.BUSY,
            "time that a device computes for one request, 0 when not used",
            (_DEVICE,),
            most=most_busy_us,
        ),
        QuantityInfo(
            Quantity.EXTRA,
            "permille of its operations that a device does beyond its share, 0 when not used",
            (_DEVICE,),
            most=lambda *_: 1000,
        ),
        QuantityInfo(
            Quantity.MEMORY,
            "bytes that a device needs, 0 when not used",
            (_DEVICE,),
            most=most_memory_bytes,
        ),
        QuantityInfo(Quantity.CHUNKS, "number of chunks", most=lambda groups: groups.device_count),
    ),
    TERMS,
)
"""What rules can speak about."""

GroupValues.terms, GroupValues.quantities = TERMS, QUANTITIES
