"""What a tuner measures: plans of a solver, and the baselines that a plan has to beat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from math import inf

from ...formulations.deployment import Deployment, side_by_side
from ...formulations.hardware import ProcessingUnit
from ...formulations.judge import score
from ...formulations.operation import operation_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.validation import FileContent
from ..simulated import charged_for

MOST_REPLICA_SETS = 6
"""Most sets of cores on which a network is replicated: one replica a core, one a cluster, mixtures."""

_MOST_EXPLORED = 1000

FIRST_APART, APART = 3, 4
"""So many plans are measured first that place so many layers differently: what costs get wrong about one of
them they may get right about another, and what is learned from them holds for more plans than what is learned
from three neighbours."""

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
class TuningCandidate(FileContent):
    """A deployment to be measured."""

    labels: tuple[str, ...]
    """What people call it; several where different proposals are the same deployment."""
    deployment: Deployment
    """What runs."""
    kind: CandidateKind
    """Plan or baseline."""
    predicted_us: tuple[Prediction, ...] = ()
    """The period that each cost table predicts for it; empty where nothing predicts it."""
    rank: int | None = None
    """Its place among the plans of the solver, from 1; None for a baseline that no solver proposed."""
    interval_us: tuple[int, ...] = ()
    """What was learned from executed plans says that it lies between these two with 90 % probability; empty:
    nothing was learned, or nothing can be said."""

    @property
    def key(self) -> str:
        """The identity of its deployment: what distinguishes candidates."""
        return self.deployment.deployment_id

    @property
    def label(self) -> str:
        """All labels in one."""
        return " = ".join(self.labels)

    @property
    def expected_us(self) -> float:
        """What the table that plans were made from predicts; infinite where nothing is predicted."""
        return next((time_us for _, time_us in self.predicted_us), inf)

    def predicted(self, table: str) -> int | None:
        """Return the period that a cost table predicts, or None."""
        return dict(self.predicted_us).get(table)


def plan_candidates(
    plans: Sequence[Plan],
    *,
    tables: Mapping[str, Problem],
    first_rank: int = 1,
    planned: Problem | None = None,
) -> tuple[TuningCandidate, ...]:
    """Return plans, best first, as candidates.

    `tables`: the problem with each cost table that shall predict, by the name of the table; at least one.
    `first_rank`: rank of the first plan: more than 1 where others were proposed before. `planned`: the
    problem that the plans are of, where that is another one (`Operation.rivals`).
    """
    problem = planned or next(iter(tables.values()))
    deployed = (operation_of(problem).deploy(problem, plan) for plan in plans)
    return tuple(
        predicted(
            TuningCandidate(
                labels=(f"plan {rank}",),
                deployment=side_by_side(deployment) if planned and deployment.rounds is None else deployment,
                kind=CandidateKind.PLAN,
                rank=rank,
            ),
            tables,
        )
        for rank, deployment in enumerate(deployed, start=first_rank)
    )


def apart_first(problem: Problem, plans: Sequence[Plan]) -> list[Plan]:
    """Return plans of a problem, best first, with the first `FIRST_APART` of them `APART` apart.

    Each of these is the best one that is far enough from those before; the rest stays in its order.
    """
    difference = problem.formulation.difference
    if difference is None:
        return list(plans)
    chosen: list[Plan] = []
    for plan in plans:
        if len(chosen) == FIRST_APART:
            break
        if all(difference.between(plan, other) >= APART for other in chosen):
            chosen.append(plan)
    return [*chosen, *(plan for plan in plans if plan not in chosen)]


def ranked(candidates: Sequence[TuningCandidate]) -> tuple[TuningCandidate, ...]:
    """Return plans of several solves in one ranking, by prediction."""
    ordered = sorted(candidates, key=lambda candidate: candidate.expected_us)
    return tuple(
        replace(candidate, labels=(f"plan {rank}",), rank=rank)
        for rank, candidate in enumerate(ordered, start=1)
    )


def predicted(candidate: TuningCandidate, tables: Mapping[str, Problem]) -> TuningCandidate:
    """Return a candidate with what each cost table predicts for it, by the name of the table.

    Streams side by side have together one over the sum of their rates.
    """
    plans = candidate.deployment.parts
    charged = {name: charged_for(table, candidate.deployment) for name, table in tables.items()}
    found = tuple(
        (name, round(1 / sum(1 / predicted_us(table, plan) for plan in plans)))
        for name, table in charged.items()
    )
    return replace(candidate, predicted_us=found)


def asked_pace(problem: Problem) -> str:
    """Return what candidates are compared by: what `Deployment.pace` of theirs will be."""
    return operation_of(problem).pace(problem)


def predicted_us(problem: Problem, plan: Plan) -> int:
    """Return what `Measurement.period_us` should be by the table of a problem: its `asked_pace`."""
    return score(problem, plan).value(asked_pace(problem))


def baselines(problem: Problem) -> tuple[TuningCandidate, ...]:
    """Return what a plan has to beat, on units that can run every layer: nothing is cut.

    What runs on one unit alone; and, for each engine, what runs on maximal sets of units that share no core:
    first the sets of processor cores that cover the most cores (at most `MOST_REPLICA_SETS`: one replica a
    core, then few large units before many small ones), then each of them together with the accelerators.
    """
    units = [unit for index, unit in enumerate(problem.platform.units) if _runs_all(problem, index)]
    shared: dict[tuple[str, ...], None] = {}
    for engine in dict.fromkeys(unit.engine.name for unit in units):
        other = _accelerators(problem, [unit for unit in units if not unit.cores], engine)
        sets = _replica_sets([unit for unit in units if unit.cores and unit.engine.name == engine])
        shared |= dict.fromkeys([*sets, *(names + other for names in sets or [()])])
    chosen = [(unit.name,) for unit in units] + [names for names in shared if len(names) > 1]
    return tuple(
        TuningCandidate(labels=(label,), deployment=deployment, kind=CandidateKind.BASELINE)
        for label, deployment in operation_of(problem).baselines(problem, chosen)
    )


def _accelerators(problem: Problem, units: Sequence[ProcessingUnit], engine: str) -> tuple[str, ...]:
    """Return units without cores of which none excludes another, those of an engine before others."""
    platform, chosen = problem.platform, set[int]()
    for unit in sorted(units, key=lambda one: one.engine.name != engine):
        index = platform.index_of(unit.name)
        if not platform.exclusive[index] & chosen:
            chosen.add(index)
    return tuple(platform.unit_names[index] for index in sorted(chosen))


def _runs_all(problem: Problem, unit: int) -> bool:
    tables = (problem.costs.of(network.name).layer_us for network in problem.formulation.placed(problem))
    return all(row[unit] is not None for rows in tables for row in rows)


def strongest_first(candidates: Sequence[TuningCandidate]) -> tuple[TuningCandidate, ...]:
    """Return candidates by prediction, but the best of each sort before all others.

    Sorts are plans, baselines, and those of which units share a chunk.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.expected_us)
    best = [next((one for one in ordered if one.kind is kind), None) for kind in CandidateKind]
    best.append(next((one for one in ordered if one.deployment.is_divided), None))
    return tuple(dict.fromkeys([*(one for one in best if one is not None), *ordered]))


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
