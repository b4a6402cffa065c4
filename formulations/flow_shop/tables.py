"""A workload on one platform as plain integers by index: where every backend starts from.

The requests pass the units in platform order and every unit serves them in one order: a permutation
flow shop whose processing times depend on where the networks are cut (Hetero2Pipe, IV).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from ..energy import Powers
from ..errors import MalformedPlanError
from ..limits import capped
from ..losses import Mark
from ..plan import Chunk, Plan
from ..problem import Problem
from ..requests import RequestTables, chains_of, losses_of, networks_in_use
from ..scores import Violation
from ..workload import RequestOrder, Workload

Cuts = tuple[int, ...]
"""Boundaries 0 = c_0 <= c_1 <= ... <= c_K = n of one request: layers [c_k, c_{k+1}) run on unit k."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A plan for a workload by index.

    Attributes
    ----------
    order
        Indices of the requests, in the order in which every unit serves them.
    cuts
        Cuts by request index (not by position).
    """

    order: tuple[int, ...]
    cuts: tuple[Cuts, ...]


@dataclass(frozen=True, kw_only=True)  # no slots: losses are kept
class FlowShop(RequestTables):
    """Integer tables of a workload.

    Attributes
    ----------
    workload
        The requests, and how they are served.
    boundary_bytes
        Bytes alive by [index of chain][boundary 0..n].
    """

    workload: Workload
    boundary_bytes: tuple[tuple[int, ...], ...]

    @property
    def asked(self) -> Workload:
        """The requests."""
        return self.workload

    @property
    def powers(self) -> Powers | None:
        """Powers of the units; None: not all are known."""
        return self.chains[0].powers

    @property
    def order_is_free(self) -> bool:
        """Whether the planner may change the order of the requests."""
        return self.workload.order is RequestOrder.FREE

    def chunk_us(self, request: int, unit: int, start: int, stop: int) -> int:
        """Return the time of layers [start, stop) on a unit without slowdown; 0 if there are none."""
        return self.chain(request).busy_us(start, stop, unit) if start < stop else 0

    def times_us(self, request: int, cuts: Cuts) -> tuple[int, ...]:
        """Return the time of a request on each unit, without slowdown."""
        return tuple(self.chunk_us(request, unit, *ends) for unit, ends in enumerate(pairwise(cuts)))

    def mark(self, request: int, unit: int, start: int, stop: int) -> Mark:
        """Return how sensitive and how intense the layers [start, stop) of a request are on a unit."""
        return self.losses.mark(self.chain_of[request], start, stop, unit)

    @cached_property
    def high(self) -> tuple[bool, ...]:
        """Whether each request is of high contention (H), its network being taken as a whole."""
        known = self.losses.interference
        return tuple(known is not None and known.is_high(each.network) for each in self.workload.requests)

    @cached_property
    def surely_high(self) -> tuple[bool, ...]:
        """Whether each request is of high contention wherever it is cut."""
        sliced = self.losses.sliced
        return tuple(high and not sliced[chain] for high, chain in zip(self.high, self.chain_of, strict=True))

    @cached_property
    def contention_by_cuts(self) -> bool:
        """Whether contention may depend on cuts; if not, `high` is `surely_high`, and the order tells."""
        return any(map(self.losses.is_high_by_cuts, self.chain_of))

    def high_slices(self, request: int, cuts: Cuts) -> tuple[bool, ...]:
        """Return on which units a request is of high contention.

        Where its layers differ, that is where its chunk is; else it is on all units, or on none.
        """
        chain = self.chain_of[request]
        if not self.losses.sliced[chain]:
            return (self.high[request],) * self.unit_count
        ends = enumerate(pairwise(cuts))
        return tuple(self.losses.is_high(chain, start, stop, unit) for unit, (start, stop) in ends)

    @cached_property
    def horizon_us(self) -> int:
        """A time by which every plan is done: all requests one after the other, each at its slowest."""
        slowest = []
        for chain in self.chains:
            layers = sum(max((t or 0 for t in row), default=0) for row in chain.layer_us)
            slowest.append(layers + sum(chain.copies_us(unit) for unit in range(chain.unit_count)))
        work = sum(slowest[chain] for chain in self.chain_of)
        most_us = self.losses.slowest_us(work, chunks=self.request_count * self.unit_count)
        return most_us + max(request.arrival_us for request in self.workload.requests)

    @cached_property
    def most_bytes(self) -> int:
        """An upper bound on the bytes that any plan needs at any instant."""
        return sum(
            chain.weights.copied * self.unit_count
            + self.unit_count * max(chain.working_bytes, default=0)
            + max(boundary, default=0)
            for chain, boundary in ((self.chains[i], self.boundary_bytes[i]) for i in self.chain_of)
        )

    def plan(self, schedule: Schedule) -> Plan:
        """Return a schedule as a plan."""
        return Plan(
            order=tuple(self.workload.names[index] for index in schedule.order),
            chunks=tuple(
                self.chunk(request, start, stop, unit)
                for request, cuts in enumerate(schedule.cuts)
                for unit, (start, stop) in enumerate(pairwise(cuts))
                if start < stop
            ),
        )

    def schedule(self, plan: Plan) -> Schedule:
        """Return a plan by index; the way back from `plan`.

        Raises
        ------
        MalformedPlanError
            The plan names requests, networks or units that are not there, does not order all requests,
            or its chunks do not cover each network in the order of layers and units.
        """
        names = self.workload.names
        wrong = []
        if sorted(plan.order) != sorted(names):
            wrong.append(("names", f"the plan orders {list(plan.order)}, the requests are {list(names)}"))
        unknown = sorted({chunk.request for chunk in plan.chunks} - set(names))
        wrong += [("names", f"{name!r} is no request; they are {list(names)}") for name in unknown]
        by_request: dict[str, list[Chunk]] = {name: [] for name in names}
        for chunk in plan.chunks:
            by_request.get(chunk.request, []).append(chunk)
        cuts = []
        for index, name in enumerate(names):
            found = _cuts(self, index, by_request[name])
            wrong += [(rule, f"request {name!r}: {text}") for rule, text in found[1]]
            cuts.append(found[0])
        if wrong:
            raise MalformedPlanError(plan, (Violation(rule=rule, message=text) for rule, text in wrong))
        position = {name: index for index, name in enumerate(names)}
        return Schedule(tuple(position[name] for name in plan.order), tuple(cuts))


def _cuts(shop: FlowShop, request: int, chunks: list[Chunk]) -> tuple[Cuts, list[tuple[str, str]]]:
    """Return the cuts of the chunks of one request, and what is wrong with them as (rule, text)."""
    chain = shop.chain(request)
    wrong: list[tuple[str, str]] = []
    stops = [0] * (shop.unit_count + 1)
    at, last = 0, -1
    for chunk in chunks:
        where = f"chunk [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"
        if chunk.network != chain.network:
            wrong.append(("names", f"{where} is of network {chunk.network!r}, not {chain.network!r}"))
        if chunk.unit not in shop.units:
            wrong.append(("names", f"{where}: no such unit; the platform has {', '.join(shop.units)}"))
            continue
        unit = shop.units.index(chunk.unit)
        if chunk.start != at:
            wrong.append(("coverage", f"{where} does not start at layer {at}, where the one before ends"))
        if unit <= last:
            wrong.append(
                ("unit_order", f"{where} comes after {shop.units[last]!r}; units are passed in order")
            )
        at, last = chunk.stop, max(last, unit)
        if at <= chain.layer_count and not chain.runs(chunk.start, chunk.stop, unit):
            stuck = [i for i in range(chunk.start, at) if chain.layer_us[i][unit] is None]
            wrong.append(("support", f"{where}: cannot run layers {stuck}"))
        stops[unit + 1] = chunk.stop
    if at != chain.layer_count:
        wrong.append(("coverage", f"its chunks end at layer {at}, the network has {chain.layer_count}"))
    return tuple(accumulate(stops, max)), wrong


def shop_of(problem: Problem) -> FlowShop:
    """Return the tables of a problem of this formulation."""
    tables = problem.tables
    assert isinstance(tables, FlowShop)
    return tables


def workload_of(problem: Problem) -> Workload:
    """Return the workload of a problem of this formulation."""
    assert isinstance(problem.data, Workload)
    return problem.data


def build_shop(problem: Problem) -> FlowShop:
    """Return the tables of a problem with a workload."""
    networks, chain_of = networks_in_use(problem)
    return FlowShop(
        workload=workload_of(problem),
        units=problem.platform.unit_names,
        chains=chains_of(problem, networks, capped(problem.platform, problem.limits)),
        chain_of=chain_of,
        layer_names=tuple(network.layer_names for network in networks),
        losses=losses_of(problem, networks),
        boundary_bytes=tuple(network.boundary_bytes for network in networks),
    )
