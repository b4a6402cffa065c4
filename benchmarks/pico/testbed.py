"""The devices of PICO as an estimated platform, its networks in pieces, and what a plan costs each device.

The paper prints clocks, cores and the rate of its access point (6.1), but no speeds and no powers. A core is
taken to sustain `OPERATIONS` operations a cycle, a multiplication with its addition counting as two: the
one unknown, chosen so that the layer-wise scheme gains what the paper says of it (6.3.1). Powers are those of
the shipped cluster `pico-testbed`, which are assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean

from gapless.formulations.cluster_platform import ClusterPlatform, DeviceType, Speed
from gapless.formulations.cooperation.quantities import GroupValues
from gapless.formulations.cooperation.tables import groups_of
from gapless.formulations.groups import Cooperation
from gapless.formulations.hardware import UnitKind
from gapless.formulations.problem import Problem
from gapless.formulations.spatial import SpatialNetwork
from gapless.formulations.terms import Objective
from gapless.profiler.clusters.catalog import shipped_cluster
from gapless.profiler.clusters.costs import cluster_problem
from gapless.solvers.pieces.finding import find_pieces, usual_pieces
from gapless.solvers.session import solve

from ..group_instances import in_pieces
from ..group_schemes import scheme
from ..pieces import network_of

OPERATIONS = 1.0
"""Floating-point operations a cycle of one core: derived, as in `pico-testbed`."""

BYTES_PER_SECOND = 6_250_000
"""50 Mbit/s (6.1)."""


@dataclass(frozen=True, kw_only=True)
class PaperDevices:
    """The paper's devices.

    Attributes
    ----------
    operations
        Floating-point operations a cycle.
    """

    operations: float = OPERATIONS

    def pis(self, *ghz: float) -> ClusterPlatform:
        """Return Raspberry Pis 4B at some clocks, one core each; equal clocks side by side are one type."""
        power = {one.name: one for one in shipped_cluster("pico-testbed").types}["pi08"]
        clocks = dict.fromkeys(ghz)
        types = tuple(
            DeviceType(
                name=f"pi{10 * clock:02g}",
                count=ghz.count(clock),
                kind=UnitKind.CPU,
                power_mw=power.power_mw,
                idle_mw=power.idle_mw,
                speed=Speed(flops_per_second=round(self.operations * clock * 1e9)),
                port_bytes_per_second=BYTES_PER_SECOND,
            )
            for clock in clocks
        )
        return ClusterPlatform(name="raspberry pis", types=types)

    @property
    def unlike(self) -> ClusterPlatform:
        """Two TX2 NX and six Raspberry Pis at three clocks (6.1)."""
        found, scale = shipped_cluster("pico-testbed"), self.operations / OPERATIONS
        types = (
            replace(one, speed=replace(one.speed, flops_per_second=round(scale * one.speed.flops_per_second)))
            for one in found.types
            if one.speed is not None
        )
        return replace(found, types=tuple(types))


@cache
def trunk(name: str) -> SpatialNetwork:
    """Return a network up to its last convolution or pool: "13 conv + 5 pool" of VGG16 (Table 5)."""
    network = network_of(name)
    last = max(index for index, node in enumerate(network.nodes) if node.is_layer and any(node.splits))
    return replace(network, nodes=network.nodes[: last + 1], outputs=(last,))


@cache
def labels(network: SpatialNetwork, *, blocks: bool = False) -> tuple[int, ...]:
    """Return the piece of each node; `blocks`: cut only where one tensor passes (6.2.2)."""
    return (find_pieces(network, method="blocks") if blocks else usual_pieces(network)).labels


def problem_on(
    network: SpatialNetwork, pieces: Sequence[int], cluster: ClusterPlatform, *, charged: bool
) -> Problem:
    """Return the problem of a network over devices; `charged`: messages between groups take time."""
    problem = cluster_problem(in_pieces(network, pieces), cluster)
    data = Cooperation(
        spatial=network,
        pieces=tuple(pieces),
        interstage=charged,
        devices=replace(problem.data, overlap=False),
        idle_mw=cluster.idle_mw,
    )
    return replace(problem, data=data, objective=Objective(terms=("period",)))


def least_us(problem: Problem, backend: str = "native") -> int:
    """Return the period of the plan of a backend."""
    found = solve(problem, backend, explain=False).objective
    assert found is not None
    return int(found)


@dataclass(frozen=True, kw_only=True)
class Account:
    """What a plan, or a scheme that is no pipeline, costs each device for one request.

    Attributes
    ----------
    period_us
        From one result to the next.
    busy, redundant
        By device the share of the time that it computes, and of its operations that others do, too.
    weight_bytes, memory_bytes
        By device.
    computing_nj, standby_nj
        Energy of all devices.
    """

    period_us: int
    busy: tuple[float, ...]
    redundant: tuple[float, ...]
    weight_bytes: tuple[int, ...]
    memory_bytes: tuple[int, ...]
    computing_nj: int
    standby_nj: int

    @property
    def feature_bytes(self) -> float:
        """Mean over the devices of what is not weights."""
        return mean(self.memory_bytes) - mean(self.weight_bytes)


def planned(problem: Problem, backend: str) -> Account:
    """Return what the plan of a backend costs."""
    plan = solve(problem, backend, explain=False).plan
    assert plan is not None
    found = problem.formulation.numbers(problem, problem.formulation.code(problem, plan))
    assert isinstance(found, GroupValues)

    def column(row: dict[int, int]) -> tuple[int, ...]:
        return tuple(row.get(device, 0) for device in range(found.groups.device_count))

    return Account(
        period_us=found.period_us,
        busy=tuple(us / found.period_us for us in column(found.busy_us)),
        redundant=tuple(permille / 1000 for permille in column(found.extra_permille)),
        weight_bytes=column(found.weight_bytes),
        memory_bytes=column(found.memory_bytes),
        computing_nj=sum(found.computing_nj.values()),
        standby_nj=sum(found.standby_nj.values()),
    )


def by_scheme(problem: Problem, name: str) -> Account:
    """Return what a scheme costs: one request after the other on all devices, in even parts but for CE."""
    groups = groups_of(problem)
    found = scheme(groups, name, even=True)
    assert found is not None
    period, powers = found.period_us, zip(groups.power_mw, groups.idle_mw, found.busy_us, strict=True)
    energy = [(power * busy, idle * (period - busy)) for power, idle, busy in powers]
    return Account(
        period_us=period,
        busy=found.utilisation,
        redundant=tuple(permille / 1000 for permille in found.extra_permille),
        weight_bytes=found.weight_bytes,
        memory_bytes=found.memory_bytes,
        computing_nj=sum(computing for computing, _ in energy),
        standby_nj=sum(standby for _, standby in energy),
    )
