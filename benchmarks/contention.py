"""Contention on paper and on this machine: `python -m benchmarks.contention`.

First Table II of Hetero2Pipe from its own numbers: printed and recomputed slowdowns, and what the rank-one
model fitted to them says. Then networks beside each other on this machine, and how well the memory probe,
which needs as many co-runs as networks instead of the square, predicts that.

Options: `--networks name,name`, `--units name,name`, `--rounds N`, `--seconds S`, `--parts N`, `--paper`
(nothing is measured).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

import gapless
from gapless.answers.contention import contention_blocks
from gapless.api.slowdown.contention import measure_contention
from gapless.executor.tuning.result import pearson
from gapless.profiler.slowdown.contention.paper import paper_contention, paper_interference, table_ii
from gapless.profiler.slowdown.contention.rank_one import RankOne, fit_rank_one
from gapless.profiler.slowdown.contention.result import Contention, ContentionOptions
from gapless.profiler.slowdown.turns import CoRun
from gapless.view.terminal.blocks import blocks_view

NETWORKS = "squeezenet,mobilenetv2,resnet18,googlenet"

console = Console(width=120)


def show_paper() -> None:
    """Print Table II, recomputed and modelled."""
    model = fit_rank_one(table_ii())
    table = Table("co-run", "printed", "recomputed", "rank-one model", title="Table II of Hetero2Pipe")
    for row in paper_contention().table_ii:
        one = row.corun
        table.add_row(
            one.label,
            f"{row.printed_percent:.2f} %",
            f"{100 * one.slowdown:.2f} %",
            f"{100 * _said(model, one):.2f} %",
        )
    console.print(table)
    console.print(f"largest relative error of the model: {model.worst_ratio or 0:.1%}")
    found = paper_interference()
    console.print(f"base slowdowns, permille, {', '.join(found.units)}: {found.slowdown_permille}")
    for entry in found.networks:
        console.print(
            f"{entry.network}: intensity {entry.intensity_permille / 1000:.2f}, "
            f"sensitivity {entry.sensitivity_permille / 1000:.2f}"
        )


def show_measured(found: Contention) -> None:
    """Print what was measured, and whether the probe predicts it."""
    console.print(blocks_view(contention_blocks(found)))
    others = [one for one in found.pairs if one.victim != one.aggressor]
    names = found.networks
    rows = {
        "intensity: slowdown of the probe / mean slowdown of the other networks": (
            [found.caused(name) for name in names],
            [_mean([one for one in others if one.aggressor == name]) for name in names],
        ),
        "sensitivity: slowdown by the probe / mean slowdown by the other networks": (
            [found.suffered(name) for name in names],
            [_mean([one for one in others if one.victim == name]) for name in names],
        ),
    }
    for what, (probe, pairs) in rows.items():
        words = ", ".join(
            f"{name} {100 * (a or 0):.1f} / {100 * (b or 0):.1f} %"
            for name, a, b in zip(names, probe, pairs, strict=True)
        )
        console.print(f"\n{what}: {words}; Pearson {_pearson(probe, pairs)}")
    for what, fit in {"all pairs": found.pair_fit, "probe and each beside itself": found.probe_fit}.items():
        if fit is not None and others:
            said, seen = [_said(fit, one) for one in others], [one.slowdown for one in others]
            error = fmean(abs(a - b) for a, b in zip(said, seen, strict=True))
            console.print(
                f"model from {what}, on pairs of different networks: mean error {100 * error:.2f} % of the "
                f"time alone (mean slowdown {100 * fmean(seen):.2f} %), Pearson {_pearson(said, seen)}"
            )


def _said(model: RankOne, one: CoRun) -> float:
    return model.slowdown(one.victim, one.victim_unit, one.aggressor, one.aggressor_unit)


def _mean(runs: Sequence[CoRun]) -> float | None:
    return fmean(one.slowdown for one in runs) if runs else None


def _pearson(x: Sequence[float | None], y: Sequence[float | None]) -> str:
    if None in x or None in y:
        return "-"
    found = pearson(np.asarray(x, float), np.asarray(y, float))
    return "-" if found is None else f"{found:.2f}"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--units", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--parts", type=int, default=3)
    parser.add_argument("--paper", action="store_true")
    given = parser.parse_args()
    show_paper()
    if not given.paper:
        options = ContentionOptions(rounds=given.rounds, seconds_per_item=given.seconds, parts=given.parts)
        platform = gapless.this_device(units=tuple(filter(None, given.units.split(","))))
        show_measured(measure_contention(given.networks.split(","), platform=platform, options=options))


if __name__ == "__main__":
    main()
