"""Pipelines over devices as a formulation, and how they run: items that pass devices and links in line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb, factorial
from typing import ClassVar

from ..branches import order_words
from ..chain import Chain
from ..cluster import Pipelines, refuse_devices
from ..deployment import Deployment
from ..formulation import Formulation, of_tables
from ..history import History, Usage
from ..model import Encoded
from ..plan import Plan
from ..problem import Problem
from ..remaining import DevicesOperation, Entries, other_devices, unchanged
from ..scores import Violation
from ..stations import Station, computing, later, message, usage_of_chunks
from ..streams import Stream
from ..terms import PlanNumbers, Term
from .encoding import encode_pipelines
from .plans import Pipe, Pipes, ordered, pipe_names, plan_of, stages_of, well_formed
from .quantities import QUANTITIES, TERMS, PipelineValues, broken
from .tables import Cluster, build_tables, cluster_of
from .view import PipelineView


def all_pipes(cluster: Cluster) -> Iterator[Pipes]:
    """Yield every well-formed plan: pipelines on disjoint devices, at most as many as are allowed."""
    yield from _sets(cluster, tuple(range(cluster.device_count)), cluster.most_pipelines, ())


def _sets(cluster: Cluster, free: tuple[int, ...], most: int, pipes: Pipes) -> Iterator[Pipes]:
    """Yield plans with these pipelines and others on free devices, ordered by their first device."""
    if pipes:
        yield pipes
    if most == 0:
        return
    for place, first in enumerate(free):
        later = free[place + 1 :]
        for size in range(len(later) + 1):
            for others in combinations(later, size):
                rest = tuple(device for device in later if device not in others)
                for pipe in _pipes(cluster, frozenset((first, *others)), 0, ()):
                    yield from _sets(cluster, rest, most - 1, (*pipes, pipe))


def _pipes(cluster: Cluster, left: frozenset[int], at: int, pipe: Pipe) -> Iterator[Pipe]:
    """Yield the pipelines that use exactly the devices that are left."""
    if not left:
        if at == cluster.chain.layer_count:
            yield pipe
        return
    for device in sorted(left):
        for stop in cluster.chain.cuts:
            if stop > at and cluster.runs(at, stop, device):
                yield from _pipes(cluster, left - {device}, stop, (*pipe, (at, stop, device)))


def near_pipes(cluster: Cluster, pipes: Pipes) -> Iterator[Pipes]:
    """Yield plans with one pipeline less, a chunk elsewhere, or two chunks cut otherwise or joined."""
    busy = {device for pipe in pipes for _, _, device in pipe}
    free = [device for device in range(cluster.device_count) if device not in busy]
    for place, pipe in enumerate(pipes):
        others = pipes[:place] + pipes[place + 1 :]
        if others:
            yield ordered(others)
        for changed in _changed(cluster, pipe, free):
            if all(cluster.runs(*part) for part in changed):
                yield ordered((*others, changed))


def _changed(cluster: Cluster, pipe: Pipe, free: Sequence[int]) -> Iterator[Pipe]:
    for place, (start, stop, device) in enumerate(pipe):
        for other in free:
            yield (*pipe[:place], (start, stop, other), *pipe[place + 1 :])
        if place + 1 < len(pipe):
            _, end, following = pipe[place + 1]
            head, tail = pipe[:place], pipe[place + 2 :]
            yield from ((*head, (start, end, one), *tail) for one in (device, following))
            cuts = (cut for cut in cluster.chain.cuts if start < cut < end and cut != stop)
            yield from ((*head, (start, cut, device), (cut, end, following), *tail) for cut in cuts)


def count_pipes(cluster: Cluster) -> int:
    """Return an upper bound on the number of well-formed plans.

    Exact when every device can run every layer: with W(d) = C(N-1, d-1) d! pipelines on d given devices,
    A(m, p), the plans with p pipelines on m devices, is the sum over the devices of that which has the first.
    """
    pieces = len(cluster.chain.cuts) - 1
    most = cluster.most_pipelines
    ways = [[1] + [0] * most]
    for devices in range(1, cluster.device_count + 1):
        row = list(ways[devices - 1])  # the first device is not used
        for size in range(1, min(devices, pieces) + 1):
            own = comb(devices - 1, size - 1) * comb(pieces - 1, size - 1) * factorial(size)
            for count in range(1, most + 1):
                row[count] += own * ways[devices - size][count - 1]
        ways.append(row)
    return sum(ways[-1][1:])


class PipelinesOperation(DevicesOperation):
    """Endless streams on disjoint devices; the runtime serves those on one board, others are played."""

    def streams(self, problem: Problem, plan: Plan, task_slots: int | None = None) -> tuple[Stream, ...]:
        """Return one stream for each pipeline, in the canonical order of plans."""
        cluster = cluster_of(problem)
        pipes = well_formed(cluster, plan)
        whole = plan_of(cluster, pipes)
        return tuple(
            Stream(name=name or cluster.chain.network, chunks=whole.of(name), task_slots=task_slots)
            for name in pipe_names(len(pipes))
        )

    def stations(self, problem: Problem, stream: Stream) -> tuple[Station, ...]:
        """Return the devices of a pipeline, and its links."""
        cluster = cluster_of(problem)
        return stations_of(cluster, pipe_of(cluster, stream))

    def check_executable(self, problem: Problem) -> None:
        """Refuse devices that links join, and devices that are pipelines themselves."""
        data = cluster_of(problem).data
        what = ("links" if data.links else "") or ("devices with units of their own" if data.inner else "")
        if what:
            refuse_devices(what)

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with one pipeline, where several may be."""
        cluster = cluster_of(problem)
        if cluster.most_pipelines > 1 and self.pace(problem) != "latency":
            yield replace(problem, data=replace(cluster.data, most=1))

    def devices(self, problem: Problem) -> Pipelines:
        """Return the data of the problem."""
        return cluster_of(problem).data

    def data(self, problem: Problem, devices: Pipelines, entries: Entries = unchanged) -> Pipelines:
        """Return what joins the devices: there is nothing else."""
        return devices

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each device alone, and its replicas on several; those make no item faster."""
        cluster = cluster_of(problem)
        for names in sets:
            places = sorted(cluster.devices.index(name) for name in names)
            pipes: Pipes = tuple(((0, cluster.chain.layer_count, place),) for place in places)
            if len(names) == 1 or self.pace(problem) != "latency":
                label = f"{'serial' if len(names) == 1 else 'replicas'} on {'+'.join(names)}"
                yield label, self.deploy(problem, plan_of(cluster, pipes))

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network for each stream."""
        return (cluster_of(problem).chain,) * len(deployment.streams)

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return how long each chunk computes, on devices with units of their own, too."""
        cluster = cluster_of(problem)
        return tuple(
            tuple(
                cluster.compute_us(*part) if cluster.runs(*part) else None
                for part in pipe_of(cluster, stream)
            )
            for stream in deployment.streams
        )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time.

        Weights, the runtime of each device in use and the slots of its queues are always there; a chunk that
        runs needs its live tensors. Where no queue has a slot, a tensor between two chunks takes its own
        bytes.
        """
        cluster = cluster_of(problem)
        return usage_of_chunks(
            history,
            held=partial(_resident, cluster),
            running=cluster.memory_bytes,
            waiting=() if cluster.data.in_slots or cluster.data.out_slots else cluster.boundary_bytes,
        )


def _resident(cluster: Cluster, start: int, stop: int) -> int:
    """Return what a chunk keeps on its device all the time: weights, slots of queues, the runtime."""
    data, sizes = cluster.data, cluster.boundary_bytes
    waiting = data.in_slots * sizes[start] + data.out_slots * sizes[stop]
    return cluster.chain.weights.between(start, stop) + waiting + data.resident_bytes


def stations_of(cluster: Cluster, pipe: Pipe) -> tuple[Station, ...]:
    """Return the stations of a pipeline in order: the largest time of one is the period.

    A device that sends while it computes is one station, and each link another one. Without overlap the
    device is taken by its messages, too, and both are one station. Messages of no time are left out.
    """
    found: list[Station] = []
    stages = stages_of(cluster, pipe)
    for index, stage in enumerate(stages):
        device = cluster.devices[stage.device]
        enters, sends = stage.receive_us, stage.send_us
        target = cluster.devices[pipe[index + 1][2]] if index + 1 < len(pipe) else cluster.data.host
        copies = _copies_us(cluster, pipe[index])
        before = message(cluster.data.host, device, index, enters, received=True)
        behind = message(device, target, index, sends)
        if cluster.data.overlap:
            found += [*before, computing(device, index, stage.compute_us, copies), *behind]
            continue
        whole = computing(device, index, stage.stage_us, (enters + copies[0], sends + copies[1]))
        messages = (
            *(work for station in before for work in station.works),
            *(work for station in behind for work in later(station.works, enters + stage.compute_us)),
        )
        found.append(replace(whole, works=(*whole.works, *messages)))
    return tuple(found)


def pipe_of(cluster: Cluster, stream: Stream) -> Pipe:
    """Return the chunks of a stream by index."""
    return tuple((c.start, c.stop, cluster.devices.index(c.unit)) for c in stream.chunks)


def _copies_us(cluster: Cluster, part: tuple[int, int, int]) -> tuple[int, int]:
    """Return how long the copies in and out of a chunk take on its device."""
    start, stop, device = part
    if cluster.inner_us[device] is not None:
        return 0, 0
    return cluster.chain.transfer_in_us[start][device], cluster.chain.transfer_out_us[stop][device]


class PipelinesFormulation(Formulation[Cluster, Pipes]):
    """One network as an endless stream over devices: pipelines side by side, each on devices of its own."""

    name: ClassVar[str] = "pipelines"
    label: ClassVar[str] = "problems of pipelines over devices"
    data_key: ClassVar[str | None] = "pipelines"
    data_type: ClassVar[type | None] = Pipelines
    terms = TERMS
    tie_break: ClassVar[tuple[str, ...]] = (Term.DEVICES, Term.PERIOD, Term.LATENCY)
    quantities = QUANTITIES
    limits: ClassVar[tuple[str, ...]] = ("max_period_us", "min_units", "max_units", "max_gapness_us")
    co_run_costs: ClassVar[bool] = True
    one_network: ClassVar[bool] = True
    operation = PipelinesOperation()
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no pipeline covers the network: memory, links or cuts are in the "
        "way"
    )
    tables = staticmethod(build_tables)
    other_units = staticmethod(other_devices)
    code = of_tables(well_formed)
    plan = of_tables(plan_of)
    numbers = of_tables(PipelineValues)
    count = of_tables(count_pipes)
    codes = of_tables(all_pipes)
    neighbours = of_tables(near_pipes)

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the devices."""
        if len(problem.networks) != 1:
            yield f"pipelines are for one network, the problem has {len(problem.networks)}"
        yield from problem.data.mismatches(problem.platform)

    def view(self, problem: Problem) -> PipelineView:
        """Return what rules can say."""
        return PipelineView(problem.network, cluster_of(problem))

    def broken(self, problem: Problem, code: Pipes, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield links, cuts, conflicts and capacities that a plan breaks."""
        assert isinstance(numbers, PipelineValues)
        return broken(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return by device the time it computes, the time of its stage, its bytes and its pipeline."""
        assert isinstance(numbers, PipelineValues)
        found = {
            "busy_us": numbers.busy_us,
            "stage_us": numbers.stage_us,
            "memory_bytes": numbers.memory_bytes,
            "pipeline": {device: index + 1 for device, index in numbers.place.items()},
        }
        devices = range(numbers.cluster.device_count)
        return {name: tuple(map(row.get, devices)) for name, row in found.items()}

    def rate(self, numbers: PlanNumbers) -> float:
        """Return the items a second of all pipelines together."""
        assert isinstance(numbers, PipelineValues)
        return sum(1e6 / period for period in numbers.periods_us)

    def key(self, problem: Problem, code: Pipes) -> tuple[int, ...]:
        """Return (first device of its pipeline, start, stop) of every device; last where it is not used."""
        cluster = cluster_of(problem)
        own = {d: (min(x for *_, x in pipe), i, j) for pipe in code for i, j, d in pipe}
        unused = (cluster.device_count, 0, 0)
        return tuple(number for d in range(cluster.device_count) for number in own.get(d, unused))

    def plan_class(self, problem: Problem) -> str:
        """Return how many pipelines there may be, and that no device has two chunks."""
        most, unit = problem.data.most, "device" if problem.data.links else "unit"
        count = {None: "pipelines side by side", 1: "one pipeline"}.get(
            most, f"at most {most} pipelines side by side"
        )
        inner = " (or per unit of it)" if problem.data.inner else ""
        return f"plans of {count}, at most one chunk per {unit}{inner}{order_words(problem.networks)}"

    def outside(self, problem: Problem) -> str:
        """Return that devices could be used twice, or more pipelines be asked for."""
        more = "" if problem.data.most is None else "More pipelines may do (--pipelines many). "
        return f"{more}Plans with several chunks on a device are not looked at; one of them may do."

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Pipes | None = None
    ) -> Encoded[Pipes]:
        """Return the model by chunks (`encoding.py`)."""
        return encode_pipelines(problem)


FORMULATION = PipelinesFormulation()
