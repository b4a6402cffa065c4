"""Pipelines over devices as a formulation: what the rest of gapless knows about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, factorial
from typing import ClassVar

from ..branches import order_words
from ..cluster import Pipelines
from ..formulation import Formulation, of_tables
from ..model import Encoded
from ..problem import Problem
from ..remaining import other_devices
from ..scores import Violation
from ..terms import PlanNumbers, Term
from . import judge
from .encoding import encode_pipelines
from .operation import PipelinesOperation
from .plans import Pipe, Pipes, ordered, plan_of
from .quantities import QUANTITIES, TERMS, PipelineValues
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
    code = of_tables(judge.well_formed)
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
        return judge.broken(numbers)

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
