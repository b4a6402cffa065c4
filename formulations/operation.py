"""How plans of a formulation run: what a device does for them, really or in simulation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from .chain import Chain
from .deployment import Deployment
from .errors import InvalidInputError
from .flight import Flight
from .history import History, SteadyState, Usage
from .plan import Chunk, Plan

if TYPE_CHECKING:
    from .cluster import Link
    from .problem import Problem


class ServerKind(StrEnum):
    """What a server does for an item; a unit can do all three at once."""

    RECEIVES = "receives"
    COMPUTES = "computes"
    SENDS = "sends"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A unit doing one thing: for one item after the other, each as long.

    Attributes
    ----------
    kind
        What it does.
    unit
        Its name.
    time_us
        How long an item takes of it, microseconds.
    """

    kind: ServerKind
    unit: str
    time_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The servers that an item passes, in order.

    Attributes
    ----------
    name
        What people call it; empty where there is one only.
    servers
        At least one that computes.
    """

    name: str
    servers: tuple[Server, ...]


class Operation(ABC):
    """What plans of one formulation become when they run. Objects have no state.

    Problems are the ones that hold for what runs: with the one table of costs that it is charged by.
    """

    @abstractmethod
    def pace(self, problem: Problem) -> str:
        """Return the term by which what runs is compared: the time from one result to the next."""

    @abstractmethod
    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return a plan as a deployment.

        Parameters
        ----------
        problem, plan
            The problem, and a valid plan for it.
        task_slots
            Most requests of each stream on their way at once; None: what suits the formulation.

        Raises
        ------
        InvalidPlanError
            The plan is not for this problem, or the runtime does not work in the way that the problem asks.
        """

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return a plan as `deploy` does, also one that the runtime cannot serve: to be looked at."""
        return self.deploy(problem, plan)

    def check_executable(self, problem: Problem) -> None:  # noqa: B027 - most have nothing to check
        """Do nothing for a problem whose plans the units of one device can run; others are only simulated.

        Raises
        ------
        InvalidInputError
            Its plans need what the runtime does not have.
        """

    def without_device(self, problem: Problem, device: str) -> Problem:
        """Return what is left of a problem when one of its devices is lost while a plan runs.

        Raises
        ------
        InvalidInputError
            Nothing is left that could go on.
        """
        raise InvalidInputError(f"there is no plan without {device!r}: its plans do not go on after a loss")

    def without_link(self, problem: Problem, source: str, target: str) -> Problem:
        """Return a problem in which one device cannot send to another; errors as for `without_device`."""
        return self.without_device(problem, source)

    def with_links(self, problem: Problem, links: Iterable[Link]) -> Problem:
        """Return a problem in which some links are as they are said to be now.

        Raises
        ------
        InvalidInputError
            Its plans know no links.
        """
        raise InvalidInputError(f"{problem.formulation.label} know no links that could have changed")

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield problems whose best plans a race should see, too: plans of another shape, valid for it."""
        return iter(())

    @abstractmethod
    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield what anybody would try without planning, by name.

        Parameters
        ----------
        problem
            The problem.
        sets
            Names of units that can run everything: sets of one unit, then of several that share no core.
        """

    def matching(self, problem: Problem, plans: Iterable[Plan]) -> Problem:
        """Return the problem that plans are of: the same one, unless they are those of a rival."""
        return problem

    def charged(self, problem: Problem, deployment: Deployment) -> Problem:
        """Return the problem with the costs that hold in a deployment: all units in use are company."""
        problem = self.matching(problem, deployment.parts)
        if problem.co_run_costs is None:
            return problem
        return problem.using({chunk.unit for stream in deployment.streams for chunk in stream.chunks})

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the tables by which each stream is charged; not asked for where `chunk_us` is defined."""
        raise NotImplementedError

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return what each chunk of each stream is charged, without slowdown; None: it cannot run there."""
        found = []
        for chain, stream in zip(self.chains(problem, deployment), deployment.streams, strict=True):
            parts = ((c.start, c.stop, chain.units.index(c.unit)) for c in stream.chunks)
            found.append(tuple(chain.busy_us(*part) if chain.runs(*part) else None for part in parts))
        return tuple(found)

    @abstractmethod
    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a plan; see `simulate`."""

    @abstractmethod
    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time while a history runs; see `trace_usage`."""

    def plays(self, problem: Problem) -> bool:
        """Return whether plans of a problem can be simulated."""
        return True

    def check_device(self, problem: Problem) -> None:  # noqa: B027 - most have nothing to check
        """Do nothing for a problem whose costs a simulated device can obey.

        Raises
        ------
        InvalidInputError
            It is not clear what runs.
        """

    @abstractmethod
    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Do nothing for a deployment that is one of the problem.

        Raises
        ------
        InvalidPlanError
            It serves something else.
        """

    @abstractmethod
    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play a deployment: a number of requests of each stream, with their copies.

        Its plans must be well formed, and streams that are not in rounds must share no unit.
        """

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the servers that items pass, a line for each stream; lines share no unit.

        Raises
        ------
        InvalidInputError
            Plans of this kind do not send items through units one after the other.
        InvalidPlanError
            The plan is not for this problem.
        """
        raise InvalidInputError(f"plans of {problem.formulation.label} cannot be tasks of a stream")

    def flight(self, problem: Problem, plan: Plan) -> Flight | None:
        """Return what requests in flight do for a valid plan; None where nothing is defined."""
        return None

    @abstractmethod
    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return the steady states of a deployment as for `play`: one for all streams that go in step."""


def whole_requests(
    requests: Sequence[tuple[str, Chain]], sets: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, Plan]]:
    """Yield plans that cut nothing and serve the requests in their order, by name.

    All requests on each unit, one after the other; and each request on the unit of a set that is done with it
    first, as many units as there are. `requests`: the name and the table of each.
    """
    for names in sets:
        if len(names) > 1 and any(set(names) < set(others) for others in sets):
            continue
        loads_us = dict.fromkeys(names, 0)
        chunks = []
        for name, chain in requests:
            whole = {unit: (0, chain.layer_count, chain.units.index(unit)) for unit in names}
            ends_us = {unit: loads_us[unit] + chain.busy_us(*part) for unit, part in whole.items()}
            unit = min(ends_us, key=ends_us.__getitem__)
            loads_us[unit] = ends_us[unit]
            chunks.append(
                Chunk(request=name, network=chain.network, start=0, stop=chain.layer_count, unit=unit)
            )
        label = "serial on" if len(names) == 1 else "whole requests on"
        order = tuple(chunk.request for chunk in chunks)
        yield f"{label} {'+'.join(names)}", Plan(chunks=tuple(chunks), order=order)


def operation_of(problem: Problem) -> Operation:
    """Return how plans of a problem run.

    Raises
    ------
    InvalidInputError
        They cannot be run.
    """
    found = problem.formulation.operation
    if found is None:
        raise InvalidInputError(
            f"plans of {problem.formulation.label} can be found and judged, but not run or simulated"
        )
    return found
