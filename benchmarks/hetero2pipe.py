"""Hetero2Pipe's study on random combinations of the ten networks, for each of its three devices.

    python -m benchmarks.hetero2pipe
    python -m benchmarks.hetero2pipe --count 20 --platforms kirin990 --limit 0.3 --exact 5

Every plan is judged by the same simulation with contention. Printed: speed-ups (mean and largest, as in
the paper's Fig. 7), the ablation (Fig. 8b), how far heuristics are from the best plan known and from the
proven bound (Fig. 8a), and on small combinations from the proven optimum. Numbers of the paper stand
beside, marked [paper].

What these numbers rest on: the costs of the ten networks are *estimates* of a model that is calibrated to
the few times that the paper prints (`gapless show --platform kirin990 --workload bert` says which); the
plans, their makespans under those costs and the proofs are computed here, now.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean, median
from time import perf_counter

from rich.console import Console
from rich.table import Table

from gapless.formulations.flow_shop.search_space import pipelines, split_points
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Workload
from gapless.profiler.platforms.workloads import random_workloads, shipped_workload
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve

PLATFORMS = ("kirin990", "snapdragon778g", "snapdragon870")
OURS = "native"
PAPERS = "hetero2pipe"
BASELINES = ("serial", "pipe-it", "band", "hetero2pipe-noct")
ABLATION = ("hetero2pipe-noct", "hetero2pipe-noc", "hetero2pipe-not", PAPERS)
OTHERS = ("annealing",)
PRINTED = {
    "serial": "4.2 mean, 8.8 most (Kirin 990)",
    "pipe-it": "2 mean, 3.7 most (Kirin 990)",
    "band": "1.05 mean",
    "hetero2pipe-noct": "1.3 mean",
}
"""What the paper prints of its own speed-ups over each baseline."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Makespan and proven bound in microseconds, and seconds; None where there is none."""

    makespan_us: int | None
    bound_us: int | None
    proven: bool
    seconds: float


Answers = dict[str, Answer]


def main() -> None:
    """Run the study and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100, help="combinations for each device")
    parser.add_argument("--platforms", type=lambda text: tuple(text.split(",")), default=PLATFORMS)
    parser.add_argument("--limit", type=float, default=0.3, help="seconds for the native search")
    parser.add_argument("--exact", type=float, default=30.0, help="seconds for the exact backend")
    parser.add_argument("--exact-count", type=int, default=10, help="small combinations that it gets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--balance", action="store_true", help="batch light networks (Appendix D)")
    options = parser.parse_args()
    console = Console(width=118)
    for platform in options.platforms:
        texts = random_workloads(platform, options.count, options.seed, balance=options.balance)
        problems = [shipped_workload(platform, text) for text in texts]
        sizes = [len(_workload(problem).requests) for problem in problems]
        console.rule(f"{platform}: {len(problems)} combinations of {min(sizes)} to {max(sizes)} requests")
        answers = [_answers(problem, options.limit) for problem in problems]
        console.print(_speedups(answers), _distances(answers))
        small = [_shortened(problem, 3) for problem in problems[: options.exact_count]]
        console.print(_exact(small, options.limit, options.exact))
    console.print(_spaces())


def _workload(problem: Problem) -> Workload:
    return workload_of(problem)


def _shortened(problem: Problem, requests: int) -> Problem:
    """Return the problem with its first requests only."""
    workload = _workload(problem)
    return replace(problem, data=replace(workload, requests=workload.requests[:requests]))


def _answers(problem: Problem, limit_s: float) -> Answers:
    names = dict.fromkeys((*BASELINES, *ABLATION, *OTHERS, OURS))
    return {name: _ask(problem, name, limit_s if name == OURS else None) for name in names}


def _ask(problem: Problem, backend: str, limit_s: float | None) -> Answer:
    started = perf_counter()
    result = solve(problem, backend, SolveOptions(time_limit_s=limit_s), explain=False)
    return Answer(
        result.objective, result.bound, result.status is SolveStatus.OPTIMAL, perf_counter() - started
    )


def _ratios(answers: Sequence[Answers], of: str, to: str) -> list[float]:
    """Return the makespans of one backend over those of another one, where both have a plan."""
    pairs = [(entry[of].makespan_us, entry[to].makespan_us) for entry in answers]
    return [one / other for one, other in pairs if one is not None and other is not None]


def _speedups(answers: Sequence[Answers]) -> Table:
    table = Table(
        title="speed-up (makespan of the row / makespan of the column): mean, largest; how often the row "
        "is faster",
        title_justify="left",
    )
    for column in ("over", f"{PAPERS} (the paper's, corrected)", "its authors print", f"{OURS} (gapless)"):
        table.add_column(column)
    for name in (*BASELINES, *ABLATION[1:3], *OTHERS, PAPERS):
        cells = [_ratio_words(_ratios(answers, name, planner)) for planner in (PAPERS, OURS)]
        printed = f"{PRINTED[name]} \\[paper]" if name in PRINTED else ""
        table.add_row(name, "" if name == PAPERS else cells[0], printed, cells[1])
    return table


def _ratio_words(ratios: Sequence[float]) -> str:
    if not ratios:
        return "no plan"
    lost = sum(ratio < 1 for ratio in ratios)
    return f"{mean(ratios):.2f}, {max(ratios):.2f}; {lost} of {len(ratios)}"


def _distances(answers: Sequence[Answers]) -> Table:
    """Distance from the best plan of any backend, and from the proven bound."""
    table = Table(title="distance from the best known plan and from the proven bound", title_justify="left")
    for column in ("backend", "mean", "median", "most", "above the bound, mean", "proven", "ms, median"):
        table.add_column(column, justify="left" if column == "backend" else "right")
    best = [min(a.makespan_us for a in entry.values() if a.makespan_us is not None) for entry in answers]
    bounds = [max(a.bound_us or 0 for a in entry.values()) for entry in answers]
    for name in answers[0]:
        found = [
            (entry[name].makespan_us, known, bound)
            for entry, known, bound in zip(answers, best, bounds, strict=True)
        ]
        gaps = [100 * (span / known - 1) for span, known, _ in found if span is not None]
        above = [100 * (span / bound - 1) for span, _, bound in found if span is not None and bound]
        shown = [f"{f(gaps):.2f} %" for f in (mean, median, max)] if gaps else ["-"] * 3
        reached = sum(span == bound for span, _, bound in found)
        table.add_row(
            name,
            *shown,
            f"{mean(above):.1f} %" if above else "-",
            f"{reached} of {len(found)}",
            f"{1000 * median(entry[name].seconds for entry in answers):.1f}",
        )
    table.caption = "the paper reports 4 % between its plans and exhaustive search \\[paper]"
    return table


def _exact(problems: Sequence[Problem], limit_s: float, exact_s: float) -> Table:
    """Compare with the proven optimum of CP-SAT on combinations of three requests, slowdown included."""
    table = Table(
        title=f"three requests: distance from the proven optimum (CP-SAT, {exact_s:.0f} s each)",
        title_justify="left",
    )
    for column in ("backend", "mean", "most", "optimal", "instances with a proof"):
        table.add_column(column, justify="left" if column == "backend" else "right")
    solved = [(problem, _ask(problem, "cpsat", exact_s)) for problem in problems]
    proven = [(problem, answer) for problem, answer in solved if _closed(answer)]
    for name in (OURS, PAPERS, "annealing", "band"):
        gaps = []
        for problem, answer in proven:
            found = _ask(problem, name, limit_s if name == OURS else None).makespan_us
            if found is not None and answer.makespan_us is not None:
                gaps.append(100 * (found / answer.makespan_us - 1))
        words = [f"{mean(gaps):.2f} %", f"{max(gaps):.2f} %"] if gaps else ["-", "-"]
        table.add_row(name, *words, str(sum(g <= 0 for g in gaps)), f"{len(proven)} of {len(problems)}")
    seconds = [answer.seconds for _, answer in proven]
    if seconds:
        table.caption = (
            f"CP-SAT took {median(seconds):.1f} s (median of those proven), {max(seconds):.1f} s at most"
        )
    return table


def _closed(answer: Answer) -> bool:
    """Whether plan and bound are so close that only the rounding of the clock lies between them."""
    if answer.proven:
        return True
    if answer.makespan_us is None or answer.bound_us is None:
        return False
    return answer.makespan_us - answer.bound_us <= answer.makespan_us / 10_000


def _spaces() -> Table:
    """Print how large the space of plans is (Eqs. 12 to 14, corrected)."""
    table = Table(title="search space (Appendix A, corrected)", title_justify="left")
    for column in ("what", "here", "\\[paper]"):
        table.add_column(column)
    table.add_row("pipelines of 8 cores (4 + 4), GPU and NPU (Eq. 12)", f"{pipelines(4, 4):,}", "449")
    table.add_row("plans of MobileNetV2, 28 layers (Eq. 14)", f"{split_points(28, 4, 4):,}", "3.6 billion")
    return table


if __name__ == "__main__":
    main()
