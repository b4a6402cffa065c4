"""What problems about several requests share, as a workload and as schedules: tables, checks, runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from .chain import Chain, build_chain
from .deployment import Deployment
from .errors import InvalidInputError
from .formulation import CodeT, Formulation, TablesT
from .hardware import Platform
from .history import History, Interval, SteadyState, executed, simulated
from .losses import Losses, Mark
from .network import Network
from .operation import Operation, whole_requests
from .plan import Chunk, Plan
from .problem import Problem
from .schedules import Jobs
from .scores import Violation
from .streams import Stream
from .workload import Workload

Asked = Workload | Jobs
"""The data of problems about several requests."""


def asked_of(problem: Problem) -> Asked:
    """Return the requests of a problem that is about several."""
    assert isinstance(problem.data, Workload | Jobs)
    return problem.data


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class ServedTables(ABC):
    """Integer tables of what is served once on the units of one platform: requests, or tasks of one."""

    units: tuple[str, ...]  # names of the units
    chain_of: tuple[int, ...]  # by request, what it is about: those of one kind have the same chunks
    losses: Losses  # what chunks lose to each other

    @property
    def request_count(self) -> int:
        """Number of requests."""
        return len(self.chain_of)

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return len(self.units)


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class RequestTables(ServedTables):
    """Integer tables of requests of several networks on one platform."""

    chains: tuple[Chain, ...]  # tables of each network in use; `chain_of` is an index into them
    layer_names: tuple[tuple[str, ...], ...]  # names of the layers, by index of the chain

    @property
    @abstractmethod
    def asked(self) -> Asked:
        """The requests."""

    def chain(self, request: int) -> Chain:
        """Return the tables of the network of a request."""
        return self.chains[self.chain_of[request]]

    def chunk(self, request: int, start: int, stop: int, unit: int) -> Chunk:
        """Return a chunk by name."""
        own = self.asked.requests[request]
        return Chunk(request=own.name, network=own.network, start=start, stop=stop, unit=self.units[unit])

    def mark_of(self, chunk: Chunk) -> Mark:
        """Return how sensitive and how intense a chunk is."""
        unit, chain = self.units.index(chunk.unit), self.losses.networks.index(chunk.network)
        return self.losses.mark(chain, chunk.start, chunk.stop, unit)

    def loss_permille(self, victim: Chunk, aggressor: Chunk) -> int:
        """Return the share of its speed that a chunk loses while another one runs."""
        units = self.units.index(victim.unit), self.units.index(aggressor.unit)
        return self.losses.loss(units[0], self.mark_of(victim), units[1], self.mark_of(aggressor))

    def is_high(self, chunk: Chunk) -> bool:
        """Return whether a chunk is of high contention."""
        unit, chain = self.units.index(chunk.unit), self.losses.networks.index(chunk.network)
        return self.losses.is_high(chain, chunk.start, chunk.stop, unit)

    def too_large(self, request: int, start: int, stop: int, unit: int) -> Iterator[Violation]:
        """Yield that a chunk has no room on its unit."""
        chain = self.chain(request)
        if not chain.fits(start, stop, unit):
            where = f"request {self.asked.names[request]!r}, chunk [{start}, {stop}) on {self.units[unit]!r}"
            needs, has = chain.memory_bytes(start, stop), chain.unit_memory[unit]
            yield Violation(rule="unit_memory", message=f"{where} needs {needs} bytes, has {has}")


def networks_in_use(problem: Problem) -> tuple[tuple[Network, ...], tuple[int, ...]]:
    """Return the networks that requests ask for, each once, and by request the index of its network."""
    networks = {network.name: network for network in problem.networks}
    used = list(dict.fromkeys(request.network for request in asked_of(problem).requests))
    by_request = tuple(used.index(request.network) for request in asked_of(problem).requests)
    return tuple(networks[name] for name in used), by_request


def chains_of(problem: Problem, networks: Iterable[Network], platform: Platform) -> tuple[Chain, ...]:
    """Return the tables of networks on a platform."""
    return tuple(build_chain(platform, network, problem.costs.of(network.name)) for network in networks)


def losses_of(problem: Problem, networks: Iterable[Network]) -> Losses:
    """Return what chunks of networks lose to each other."""
    names, units = tuple(network.name for network in networks), len(problem.platform.units)
    known = problem.interference
    rows = tuple(problem.costs.of(name).layer_us for name in names)
    return Losses(networks=names, unit_count=units, interference=known, layer_us=rows)


class RequestFormulation(Formulation[TablesT, CodeT]):
    """Requests of several networks on one platform."""

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield requests of networks that are not there."""
        networks = {network.name for network in problem.networks}
        for request in asked_of(problem).requests:
            if request.network not in networks:
                text = f"is of network {request.network!r}, the problem has {sorted(networks)}"
                yield f"request {request.name!r} {text}"

    def placed(self, problem: Problem) -> tuple[Network, ...]:
        """Return the networks that are asked for."""
        asked = {request.network for request in asked_of(problem).requests}
        return tuple(network for network in problem.networks if network.name in asked)

    def arrivals(self, problem: Problem) -> tuple[str, ...]:
        """Return the names of the requests."""
        return asked_of(problem).names

    def labels(self, problem: Problem, column: str) -> tuple[str, ...]:
        """Return names of requests, or of units."""
        return asked_of(problem).names if column.startswith("request_") else problem.platform.unit_names


class RequestOperation(Operation):
    """Requests that come when the problem says so."""

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield plans that cut nothing and keep the order of the requests."""
        tables = cast("RequestTables", problem.tables)
        requests = [(name, tables.chain(index)) for index, name in enumerate(tables.asked.names)]
        for label, plan in whole_requests(requests, sets):
            yield label, self.deploy(problem, plan)

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network of each request."""
        tables = cast("RequestTables", problem.tables)
        return tuple(tables.chain(tables.asked.names.index(stream.name)) for stream in deployment.streams)

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play the requests as the judge does."""
        if (requests, interval_us, task_slots) != (None, None, None):
            raise InvalidInputError(
                "the problem says which requests come when: leave out their number, interval and task slots"
            )
        asked = asked_of(problem)
        return simulated(
            plan,
            self.ran(problem, plan, asked.names),
            units=problem.platform.unit_names,
            arrivals_us=asked.entered_us,
            names=asked.names,
        )

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play all requests over and over, each time when all of them are done."""
        first = self._round(problem, deployment)
        round_ns = max(event.end_ns for event in first)
        return executed(
            deployment,
            (
                replace(event.moved(number * round_ns), request=number, slowdown_ns=0)
                for number in range(rounds)
                for event in first
            ),
        )

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what all requests do, served once."""
        first = self._round(problem, deployment)
        period_us = max(event.end_ns for event in first) / 1000
        return (SteadyState(period_us=period_us, events=tuple(sorted(first))),)

    def _round(self, problem: Problem, deployment: Deployment) -> list[Interval]:
        assert deployment.plan is not None
        return list(self.ran(problem, deployment.plan, [stream.name for stream in deployment.streams]))

    def ran(self, problem: Problem, plan: Plan, names: Sequence[str]) -> Iterator[Interval]:
        """Yield what has run, once; `names`: the request of each stream."""
        played: Any = problem.formulation.numbers(problem, problem.formulation.code(problem, plan))
        yield from problem.tables.intervals(played.runs, names)


def stream_of(plan: Plan, name: str, task_slots: int | None) -> Stream:
    """Return the chunks of a request, without its name, which makes no difference to their sessions."""
    chunks = tuple(replace(chunk, request="") for chunk in plan.of(name))
    return Stream(name=name, chunks=chunks, task_slots=task_slots)
