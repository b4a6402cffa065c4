"""Slicing and ordering by size: exact dynamic programming beside the paper's assignment, and pointers.

    python -m benchmarks.ordering
    python -m benchmarks.ordering --instances 50 --share 0.4

Ordering: random requests, a share of them of high contention. "violation" is the sum over pairs of high
requests at distance d < K of K - d, "displacement" the sum of the distances from the positions of
arrival; the exact order has the least (violation, displacement). Slicing: random layers without copies
on 4 units. Times are medians on this machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median
from time import perf_counter
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from gapless.solvers.flow_shop.arrays import ChainArrays
from gapless.solvers.flow_shop.columns import (
    bottleneck_by_pointer,
    bottleneck_by_table,
    displacement_of,
    least_bottleneck,
    order_by_contention,
    violation_of,
    work_by_table,
    work_by_window,
)
from gapless.solvers.flow_shop.hetero2pipe import order_by_assignment

SIZES = (8, 10, 20, 50, 100)
UNITS = (3, 4)
LAYERS = (10, 30, 60, 80, 100, 200, 400)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One instance of ordering: values and seconds of both."""

    exact: tuple[int, int]
    assigned: tuple[int, int]
    exact_s: float
    assigned_s: float


def main() -> int:
    """Measure and print both tables; return 1 if the assignment ever beats the exact order."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--share", type=float, default=0.3, help="share of high requests")
    options = parser.parse_args()
    console, beaten = Console(width=110), 0
    table = _table(
        "ordering: exact (DP) and assignment (LAP)",
        "M",
        "K",
        "DP ms",
        "LAP ms",
        "LAP optimal %",
        "least violation %",
        "missed %",
        "displacement x",
        "most x",
    )
    for count in SIZES:
        for units in UNITS:
            found = [_order(count, units, options.share, seed) for seed in range(options.instances)]
            beaten += sum(one.assigned < one.exact for one in found)
            table.add_row(str(count), str(units), *_summary(found))
    console.print(table)
    console.print(_slicing())
    return int(beaten > 0)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _order(count: int, units: int, share: float, seed: int) -> Outcome:
    rng = np.random.default_rng([count, units, seed])
    high = (rng.random(count) < share).tolist()
    exact, exact_s = _timed(lambda: order_by_contention(high, units))
    assigned, assigned_s = _timed(lambda: order_by_assignment(high, units))

    def value(order: tuple[int, ...]) -> tuple[int, int]:
        return violation_of([high[request] for request in order], units), displacement_of(order)

    return Outcome(exact=value(exact), assigned=value(assigned), exact_s=exact_s, assigned_s=assigned_s)


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = perf_counter()
    return work(), perf_counter() - started


def _summary(found: list[Outcome]) -> list[str]:
    equal = [one for one in found if one.assigned[0] == one.exact[0]]
    possible = [one for one in found if one.exact[0] == 0]
    ratios = [one.assigned[1] / one.exact[1] for one in equal if one.exact[1]]
    return [
        f"{1000 * median(one.exact_s for one in found):.2f}",
        f"{1000 * median(one.assigned_s for one in found):.2f}",
        _percent(sum(one.assigned == one.exact for one in found), len(found)),
        _percent(len(equal), len(found)),
        _percent(sum(one.assigned[0] > 0 for one in possible), len(possible)),
        f"{mean(ratios):.1f}" if ratios else "-",
        f"{max(ratios):.1f}" if ratios else "-",
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}" if whole else "-"


def _slicing() -> Table:
    table = _table(
        "slicing on 4 units, ms",
        "layers",
        "bottleneck: table",
        "pointer",
        "least work: table",
        "window",
        "both, as chosen",
    )
    for layers in LAYERS:
        ways: tuple[Callable[[ChainArrays], object], ...] = (
            bottleneck_by_table,
            bottleneck_by_pointer,
            work_by_table,
            work_by_window,
            least_bottleneck,
        )
        cells = [median(_slice_s(way, layers, seed) for seed in range(9)) for way in ways]
        table.add_row(str(layers), *(f"{1000 * cell:.2f}" for cell in cells))
    return table


def _slice_s(way: Callable[[ChainArrays], object], layers: int, seed: int) -> float:
    times = np.random.default_rng([layers, seed]).integers(10, 1000, (4, layers))
    prefix = np.concatenate((np.zeros((4, 1), dtype=np.int64), times.cumsum(axis=1)), axis=1)
    reach = np.full_like(prefix, layers)
    arrays = ChainArrays(cuts=np.arange(layers + 1), head=-prefix, tail=prefix, last=reach)
    return _timed(lambda: way(arrays))[1]


if __name__ == "__main__":
    sys.exit(main())
