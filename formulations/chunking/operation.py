"""How plans for one network run, and what a run leaves: one stream of requests, each through all chunks.

A chunk starts when its request's previous chunk is done and its unit is free (`flight.py`). The steady
state is known in closed form (period, bubbles, latency); the tests hold the simulation and the judge against
each other. Units with several chunks serve them in the order of the stream's cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from ..chain import Chain
from ..cluster import Pipelines
from ..deployment import Deployment, replicas
from ..errors import InvalidInputError, InvalidPlanError, InvalidProblemError
from ..flight import Flight, cycle_for, flight_of
from ..history import History, Usage
from ..passages import Passage
from ..plan import Chunk, Plan, comes_back
from ..problem import Problem
from ..rules import named
from ..stations import Station, StationsOperation, computing, usage_of_chunks
from ..streams import Stream
from ..terms import Objective
from .tables import chain_of


class ChunkingOperation(StationsOperation):
    """One endless stream; several of them side by side are replicas of the network."""

    def streams(self, problem: Problem, plan: Plan, task_slots: int | None = None) -> tuple[Stream, ...]:
        """Return one stream; with a cycle where a unit has several chunks and requests overlap."""
        (stream,) = deploy(plan, task_slots=task_slots).streams
        stream = replace(stream, states=problem.network.states)
        if comes_back(plan.chunks, problem.platform) and task_slots != 1:
            cycle = cycle_for(self._times_us(problem, stream), _turns(problem, stream), task_slots)
            stream = replace(stream, cycle=cycle)
        return (stream,)

    def stations(self, problem: Problem, stream: Stream) -> tuple[Station, ...]:
        """Return what each chunk does for one request, with copies in and out."""
        plan = Plan(chunks=stream.chunks)
        chain = chain_of(problem.charged(plan))
        return tuple(
            computing(
                chain.units[unit],
                index,
                chain.busy_us(start, stop, unit),
                (chain.transfer_in_us[start][unit], chain.transfer_out_us[stop][unit]),
            )
            for index, (start, stop, unit) in enumerate(chain.parts(plan))
        )

    def _times_us(self, problem: Problem, stream: Stream) -> list[int]:
        return [station.time_us for station in self.stations(problem, stream)]

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem whose units may come again, and that with pipelines side by side."""
        yield problem.with_data(Passage()).with_rules(
            named("again", "a unit has several chunks", lambda view: view.hops() >= view.resources_used())
        )
        yield from self.several(problem)

    def several(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with two pipelines or more side by side; rules are about a single one."""
        if problem.rules or self.pace(problem) == "latency":
            return
        with suppress(InvalidProblemError):  # limits that mean nothing for several
            many = replace(problem, data=Pipelines(), objective=Objective(terms=("throughput",)))
            yield many.with_rules(
                named("several", "there are at least two pipelines", lambda view: view.pipelines() >= 2)
            )

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each unit alone, and its replicas on several; those make no request faster."""
        network, layers = problem.network.name, len(problem.network.layers)
        for names in sets:
            if len(names) == 1:
                whole = Plan(chunks=(Chunk(network=network, start=0, stop=layers, unit=names[0]),))
                yield f"serial on {names[0]}", self.deploy(problem, whole)
            elif self.pace(problem) != "latency" and not problem.network.states:
                yield f"replicas on {'+'.join(names)}", replicas(network, layers, names)

    def matching(self, problem: Problem, plans: Iterable[Plan]) -> Problem:
        """Return the problem whose units may come again if a plan comes back to one."""
        back = problem.data is None and any(comes_back(plan.chunks, problem.platform) for plan in plans)
        return problem.with_data(Passage()) if back else problem

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network for each stream."""
        return (chain_of(problem),) * len(deployment.streams)

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        chain = chain_of(problem)
        return usage_of_chunks(
            history,
            held=chain.weights.between,
            running=chain.memory_bytes,
            waiting=problem.network.boundary_bytes,
        )

    def check_device(self, problem: Problem) -> None:
        """Refuse several networks."""
        if len(problem.networks) != 1:
            raise InvalidInputError(
                f"a simulated device plays one network, the problem has {len(problem.networks)}"
            )

    def flight(self, problem: Problem, plan: Plan) -> Flight | None:
        """Return what requests in flight do; None where one at a time is asked for."""
        if self.pace(problem) == "latency":
            return None
        (stream,) = deploy(plan).streams
        return flight_of(self._times_us(problem, stream), _turns(problem, stream))


def deploy(plan: Plan, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for each network that it names.

    `task_slots`: of each stream; None: as `Stream` says.
    """
    if plan.order:
        raise InvalidPlanError(f"[{plan}] is a plan for a workload; say which one")
    names = dict.fromkeys(chunk.network for chunk in plan.chunks)
    return Deployment(
        streams=tuple(
            Stream(
                name=name,
                chunks=tuple(chunk for chunk in plan.chunks if chunk.network == name),
                task_slots=task_slots,
            )
            for name in names
        )
    )


def _turns(problem: Problem, stream: Stream) -> tuple[str, ...]:
    """Return for each chunk the unit, or the resource, that takes turns."""
    return problem.platform.turns(chunk.unit for chunk in stream.chunks)
