"""Plans that are made before against policies that decide while requests run, on random workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean, pvariance
from time import thread_time

from gapless.formulations.coordination.play import play_jobs
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest, Jobs
from gapless.profiler.platforms.workloads import random_workloads, shipped_workload
from gapless.solvers.coordination.fixed import followed
from gapless.solvers.coordination.policies import make_policy
from gapless.solvers.protocol import Clock, SolveOptions
from gapless.solvers.session import solve

from ..hetero2pipe.playing import PLATFORMS
from ..printing import Part, titled
from .playing import Study

BACKENDS = {"native": "native", "hetero2pipe": "hetero2pipe", "band-adapted": "band"}
"""Plans, by what they are called here: the flow shop's `band` is an adaptation, and no policy."""

POLICIES = ("sel", "lst", "heft", "shortest", "sel-whole", "tflite-mp")
NATIVE_S = 0.3
"""Of the processor."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One workload under one plan or policy.

    Attributes
    ----------
    makespan_us
        Until the last request was done.
    latency_us, variance
        Mean over the requests; variance of the latencies in seconds squared.
    per_s
        Requests a second.
    judged_us
        The makespan that the judge of plans says; 0: it is no plan.
    """

    makespan_us: float
    latency_us: float
    variance: float
    per_s: float
    judged_us: int = 0


@cache
def outcomes(platform: str, text: str) -> dict[str, Outcome]:
    """Return what becomes of a workload under each plan and policy; all requests come at once."""
    problem = shipped_workload(platform, text)
    setting = Setting.of(problem)
    found = {}
    for name, backend in BACKENDS.items():
        limit_s = NATIVE_S if backend == "native" else None
        limit = SolveOptions(time_limit_s=limit_s, clock=Clock(thread_time))
        result = solve(problem, backend, limit, explain=False)
        if result.plan is not None:
            divided, policy = followed(setting, result.plan, name)
            record = play_jobs(divided, _jobs(problem, result.plan.order), policy)
            found[name] = _outcome(record.latencies_us(), result.objective or 0)
    names = [request.name for request in workload_of(problem).requests]
    for name in POLICIES:
        record = play_jobs(setting, _jobs(problem, names), make_policy(name))
        found[name] = _outcome(record.latencies_us())
    return found


def _jobs(problem: Problem, order: Sequence[str]) -> Jobs:
    known = {request.name: request.network for request in workload_of(problem).requests}
    return Jobs(requests=tuple(JobRequest(name=name, network=known[name]) for name in order))


def _outcome(latencies_us: Sequence[float], judged_us: int = 0) -> Outcome:
    seconds = [latency / 1e6 for latency in latencies_us]
    return Outcome(
        makespan_us=max(latencies_us),
        latency_us=mean(latencies_us),
        variance=pvariance(seconds),
        per_s=len(seconds) / max(seconds),
        judged_us=judged_us,
    )


def families(study: Study) -> Iterator[Part]:
    """Yield makespan, latency, throughput and variance of plans and policies."""
    for platform in PLATFORMS:
        texts = random_workloads(platform, study.combinations, seed=0)
        rows = [outcomes(platform, text) for text in texts]
        yield _table(platform, rows)
        yield _same(platform, rows)
        plans, policies = (sum(_best(row) in names for row in rows) for names in (BACKENDS, POLICIES))
        yield f"* {platform}: the makespan is shortest under a plan {plans} times, under a policy {policies}."


def _same(platform: str, rows: Sequence[dict[str, Outcome]]) -> str:
    pairs = [(row[name].makespan_us, row[name].judged_us) for row in rows for name in BACKENDS if name in row]
    most = max(abs(played / judged - 1) for played, judged in pairs)
    return (
        f"* {platform}: {len(pairs)} plans, played here, take what the judge of plans says to within "
        f"{100 * most:.2g} %."
    )


def _best(row: dict[str, Outcome]) -> str:
    return min(row, key=lambda name: row[name].makespan_us)


def _table(platform: str, rows: Sequence[dict[str, Outcome]]) -> Part:
    table = titled(
        f"{platform}: {len(rows)} random workloads, all requests at once, slowdown by other units counted",
        "plan or policy", "makespan over native", "most", "mean latency over native", "requests/s",
        "variance, s²", "shortest makespan", "least mean latency",
    )  # fmt: skip
    for name in (*BACKENDS, *POLICIES):
        known = [row for row in rows if name in row]
        spans = [row[name].makespan_us / row["native"].makespan_us for row in known]
        waits = [row[name].latency_us / row["native"].latency_us for row in known]
        rate = mean(row[name].per_s for row in known)
        wins = sum(name == _best(row) for row in rows)
        quick = sum(name == min(row, key=lambda each: row[each].latency_us) for row in rows)
        table.add_row(
            name, f"{mean(spans):.2f}", f"{max(spans):.2f}", f"{mean(waits):.2f}", f"{rate:.2f}",
            f"{mean(row[name].variance for row in known):.3f}", str(wins), str(quick),
        )  # fmt: skip
    return table
