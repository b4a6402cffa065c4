"""Feeding a pipeline: inputs from the user into free task slots, results out again in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...formulations.deployment import Deployment
from ..model import TensorSpec
from .blueprint import Blueprint
from .crew import Crew, SharedState
from .runs import PipelineRun
from .shared import Hop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Job = Sequence[Mapping[str, NDArray[Any]]]
    """What goes in at once, and comes out at once: inputs by name, for each group of streams."""


@dataclass(slots=True)
class _Pending:
    """A job on its way; its results by group."""

    missing: int
    results: dict[int, dict[str, NDArray[Any]]] = field(default_factory=dict)


@dataclass(slots=True)
class _Lane:
    """What the parent knows about one stream: the next request, and those on their way, oldest first."""

    slots: int
    following: int = 0
    on_their_way: deque[tuple[_Pending, int]] = field(default_factory=deque)
    ended: bool = False

    @property
    def oldest(self) -> int:
        return self.following - len(self.on_their_way)

    @property
    def free(self) -> int:
        return self.slots - len(self.on_their_way)


class Feeder:
    """One fed run.

    Inputs stay in their task slots until the results are out, so a new crew can take over what a lost
    one had on its way: no request is lost, and none comes out twice.

    `groups`: indices of streams; of every job, each group gets one part, which goes to the stream of the
    group that has least to do. A group of several streams stands alone: streams that share units with another
    group would have to be given as many requests as that. `wanted`: for each stream: names of the tensors
    that are to come out.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        state: SharedState,
        *,
        groups: Sequence[Sequence[int]],
        wanted: Sequence[Collection[str]],
    ) -> None:
        self._blueprint = blueprint
        self._state = state
        self._groups = groups
        self._in_step = _in_step(blueprint.deployment)
        self._wanted = wanted
        self._lanes = [_Lane(slots=stream.stream.slots) for stream in blueprint.streams]
        self._jobs: deque[_Pending] = deque()
        self._most_jobs = sum(lane.slots for lane in self._lanes)
        self._ending = False

    def begin(self, crew: Crew) -> None:
        """Start the run, or go on with a new crew: what is on its way is given to it again."""
        self._crew = crew
        crew.begin(PipelineRun(first=tuple(lane.oldest for lane in self._lanes), fed=True))
        for stream, lane in enumerate(self._lanes):
            lane.ended = False
            for request in range(lane.oldest, lane.following):
                crew.enter(stream, request, request % lane.slots)
        if self._ending:
            self._send_ends()

    @property
    def has_room(self) -> bool:
        """Whether a job can be given now."""
        return len(self._jobs) < self._most_jobs and all(self._choices(group) for group in self._groups)

    def give(self, job: Job) -> None:
        """Put the inputs of a job, for which there is room, into slots, and let it in."""
        pending = _Pending(missing=len(job))
        self._jobs.append(pending)
        given = []
        for index, (group, inputs) in enumerate(zip(self._groups, job, strict=True)):
            stream = self._choices(group)[0]
            lane = self._lanes[stream]
            request, slot = lane.following, lane.following % lane.slots
            tensors = self._state.tensors(stream, slot)
            for name, array in inputs.items():
                tensors[name][...] = array
            lane.following += 1
            lane.on_their_way.append((pending, index))
            given.append((stream, request, slot))
        for entry in given:
            self._crew.enter(*entry)

    def results(self) -> Iterator[list[dict[str, NDArray[Any]]]]:
        """Yield the results of jobs that are through, in order, by group; those that are ready now."""
        while self._jobs and not self._jobs[0].missing:
            job = self._jobs.popleft()
            yield [job.results[index] for index in range(len(job.results))]

    def collect(self, *, timeout_s: float | None = None, also: Collection[int] = ()) -> None:
        """Wait until something comes out, and take it; or until one of other descriptors can be read."""
        exits = self._crew.exits
        for descriptor in self._crew.wait((*exits, *also), timeout_s=timeout_s):
            if descriptor in exits:
                self._take(exits.index(descriptor))

    def end(self) -> None:
        """Say that nothing more will come. Can be called twice."""
        if not self._ending:
            self._ending = True
            self._send_ends()

    def _send_ends(self) -> None:
        for stream, lane in enumerate(self._lanes):
            self._crew.end_stream(stream, lane.following)

    @property
    def is_over(self) -> bool:
        """Whether all streams have ended."""
        return all(lane.ended for lane in self._lanes)

    def _choices(self, group: Sequence[int]) -> list[int]:
        """Return the streams that may take the next part, those with the fewest requests on their way first.

        Streams that share a unit take turns, because the unit serves them in turns.
        """
        lanes = self._lanes
        free = [
            stream
            for stream in group
            if lanes[stream].free
            and stream == min(self._in_step[stream] & {*group}, key=lambda s: (lanes[s].following, s))
        ]
        return sorted(free, key=lambda stream: len(lanes[stream].on_their_way))

    def _take(self, stream: int) -> None:
        hop = self._crew.take(stream)
        lane = self._lanes[stream]
        if hop is None:
            return
        if hop.ends:
            lane.ended = True
            return
        slot = lane.oldest % lane.slots
        done = len(self._blueprint.streams[stream].chunks)
        self._state.headers[stream][slot].check(hop, Hop(stream, lane.oldest, slot), done)
        tensors = self._state.tensors(stream, slot)
        pending, index = lane.on_their_way.popleft()
        pending.results[index] = {name: tensors[name].copy() for name in self._wanted[stream]}
        pending.missing -= 1


def _in_step(deployment: Deployment) -> list[set[int]]:
    """Return, for each stream, the streams that are served in turns with it, itself included."""
    together: list[tuple[set[int], set[str]]] = []
    for index, stream in enumerate(deployment.streams):
        streams, units = {index}, {chunk.unit for chunk in stream.chunks}
        for others in [found for found in together if found[1] & units]:
            together.remove(others)
            streams |= others[0]
            units |= others[1]
        together.append((streams, units))
    return [next(found for found, _ in together if i in found) for i in range(len(deployment.streams))]


def check_names(what: str, known: Collection[str], given: object) -> list[str]:
    """Return what is wrong with the names of a mapping that should have just the known ones."""
    if not isinstance(given, Mapping):
        return [f"a mapping by {what} is needed, not {type(given).__name__}"]
    names = ", ".join(map(repr, known))
    unknown = [f"{name!r} is no {what}; there are {names}" for name in given if name not in known]
    return unknown + [f"{what} {name!r} is missing" for name in known if name not in given]


def check_inputs(specs: Sequence[TensorSpec], given: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the inputs of one request: names, shapes, types."""
    defects = check_names("input", [spec.name for spec in specs], given)
    if defects:
        return defects
    for spec in specs:
        array = given[spec.name]
        shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", type(array).__name__)
        if (shape, str(dtype)) != (spec.shape, spec.dtype):
            defects.append(f"input {spec.name!r} is {dtype} {shape}, needs {spec.dtype} {spec.shape}")
    return defects
