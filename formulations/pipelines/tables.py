"""The integer tables of pipelines over devices: what chunks, messages and memory take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..chain import Chain, build_chain
from ..cluster import InnerDevice, Pipelines
from ..network import Network
from ..problem import Problem

Intervals = tuple[tuple[int, ...], ...]
"""Microseconds by [start][stop]; -1: cannot run."""

_NEVER = 2**62


def interval_us(device: InnerDevice, network: Network) -> Intervals:
    """Return the least period of an inner pipeline for each chunk.

    The units of the device take the layers of the chunk in runs, each unit at most one, and units that share
    cores exclude each other. For each start the program goes over sets of units, as EPipe's over sets of
    devices (Eq. 5).

    `network`: the network; its legal cuts hold inside of the device, too.
    """
    chain = build_chain(device.platform, network, device.costs)
    # By [unit][index of the stop][index of the start], over the legal cuts: what is read in one go.
    busy = [[_until(chain, unit, stop) for stop in chain.cuts] for unit in range(chain.unit_count)]
    found = [[-1] * (chain.layer_count + 1) for _ in range(chain.layer_count + 1)]
    for index, start in enumerate(chain.cuts[:-1]):
        for stop, time_us in zip(chain.cuts[index:], _least_us(chain, busy, index), strict=True):
            if time_us < _NEVER:
                found[start][stop] = time_us
    return tuple(map(tuple, found))


def _until(chain: Chain, unit: int, stop: int) -> list[int]:
    """Return the busy time of each chunk of a unit that ends at a boundary, by its start."""
    return [
        chain.busy_us(start, stop, unit)
        if start < stop and chain.runs(start, stop, unit) and chain.fits(start, stop, unit)
        else _NEVER
        for start in chain.cuts
    ]


def _least_us(chain: Chain, busy: list[list[list[int]]], first: int) -> list[int]:
    """Return the least period from a cut to itself and every later one, over all sets of units."""
    count = len(chain.cuts) - first
    excluded = [sum(1 << other for other in chain.exclusive[unit]) for unit in range(chain.unit_count)]
    reached = {0: [0] + [_NEVER] * (count - 1)}
    best = [_NEVER] * count
    for used in range(1, 1 << chain.unit_count):
        own = [_NEVER] * count
        for unit, row in enumerate(busy):
            before = reached.get(used & ~(1 << unit)) if used >> unit & 1 else None
            if before is None or used & excluded[unit]:
                continue
            for stop in range(1, count):
                through = min(map(max, before[:stop], row[first + stop][first:]))
                own[stop] = min(own[stop], through)
        if min(own) < _NEVER:
            reached[used] = own
            best = list(map(min, best, own))
    best[0] = _NEVER
    return best


Times = tuple[int | None, ...]
"""Microseconds by boundary 0..n; None: impossible."""

RATE_DIGITS = 7
"""The rate of a good pipeline is a whole number with more digits than this (`Cluster.scale`).

With 8 and more CBC claimed that rules about the rate cannot be kept where they can.
"""


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the computed properties below are kept
class Cluster:
    """Integer tables of one network on some devices.

    `enter_us`, `leave_us`: time of the input from the host to each device, and of the result back to it;
    None: there is no link.
    """

    chain: Chain  # the network on each device: times, copies, weights, tensors, cuts, who excludes whom
    data: Pipelines  # what was asked
    boundary_bytes: tuple[int, ...]  # bytes that a cut at each boundary 0..n sends on
    link_us: tuple[tuple[Times, ...], ...]
    """Time of the message of a cut from one device to another, by [source][target][boundary 0..n]."""
    enter_us: Times
    leave_us: Times
    inner_us: tuple[Intervals | None, ...]
    """Of devices that are pipelines themselves the time of a chunk by [start][stop], -1 where it cannot run;
    None for the others."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices."""
        return self.chain.units

    @property
    def device_count(self) -> int:
        """Number of devices."""
        return len(self.chain.units)

    @property
    def most_pipelines(self) -> int:
        """Most pipelines side by side."""
        return self.device_count if self.data.most is None else min(self.data.most, self.device_count)

    def runs(self, start: int, stop: int, device: int) -> bool:
        """Return whether the device can run all layers in [start, stop)."""
        table = self.inner_us[device]
        return self.chain.runs(start, stop, device) if table is None else table[start][stop] >= 0

    def compute_us(self, start: int, stop: int, device: int) -> int:
        """Return the time of a chunk that the device can run, with copies in and out of it."""
        table = self.inner_us[device]
        return self.chain.busy_us(start, stop, device) if table is None else table[start][stop]

    def memory_bytes(self, start: int, stop: int) -> int:
        """Return the bytes that a chunk needs: weights, live tensors, waiting messages and the runtime."""
        data, sizes = self.data, self.boundary_bytes
        waiting = data.in_slots * sizes[start] + data.out_slots * sizes[stop]
        return self.chain.memory_bytes(start, stop) + waiting + data.resident_bytes

    def fits(self, start: int, stop: int, device: int) -> bool:
        """Return whether a chunk stays within the memory of its device."""
        capacity = self.chain.unit_memory[device]
        return capacity is None or self.memory_bytes(start, stop) <= capacity

    def stage_us(self, compute_us: int, *messages_us: int) -> int:
        """Return how long a device is taken by one item: it computes, and it sends or receives messages."""
        if self.data.overlap:
            return max(compute_us, *messages_us)
        return compute_us + sum(messages_us)

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """The kind of each device, numbered in their order: to swap two of one kind changes nothing."""
        found: list[int] = []
        for device in range(self.device_count):
            same = (found[other] for other in range(device) if self._alike(device, other))
            found.append(next(same, max(found, default=-1) + 1))
        return tuple(found)

    def _alike(self, one: int, other: int) -> bool:
        """Return whether to swap two devices changes nothing."""
        chain, link = self.chain, self.link_us
        rest = [device for device in range(self.device_count) if device not in (one, other)]
        power = self.data.power_mw or (0,) * self.device_count
        rows = (chain.layer_us, chain.transfer_in_us, chain.transfer_out_us)
        return (
            self.inner_us[one] == self.inner_us[other]
            and all(row[one] == row[other] for table in rows for row in table)
            and chain.unit_memory[one] == chain.unit_memory[other]
            and not (chain.exclusive[one] or chain.exclusive[other])
            and (self.enter_us[one], self.leave_us[one]) == (self.enter_us[other], self.leave_us[other])
            and power[one] == power[other]
            and link[one][other] == link[other][one]
            and all(link[one][d] == link[other][d] and link[d][one] == link[d][other] for d in rest)
        )

    @cached_property
    def _usual_us(self) -> int:
        """What the period of a good pipeline is about: the longest layer, or an equal share of all."""
        devices = range(self.device_count)
        least = [
            min((self.compute_us(i, i + 1, d) for d in devices if self.runs(i, i + 1, d)), default=1)
            for i in range(self.chain.layer_count)
        ]
        return max(*least, sum(least) // self.device_count, 1)

    @cached_property
    def scale(self) -> int:
        """Rates are whole numbers of items in so many microseconds.

        A power of ten that gives a good pipeline `RATE_DIGITS` digits: enough to tell plans apart, and few
        enough for solvers that compute with 64 bits.
        """
        return int(10 ** (len(str(self._usual_us)) + RATE_DIGITS))

    def rate(self, period_us: int) -> int:
        """Return how many items a pipeline of a period finishes in `scale` microseconds, rounded down.

        At least one: so the slowest pipelines have an interval, too.
        """
        return max(1, self.scale // max(1, period_us))

    def interval_ns(self, rate: int) -> int:
        """Return the time between two items at a rate, to the nearest nanosecond."""
        return (2000 * self.scale + rate) // (2 * rate)

    def least_rate(self, interval_ns: int) -> int:
        """Return the least rate whose interval is at most `interval_ns`."""
        return 2000 * self.scale // (2 * interval_ns + 1) + 1


def cluster_of(problem: Problem) -> Cluster:
    """Return the tables of a problem of this formulation."""
    tables = problem.tables
    assert isinstance(tables, Cluster)
    return tables


def build_tables(problem: Problem) -> Cluster:
    """Return the tables of one network on the devices of a platform."""
    platform, network, data = problem.platform, problem.network, problem.data
    assert isinstance(data, Pipelines)
    chain = build_chain(platform, network, problem.costs.of(network.name))
    sizes = network.boundary_bytes
    types, link_of = data.typed(chain.units), data.linker(chain.units)
    known: dict[tuple[int, int] | None, Times] = {None: (None,) * len(sizes)}

    def times(source: str, target: str) -> Times:
        if not data.links or source == target:
            return (0,) * len(sizes)
        link = link_of(source, target)
        key = None if link is None else (link.bytes_per_second, link.latency_us)
        if link is not None and key not in known:
            known[key] = tuple(map(link.time_us, sizes))
        return known[key]

    names = chain.units
    host = data.host
    inner = {name: data.inner_of(name, types) for name in names}
    tables = {one.device: interval_us(one, network) for one in inner.values() if one is not None}
    return Cluster(
        chain=chain,
        data=data,
        boundary_bytes=sizes,
        link_us=tuple(tuple(times(source, target) for target in names) for source in names),
        enter_us=tuple(times(host, name)[0] if host else 0 for name in names),
        leave_us=tuple(times(name, host)[-1] if host else 0 for name in names),
        inner_us=tuple(None if one is None else tables[one.device] for one in inner.values()),
    )
