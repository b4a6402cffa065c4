"""The study's combinations of networks, and what each planner makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from time import thread_time
from typing import TypeVar

from gapless.formulations.coordination.play import play_jobs
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.costs import CostTable, Interference, NetworkCosts, TransferRows
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest, Jobs, as_schedules
from gapless.profiler.platforms.workloads import random_workloads, shipped_workload
from gapless.solvers.coordination.policies import make_policy
from gapless.solvers.protocol import Clock, SolveOptions, SolveStatus
from gapless.solvers.session import solve

NumberT = TypeVar("NumberT", int, float)

PLATFORMS = ("kirin990", "snapdragon778g", "snapdragon870")
KIRIN = PLATFORMS[0]
OURS, PAPERS = "native", "hetero2pipe"
ABLATION = ("hetero2pipe-noct", "hetero2pipe-noc", "hetero2pipe-not", PAPERS)
PLANNERS = ("serial", "pipe-it", "band", *ABLATION, "annealing", OURS)
"""Whose plans pass the units once, in the platform's order."""
_LIMITED = (OURS, "annealing")
POLICIES = ("sel", "lst")
"""Band's own policies. The planner `band` is an adaptation: no plan may come back to a unit, a policy may."""
ANY = "any"
"""The native search where a request may come back to a unit."""
ROWS = (*PLANNERS, *POLICIES, ANY)
"""Planners of both classes of plans."""


@dataclass(frozen=True, slots=True)
class Study:
    """How much is computed.

    Attributes
    ----------
    platforms, count, seed, balance
        Of the random combinations of 5 to 10 networks; `balance` batches light ones (Appendix D).
    limit_s
        Seconds of the processor for the native search, and for simulated annealing.
    exact_s, exact_count
        Those for the proof that a plan for three requests is optimal, and for how many combinations.
    """

    platforms: tuple[str, ...] = PLATFORMS
    count: int = 100
    seed: int = 0
    balance: bool = False
    limit_s: float = 1.0
    exact_s: float = 10.0
    exact_count: int = 20

    def texts(self, platform: str) -> tuple[str, ...]:
        """Return the combinations."""
        return random_workloads(platform, self.count, self.seed, balance=self.balance)


@dataclass(frozen=True, slots=True)
class Answer:
    """One planner's answer.

    Attributes
    ----------
    plan, makespan_us, bound_us
        None where there is none.
    proven
        Whether the makespan is proven to be the least: a small gap is no proof.
    seconds
        Of the processor, which a busy machine makes little longer.
    """

    plan: Plan | None
    makespan_us: int | None
    bound_us: int | None
    proven: bool
    seconds: float


Answers = dict[str, Answer]


def ask(problem: Problem, backend: str, limit_s: float | None = None) -> Answer:
    """Return the answer of a backend, with a limit in seconds of the processor."""
    started, clock = thread_time(), Clock(thread_time)
    found = solve(problem, backend, SolveOptions(time_limit_s=limit_s, clock=clock), explain=False)
    proven = found.status is SolveStatus.OPTIMAL
    return Answer(found.plan, found.objective, found.bound, proven, thread_time() - started)


@cache
def answers(study: Study, platform: str) -> tuple[Answers, ...]:
    """Return what all of `ROWS` make of each combination, judged by the same simulation with slowdown."""
    return tuple(_answers(problem, study.limit_s) for problem in problems(study, platform))


def _answers(problem: Problem, limit_s: float) -> Answers:
    free = as_schedules(problem)
    return {
        **{name: ask(problem, name, limit_s if name in _LIMITED else None) for name in PLANNERS},
        **{name: ask(free, name) for name in POLICIES},
        ANY: ask(free, OURS, limit_s),
    }


@cache
def policy_us(study: Study, platform: str, policy: str) -> tuple[float, ...]:
    """Return the makespan of each combination under a policy, in the same simulation with slowdown."""
    return tuple(_under(problem, policy) for problem in problems(study, platform))


def _under(problem: Problem, policy: str) -> float:
    """Return when the last request is done where a policy decides as units become free; all come at once."""
    requests = tuple(
        JobRequest(name=request.name, network=request.network) for request in workload_of(problem).requests
    )
    return max(play_jobs(Setting.of(problem), Jobs(requests=requests), make_policy(policy)).latencies_us())


@cache
def problems(study: Study, platform: str) -> tuple[Problem, ...]:
    """Return the combinations as problems."""
    return tuple(shipped_workload(platform, text) for text in study.texts(platform))


def ratios(found: Sequence[Answers], of: str, to: str) -> list[float]:
    """Return the makespans of one planner over those of another one, where both have a plan."""
    pairs = [(entry[of].makespan_us, entry[to].makespan_us) for entry in found]
    return [one / other for one, other in pairs if one is not None and other is not None]


def requests_of(problem: Problem) -> int:
    """Return how many requests there are."""
    return len(workload_of(problem).requests)


def shortened(problem: Problem, requests: int) -> Problem:
    """Return a problem with its first requests only."""
    workload = workload_of(problem)
    return replace(problem, data=replace(workload, requests=workload.requests[:requests]))


def in_order(problem: Problem, order: Sequence[int]) -> Problem:
    """Return a problem whose requests arrive in another order."""
    workload = workload_of(problem)
    requests = tuple(workload.requests[index] for index in order)
    return replace(problem, data=replace(workload, requests=requests))


def on_units(problem: Problem, units: Sequence[str]) -> Problem:
    """Return a problem on some of its units, in the order of the platform."""
    places = [place for place, name in enumerate(problem.platform.unit_names) if name in units]
    chosen = tuple(problem.platform.units[place] for place in places)
    return replace(
        problem,
        platform=replace(problem.platform, units=chosen),
        costs=CostTable(
            units=tuple(unit.name for unit in chosen),
            networks=tuple(_columns(costs, places) for costs in problem.costs.networks),
            provenance=problem.costs.provenance,
        ),
        interference=_among(problem.interference, places),
    )


def _columns(costs: NetworkCosts, places: Sequence[int]) -> NetworkCosts:
    def rows(table: TransferRows) -> TransferRows:
        return tuple(tuple(row[place] for place in places) for row in table)

    return replace(
        costs,
        layer_us=tuple(tuple(row[place] for place in places) for row in costs.layer_us),
        transfer_in_us=rows(costs.transfer_in_us),
        transfer_out_us=rows(costs.transfer_out_us),
    )


def _among(interference: Interference | None, places: Sequence[int]) -> Interference | None:
    if interference is None:
        return None
    return replace(
        interference,
        units=tuple(interference.units[place] for place in places),
        slowdown_permille=tuple(
            tuple(interference.slowdown_permille[victim][other] for other in places) for victim in places
        ),
    )


def known(values: Sequence[NumberT | None]) -> Iterator[NumberT]:
    """Yield those that are there."""
    return (value for value in values if value is not None)
