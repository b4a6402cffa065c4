"""The figures as pictures, from the numbers that are printed."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import nan
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gapless.formulations.workload import LoadPolicy
from gapless.view.plots.draw import PALETTE

from . import here, phones, planners, returning
from .playing import ABLATION, ANY, KIRIN, OURS, PAPERS, POLICIES, Study, answers, known

_DPI = 100


def draw_2a(study: Study) -> Figure:
    """Draw how long each request waits, by the number of units."""
    figure, axes = _one((6, 3.2))
    for colour, stage in zip(PALETTE, phones.STAGES, strict=False):
        waits = sorted(phones.delays(stage)[0])
        axes.plot(range(1, len(waits) + 1), waits, "o-", ms=4, color=colour, label=stage)
    _finish(axes, "requests by when they start", "queueing delay, ms")
    return figure


def draw_7(study: Study) -> Figure:
    """Draw latency and throughput on each phone, and Band against the paper's planner."""
    count = len(study.platforms)
    figure = Figure(figsize=(4 * count + 4, 6), layout="constrained")
    rows = figure.subplots(2, count + 1, squeeze=False)
    names = ("serial", "pipe-it", "band", "hetero2pipe-noct", PAPERS, OURS, *POLICIES, ANY)
    for place, platform in enumerate(study.platforms):
        found = answers(study, platform)
        for row, values in enumerate(
            ([planners.latencies(found, name) for name in names],
             [planners.throughputs(study, platform, name) for name in names])
        ):  # fmt: skip
            axes: Axes = rows[row][place]
            axes.boxplot(values, tick_labels=list(names), showfliers=False, showmeans=True)
            axes.tick_params(axis="x", rotation=35, labelsize=8)
            axes.set_title(platform)
            _finish(axes, "", ("latency, ms", "networks/s")[row] if not place else "", legend=False)
    _scatter(study, rows[0][count], rows[1][count])
    return figure


def _scatter(study: Study, above: Axes, below: Axes) -> None:
    """Draw random 30 % of the combinations on the first phone: Band's policy and the paper's planner."""
    platform = study.platforms[0]
    found = answers(study, platform)
    chosen = random.Random(study.seed).sample(range(len(found)), max(2, round(planners.SUBSET * len(found))))
    names = (POLICIES[0], PAPERS)
    for axes, values, label in (
        (above, {name: planners.latencies(found, name) for name in names}, "latency, ms"),
        (below, {name: planners.throughputs(study, platform, name) for name in names}, "networks/s"),
    ):
        for colour, mark, name in zip(PALETTE, "ox", values, strict=False):
            shown = [values[name][place] for place in chosen]
            axes.plot(range(len(shown)), shown, mark, ms=5, color=colour, label=name)
        axes.set_title(f"30 % of {platform}")
        axes.set_yscale("log")  # a few combinations that the NPU runs alone are far from the others
        _finish(axes, "combination", label)


def draw_8(study: Study) -> Figure:
    """Draw the latency of each combination by planner, sorted, with the bounds; and the ablation."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    found = answers(study, KIRIN if KIRIN in study.platforms else study.platforms[0])
    order = sorted(range(len(found)), key=lambda place: found[place][OURS].makespan_us or 0)
    for colour, name in zip(PALETTE, (OURS, PAPERS, "annealing", ABLATION[0], "sel", ANY), strict=False):
        spans = [(found[place][name].makespan_us or 0) / 1000 for place in order]
        left.plot(spans, ".-", ms=3, lw=0.8, color=colour, label=name)
    for line, bound_us, label in (
        ("k--", planners.best_bound_us, "bound in order"),
        ("k:", planners.any_bound_us, "bound of any plan"),
    ):
        left.plot([bound_us(found[place]) / 1000 for place in order], line, lw=1, label=label)
    _finish(left, "combinations by latency", "latency, ms")
    heights = [sum(planners.latencies(found, name)) / len(found) for name in ABLATION]
    right.bar(range(len(ABLATION)), heights, color=PALETTE[0])
    right.set_xticks(range(len(ABLATION)), ["no C/T", "no C", "no T", "all"])
    _finish(right, "", "mean latency, ms", legend=False)
    return figure


def draw_9(study: Study) -> Figure:
    """Draw the memory that is available over time, by the number of units."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axes, policy, title in zip(
        figure.subplots(1, 2, sharey=True),
        (LoadPolicy.RUNNING, LoadPolicy.RESIDENT),
        ("weights of running chunks only", "all weights stay loaded"),
        strict=True,
    ):
        for colour, stage in zip(PALETTE, phones.STAGES, strict=False):
            steps = phones.usage(stage, policy)
            times = [at / 1000 for at, _ in steps]
            left = [2500 - used / 1e6 for _, used in steps]
            axes.step(times, left, where="post", lw=1, color=colour, label=stage)
        axes.axhline(500, color="k", ls=":", lw=1, label="paper, 3 stages")
        axes.set_ylim(bottom=0)
        axes.set_title(title)
        _finish(axes, "ms", "MB available" if policy is LoadPolicy.RUNNING else "")
    return figure


def draw_here9(study: Study) -> Figure:
    """Draw the memory that workers of this machine take over time."""
    figure, axes = _one((6, 3.2))
    for colour, (names, samples) in zip(PALETTE, here.memory().items(), strict=False):
        axes.plot(
            [at for at, _ in samples],
            [used / 1e6 for _, used in samples],
            color=colour,
            label=" + ".join(names),
        )
    _finish(axes, "s", "MB more than idle workers")
    return figure


def draw_12(study: Study) -> Figure:
    """Draw bubbles against latency of random plans, and the best of all coarse plans by their bubbles."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, which in zip(figure.subplots(1, 2), phones.BUBBLES, strict=True):
        axes.plot(
            *zip(*phones.bubbles(which), strict=True), ".", ms=3, color=PALETTE[0], label="random plans"
        )
        if which == phones.ENUMERATED:
            edge = phones.lower_edge(which, phones.EDGE_CUTS)
            label = f"least latency of each size, {edge.plans:,} plans"
            axes.plot(*zip(*edge.points, strict=True), ".-", ms=3, lw=1, color=PALETTE[1], label=label)
        axes.set_title(f"{which} {', '.join(phones.BUBBLES[which][1])}", fontsize=9)
        _finish(axes, "bubbles, ms", "latency, ms")
    return figure


def draw_13(study: Study) -> Figure:
    """Draw the time of batches over that of one inference."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), phones.LIGHT, strict=True):
        for colour, (unit, time) in zip(PALETTE, phones.batch_times(name).items(), strict=False):
            sizes = range(1, phones.BATCHES[-1] + 1)
            axes.plot(sizes, [time.of(size) / time.of(1) for size in sizes], color=colour, label=unit)
        axes.set_title(name)
        _finish(axes, "batch", "times one inference")
    return figure


def draw_hops(study: Study) -> Figure:
    """Draw what coming back gains, by what a hop takes more: the mean, and from the least to the most."""
    figure, axes = _one((6, 3.4))
    for colour, platform in zip(PALETTE, returning.HOP_PLATFORMS, strict=False):
        gains = [
            [*known([entry.gain for entry in returning.dearer_hops(study, platform, hop_ms)])] or [nan]
            for hop_ms in returning.HOPS_MS
        ]
        axes.plot(
            returning.HOPS_MS, [fmean(each) for each in gains], "o-", ms=4, color=colour, label=platform
        )
        lows, highs = [min(each) for each in gains], [max(each) for each in gains]
        axes.fill_between(returning.HOPS_MS, lows, highs, color=colour, alpha=0.15, lw=0)
    axes.axhline(1, color="k", ls=":", lw=1)
    axes.set_ylim(bottom=0)
    _finish(axes, "ms more a hop", "ordered over any, times")
    return figure


PICTURES: dict[str, Callable[[Study], Figure]] = {
    "2a": draw_2a, "7": draw_7, "8": draw_8, "9": draw_9, "12": draw_12, "13": draw_13,
    "hops": draw_hops,
    "here9": draw_here9,
}  # fmt: skip
"""Figures that can be drawn."""


def save(study: Study, number: str, folder: Path) -> Path:
    """Draw a figure into a folder."""
    path = folder / f"hetero2pipe-{number}.png"
    PICTURES[number](study).savefig(path, dpi=_DPI)
    return path


def _one(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _finish(axes: Axes, x: str, y: str, *, legend: bool = True) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    if legend:
        axes.legend(fontsize=8, frameon=False)
