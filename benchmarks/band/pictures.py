"""The figures as pictures, from the numbers that are printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gapless.formulations.coordination.record import Record
from gapless.formulations.coordination.simulation import Late
from gapless.view.plots.draw import PALETTE

from . import deadlines, estimates, frames, units
from .playing import PAPERS, Study, rates, scenario_for

_DPI = 100


def draw_4(study: Study) -> Figure:
    """Draw the frames a second by units."""
    figure, axes = _one((5, 3.2))
    names = list(frames.UNITS_4)
    for place, policy in enumerate(("sel", "lst")):
        heights = [frames.by_units(study, what)[place] for what in names]
        left = [number + 0.4 * place for number in range(len(names))]
        axes.bar(left, heights, width=0.4, color=PALETTE[place], label=policy)
    printed = frames.PRINTED_4
    axes.plot(
        [names.index(what) for what in printed],
        [float(each) for each in printed.values()],
        "k*",
        ms=11,
        label="paper",
    )
    axes.set_xticks([number + 0.2 for number in range(len(names))], names)
    _finish(axes, "", "frames a second")
    return figure


def draw_6(study: Study) -> Figure:
    """Draw EfficientDet and MobileNetV1 on one core and the NPU."""
    return _timelines(frames.fallbacks(), ("tflite", "lst"), by_network=True)


def draw_7(study: Study) -> Figure:
    """Draw the distribution of times by interval, for each unit."""
    figure = Figure(figsize=(12, 3), layout="constrained")
    for axes, unit in zip(figure.subplots(1, len(units.UNITS_7)), units.UNITS_7, strict=True):
        for colour, how in zip(PALETTE, units.INTERVALS, strict=False):
            times = [time / 1000 for time in units.latencies(study, unit, how)]
            axes.step(times, _shares(times), where="post", color=colour, label=how, lw=1.4)
        axes.set_title(unit)
        _finish(axes, "ms", "share of inferences" if unit == units.UNITS_7[0] else "")
    return figure


def draw_14(study: Study) -> Figure:
    """Draw the frames a second of three workloads on three phones."""
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    names = list(frames.PRINTED_14)
    policies = (*PAPERS, "lst")
    for axes, name in zip(figure.subplots(1, len(names)), names, strict=True):
        scenario = scenario_for(study, name)
        for place, policy in enumerate(policies):
            found = [rates(study, scenario, phone, policy) for phone in frames.PHONES]
            left = [number + 0.16 * place for number in range(len(found))]
            axes.bar(
                left, [each.mean for each in found], yerr=[each.deviation for each in found], width=0.16,
                color=PALETTE[place], label=policy, error_kw={"lw": 0.8},
            )  # fmt: skip
        axes.set_xticks([number + 0.32 for number in range(len(frames.PHONES))], frames.PHONES)
        axes.set_title(f"({frames.LETTERS[name]}) {name}")
        axes.set_ylim(top=1.3 * axes.get_ylim()[1])  # room for the legend
        _finish(axes, "", "frames a second" if name == names[0] else "", legend=name == names[-1], columns=2)
    return figure


def draw_15(study: Study) -> Figure:
    """Draw the distribution of expected over measured times."""
    figure, axes = _one((6, 3.4))
    for colour, way in zip(PALETTE, estimates.WAYS, strict=False):
        ratios = estimates.profiled(study, way)[1]
        axes.plot(ratios, _shares(ratios), color=colour, label=way, lw=1.4)
    axes.set_xlim(0.4, 1.6)
    _finish(axes, "expected over measured time", "share of chunks")
    return figure


def draw_16(study: Study) -> Figure:
    """Draw the time of frames of 1 to 8 requests of one network."""
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    names = list(frames.NETWORKS_16)
    for axes, name in zip(figure.subplots(1, len(names)), names, strict=True):
        rows = frames.scalability(study, name)
        for colour, label in zip(PALETTE, ("sel-whole", "sel", "lst"), strict=False):
            axes.plot(_counts(), [row[label] / 1000 for row in rows], "o-", ms=4, color=colour, label=label)
        axes.plot(_counts(), [row["bound"] / 1000 for row in rows], "k--", lw=1, label="bound")
        axes.set_title(name)
        axes.set_ylim(bottom=0)
        _finish(axes, "requests in a frame", "ms" if name == names[0] else "")
    return figure


def draw_17(study: Study) -> Figure:
    """Draw two FSRNets on Pixel 4."""
    return _timelines(frames.timelines(), ("sel-whole", "sel"), by_network=False)


def draw_18(study: Study) -> Figure:
    """Draw the shares in time by deadline; dashed: late requests are dropped."""
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    rows = figure.subplots(1, len(deadlines.WAYS), sharey=True)
    for axes, how in zip(rows, deadlines.WAYS, strict=True):
        for colour, policy in zip(PALETTE, deadlines.POLICIES, strict=False):
            for late, line in ((Late.KEEP, "o-"), (Late.DROP, "x--")):
                found = [100 * share for share in deadlines.shares(study, how, policy, late)]
                label = policy if late is Late.KEEP else None
                axes.plot(deadlines.MULTIPLIERS, found, line, ms=4, lw=1.2, color=colour, label=label)
        axes.set_title(how)
        axes.set_xticks(deadlines.MULTIPLIERS)
        first = how == deadlines.WAYS[0]
        _finish(axes, "deadline, 99th percentiles alone", "percent in time" if first else "", legend=first)
    return figure


def draw_19(study: Study) -> Figure:
    """Draw the frames a second before the NPU is lost, meanwhile, and after it is back."""
    figure, axes = _one((6, 3.2))
    spans = ("before", "NPU lost", "after")
    for place, policy in enumerate(("sel", "lst", "tflite-mp")):
        left = [number + 0.27 * place for number in range(len(spans))]
        found = units.away(study, "eagleeye", policy)
        axes.bar(left, found, width=0.27, color=PALETTE[place], label=policy)
    axes.plot([1], [units.PRINTED_19], "k*", ms=11, label="paper, Band")
    axes.set_xticks([number + 0.27 for number in range(len(spans))], spans)
    _finish(axes, "", "frames a second")
    return figure


PICTURES: dict[str, Callable[[Study], Figure]] = {
    "4": draw_4, "6": draw_6, "7": draw_7, "14": draw_14, "15": draw_15, "16": draw_16, "17": draw_17,
    "18": draw_18, "19": draw_19,
}  # fmt: skip
"""Figures that can be drawn."""


def save(study: Study, number: str, folder: Path) -> Path:
    """Draw a figure into a folder."""
    path = folder / f"band-{number}.png"
    PICTURES[number](study).savefig(path, dpi=_DPI)
    return path


def _one(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _finish(axes: Axes, x: str, y: str, *, legend: bool = True, columns: int = 1) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    if legend:
        axes.legend(fontsize=8, frameon=False, ncols=columns)


def _shares(values: Sequence[float]) -> list[float]:
    return [(place + 1) / len(values) for place in range(len(values))]


def _counts() -> range:
    return range(1, frames.MOST_16 + 1)


def _timelines(records: Sequence[Record], names: Sequence[str], *, by_network: bool) -> Figure:
    """Return what ran on which unit, a row of it for each record; hatched: fell back silently."""
    figure = Figure(figsize=(9, 1.4 + 0.4 * sum(len(each.units) for each in records)), layout="constrained")
    rows = figure.subplots(len(records), 1, sharex=True, height_ratios=[len(each.units) for each in records])
    for axes, record, name in zip(rows, records, names, strict=True):
        labelled = set()
        for ran in record.ran:
            network = record.networks[record.requests[ran.request].network]
            label = network if by_network else f"request {ran.request}"
            axes.barh(
                ran.unit + 0.4 * (ran.request - 0.5), (ran.end_us - ran.start_us) / 1000,
                left=ran.start_us / 1000, height=0.38, color=PALETTE[ran.request], edgecolor="white", lw=0.5,
                hatch="///" if ran.silent else None, label=None if label in labelled else label,
            )  # fmt: skip
            labelled.add(label)
        axes.set_yticks(range(len(record.units)), record.units)
        axes.set_title(f"{name}: {record.end_us / 1000:.1f} ms", fontsize=10, loc="left")
        axes.set_ylim(len(record.units) - 0.5, -0.5)
    rows[0].legend(fontsize=8, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    rows[-1].set_xlabel("ms; hatched: layers that fell back, unknown to the policy")
    return figure
