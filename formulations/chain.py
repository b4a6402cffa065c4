"""One network on one platform as plain integers by index: where every backend starts from.

This is the only place that says what a chunk costs; the judge, the native algorithms and the
encoders all ask here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from .costs import NetworkCosts, TransferRows
from .energy import Powers, powers_of
from .errors import MalformedPlanError
from .hardware import Platform
from .network import Network
from .plan import Chunk, Plan
from .scores import Violation
from .weights import Weights

Part = tuple[int, int, int]
"""A chunk by index: first layer, one past the last, unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Integer tables of one network on one platform.

    `network`, `units`: names, to come back from indices. `transfer_in_us`, `transfer_out_us`: by [boundary
    0..n][unit].
    """

    network: str
    units: tuple[str, ...]
    layer_us: tuple[tuple[int | None, ...], ...]  # time by [layer][unit]; None: cannot run there
    prefix_us: tuple[tuple[int, ...], ...]
    """Sum of the times of the layers before a boundary, by [unit][boundary 0..n]; None counts 0."""
    blocked: tuple[tuple[int, ...], ...]
    """Number of layers before a boundary that the unit cannot run, by [unit][boundary 0..n]."""
    transfer_in_us: TransferRows
    transfer_out_us: TransferRows
    weights: Weights  # weight bytes of its layers
    working_bytes: tuple[int, ...]  # bytes of the tensors in memory while a layer runs, by [layer]
    unit_memory: tuple[int | None, ...]  # capacity of each unit in bytes, or None
    device_memory: int | None  # capacity of the platform in bytes, or None
    cuts: tuple[int, ...]  # boundaries where a chunk may start or stop: 0, the legal cuts, n
    exclusive: tuple[frozenset[int], ...]  # for each unit the set of the units that it excludes
    resources: tuple[int, ...]
    """For each unit the first unit of those that take turns with it, whose loads are added up; itself where
    it takes turns with none."""
    powers: Powers | None  # of the units; None: not all are known

    @property
    def resource_count(self) -> int:
        """Number of resources: of units, if none takes turns with another one."""
        return len(set(self.resources))

    @property
    def pools(self) -> dict[int, tuple[int, ...]]:
        """The units of each resource, by its first unit."""
        found: dict[int, tuple[int, ...]] = {}
        for unit, first in enumerate(self.resources):
            found[first] = (*found.get(first, ()), unit)
        return found

    def pooled(self, loads: Mapping[int, int]) -> dict[int, int]:
        """Return the loads of resources from those of the units in use."""
        found: dict[int, int] = {}
        for unit, load in loads.items():
            first = self.resources[unit]
            found[first] = found.get(first, 0) + load
        return found

    def taking_turns(self, resources: tuple[int, ...]) -> Chain:
        """Return the same tables where units of one resource take turns, and do not exclude each other."""
        return replace(
            self,
            resources=resources,
            exclusive=tuple(
                frozenset(other for other in others if resources[other] != resources[unit])
                for unit, others in enumerate(self.exclusive)
            ),
        )

    @property
    def layer_count(self) -> int:
        """Number of layers."""
        return len(self.layer_us)

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return len(self.units)

    def runs(self, start: int, stop: int, unit: int) -> bool:
        """Return whether the unit can run all layers in [start, stop)."""
        return self.blocked[unit][stop] == self.blocked[unit][start]

    def busy_us(self, start: int, stop: int, unit: int) -> int:
        """Return the busy time of a chunk: its layers, copy-in and copy-out (formulations, section 1).

        Layers that the unit cannot run count 0; ask `runs` first.
        """
        prefix = self.prefix_us[unit]
        return (
            prefix[stop] - prefix[start] + self.transfer_in_us[start][unit] + self.transfer_out_us[stop][unit]
        )

    def copies_us(self, unit: int) -> int:
        """Return an upper bound on the copy-in and copy-out of a unit together, whatever its chunk."""
        tables = (self.transfer_in_us, self.transfer_out_us)
        return sum(max(row[unit] for row in table) for table in tables)

    def most_busy_us(self, unit: int) -> int:
        """Return an upper bound on the busy time of a unit, whatever its chunk."""
        return self.prefix_us[unit][self.layer_count] + self.copies_us(unit)

    def memory_bytes(self, start: int, stop: int) -> int:
        """Return the bytes a chunk needs: its weights, and the most live tensors of any layer."""
        return self.weights.between(start, stop) + max(self.working_bytes[start:stop])

    def fits(self, start: int, stop: int, unit: int) -> bool:
        """Return whether a chunk stays within the memory of its unit."""
        capacity = self.unit_memory[unit]
        return capacity is None or self.memory_bytes(start, stop) <= capacity

    def plan(self, parts: tuple[Part, ...]) -> Plan:
        """Return the plan with these chunks."""
        return Plan(
            chunks=tuple(
                Chunk(network=self.network, start=start, stop=stop, unit=self.units[unit])
                for start, stop, unit in parts
            )
        )

    def parts(self, plan: Plan) -> tuple[Part, ...]:
        """Return the chunks of a plan by index, in order of their layers.

        Raises MalformedPlanError: a chunk names an unknown network or unit, or layers that do not exist.
        """
        index = {name: position for position, name in enumerate(self.units)}
        known, last = self.network, self.layer_count
        if any(c.network != known or c.unit not in index or c.stop > last for c in plan.chunks):
            raise MalformedPlanError(plan, self.unknown(plan))
        return tuple((chunk.start, chunk.stop, index[chunk.unit]) for chunk in plan.chunks)

    def malformed(
        self,
        parts: Iterable[Part],
        seen: set[int],
        stuck: Callable[[int, int, int], str],
        *,
        noun: str = "unit",
        of: str = "",
        once: bool = True,
    ) -> Iterator[Violation]:
        """Yield what keeps chunks that should cover the network from having a score at all.

        `seen`: the units of other chunks, and then of these; `stuck`: why a unit cannot run a chunk; `of`: of
        what, in words; `once`: at most one chunk per unit.
        """
        at, before = 0, -1
        for start, stop, unit in parts:
            yield from gap(at, start, of)
            where = self.where(start, stop, unit)
            if unit in seen and once:
                yield Violation(rule="contiguity", message=f"{where} is a second chunk on that {noun}")
            elif unit == before:
                text = f"{where} goes on where the chunk before it ends"
                yield Violation(rule="contiguity", message=text)
            if reason := stuck(start, stop, unit):
                yield Violation(rule="support", message=f"{where}: {reason}")
            seen.add(unit)
            at, before = max(at, stop), unit
        yield from gap(at, self.layer_count, of)

    def where(self, start: int, stop: int, unit: int) -> str:
        """Return what a chunk is called."""
        return f"chunk [{start}, {stop}) on {self.units[unit]!r}"

    def uncut(self, start: int, stop: int, unit: int) -> Iterator[Violation]:
        """Yield that a chunk ends where none may."""
        if stop not in self.cuts:
            text = f"{self.where(start, stop, unit)} ends where no cut is allowed"
            yield Violation(rule="cut", message=text)

    def unknown(self, plan: Plan, *, noun: str = "unit") -> Iterator[Violation]:
        """Yield what a plan names that is not there; `noun`: what its units are called."""
        for chunk in plan.chunks:
            where = f"chunk [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"
            for text in self._strange(chunk, noun):
                yield Violation(rule="names", message=f"{where}: {text}")

    def _strange(self, chunk: Chunk, noun: str) -> Iterator[str]:
        if chunk.network != self.network:
            yield f"network {chunk.network!r}; the problem has {self.network!r}"
        if chunk.unit not in self.units:
            yield f"no such {noun}; the platform has {', '.join(self.units)}"
        if chunk.stop > self.layer_count:
            yield f"the network has only {self.layer_count} layers"


def gap(at: int, start: int, of: str = "") -> Iterator[Violation]:
    """Yield the layers between the end of chunks and the start of the next one."""
    if start != at:
        kind = "are covered twice" if start < at else "are not covered"
        text = f"layers {min(start, at)} to {max(start, at) - 1}{of} {kind}"
        yield Violation(rule="coverage", message=text)


def build_chain(platform: Platform, network: Network, costs: NetworkCosts) -> Chain:
    """Return the integer tables of one network on one platform; both match already."""
    count, units = len(network.layers), range(len(platform.units))
    no_transfer = ((0,) * len(units),) * (count + 1)
    columns = [[row[unit] for row in costs.layer_us] for unit in units]
    return Chain(
        network=network.name,
        units=platform.unit_names,
        layer_us=costs.layer_us,
        prefix_us=tuple(tuple(accumulate((t or 0 for t in col), initial=0)) for col in columns),
        blocked=tuple(tuple(accumulate((t is None for t in col), initial=0)) for col in columns),
        transfer_in_us=costs.transfer_in_us or no_transfer,
        transfer_out_us=costs.transfer_out_us or no_transfer,
        weights=network.weights,
        working_bytes=network.working_bytes,
        unit_memory=tuple(unit.memory_bytes for unit in platform.units),
        device_memory=platform.memory_bytes,
        cuts=(0, *network.legal_cuts, count),
        exclusive=platform.exclusive,
        resources=tuple(units),
        powers=powers_of(platform),
    )
