"""A plan over the devices of a cluster, at work, and its numbers against those of the uncut model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError, OutputMismatchError
from ...formulations.history import History
from ..closing import Closing
from ..comparing import Allowed
from ..engine import PlacementReceipt
from ..gathering import Gathered
from ..measurement import Measurement
from ..model import Model, TensorPart, allowed_of
from ..pipeline.feeding import check_inputs
from ..pipeline.runs import PipelineRun, run_for
from ..pipeline.shared import RECORDS
from ..pipeline.verify import REQUESTS, References, receipt_words
from ..progress import Report, silent
from ..runner import Budget, Verification, told
from .cluster import Cluster
from .driver import Driver, Replan, Result, Revise
from .loss import Loss
from .recording import Passed, Recording
from .routes import Route

if TYPE_CHECKING:
    from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]


class ClusterPipeline(Closing):
    """A deployment over devices: one route for each of its streams, all sessions open; a context manager.

    Parameters
    ----------
    cluster
        Its devices.
    deployment
        Streams whose units are devices, all of one network.
    model
        The network.
    engine
        Name of the engine that runs it.
    task
        Logical clock: on each device, its requests wait for those of pipelines with a lower number.
    only
        One group of chunks of its only stream, which gets the tensors that it takes. None: all of them.
    replan
        What to do when a device or a link is lost. None: the run fails.
    revise
        Told of every request that came out; what it returns runs from then on.
    stall_limit_s
        How long no result may come. None: the larger of 10 s and 20 times the longest wait so far.
    report
        Told of what was lost, and of the new plan.

    Raises
    ------
    PlacementError, ExecutionError, UnitLostError
        A device cannot open its part.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: Deployment,
        model: Model,
        engine: str,
        *,
        task: int = 0,
        only: int | None = None,
        replan: Replan | None = None,
        revise: Revise | None = None,
        stall_limit_s: float | None = None,
        report: Report = silent,
    ) -> None:
        self._verification: tuple[Deployment, Verification] | None = None
        self._cluster = cluster
        self._model = model
        self._engine = engine
        self._driver = Driver(
            cluster,
            deployment,
            model,
            engine,
            task=task,
            only=only,
            replan=replan,
            revise=revise,
            stall_limit_s=stall_limit_s,
            report=report,
        )

    @property
    def deployment(self) -> Deployment:
        """What runs now; another one after a loss."""
        return self._driver.deployment

    @property
    def verification(self) -> Verification | None:
        """What came of comparing the numbers of what runs now; None: they were not compared."""
        if self._verification is None or self._verification[0] != self.deployment:
            return None
        return self._verification[1]

    @verification.setter
    def verification(self, found: Verification) -> None:
        self._verification = self.deployment, found

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What was lost, in order."""
        return tuple(self._driver.losses)

    def measure(self, budget: Budget) -> Measurement:
        """Run on sample inputs that lie on the first device, and measure.

        Raises
        ------
        InvalidInputError
            The budget allows nothing.
        UnitLostError
            A device or a link was lost, and there is no plan without it; the lost requests are named.
        ExecutionError
            An engine failed; the message names the request.
        """
        run = run_for(budget, len(self.deployment.streams))
        self._cluster.set_clocks()
        recording, deployment = self._record(run)
        rss_bytes = {name: self._cluster.status(name)["rss_bytes"] for name in deployment.units}
        return recording.measurement(deployment, self.receipts, rss_bytes, self._device)

    def trace(self, *, requests: int) -> History:
        """Run some requests of each stream on sample inputs, and return when everything happened.

        Raises
        ------
        InvalidInputError
            The number is not between 1 and `RECORDS`.
        UnitLostError, ExecutionError
            As for `measure`.
        """
        if not 1 <= requests <= RECORDS:
            raise InvalidInputError(f"requests is {requests}, must be between 1 and {RECORDS}")
        self._cluster.set_clocks()
        recording, deployment = self._record(PipelineRun(first=(), requests=requests))
        return recording.history(deployment)

    def map(self, frames: Iterable[Tensors]) -> Iterator[dict[str, NDArray[Any]]]:
        """Send inputs through, and yield the outputs in the same order.

        Raises
        ------
        InvalidInputError
            A frame does not fit; the frames before it have come out.
        UnitLostError, ExecutionError
            As for `measure`.
        """
        for result in self.play(self._checked(frames), wanted=True):
            yield dict(result.outputs)

    def play(self, jobs: Iterable[Tensors | None], *, wanted: bool, ends: bool = False) -> Iterator[Result]:
        """Send requests through, and yield what comes out in the order of the jobs.

        Parameters
        ----------
        jobs
            Inputs by name; None: the samples that lie on the first device.
        wanted
            Whether the outputs are brought to the driver.
        ends
            Whether nothing comes behind them: then devices go on to later tasks.
        """
        self._driver.begin()
        ready: dict[int, Result] = {}
        out = 0
        for number, result in self._driver.serve(enumerate(jobs), wanted=wanted, ends=ends):
            ready[number] = result
            while out in ready:
                yield ready.pop(out)
                out += 1

    def alone(self, stream: int, group: int) -> ClusterPipeline:
        """Open one group of chunks of a stream on its devices once more, by itself."""
        part = self.deployment.streams[stream]
        return ClusterPipeline(
            self._cluster, Deployment(streams=(part,)), self._model, self._engine, only=group
        )

    @property
    def route(self) -> Route:
        """Of the first stream."""
        return self._driver.routes[0]

    @property
    def receipts(self) -> tuple[PlacementReceipt, ...]:
        """One for each session."""
        return told(self.verification, self._driver.receipts)

    def close(self) -> None:
        """Close the sessions on all devices. Can be called twice."""
        self._driver.close()

    @property
    def _device(self) -> str:
        machines = {name: self._cluster.member(name).device for name in self.deployment.units}
        if len(set(machines.values())) == 1:
            return f"{len(machines)} devices on {next(iter(machines.values()))}"
        return "; ".join(f"{name}: {words}" for name, words in machines.items())

    def _record(self, run: PipelineRun) -> tuple[Recording, Deployment]:
        """Run until what is asked for has come out; after a loss the run begins anew on the new plan."""
        deployment = self.deployment
        recording = Recording(self._driver.routes, run.warm_up)
        window = _Window(run, recording, len(self.deployment.streams))
        self._driver.begin()
        for _, result in self._driver.serve(window.jobs(), wanted=False, ends=False):
            if deployment is not self.deployment:
                return self._record(run)
            if window.counts(result.passed):
                recording.add(result.passed)
        return recording, deployment

    def _checked(self, frames: Iterable[Tensors]) -> Iterator[Tensors]:
        for number, frame in enumerate(frames):
            defects = check_inputs(self._model.inputs, frame)
            if defects:
                raise InvalidInputError(f"frame {number} cannot be run:", defects)
            yield frame


class _Window:
    """Which requests of a measurement are let in, and which count."""

    def __init__(self, run: PipelineRun, recording: Recording, streams: int) -> None:
        self._run = run
        self._recording = recording
        self._streams = streams
        self._deadline_ns: int | None = None
        self._stop = None if run.requests is None else run.warm_up + run.requests

    def jobs(self) -> Iterator[tuple[int, None]]:
        """Yield requests on samples until all that is asked for has come out."""
        for number in count():
            if self._is_over():
                return
            yield number, None

    def counts(self, found: Passed) -> bool:
        """Return whether a request counts, or belongs to the warm-up."""
        if self._stop is not None and found.request >= self._stop:
            return False
        return found.request <= self._run.warm_up or (
            self._deadline_ns is None or found.end_ns < self._deadline_ns
        )

    def _is_over(self) -> bool:
        recording, run = self._recording, self._run
        counted = [recording.counted(index) for index in range(self._streams)]
        if run.requests is not None and min(counted) >= run.requests:
            return True
        if run.duration_ns is None or not all(recording.begins_ns):
            return False
        if self._deadline_ns is None:
            self._deadline_ns = max(recording.begins_ns) + run.duration_ns
        return min(counted) > 0 and monotonic_ns() >= self._deadline_ns


def verify_on_cluster(pipeline: ClusterPipeline, references: References) -> Verification:
    """Send different inputs through all streams, and compare all outputs.

    Raises OutputMismatchError: numbers differ; the message names the first chunk that is wrong, and its
    device.
    """
    network = pipeline.deployment.networks[0]
    precisions = [receipt.precision for receipt in pipeline.receipts]
    allowed = allowed_of(references.network(network), precisions)
    seeds = range(1, 1 + REQUESTS * len(pipeline.deployment.streams))
    jobs = [references.inputs(network, seed) for seed in seeds]
    right = references.outputs(network, seeds)
    gathered = Gathered("output")
    for sample, result in enumerate(list(pipeline.play(jobs, wanted=True))):
        for name, array in result.outputs.items():
            difference = right[name].compare(array, sample, allowed)
            gathered.add(difference, name)
            if not difference.agrees:
                what = f"request {result.number}, {difference.said_of(f'output {name!r}')}"
                _blame(pipeline, references, result, sample, seeds=seeds, what=what, allowed=allowed)
    return gathered.verification(len(jobs))


def _blame(
    pipeline: ClusterPipeline,
    references: References,
    result: Result,
    sample: int,
    *,
    seeds: Sequence[int],
    what: str,
    allowed: Allowed,
) -> None:
    """Give each group of chunks the right inputs, alone, and name the first tile that is wrong."""
    stream = pipeline.deployment.streams[result.passed.stream]
    network = stream.network
    inputs = references.inputs(network, seeds[sample])
    for index in range(len(stream.groups)):
        with pipeline.alone(result.passed.stream, index) as single:
            taken, made = single.route.takes, list(_made(single.route))
            names = {*taken, *(name for _, _, name, _ in made)} - {*inputs}
            right = references.tensors(network, seeds, names)
            given = {**inputs, **{name: each.arrays[sample] for name, each in right.items()}}
            (found,) = single.play([{name: _array(given[name]) for name in taken}], wanted=True)
            receipts = single.receipts
        for device, where, name, part in made:
            difference = right[name].compare(found.outputs[name], sample, allowed, part=part)
            if not difference.agrees:
                granted = "; ".join(receipt_words(one) for one in receipts if one.unit == device)
                raise OutputMismatchError(
                    f"stream {stream.name!r} gives wrong numbers ({what}). The first wrong tensor is "
                    f"{name!r}, made by {where} on device {device!r}: {difference.details}. "
                    f"What that device was granted: {granted}"
                )
    raise OutputMismatchError(
        f"stream {stream.name!r} gives wrong numbers ({what}), but each chunk alone is right: tensors are "
        "changed on their way, or the engine is not repeatable"
    )


def _made(route: Route) -> Iterator[tuple[str, str, str, TensorPart | None]]:
    """Yield (device, tile in words, tensor, which part of it) of everything that a group makes."""
    where = {device: station.where for device, station in zip(route.devices, route.stations, strict=True)}
    leading = route.stations[route.stream.led_by[0]]
    for share in leading.shares:
        yield from ((share.device, where[share.device], part.whole.name, part) for part in share.makes)
    if not leading.shares:
        yield from ((route.entry, leading.where, name, None) for name in leading.sends)


def _array(array: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.ascontiguousarray(array)
