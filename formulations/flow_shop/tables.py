"""A workload on one platform as plain integers by index: where every backend starts from.

The requests pass the units in platform order and every unit serves them in one order: a permutation
flow shop whose processing times depend on where the networks are cut (Hetero2Pipe, IV).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, pairwise

from ..energy import Powers
from ..errors import MalformedPlanError
from ..jobs.tables import JobPlan, Option, RoutedTables, Visits
from ..limits import capped
from ..plan import Plan
from ..play import Part
from ..problem import Problem
from ..requests import chains_of, losses_of, networks_in_use
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
class FlowShop(RoutedTables):
    """Integer tables of a workload: every layer is a section, chunks end at legal cuts.

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

    def borders(self, request: int) -> Sequence[int]:
        """Return the layers of a request, each a section, and where the last one ends."""
        return range(self.chain(request).layer_count + 1)

    def layers(self, request: int, part: Part) -> tuple[int, int]:
        """Return first layer of a chunk, and one past the last."""
        return part[:2]

    def section_count(self, request: int) -> int:
        """Return the number of layers of a request."""
        return self.chain(request).layer_count

    @cached_property
    def options(self) -> tuple[tuple[Option, ...], ...]:
        """The chunks that each network can have, by index of the chain."""
        return tuple(
            tuple(
                Option(start, stop, unit, chain.busy_us(start, stop, unit))
                for start, stop in combinations(chain.cuts, 2)
                for unit in range(self.unit_count)
                if chain.runs(start, stop, unit)
            )
            for chain in self.chains
        )

    def times_us(self, request: int, cuts: Cuts) -> tuple[int, ...]:
        """Return the time of a request on each unit, without slowdown; 0 where it is not."""
        busy_us = self.chain(request).busy_us
        ends = enumerate(pairwise(cuts))
        return tuple(busy_us(start, stop, unit) if start < stop else 0 for unit, (start, stop) in ends)

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

    def chunked(self, schedule: Schedule) -> JobPlan:
        """Return a schedule as chunks, each request with all of its own before the next one."""
        parts = tuple(
            tuple((start, stop, unit) for unit, (start, stop) in enumerate(pairwise(cuts)) if start < stop)
            for cuts in schedule.cuts
        )
        return JobPlan(tuple(request for request in schedule.order for _ in parts[request]), parts)

    def plan(self, schedule: Schedule) -> Plan:
        """Return a schedule as a plan."""
        return self.named(schedule.order, self.chunked(schedule).parts)

    def schedule(self, plan: Plan) -> Schedule:
        """Return a plan by index; the way back from `plan`.

        Raises
        ------
        MalformedPlanError
            The plan names requests, networks or units that are not there, does not order all requests,
            or its chunks do not cover each network in the order of layers and units.
        """
        names = self.workload.names
        parts, wrong = self.parted(plan)
        if sorted(plan.order) != sorted(names):
            text = f"the plan orders {list(plan.order)}, the requests are {list(names)}"
            wrong.insert(0, Violation(rule="names", message=text))
        for name, own in zip(names, parts, strict=True):
            for one, other in pairwise(part[2] for part in own):
                if other <= one:
                    text = f"request {name!r} is on {self.units[other]!r} after {self.units[one]!r}"
                    text += "; units are passed in order"
                    wrong.append(Violation(rule="unit_order", message=text))
        if wrong:
            raise MalformedPlanError(plan, wrong)
        return Schedule(tuple(self.index[name] for name in plan.order), tuple(map(self.cuts_of, parts)))

    def cuts_of(self, parts: Sequence[Part]) -> Cuts:
        """Return the cuts of a request with some chunks."""
        stops = dict.fromkeys(range(self.unit_count), 0) | {unit: stop for _, stop, unit in parts}
        return tuple(accumulate((0, *stops.values()), max))


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
    units, workload = problem.platform.unit_names, workload_of(problem)
    return FlowShop(
        workload=workload,
        units=units,
        chains=chains_of(problem, networks, capped(problem.platform, problem.limits)),
        chain_of=chain_of,
        layer_names=tuple(network.layer_names for network in networks),
        losses=losses_of(problem, networks),
        boundary_bytes=tuple(network.boundary_bytes for network in networks),
        before=((),) * len(workload.requests),
        entry_us=tuple((arrival_us,) * len(units) for arrival_us in workload.entered_us),
        exit_us=((0,) * len(units),) * len(workload.requests),
        turns=tuple((unit,) for unit in range(len(units))),
        excluded=problem.platform.exclusive,
        visits=Visits(once=True, rank=tuple(range(len(units)))),
    )
