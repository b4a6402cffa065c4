"""Planners beside each other: Figs. 7 and 8, what explains their distances, and proven optima."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean, median, pstdev

from benchmarks.phone_platforms.hetero2pipe import PAPER_NETWORKS
from gapless.formulations.hardware import UnitKind
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.workloads import shipped_workload

from ..printing import Part, Statement, beside, near, titled
from .playing import (
    ABLATION,
    ANY,
    KIRIN,
    OURS,
    PAPERS,
    PLANNERS,
    POLICIES,
    ROWS,
    Answers,
    Study,
    answers,
    ask,
    known,
    on_units,
    policy_us,
    problems,
    ratios,
    requests_of,
    shortened,
)

PRINTED = {"serial": (4.2, 8.8), "pipe-it": (2.0, 3.7), "hetero2pipe-noct": (1.3, None)}
"""Speed-ups of the paper over each baseline: mean, and most (on the Kirin 990)."""

OVER_BAND = 1.05
"""The same over Band, mean."""

CLASS = "plans in which every request passes the units once, in the platform's order"
"""What planners choose among, and what their bounds are of."""

STEPS = (
    ("work stealing", "hetero2pipe-nos", PAPERS),
    ("work stealing where there is no tail", "hungarian", "hetero2pipe-not"),
    ("tail", "hetero2pipe-not", PAPERS),
    ("mitigation", "hetero2pipe-noc", PAPERS),
    ("mitigation and tail", "hetero2pipe-noct", PAPERS),
)
"""Steps of the paper's planner, what plans without them, and what with them."""

_CLASSES = (
    "Plans of sel, lst and any may come back to a unit, those of the others pass the units once, in the "
    'platform\'s order: "at most" is about the latter, "any plan at most" about all.'
)

CLUSTERS = 2
"""Clusters of CPU cores of the phones."""

FEW = 20
"""Combinations that are looked at where the reasons are sought."""

SUBSET = 0.3
"""Share of the combinations in the paper's scatter plots."""


def figure_7(study: Study) -> Iterator[Part]:
    """Yield latency, throughput, and the spread against Band."""
    for platform in study.platforms:
        found = answers(study, platform)
        table = titled(
            f"Fig. 7, {platform}: {len(found)} combinations; how many times as fast hetero2pipe, native and "
            f"any are (/ paper), and at most, by the best bounds, {CLASS}, and any plans",
            "planner", "latency, ms", "networks/s", "hetero2pipe over it: mean", "most", "slower in",
            "native over it: mean", "at most", "any over it: mean", "any plan at most",
        )  # fmt: skip
        for name in ROWS:
            printed = PRINTED.get(name)
            gains, ours = ratios(found, name, PAPERS), ratios(found, name, OURS)
            most = printed[1] if printed and platform == KIRIN else None
            table.add_row(
                name,
                f"{fmean(latencies(found, name)):.0f}",
                f"{fmean(throughputs(study, platform, name)):.2f}",
                beside(f"{fmean(gains):.2f}", f"{printed[0]}" if printed else None),
                beside(f"{max(gains):.2f}", f"{most}" if most else None),
                f"{sum(gain < 1 for gain in gains)} of {len(gains)}",
                f"{fmean(ours):.2f}",
                f"{fmean(_most_over(found, name, best_bound_us)):.2f}",
                f"{fmean(ratios(found, name, ANY)):.2f}",
                f"{fmean(_most_over(found, name, any_bound_us)):.2f}",
            )
        yield table
    yield _CLASSES
    yield from _speedups(study)


def _most_over(found: Sequence[Answers], name: str, bound_us: Callable[[Answers], int]) -> list[float]:
    """Return how many times as fast as a planner plans can be, by the bound of each combination."""
    pairs = [(entry[name].makespan_us, bound_us(entry)) for entry in found]
    return [span / bound for span, bound in pairs if span is not None and bound]


def best_bound_us(entry: Answers) -> int:
    """Return the best bound of plans in order; 0: there is none. A bound on all plans also bounds these."""
    return max(known([each.bound_us for each in entry.values()]), default=0)


def any_bound_us(entry: Answers) -> int:
    """Return the best bound of all plans; 0: there is none."""
    return entry[ANY].bound_us or 0


def latencies(found: Sequence[Answers], name: str) -> list[float]:
    """Return the makespans of a planner in milliseconds: the paper's latency."""
    return [span / 1000 for span in known([entry[name].makespan_us for entry in found])]


@cache
def throughputs(study: Study, platform: str, name: str) -> list[float]:
    """Return the throughput of each combination: networks over latency (VI-B), networks a second."""
    pairs = zip(problems(study, platform), answers(study, platform), strict=True)
    return [
        1e6 * requests_of(problem) / span
        for problem, entry in pairs
        for span in known([entry[name].makespan_us])
    ]


def _speedups(study: Study) -> Iterator[Part]:
    """Yield the printed means beside those over all devices."""
    together = [entry for platform in study.platforms for entry in answers(study, platform)]
    for name, (printed, _) in PRINTED.items():
        own = fmean(ratios(together, name, PAPERS))
        yield Statement(f"{printed} times as fast as {name}, mean", f"{own:.2f}", near(own, printed))


@cache
def _by_rule(study: Study, platform: str) -> dict[str, tuple[float, ...]]:
    """Return the makespans of each combination: by policies, and by planners that need no limit."""
    planned = {
        name: tuple(float(ask(problem, name).makespan_us or 0) for problem in problems(study, platform))
        for name in ("serial", "band", PAPERS)
    }
    return {**planned, **{name: policy_us(study, platform, name) for name in POLICIES}}


def policies(study: Study) -> Iterator[Part]:
    """Yield Band's own policies beside the paper's planner: they are bound to no order of the units."""
    table = titled(
        "hetero2pipe, serial and the adapted band, whose plans pass the units once, in the platform's order, "
        "beside Band's own policies, which may come back to a unit: how many times as fast hetero2pipe is",
        *("platform", "over", "latency, ms", "mean", "most", "slower in", "it over serial: mean"),
    )
    means: dict[str, list[float]] = {}
    for platform in study.platforms:
        spans = _by_rule(study, platform)
        for name, each in spans.items():
            gains = [span / own for span, own in zip(each, spans[PAPERS], strict=True)]
            means.setdefault(name, []).append(fmean(gains))
            slower = f"{sum(gain < 1 for gain in gains)} of {len(gains)}"
            latency = f"{fmean(each) / 1000:.0f}"
            serial = fmean(one / span for one, span in zip(spans["serial"], each, strict=True))
            words = (f"{fmean(gains):.2f}", f"{max(gains):.2f}", slower, f"{serial:.2f}")
            table.add_row(platform, name, latency, *words)
    yield table
    for name in POLICIES:
        gain = fmean(means[name])
        yield Statement(
            f"{OVER_BAND} times as fast as Band, mean", f"{gain:.2f} (policy {name})", near(gain, OVER_BAND)
        )
    for platform in study.platforms:
        spans = _by_rule(study, platform)
        chosen = random.Random(study.seed).sample(range(study.count), max(2, round(SUBSET * study.count)))
        sel, own = (pstdev([spans[name][place] / 1000 for place in chosen]) for name in ("sel", PAPERS))
        yield Statement(
            f"{platform}: less variance than Band (random 30 % of the combinations)",
            f"standard deviation of the latency: sel {sel:.0f} ms, hetero2pipe {own:.0f} ms",
            own < sel,
        )


def figure_8(study: Study) -> Iterator[Part]:
    """Yield the distances from the best known plan and from the bound, and the ablation."""
    for platform in study.platforms:
        yield _distances(study, platform)
        table = titled(
            f"Fig. 8(b), {platform}: latency of the ablations", "planner", "ms", "over hetero2pipe"
        )
        found = answers(study, platform)
        for name in ABLATION:
            gain = fmean(ratios(found, name, PAPERS))
            printed = "1.3" if name == ABLATION[0] else None
            table.add_row(name, f"{fmean(latencies(found, name)):.0f}", beside(f"{gain:.3f}", printed))
        yield table


def _distances(study: Study, platform: str) -> Part:
    found = answers(study, platform)
    best = [min(known([entry[name].makespan_us for name in PLANNERS])) for entry in found]
    free = [min(known([each.makespan_us for each in entry.values()])) for entry in found]
    bounds, any_bounds = ([bound_us(entry) for entry in found] for bound_us in (best_bound_us, any_bound_us))
    words = (
        f"{sum(low >= high for low, high in zip(lows, highs, strict=True))} of {len(found)} best plans are "
        f"proven; the bound is on average {-fmean(_above(highs, lows)):.1f} % below them"
        for lows, highs in ((bounds, best), (any_bounds, free))
    )
    table = titled(
        f"Fig. 8(a), {platform}: above the best known plan, and above the best bound, of {CLASS} "
        f"({next(words)}), and of any plans ({next(words)})",
        "planner", "mean", "median", "most", "above the bound",
        "above any plan: mean", "most", "above the bound of any", "proven by itself", "ms, median",
    )  # fmt: skip
    for name in ROWS:
        spans = [entry[name].makespan_us for entry in found]
        ordered, all_plans = _above(best, spans), _above(free, spans)
        shown = [f"{value(ordered):.2f} %" for value in (fmean, median, max)]
        printed = "4 %" if name == PAPERS else None
        table.add_row(
            name,
            beside(shown[0], printed),
            *shown[1:],
            f"{fmean(_above(bounds, spans)):.1f} %",
            f"{fmean(all_plans):.2f} %",
            f"{max(all_plans):.2f} %",
            f"{fmean(_above(any_bounds, spans)):.1f} %",
            str(sum(entry[name].proven for entry in found)),
            f"{1000 * median(entry[name].seconds for entry in found):.1f}",
        )
    return table


def _above(lows: Sequence[int], highs: Sequence[int | None]) -> list[float]:
    """Return by how many percent each of some numbers is above another one, where both are there."""
    return [100 * (high / low - 1) for low, high in zip(lows, highs, strict=True) if low and high is not None]


def exact(study: Study) -> Iterator[Part]:
    """Yield the distances from proven optima, of combinations cut to three requests."""
    table = titled(
        f"Distance from the proven optimum of {CLASS}, {KIRIN}, three requests (native, {study.exact_s:g} s "
        "each)",
        "planner", "mean", "most", "optimal",
    )  # fmt: skip
    small = [shortened(problem, 3) for problem in problems(study, KIRIN)[: study.exact_count]]
    solved = [(problem, ask(problem, OURS, study.exact_s)) for problem in small]
    optima = [(problem, best.makespan_us) for problem, best in solved if best.proven and best.makespan_us]
    for name in (OURS, PAPERS, "annealing", "band"):
        limit = study.limit_s if name in {OURS, "annealing"} else None
        gaps = [
            100 * (span / best - 1)
            for problem, best in optima
            for span in known([ask(problem, name, limit).makespan_us])
        ]
        words = [f"{fmean(gaps):.2f} %", f"{max(gaps):.2f} %"] if gaps else ["-", "-"]
        table.add_row(name, *words, f"{sum(gap <= 0 for gap in gaps)} of {len(gaps)}")
    yield table
    seconds = [answer.seconds for _, answer in solved if answer.proven]
    took = f"; {median(seconds):.1f} s median, {max(seconds):.1f} s at most" if seconds else ""
    yield f"{len(optima)} of {len(small)} were proven in this time{took}. Others are not counted."


def cases(study: Study) -> Iterator[Part]:
    """Yield every combination with the plans of both planners, the best bound and the gap."""
    for platform in study.platforms:
        table = titled(
            f"Combinations on {platform}, ms", "combination", PAPERS, OURS, "bound", "gap of native", "proven"
        )
        for text, entry in zip(study.texts(platform), answers(study, platform), strict=True):
            ours, bound = entry[OURS], best_bound_us(entry)
            spans = [entry[name].makespan_us for name in (PAPERS, OURS)]
            gap = f"{100 * (1 - bound / ours.makespan_us):.2f} %" if ours.makespan_us else "-"
            table.add_row(
                text,
                *("-" if span is None else f"{span / 1000:.1f}" for span in spans),
                f"{bound / 1000:.1f}",
                gap,
                "yes"
                if ours.proven or (ours.makespan_us is not None and bound >= ours.makespan_us)
                else "no",
            )
        yield table


def steps(study: Study) -> Iterator[Part]:
    """Yield what each step of the paper's planner gains, by number and mixture of requests."""
    mixes = ((7, "any"), (20, "any"), (40, "any"), (40, "3 in 10 high"))
    table = titled(
        f"What each step gains on {KIRIN}: mean makespan without it over with it, of {FEW} workloads each",
        "step", "without it", "with it", "both choose among plans",
        *(f"{count} requests, {kind}" for count, kind in mixes),
    )  # fmt: skip
    few = min(study.count, FEW)
    gains = [[_gains(_mixed(count, kind, seed)) for seed in range(few)] for count, kind in mixes]
    names = (*STEPS, ("no slowdown at all", PAPERS, PAPERS))
    for place, words in enumerate(names):
        own = ([*known([row[place] for row in rows])] for rows in gains)
        table.add_row(*words, "ordered", *(f"{fmean(each):.3f}" if each else "-" for each in own))
    yield table
    yield (
        '"No slowdown at all" is the plan of hetero2pipe played with no unit slowing another: no mitigation '
        "can gain more of this plan."
    )
    yield _steps_of_study(study)


def _steps_of_study(study: Study) -> Part:
    table = titled(
        f"What each step gains on the study's combinations, {study.count} for each phone: mean, and from the "
        "least to the most",
        "step", "without it", "with it", *study.platforms,
    )  # fmt: skip
    gains = [[_gains(problem) for problem in problems(study, platform)] for platform in study.platforms]
    for place, words in enumerate(STEPS):
        own = ([*known([row[place] for row in rows])] for rows in gains)
        table.add_row(
            *words,
            *(f"{fmean(each):.3f} ({min(each):.2f} to {max(each):.2f})" if each else "-" for each in own),
        )
    return table


def _gains(problem: Problem) -> list[float | None]:
    """Return how much longer it takes without each of `STEPS`; with slowdown than without.

    None: one of the two has no plan.
    """
    found = {name: ask(problem, name) for name in {name for _, *pair in STEPS for name in pair}}
    plan = found[PAPERS].plan
    free = None if plan is None else score(replace(problem, interference=None), plan).makespan_us
    pairs = [(found[one].makespan_us, found[other].makespan_us) for _, one, other in STEPS]
    pairs.append((found[PAPERS].makespan_us, free))
    return [None if one is None or other is None else one / other for one, other in pairs]


def _mixed(requests: int, kind: str, seed: int) -> Problem:
    """Return a random combination on the Kirin 990; "3 in 10 high": few networks of high contention."""
    source = random.Random(seed)
    interference = shipped_workload(KIRIN, ",".join(PAPER_NETWORKS)).interference
    assert interference is not None
    high = [name for name in PAPER_NETWORKS if interference.is_high(name)]
    low = [name for name in PAPER_NETWORKS if name not in high]
    if kind == "any":
        names = source.choices(PAPER_NETWORKS, k=requests)
    else:
        names = [source.choice(high if source.random() < 0.3 else low) for _ in range(requests)]
    return shipped_workload(KIRIN, ",".join(names))


def processors(study: Study) -> Iterator[Part]:
    """Yield Pipe-it over clusters and over groups of cores, and the most that CPU clusters can gain."""
    table = titled(
        "Pipe-it: times as fast as serial on the big cores (/ paper, from 4.2 and 2)",
        "platform", "pipe-it", "the same without slowdown", "native on the CPUs", "at most, by its bound",
    )  # fmt: skip
    texts = study.texts(KIRIN)[:FEW]
    for platform in (KIRIN, "split-kirin990"):
        rows = [_over_serial(study, shipped_workload(platform, text)) for text in texts]
        means = [f"{fmean(column):.2f}" for column in zip(*rows, strict=True)]
        table.add_row(platform, beside(means[0], "2.1"), *means[1:], *["-"] * (4 - len(means)))
    yield table
    yield (
        "The bound holds for every plan in which requests pass the big cores once, then the little ones "
        "once. (For groups of cores it would not know that some of them exclude each other.)"
    )


def _over_serial(study: Study, problem: Problem) -> list[float]:
    """Return how many times as fast as serial Pipe-it is, with slowdown and without, and any CPU plan."""
    cpus = [unit.name for unit in problem.platform.units if unit.kind is UnitKind.CPU]
    serial = ask(problem, "serial").makespan_us or 0
    spans = [ask(each, "pipe-it").makespan_us for each in (problem, replace(problem, interference=None))]
    if len(cpus) == CLUSTERS:
        ours = ask(on_units(problem, cpus), OURS, study.limit_s)
        spans += [ours.makespan_us, ours.bound_us]
    return [serial / span for span in known(spans)]
