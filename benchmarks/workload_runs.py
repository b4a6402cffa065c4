"""Simulated against measured makespan of workloads on this machine: `python -m benchmarks.workload_runs`.

Profiles six networks on two units, measures their contention, plans workloads of three of them with several
backends and at random, and runs every plan as a batch on the pipeline runtime: the plans of one workload in
turns, several visits each, medians. Then the same with the second unit emulated as a little core (skipped
where quotas are not permitted). Prints for each plan what was simulated and measured, and for each cost
model Pearson, MAPE and what trusting its best plan would have cost.

The cost models, all played by the same simulation:

- isolated: each layer measured alone, no slowdown;
- heavy: each layer measured while the other unit runs it too, no slowdown;
- estimated: isolated, and the slowdown that the heavy table shows;
- co-runs: isolated, and the slowdown that co-runs of the networks show;
- calibrated: isolated times scaled to what the networks take when they alternate on one unit (their
  weights leave the caches meanwhile), without slowdown, and with that of the co-runs.

"Least" is the fastest round of all: on a machine that does other things too, what it would be without them.

About eight minutes on an idle machine. Options: `--workloads 10`, `--random 3`, `--visits 3`, `--rounds 6`,
`--emulate core1=50%` (a second platform; "none" for only the first), `--store FILE` keeps profiles.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean, median

import gapless
from benchmarks.arguments import parse_emulation
from gapless.api.slowdown.contention import measure_contention
from gapless.api.slowdown.side_by_side import calibrated, profile_each, side_by_side
from gapless.executor.engines.registry import get_engine
from gapless.executor.machine.state import fingerprint
from gapless.executor.measurement import Spread
from gapless.executor.model import Model
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.executor.tuning.result import quality
from gapless.formulations.errors import GaplessError, PlacementError
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.flow_shop.tables import Schedule, shop_of, workload_of
from gapless.formulations.hardware import Platform
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate_workload
from gapless.formulations.workload import Request, Workload
from gapless.profiler.profile import Method, Profile, ProfileOptions
from gapless.profiler.slowdown.contention.result import ContentionOptions
from gapless.profiler.slowdown.side_by_side import estimated_interference, joint_table

NETWORKS = ("squeezenet", "mobilenetv1", "mobilenetv2", "resnet18", "googlenet", "alexnet")
BACKENDS = ("native", "hetero2pipe", "serial")
ENGINE = "mnn"
WARM_UP = 2
PLAN_LIMIT_S = 2.0
PROFILING = ProfileOptions(min_seconds_per_item=0.03, checks=0, retries=1, most_far=2.0)
CORUNS = ContentionOptions(rounds=1, seconds_per_item=0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One plan of a workload, and who made it."""

    maker: str
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What was simulated and measured of one plan, milliseconds."""

    workload: str
    maker: str
    plan: Plan
    simulated_ms: Mapping[str, float]
    measured_ms: tuple[float, ...]
    least_ms: float

    @property
    def ms(self) -> float:
        """Median over the visits of the median over their rounds."""
        return median(self.measured_ms)


def main() -> None:
    """Run the benchmark."""
    options = _arguments()
    models = {name: gapless.open_model(name) for name in NETWORKS}
    print(f"{fingerprint()}; load {os.getloadavg()[0]:.1f}; engine {ENGINE}")
    for emulate in ({}, parse_emulation([options.emulate]) if options.emulate != "none" else {}):
        begin = time.monotonic()
        try:
            platform = gapless.this_device(units=_two_cores(), emulate=emulate, engine=ENGINE)
        except PlacementError as error:
            print(f"\nno emulated core: {error}")
            continue
        _summarise(list(_study(models, platform, options)))
        print(f"({time.monotonic() - begin:.0f} s)")
        if options.emulate == "none":
            break


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workloads", type=int, default=10)
    parser.add_argument("--random", type=int, default=3)
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--emulate", default="core1=50%")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", default=":memory:")
    return parser.parse_args()


def _two_cores() -> tuple[str, str]:
    """Return the first two units of one core each."""
    single = [unit.name for unit in gapless.this_device(engine=ENGINE).units if len(unit.cores) == 1]
    if len(single) < 2:
        raise SystemExit("two cores are needed")
    return single[0], single[1]


def _study(models: Mapping[str, Model], platform: Platform, options: argparse.Namespace) -> Iterator[Row]:
    cores = ", ".join(
        unit.name + (f" ({unit.quota_permille / 10:g} % of the time)" if unit.quota_permille else "")
        for unit in platform.units
    )
    print(f"\n== {cores} ==")
    profiles = profile_each(
        list(models.values()),
        platform=platform,
        engine=ENGINE,
        options=PROFILING,
        store=options.store,
        resume=True,
    )
    found = measure_contention(list(models.values()), platform=platform, engine=ENGINE, options=CORUNS)
    seconds = sum(profile.seconds for profile in profiles)
    print(
        f"profiles in {seconds:.0f} s, co-runs in {found.seconds:.0f} s; "
        f"slowdown, permille: {found.interference.slowdown_permille}"
    )
    with PipelineRunner(models, platform, get_engine(ENGINE), max_open=32) as runner:
        tables = _cost_models(profiles, side_by_side(profiles, interference=found.interference), runner)
        for names in _workloads(options):
            yield from _runs(names, tables, runner, options)


def _cost_models(profiles: Sequence[Profile], base: Problem, runner: PipelineRunner) -> dict[str, Problem]:
    fitted = calibrated(base, runner)
    return {
        "isolated": replace(base, interference=None),
        "heavy": replace(base, interference=None, costs=joint_table(profiles, Method.HEAVY)),
        "estimated": replace(base, interference=estimated_interference(profiles)),
        "co-runs": base,
        "calibrated": replace(fitted, interference=None),
        "calibrated, co-runs": fitted,
    }


def _workloads(options: argparse.Namespace) -> list[tuple[str, ...]]:
    every = list(combinations(NETWORKS, 3))
    return random.Random(options.seed).sample(every, min(options.workloads, len(every)))


def _runs(
    names: Sequence[str], tables: Mapping[str, Problem], runner: PipelineRunner, options: argparse.Namespace
) -> Iterator[Row]:
    workload = Workload(requests=tuple(Request(name=name, network=name) for name in names))
    asked = {label: replace(problem, data=workload) for label, problem in tables.items()}
    candidates = _candidates(asked["calibrated, co-runs"], options)
    budget = Budget(requests=options.rounds, warm_up_requests=WARM_UP)
    visits: dict[str, list[Spread]] = {candidate.plan.plan_id: [] for candidate in candidates}
    rng = random.Random(options.seed)
    for _ in range(options.visits):
        for candidate in rng.sample(candidates, len(candidates)):
            measured = runner.measure(deploy_rounds(candidate.plan, workload), budget)
            assert measured.makespan_us is not None
            visits[candidate.plan.plan_id].append(measured.makespan_us)
    runner.verify(deploy_rounds(candidates[0].plan, workload))
    runner.close()
    print(f"\n{', '.join(names)}")
    for candidate in candidates:
        row = Row(
            workload=", ".join(names),
            maker=candidate.maker,
            plan=candidate.plan,
            simulated_ms={
                label: simulate_workload(problem, candidate.plan).makespan_us / 1000
                for label, problem in asked.items()
            },
            measured_ms=tuple(spread.median / 1000 for spread in visits[candidate.plan.plan_id]),
            least_ms=min(spread.least for spread in visits[candidate.plan.plan_id]) / 1000,
        )
        _show(row)
        yield row


def _candidates(problem: Problem, options: argparse.Namespace) -> list[Candidate]:
    """Return the plans of the backends, and random ones; equal plans once."""
    found: dict[str, Candidate] = {}
    for backend in BACKENDS:
        try:
            plan = gapless.plan(problem, backend=backend, time_limit_s=PLAN_LIMIT_S).plan
        except GaplessError as error:
            print(f"  {backend}: {error}")
            continue
        if plan is not None:
            known = found.get(plan.plan_id)
            maker = backend if known is None else f"{known.maker} = {backend}"
            found[plan.plan_id] = Candidate(maker=maker, plan=plan)
    rng = random.Random(f"{options.seed} {workload_of(problem)}")
    for number in range(options.random):
        plan = _random_plan(problem, rng)
        found.setdefault(plan.plan_id, Candidate(maker=f"random {number + 1}", plan=plan))
    return list(found.values())


def _random_plan(problem: Problem, rng: random.Random) -> Plan:
    shop = shop_of(problem)
    order = rng.sample(range(shop.request_count), shop.request_count)
    cuts = []
    for request in range(shop.request_count):
        chain = shop.chain(request)
        inner = rng.choice([0, *sorted(chain.cuts), chain.layer_count])
        cuts.append((0, inner, chain.layer_count))
    return shop.plan(Schedule(tuple(order), tuple(cuts)))


def _show(row: Row) -> None:
    simulated = "  ".join(f"{label} {ms:6.1f}" for label, ms in row.simulated_ms.items())
    spread = f"{min(row.measured_ms):.1f}..{max(row.measured_ms):.1f}, least {row.least_ms:.1f}"
    print(f"  {row.maker:<26} measured {row.ms:6.1f} ({spread})  {simulated}\n{'':28} {row.plan}")


def _summarise(rows: Sequence[Row]) -> None:
    """Print how well each cost model predicts the measured makespans."""
    workloads = list(dict.fromkeys(row.workload for row in rows))
    print(f"\n{len(workloads)} workloads, {len(rows)} plans; milliseconds")
    print(
        f"{'cost model':<22} Pearson  Spearman   MAPE    bias   worst   MAPE of least   "
        "in one workload: Pearson, regret"
    )
    for label in rows[0].simulated_ms:
        simulated = [row.simulated_ms[label] for row in rows]
        measured = [row.ms for row in rows]
        whole = quality(simulated, measured, table=label, scope="all plans")
        least = quality(simulated, [row.least_ms for row in rows], table=label, scope="least makespans")
        errors = [100 * (s / m - 1) for s, m in zip(simulated, measured, strict=True)]
        inner = [_quality_of([row for row in rows if row.workload == name], label) for name in workloads]
        correlations = [pearson for pearson, _ in inner if pearson is not None]
        numbers = (
            f"{whole.pearson or 0:7.3f}  {whole.spearman or 0:8.3f}  {whole.mape_percent or 0:4.1f} %",
            f"{fmean(errors):+5.1f} %  {max(map(abs, errors)):4.1f} %  {least.mape_percent or 0:13.1f} %",
            f"{fmean(correlations or [0.0]):25.3f}, {fmean(regret for _, regret in inner):4.1f} %",
        )
        print(f"{label:<22}", *numbers)


def _quality_of(rows: Sequence[Row], label: str) -> tuple[float | None, float]:
    """Return the correlation within one workload, and how much slower the plan of least prediction is."""
    found = quality(
        [row.simulated_ms[label] for row in rows], [row.ms for row in rows], table=label, scope="one workload"
    )
    return found.pearson, dict(found.regret_percent).get(1, 0.0)


if __name__ == "__main__":
    main()
