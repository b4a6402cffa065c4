"""What a tuner measures: plans of a solver, and the baselines that a plan has to beat."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Any, ClassVar

from ...formulations.deployment import Deployment, Mode, replicas
from ...formulations.flow_shop.tables import shop_of, workload_in
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.judge import score
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.validation import STRICT
from ..deployment import deploy
from ..simulation import charged_for

MOST_REPLICA_SETS = 6
"""Most sets of cores on which a network is replicated: one replica a core, one a cluster, mixtures."""

_MOST_EXPLORED = 1000

Prediction = tuple[str, int]
"""Name of a cost table, and the time from one result to the next (`Deployment.pace`) that it predicts, us."""


class CandidateKind(StrEnum):
    """Where a candidate comes from.

    PLAN
        A solver proposed it.
    BASELINE
        What anybody would try without planning. A plan that equals a baseline is a baseline.
    """

    PLAN = "plan"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningCandidate:
    """A deployment to be measured.

    Attributes
    ----------
    labels
        What people call it; several where different proposals are the same deployment.
    deployment
        What runs.
    kind
        Plan or baseline.
    predicted_us
        The period that each cost table predicts for it; empty where nothing predicts it.
    rank
        Its place among the plans of the solver, from 1; None for a baseline that no solver proposed.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    labels: tuple[str, ...]
    deployment: Deployment
    kind: CandidateKind
    predicted_us: tuple[Prediction, ...] = ()
    rank: int | None = None

    @property
    def key(self) -> str:
        """The identity of its deployment: what distinguishes candidates."""
        return self.deployment.deployment_id

    @property
    def label(self) -> str:
        """All labels in one."""
        return " = ".join(self.labels)

    def predicted(self, table: str) -> int | None:
        """Return the period that a cost table predicts, or None."""
        return dict(self.predicted_us).get(table)


def plan_candidates(
    plans: Sequence[Plan], *, tables: Mapping[str, Problem], first_rank: int = 1
) -> tuple[TuningCandidate, ...]:
    """Return plans, best first, as candidates.

    Parameters
    ----------
    plans
        Valid plans of one problem.
    tables
        The problem with each cost table that shall predict, by the name of the table; at least one.
    first_rank
        Rank of the first plan: more than 1 where others were proposed before.
    """
    problem = next(iter(tables.values()))
    slots = _slots(asked_pace(problem))
    return tuple(
        predicted(
            TuningCandidate(
                labels=(f"plan {rank}",),
                deployment=deploy(plan, workload=workload_in(problem), task_slots=slots),
                kind=CandidateKind.PLAN,
                rank=rank,
            ),
            tables,
        )
        for rank, plan in enumerate(plans, start=first_rank)
    )


def predicted(candidate: TuningCandidate, tables: Mapping[str, Problem]) -> TuningCandidate:
    """Return a candidate with what each cost table predicts for it, by the name of the table.

    Streams side by side have together one over the sum of their rates.
    """
    plans = candidate.deployment.plans
    charged = {name: charged_for(table, candidate.deployment) for name, table in tables.items()}
    found = tuple(
        (name, round(1 / sum(1 / predicted_us(table, plan) for plan in plans)))
        for name, table in charged.items()
    )
    return replace(candidate, predicted_us=found)


def asked_pace(problem: Problem) -> str:
    """Return what candidates are compared by: what `Deployment.pace` of theirs will be.

    One network is run one request at a time where its latency is what counts first; nothing else than the
    makespan of a batch, or the period of a stream, is what a race can compare.
    """
    workload = workload_in(problem)
    if workload is not None:
        return "makespan" if workload.mode is Mode.BATCH else "period"
    return "latency" if problem.objective.first == "latency" else "period"


def _slots(pace: str) -> int | None:
    return 1 if pace == "latency" else None


def predicted_us(problem: Problem, plan: Plan) -> int:
    """Return what `Measurement.period_us` should be by the table of a problem: its `asked_pace`."""
    return score(problem, plan).value(asked_pace(problem))


def baselines(
    network: str,
    layers: int,
    platform: Platform,
    *,
    able: Collection[str] | None = None,
    pace: str = "period",
) -> tuple[TuningCandidate, ...]:
    """Return what a plan has to beat: each unit alone, and the network replicated on disjoint units.

    Replicas run on maximal sets of units that share no core: first the sets of processor cores that
    cover the most cores (at most `MOST_REPLICA_SETS`: one replica a core, then few large units before
    many small ones), then each of them together with all units that are not made of cores.

    Parameters
    ----------
    network, layers
        Name and number of layers of the network.
    platform
        The units.
    able
        Names of the units that can run every layer; None: all of them.
    pace
        What they are compared by; replicas make no request faster, so for the latency there are none.
    """
    units = [unit for unit in platform.units if able is None or unit.name in able]
    other = tuple(unit.name for unit in units if not unit.cores)
    sets = _replica_sets([unit for unit in units if unit.cores])
    shared = dict.fromkeys([*sets, *(names + other for names in sets or [()])])
    alone = tuple(_serial(network, layers, unit.name, _slots(pace)) for unit in units)
    if pace == "latency":
        return alone
    return alone + tuple(
        _baseline(f"replicas on {'+'.join(names)}", replicas(network, layers, names))
        for names in shared
        if len(names) > 1
    )


def workload_baselines(problem: Problem) -> tuple[TuningCandidate, ...]:
    """Return what a plan for a workload has to beat: nothing is cut, requests come in their own order.

    All requests on each unit, one after the other; and each request on the unit that is done with it first,
    on the sets of units on which `baselines` replicates a network.
    """
    assert workload_in(problem) is not None
    able = [unit for index, unit in enumerate(problem.platform.units) if _runs_all(problem, index)]
    other = tuple(unit.name for unit in able if not unit.cores)
    sets = _replica_sets([unit for unit in able if unit.cores])
    shared = dict.fromkeys(names + other for names in sets or [()])
    return tuple(
        _baseline(
            f"serial on {unit.name}", deploy(_dealt(problem, (unit.name,)), workload=workload_in(problem))
        )
        for unit in able
    ) + tuple(
        _baseline(
            f"whole requests on {'+'.join(names)}",
            deploy(_dealt(problem, names), workload=workload_in(problem)),
        )
        for names in shared
        if len(names) > 1
    )


def _runs_all(problem: Problem, unit: int) -> bool:
    chains = shop_of(problem).chains
    return all(chain.runs(0, chain.layer_count, unit) for chain in chains)


def _dealt(problem: Problem, units: Sequence[str]) -> Plan:
    """Return the plan that gives each request, in their order, to the unit that is done with it first."""
    shop = shop_of(problem)
    loads_us = dict.fromkeys(units, 0)
    chunks = []
    for index, request in enumerate(shop.workload.requests):
        layers = shop.chain(index).layer_count
        ends_us = {
            name: load + shop.chunk_us(index, shop.units.index(name), 0, layers)
            for name, load in loads_us.items()
        }
        unit = min(ends_us, key=ends_us.__getitem__)
        loads_us[unit] = ends_us[unit]
        chunks.append(Chunk(request=request.name, network=request.network, start=0, stop=layers, unit=unit))
    return Plan(chunks=tuple(chunks), order=shop.workload.names)


def without_duplicates(candidates: Sequence[TuningCandidate]) -> tuple[TuningCandidate, ...]:
    """Return candidates with distinct deployments: those that are equal become one with all labels."""
    found: dict[str, TuningCandidate] = {}
    for candidate in candidates:
        first = found.setdefault(candidate.key, candidate)
        if first is not candidate:
            found[candidate.key] = _joined(first, candidate)
    return tuple(found.values())


def _joined(first: TuningCandidate, second: TuningCandidate) -> TuningCandidate:
    kinds = (first.kind, second.kind)
    return replace(
        first,
        labels=tuple(dict.fromkeys(first.labels + second.labels)),
        kind=CandidateKind.BASELINE if CandidateKind.BASELINE in kinds else CandidateKind.PLAN,
        predicted_us=tuple({**dict(second.predicted_us), **dict(first.predicted_us)}.items()),
        rank=second.rank if first.rank is None else first.rank,
    )


def _serial(network: str, layers: int, unit: str, task_slots: int | None) -> TuningCandidate:
    plan = Plan(chunks=(Chunk(network=network, start=0, stop=layers, unit=unit),))
    return _baseline(f"serial on {unit}", deploy(plan, task_slots=task_slots))


def _baseline(label: str, deployment: Deployment) -> TuningCandidate:
    return TuningCandidate(labels=(label,), deployment=deployment, kind=CandidateKind.BASELINE)


def _replica_sets(units: Sequence[ProcessingUnit]) -> list[tuple[str, ...]]:
    """Return maximal sets of units without a common core: most cores first, of these the finest first."""
    apart = [
        {other for other, unit in enumerate(units) if set(unit.cores).isdisjoint(one.cores)} for one in units
    ]
    covered = {
        tuple(units[index].name for index in sorted(chosen)): sum(len(units[i].cores) for i in chosen)
        for chosen in islice(_cliques(apart, set(), set(range(len(units))), set()), _MOST_EXPLORED)
        if chosen
    }
    most = max(covered.values(), default=0)
    full = sorted((names for names in covered if covered[names] == most), key=len)
    rest = sorted(
        (names for names in covered if covered[names] < most), key=covered.__getitem__, reverse=True
    )
    return [*full[-1:], *full[:-1], *rest][:MOST_REPLICA_SETS]


def _cliques(
    apart: Sequence[set[int]], chosen: set[int], left: set[int], passed: set[int]
) -> Iterator[set[int]]:
    """Yield every maximal set whose members are pairwise in `apart` (Bron and Kerbosch, with a pivot)."""
    if not left and not passed:
        yield chosen
        return
    pivot = max(left | passed, key=lambda index: (len(apart[index] & left), -index))
    for index in sorted(left - apart[pivot]):
        yield from _cliques(apart, chosen | {index}, left & apart[index], passed & apart[index])
        left, passed = left - {index}, passed | {index}
