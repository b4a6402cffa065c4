"""Figures 5, 12 and 13 as pictures, from the numbers that are printed."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gapless.view.plots.draw import PALETTE

from .layers import DEVICES as FUSED_DEVICES
from .layers import fused_grid
from .schemes import CLOCKS as SCHEME_CLOCKS
from .schemes import DEVICES, alike, compared
from .speedup import CLOCKS, PRINTED, speedups
from .testbed import PaperDevices


def draw_5(bed: PaperDevices) -> Figure:
    """Draw the operations of fused layers, by device and in all."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    grid = fused_grid()
    for place, devices in enumerate(FUSED_DEVICES):
        for axes, total in ((left, max), (right, sum)):
            values = [total(row[place]) / 1e9 for row in grid.values()]
            axes.plot(
                list(grid),
                values,
                "o-",
                ms=3,
                color=PALETTE[place],
                label=f"{devices} device{'s' * (devices > 1)}",
            )
    for axes, what in ((left, "of the busiest device"), (right, "of all devices")):
        axes.set_xlabel("fused layers of VGG16")
        axes.set_xticks(range(2, 19, 2))
        axes.set_ylabel(f"GFLOP {what}")
        axes.grid(alpha=0.3)
    left.legend(fontsize=8, frameon=False)
    return figure


def draw_12(bed: PaperDevices) -> Figure:
    """Draw the speed-ups: blocks on the left, pieces on the right; dashed: messages charged."""
    figure = Figure(figsize=(10, 7.2), layout="constrained")
    names = ("resnet34", "inceptionv3")
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    for row, name in zip(grid, names, strict=True):
        for axes, blocks in zip(row, (True, False), strict=True):
            for colour, ghz in zip(PALETTE, CLOCKS, strict=False):
                for charged, line in ((False, "o-"), (True, "x--")):
                    found = speedups(bed, name, ghz, blocks=blocks, charged=charged)
                    label = "" if charged else f"{ghz:g} GHz"
                    axes.plot(range(1, 9), found, line, ms=4, lw=1.2, color=colour, label=label)
            axes.plot([8], [PRINTED[name, blocks]], "k*", ms=12, label="paper, at most")
            axes.set_title(f"{name}, cut between {'blocks' if blocks else 'pieces'}")
            axes.grid(alpha=0.3)
    for axes in grid[1]:
        axes.set_xlabel("devices")
    for row in grid:
        row[0].set_ylabel("speed-up over one device")
    grid[0][0].legend(fontsize=8, frameon=False, title="dashed: messages charged", title_fontsize=8)
    return figure


def draw_13(bed: PaperDevices) -> Figure:
    """Draw the periods of VGG16 by devices, and the requests a minute of eight."""
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    *lines, bars = figure.subplots(1, 4)
    for axes, ghz in zip(lines, SCHEME_CLOCKS, strict=True):
        for colour, (label, how, charged) in zip(PALETTE, compared(), strict=False):
            periods = [
                alike(bed, "vgg16", ghz, count, how, charged=charged).period_us / 1e6 for count in DEVICES
            ]
            axes.plot(DEVICES, periods, "x--" if charged else "o-", ms=4, color=colour, label=label)
        axes.set_title(f"{ghz:g} GHz")
        axes.set_xlabel("devices")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    lines[0].set_ylabel("period of VGG16 (s)")
    _draw_rates(bed, bars)
    return figure


def _draw_rates(bed: PaperDevices, axes: Axes) -> None:
    ways = list(compared())
    for place, (colour, (label, how, charged)) in enumerate(zip(PALETTE, ways, strict=False)):
        rates = [60e6 / alike(bed, "vgg16", ghz, 8, how, charged=charged).period_us for ghz in SCHEME_CLOCKS]
        left = [number + place / (len(ways) + 1) for number in range(len(rates))]
        axes.bar(left, rates, width=1 / (len(ways) + 1), color=colour, label=label)
    axes.set_xticks([number + 0.4 for number in range(3)], [f"{ghz:g} GHz" for ghz in SCHEME_CLOCKS])
    axes.set_ylim(top=1.6 * axes.get_ylim()[1])
    axes.legend(fontsize=8, frameon=False, loc="upper left", ncols=2)
    axes.set_title("requests a minute, 8 devices")


PICTURES = {"5": draw_5, "12": draw_12, "13": draw_13}
"""Figures that can be drawn."""


def save(bed: PaperDevices, number: str, folder: Path) -> Path:
    """Draw a figure into a folder."""
    path = folder / f"pico-{number}.png"
    PICTURES[number](bed).savefig(path, dpi=100)
    return path
