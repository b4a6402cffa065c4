"""How partitions run: as one stream through the parts, in an order of the layers in which they are chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..cluster import refuse_devices
from ..deployment import Deployment
from ..errors import InvalidInputError
from ..history import History, SteadyState
from ..objective import Objective
from ..operation import Line, Server, ServerKind, StreamOperation, operation_of
from ..passages import Passage
from ..plan import Plan
from ..problem import Problem
from ..usage import Usage
from . import history
from .deployment import stream_of
from .history import usage as bytes_in_use
from .tables import partition_of


class PartitionOperation(StreamOperation):
    """One endless stream; several side by side are replicas or pipelines of the order of the network."""

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream, whose chunks are the parts."""
        _check_forward(problem)
        return Deployment(streams=(stream_of(problem, plan, task_slots=task_slots),))

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return one stream, also of a network with a backward pass."""
        return Deployment(streams=(stream_of(problem, plan),))

    def plays(self, problem: Problem) -> bool:
        """Return whether there is no backward pass."""
        return not partition_of(problem).backward

    def check_executable(self, problem: Problem) -> None:
        """Refuse networks with a backward pass, and devices that links join."""
        _check_forward(problem)
        if partition_of(problem).over_links:
            refuse_devices("links")

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with the order of the network, and its rivals; rules are about parts."""
        if not problem.rules:
            fixed = _fixed(problem)
            yield fixed
            # Parts that come back to a unit are not convex: the tables of parts say nothing of them.
            yield from (r for r in operation_of(fixed).rivals(fixed) if not isinstance(r.data, Passage))

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield what is not cut: the network on each unit alone, and its replicas on several."""
        fixed = _fixed(problem)
        return operation_of(fixed).baselines(fixed, sets)

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return the loads of the parts."""
        lines = (history.stations_of(problem, stream) for stream in deployment.streams)
        return tuple(tuple(station.time_us for station in line) for line in lines)

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a number of requests."""
        _check_forward(problem)
        return history.history(
            problem, plan, requests=requests, interval_us=interval_us, task_slots=task_slots
        )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        return bytes_in_use(problem, history)

    def check_device(self, problem: Problem) -> None:
        """Refuse networks with a backward pass."""
        _check_forward(problem)

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play requests that wait for task slots."""
        return history.play(problem, deployment, rounds)

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the parts of the plan, in order."""
        stream = stream_of(problem, plan)
        servers = (
            Server(kind=ServerKind.COMPUTES, unit=chunk.unit, time_us=station.time_us)
            for chunk, station in zip(stream.chunks, history.stations_of(problem, stream), strict=True)
        )
        return (Line(name="", servers=tuple(servers)),)

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what each stream does over and over."""
        return history.steady(problem, deployment)


def _check_forward(problem: Problem) -> None:
    if partition_of(problem).backward:
        raise InvalidInputError(
            "its backward layers go with their forward layers: plans of training can be found "
            "and judged, but not run or simulated"
        )


def _fixed(problem: Problem) -> Problem:
    """Return the problem of cutting the order of the network."""
    return replace(problem, data=None, objective=Objective(terms=("period",)), rules=())
