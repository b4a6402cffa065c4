"""How partitions run, and what a run leaves: requests that pass the parts in line, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from ..cluster import refuse_devices
from ..deployment import Deployment
from ..errors import InvalidInputError
from ..history import History, Usage, usage_of
from ..operation import operation_of
from ..passages import Passage
from ..plan import Chunk, Plan
from ..problem import Problem
from ..stations import Station, StationsOperation, computing
from ..streams import Stream
from ..terms import Objective
from .quantities import PartValues
from .tables import chain_of, graph_of, partition_of


class PartitionOperation(StationsOperation):
    """One endless stream; several side by side are replicas or pipelines of the order of the network."""

    def streams(self, problem: Problem, plan: Plan, task_slots: int | None = None) -> tuple[Stream, ...]:
        """Return one stream, whose chunks are the parts."""
        return (stream_of(problem, plan, task_slots=task_slots),)

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream; not of a network with a backward pass."""
        _check_forward(problem)
        return super().deploy(problem, plan, task_slots=task_slots)

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
        lines = (self.stations(problem, stream) for stream in deployment.streams)
        return tuple(tuple(station.time_us for station in line) for line in lines)

    def history(self, problem: Problem, plan: Plan, **asked: int | None) -> History:
        """Play a number of requests; not of a network with a backward pass."""
        _check_forward(problem)
        return super().history(problem, plan, **asked)

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time.

        Weights are there all the time, tensors between parts from the end of the part that makes them to the
        end of the last one that reads them.
        """
        return usage_of(
            _changes(problem, history),
            ((event.request, *event.span_us) for event in history.events),
            base=sum(PartValues(graph_of(problem), _code(problem, s)).peak_bytes for s in history.streams),
            requests=len(history.output_us),
        )

    def check_device(self, problem: Problem) -> None:
        """Refuse networks with a backward pass."""
        _check_forward(problem)

    def stations(self, problem: Problem, stream: Stream) -> tuple[Station, ...]:
        """Return what each part does for one request: receive, compute, send."""
        graph = graph_of(problem)
        values = PartValues(graph, _code(problem, stream))
        received = _received_us(problem, values)
        found = []
        for index, chunk in enumerate(stream.chunks):
            unit = graph.units.index(chunk.unit)
            time_us, in_us = values.busy_us[unit], received[unit]
            copies_us = in_us, time_us - in_us - values.compute_us[unit]
            found.append(computing(chunk.unit, index, time_us, copies_us))
        return tuple(found)


def _check_forward(problem: Problem) -> None:
    if partition_of(problem).backward:
        raise InvalidInputError(
            "its backward layers go with their forward layers: plans of training can be found "
            "and judged, but not run or simulated"
        )


def _fixed(problem: Problem) -> Problem:
    """Return the problem of cutting the order of the network."""
    return replace(problem, data=None, objective=Objective(terms=("period",)), rules=())


def stream_of(problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Stream:
    """Return a plan as a stream: an order of the layers in which each part is one chunk.

    Layers of a part keep the order of the network, so that each comes after what it reads.

    Raises MalformedPlanError: the parts are not convex, or do not fit the problem.
    """
    graph = graph_of(problem)
    code = problem.formulation.code(problem, plan)
    chain = chain_of(graph, code) or ()
    order = tuple(layer for unit in chain for layer, own in enumerate(code) if own == unit)
    ends = pairwise(accumulate((code.count(unit) for unit in chain), initial=0))
    return Stream(
        name=graph.network,
        chunks=tuple(
            Chunk(network=graph.network, start=start, stop=stop, unit=graph.units[unit])
            for unit, (start, stop) in zip(chain, ends, strict=True)
        ),
        task_slots=task_slots,
        order=() if order == tuple(range(len(code))) else order,
    )


def _changes(problem: Problem, trace: History) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of what crosses parts, and of nothing at each start."""
    ends = {(e.stream, e.request, e.unit): e.span_us[1] for e in trace.events}
    layers, units = len(problem.network.layers), graph_of(problem).units
    codes = [_code(problem, stream) for stream in trace.streams]
    yield from ((event.span_us[0], 0) for event in trace.events)
    for index, request in {(event.stream, event.request) for event in trace.events}:
        code = codes[index]
        for tensor in problem.network.tensors:
            readers = {code[target] for target in tensor.targets if target < layers}
            if tensor.source >= 0 and readers - {code[tensor.source]}:
                yield ends[index, request, units[code[tensor.source]]], tensor.bytes
                yield max(ends[index, request, units[unit]] for unit in readers), -tensor.bytes


def _code(problem: Problem, stream: Stream) -> tuple[int, ...]:
    return tuple(problem.formulation.code(problem, Plan(chunks=stream.placed)))


def _received_us(problem: Problem, values: PartValues) -> dict[int, int]:
    """Return what of its transfers each unit receives."""
    received, layers = dict.fromkeys(values.busy_us, 0), len(values.code)
    for tensor, row in zip(problem.network.tensors, partition_of(problem).tensor_us, strict=False):
        maker = values.code[tensor.source] if tensor.source >= 0 else None
        for unit in {values.code[target] for target in tensor.targets if target < layers} - {maker}:
            received[unit] += row[unit]
    return received
