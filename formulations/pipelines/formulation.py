"""Pipelines over devices as a formulation: what the rest of gapless knows about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ..branches import order_words
from ..cluster import Pipelines
from ..formulation import Formulation
from ..model import Encoded
from ..other_devices import other_devices
from ..plan import Plan
from ..problem import Problem
from ..scores import Violation
from ..terms import PlanNumbers
from . import judge
from .encoding import encode_pipelines
from .operation import PipelinesOperation
from .plans import Pipes, plan_of
from .quantities import QUANTITIES, TERMS, PipelineTerm, PipelineValues
from .space import all_pipes, count_pipes, near_pipes
from .tables import Cluster, build_tables, cluster_of
from .view import PipelineView


class PipelinesFormulation(Formulation[Cluster, Pipes]):
    """One network as an endless stream over devices: pipelines side by side, each on devices of its own."""

    name: ClassVar[str] = "pipelines"
    label: ClassVar[str] = "problems of pipelines over devices"
    data_key: ClassVar[str | None] = "pipelines"
    data_type: ClassVar[type | None] = Pipelines
    terms = TERMS
    tie_break: ClassVar[tuple[str, ...]] = (PipelineTerm.DEVICES, PipelineTerm.PERIOD, PipelineTerm.LATENCY)
    quantities = QUANTITIES
    limits: ClassVar[tuple[str, ...]] = ("max_period_us", "min_units", "max_units", "max_gapness_us")
    co_run_costs: ClassVar[bool] = True
    one_network: ClassVar[bool] = True
    operation = PipelinesOperation()
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no pipeline covers the network: memory, links or cuts are in the "
        "way"
    )

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the devices."""
        if len(problem.networks) != 1:
            yield f"pipelines are for one network, the problem has {len(problem.networks)}"
        yield from problem.data.mismatches(problem.platform)

    def tables(self, problem: Problem) -> Cluster:
        """Return the tables of the network on the devices."""
        return build_tables(problem)

    def view(self, problem: Problem) -> PipelineView:
        """Return what rules can say."""
        return PipelineView(problem.network, cluster_of(problem))

    def code(self, problem: Problem, plan: Plan) -> Pipes:
        """Return the pipelines by index, in order of their first devices."""
        return judge.well_formed(cluster_of(problem), plan)

    def plan(self, problem: Problem, code: Pipes) -> Plan:
        """Return the pipelines by name."""
        return plan_of(cluster_of(problem), code)

    def numbers(self, problem: Problem, code: Pipes) -> PipelineValues:
        """Return the numbers of a plan."""
        return PipelineValues(cluster_of(problem), code)

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

    def other_units(self, problem: Problem) -> Iterator[tuple[str, Problem]]:
        """Yield the problem with fewer devices, and with one more of each kind."""
        return other_devices(problem)

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

    def count(self, problem: Problem) -> int:
        """Return an upper bound on the number of plans."""
        return count_pipes(cluster_of(problem))

    def codes(self, problem: Problem) -> Iterator[Pipes]:
        """Yield every plan."""
        return all_pipes(cluster_of(problem))

    def neighbours(self, problem: Problem, code: Pipes) -> Iterator[Pipes]:
        """Yield plans with one change of a pipeline."""
        return near_pipes(cluster_of(problem), code)

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Pipes | None = None
    ) -> Encoded[Pipes]:
        """Return the model by chunks (`encoding.py`)."""
        return encode_pipelines(problem)


FORMULATION = PipelinesFormulation()
