"""The driver's end of a plan over devices: requests go in, results come out, losses are made good."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from ...formulations.deployment import Deployment
from ...formulations.errors import UnitLostError
from ..engine import PlacementReceipt
from ..model import Model
from ..progress import Report, Step
from ..workers import unit_data
from .cluster import Cluster, rebuilt
from .endpoint import Frame
from .loss import Loss, blamed
from .recording import Passed, passed
from .routes import Route, route_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]
    Job = tuple[int, Tensors | None]
    """Its number, and its inputs by name; None: the samples that lie on the first device."""

Replan = Callable[[Loss], Deployment]
"""Plans again without what was lost; raises a `GaplessError` where nothing can do the work."""

Revise = Callable[[Passed], Deployment | None]
"""Told of every request that came out; returns what is to run from now on, or None: nothing changes."""

_LOOK_S = 0.25
"""How often the driver looks for lost devices when no result comes."""

STALL_LIMIT_S = 10.0
"""How long no result may come; longer where the requests before took longer."""

_STALL_FACTOR = 20
_SEED = 0


@dataclass(slots=True)
class _Lane:
    """What the driver knows about one stream."""

    route: Route
    following: int = 0
    on_their_way: dict[int, tuple[int, Tensors | None]] = field(default_factory=dict)

    @property
    def free(self) -> int:
        return self.route.request_slots - len(self.on_their_way)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A request that came out."""

    number: int  # of the job, from 0
    outputs: Tensors  # by name; empty where nobody wants them
    passed: Passed  # its times


class Driver:
    """Keeps the streams of a deployment full, and takes what comes out.

    `deployment`: what runs now.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: Deployment,
        model: Model,
        engine: str,
        *,
        task: int,
        only: int | None,
        replan: Replan | None,
        revise: Revise | None,
        stall_limit_s: float | None,
        report: Report,
    ) -> None:
        self.losses: list[Loss] = []  # what was lost, in order
        self.receipts: tuple[PlacementReceipt, ...] = ()  # one for each session
        self._cluster = cluster
        self._model = model
        self._engine = engine
        self._task = task
        self._only = only
        self._replan = replan
        self._revise = revise
        self._next: Deployment | None = None
        self._stall_limit_s = stall_limit_s
        self._report = report
        self._news: SimpleQueue[Frame] = SimpleQueue()
        self._longest_ns = 0
        self._lanes: list[_Lane] = []
        self._open_what_is_there(deployment)

    @property
    def routes(self) -> list[Route]:
        """Of the streams, in order."""
        return [lane.route for lane in self._lanes]

    def begin(self) -> None:
        """Count requests from 0 again; what is still on its way is waited for, and forgotten."""
        for _ in self.serve(iter(()), wanted=False, ends=False):
            pass
        for lane in self._lanes:
            lane.following = 0

    def close(self) -> None:
        """Close the sessions on all devices. Can be called twice."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            self._cluster.shut(lane.route)

    def serve(self, jobs: Iterator[Job], *, wanted: bool, ends: bool) -> Iterator[tuple[int, Result]]:
        """Keep all streams full, and yield what comes out as it comes."""
        waiting: list[Job] = []
        exhausted = False
        while True:
            try:
                self._change()
                while not (exhausted or self._next) and (lane := self._free_lane()) is not None:
                    job = waiting.pop(0) if waiting else next(jobs, None)
                    if job is None:
                        exhausted = True
                        self._end(ends=ends)
                    else:
                        self._enter(lane, *job, wanted=wanted)
                if not self._on_their_way:
                    if self._next is None:
                        return
                    continue
                result = self._next_result()
            except UnitLostError as error:
                waiting = self._recovered(error) + waiting
                exhausted = False
            else:
                if self._revise is not None and self._next is None:
                    new = self._revise(result[1].passed)
                    self._next = None if new == self.deployment else new
                yield result

    @property
    def _on_their_way(self) -> bool:
        return any(lane.on_their_way for lane in self._lanes)

    def _change(self) -> None:
        """Go over to what is to run from now on, once nothing is on its way."""
        if self._next is not None and not self._on_their_way:
            self.close()
            deployment, self._next = self._next, None
            self._open_what_is_there(deployment)
            self._report(Step(text=f"going on with [{self.deployment}]"))

    def _free_lane(self) -> _Lane | None:
        """Return the stream that has most room, or None."""
        lane = max(self._lanes, key=lambda lane: (lane.free / lane.route.request_slots, -lane.following))
        return lane if lane.free else None

    def _enter(self, lane: _Lane, number: int, inputs: Tensors | None, *, wanted: bool) -> None:
        request = lane.following
        lane.following += 1
        lane.on_their_way[request] = (number, inputs)
        head = {
            "kind": "request",
            "request": request,
            "sample": inputs is None,
            "wanted": wanted,
            "stamps": [],
            "about": f"request {request} of {lane.route.stream.name}",
        }
        self._post(lane, head, inputs)

    def _end(self, *, ends: bool) -> None:
        for lane in self._lanes if ends else ():
            self._post(lane, {"kind": "end"})

    def _post(self, lane: _Lane, head: Mapping[str, Any], tensors: Tensors | None = None) -> None:
        """Send something to the first device of a stream; errors as for `_next_result`."""
        try:
            self._cluster.post(lane.route, head, tensors)
        except UnitLostError as error:
            device = lane.route.entry
            words = self._cluster.losses([device]).get(device, str(error))
            self._lose(Loss(device=device, words=words))

    def _next_result(self) -> tuple[int, Result]:
        """Wait for a result.

        Raises UnitLostError: a device or a link was lost; it is the last of `losses`. ExecutionError: an
        engine failed.
        """
        since_ns = monotonic_ns()
        while True:
            try:
                frame = self._news.get(timeout=_LOOK_S)
            except Empty:
                self._look(since_ns)
                continue
            if frame.head["kind"] == "failed":
                raise self._failure(frame)
            if frame.head["kind"] == "cut":
                self._look(since_ns)  # a link is cut when its end is gone: the device is named, not the link
                continue
            found = self._taken(frame)
            if found is not None:
                self._longest_ns = max(self._longest_ns, monotonic_ns() - since_ns)
                return found

    def _taken(self, frame: Frame) -> tuple[int, Result] | None:
        """Return a result; None for one whose route stands no more: its request was given to another."""
        for index, lane in enumerate(self._lanes):
            if lane.route.number == frame.head.get("route") and frame.head["kind"] == "result":
                entered = lane.on_their_way.pop(frame.head["request"], None)
                if entered is None:
                    return None
                devices = lane.route.devices
                offsets_ns = [self._cluster.member(name).clock.offset_ns for name in devices]
                found = passed(lane.route, index, frame.head, offsets_ns)
                return entered[0], Result(number=entered[0], outputs=frame.tensors, passed=found)
        return None

    def _look(self, since_ns: int) -> None:
        """Notice devices that are gone, and that no result comes any more; errors as for `_next_result`."""
        mine = [lane.route for lane in self._lanes]
        gone = self._cluster.losses(self.deployment.units)
        limit_s = self._stall_limit_s or max(STALL_LIMIT_S, _STALL_FACTOR * self._longest_ns / 1e9)
        waited_s = (monotonic_ns() - since_ns) / 1e9
        if gone:
            name, words = next(iter(gone.items()))
            self._lose(Loss(device=name, words=words))
        elif waited_s > limit_s:
            self._lose(blamed(self._cluster, mine, waited_s))

    def _lose(self, loss: Loss) -> None:
        self.losses.append(loss)
        raise UnitLostError(f"{loss}; {self._lost_requests()}")

    def _lost_requests(self) -> str:
        lost = [
            f"{', '.join(map(str, sorted(lane.on_their_way)))} of {lane.route.stream.name!r}"
            for lane in self._lanes
            if lane.on_their_way
        ]
        return f"not answered yet: request {'; '.join(lost)}" if lost else "no request was on its way"

    def _failure(self, frame: Frame) -> Exception:
        device = frame.sender
        error = rebuilt(frame.head["error"], device)
        if isinstance(error, UnitLostError):
            loss = Loss(device=device, words=str(error))
            self.losses.append(loss)
            return UnitLostError(f"{loss}; {self._lost_requests()}")
        return error

    def _recovered(self, error: UnitLostError) -> list[Job]:
        """Go on without what was lost, and return the jobs that are not answered yet.

        Raises UnitLostError: there is no plan without it.
        """
        loss = self.losses[-1] if self.losses else None
        again = loss is not None and any(loss.what == before.what for before in self.losses[:-1])
        if self._replan is None or loss is None or again:  # lost again: the new plan still needs it
            raise error
        left = [entry for lane in self._lanes for entry in lane.on_their_way.values()]
        self._report(Step(text=f"{error}; planning without it"))
        if loss.device:
            self._cluster.drop(loss.device)
        self.close()
        self._open_what_is_there(self._replan(loss))
        return sorted(left, key=lambda entry: entry[0])

    def _open_what_is_there(self, deployment: Deployment) -> None:
        """Open a deployment; where one of its devices is lost, another one without it."""
        while True:
            try:
                self._open(deployment)
                if any(not loss.then for loss in self.losses):
                    then = str(deployment)
                    self._report(Step(text=f"going on with [{then}]"))
                    self.losses[:] = [replace(loss, then=loss.then or then) for loss in self.losses]
                return
            except UnitLostError as error:
                gone = self._cluster.losses(deployment.units)
                if self._replan is None or not gone:
                    raise
                name, words = next(iter(gone.items()))
                self.losses.append(Loss(device=name, words=words))
                self._report(Step(text=f"{error}; planning without it"))
                self._cluster.drop(name)
                deployment = self._replan(self.losses[-1])

    def _open(self, deployment: Deployment) -> None:
        units = {name: unit_data(self._cluster.member(name).unit) for name in deployment.units}
        receipts: list[PlacementReceipt] = []
        self.deployment = deployment
        samples = self._model.sample_inputs(_SEED)
        try:
            for stream in deployment.streams:
                number = self._cluster.next_number()
                route = route_of(
                    stream,
                    self._model,
                    units,
                    number=number,
                    task=self._task,
                    engine=self._engine,
                    only=self._only,
                )
                receipts += self._cluster.open(route, self._news.put)
                self._lanes.append(_Lane(route))
                if self._only is None:
                    self._cluster.post(route, {"kind": "samples"}, samples)
        except BaseException:
            self.close()
            raise
        self.receipts = tuple(receipts)
