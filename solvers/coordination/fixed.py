"""Policies whose placement was decided before: TensorFlow Lite as Band compares with it, and plans."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import nsmallest
from itertools import product

from ...formulations.coordination.policy import Conduct, Decision, Place, Policy, UnitState, Waiting
from ...formulations.coordination.sections import Fallback
from ...formulations.coordination.setting import Setting
from ...formulations.coordination.times import Times
from ...formulations.plan import Plan

_MOST_MAPPINGS = 100_000


class TensorFlowLite(Policy):
    """Each network has one unit, and applications know nothing of each other.

    An application runs one request of a network at a time; several networks with the same unit run there at
    the same time.

    `fallback`: REST is the unmodified one ("tflite"), BACK_AND_FORTH the one with most partitions
    ("tflite-mp"). `fastest`: whether each network has the unit that is fastest for it (Band, 6.4); otherwise
    the mapping is that with the least load of the fullest unit (6.2: "the slowest model takes the fastest
    processor"). `mapping`: the unit of each network, by index, instead.
    """

    conduct = Conduct.ALONE

    def __init__(
        self, fallback: Fallback, *, fastest: bool = False, mapping: Sequence[int] | None = None
    ) -> None:
        self.fallback = fallback
        self.fastest = fastest
        name = "tflite" if fallback is Fallback.REST else "tflite-mp"
        self.name = f"{name}-fastest" if fastest else name
        self._mapping = mapping
        self._units: list[int] = []
        self._at_work: dict[int, int] = {}

    def begin(self, times: Times, demand: Sequence[float]) -> None:
        """Give each network its unit."""
        tables = [
            {option.unit: option.time_us for option in times.options(network, 0)}
            for network in range(times.network_count)
        ]
        if self._mapping is not None:
            self._units = list(self._mapping)
        elif self.fastest:
            self._units = [min(table, key=lambda unit: (table[unit], unit)) for table in tables]
        else:
            self._units = spread(tables, demand)

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the first request of a network that runs none."""
        for request in queue:
            unit = self._units[request.network]
            if request.network not in self._at_work and units[unit].available:
                self._at_work[request.network] = request.number
                return Decision(request.number, times.sections(request.network), unit)
        return None

    def ended(self, request: Waiting) -> None:
        """Take note that a network runs no more."""
        del self._at_work[request.network]


def spread(tables: Sequence[Mapping[int, float]], demand: Sequence[float]) -> list[int]:
    """Return a unit for each network, so that the largest load of a unit is least.

    Of equal ones the mapping with the least load in all, then the first. With very many networks and units
    each keeps only its fastest units.
    """
    asked = [network for network, count in enumerate(demand) if count > 0]
    keep = max(len(table) for table in tables)
    while keep > 1 and keep ** len(asked) > _MOST_MAPPINGS:
        keep -= 1
    choices = [nsmallest(keep, tables[network], key=lambda u: (tables[network][u], u)) for network in asked]
    best: tuple[float, float] | None = None
    found: tuple[int, ...] = ()
    for units in product(*choices):
        loads: dict[int, float] = {}
        for network, unit in zip(asked, units, strict=True):
            loads[unit] = loads.get(unit, 0.0) + demand[network] * tables[network][unit]
        value = max(loads.values()), sum(loads.values())
        if best is None or value < best:
            best, found = value, units
    taken = dict(zip(asked, found, strict=True))
    return [taken.get(n, min(table, key=lambda u: (table[u], u))) for n, table in enumerate(tables)]


class Planned(Policy):
    """Every request of a network takes the same chunks: a plan that was made before.

    Each unit serves what waits for it in the order in which it came.

    `chunks`: by index of the network, the chunks in order: sections done afterwards, and unit.
    """

    def __init__(self, name: str, chunks: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        self.name = name
        self._next: dict[tuple[int, int], tuple[int, int]] = {}
        for network, parts in chunks.items():
            done = 0
            for stop, unit in parts:
                self._next[network, done] = stop, unit
                done = stop

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the earliest request whose next unit is idle."""
        for request in sorted(queue):
            stop, unit = self._next[request.network, request.done]
            if units[unit].idle:
                return Decision(request.number, stop, unit)
        return None

    def requeue(self, request: Waiting) -> Place:
        """Return the tail; the order is that of the numbers anyway."""
        return Place.TAIL


class FollowedPlan(Policy):
    """Each request takes the chunks that a plan has for it; units serve requests in the order of the plan.

    A unit waits for the request whose turn it is, as the judge of workloads has it; requests that the plan
    does not know are never started.

    `chunks`: by number of the request, in the order in which units serve them: its chunks, as sections done
    afterwards, and unit.
    """

    def __init__(self, name: str, chunks: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        self.name = name
        self._turns: dict[int, deque[tuple[int, int, int]]] = {}
        for number, parts in chunks.items():
            done = 0
            for stop, unit in parts:
                self._turns.setdefault(unit, deque()).append((number, done, stop))
                done = stop

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the next chunk of an idle unit whose request is there."""
        waiting = {(request.number, request.done) for request in queue}
        for unit, turns in self._turns.items():
            if units[unit].idle and turns and turns[0][:2] in waiting:
                number, _, stop = turns.popleft()
                return Decision(number, stop, unit)
        return None


def followed(setting: Setting, plan: Plan, name: str) -> tuple[Setting, FollowedPlan]:
    """Return a plan of a workload as a policy, and the setting with its cuts as borders of sections.

    `plan`: chunks of each request. Numbers of requests are their places in the order of the plan.
    Raises InvalidInputError: the plan cuts a network where it cannot be cut, or names a unit or a network
    that is not there.
    """
    cuts: dict[str, set[int]] = {network: set(known) for network, known in setting.borders.items()}
    for chunk in plan.chunks:
        cuts.setdefault(chunk.network, set()).update({chunk.start, chunk.stop})
    ends = {network.name: {0, len(network.layers)} for network in setting.networks}
    borders = {network: tuple(sorted(known - ends.get(network, set()))) for network, known in cuts.items()}
    divided = replace(setting, borders=borders)
    chunks = {}
    for number, request in enumerate(plan.order):
        parts = plan.of(request)
        sections = divided.sections[divided.index(parts[0].network)]
        done = {section.stop: count for count, section in enumerate(sections, 1)}
        chunks[number] = [(done[chunk.stop], divided.platform.index_of(chunk.unit)) for chunk in parts]
    return divided, FollowedPlan(name, chunks)
