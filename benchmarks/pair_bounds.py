"""Are bounds by pairs of requests below every optimum? `python -m benchmarks.pair_bounds --number 500`.

Two or three requests are drawn (`drawn_pair`) with at most `--plans` plans, which are all played. Each two
of them play their game: without the others and with them at prices, as they are and lowered; over single
layers and over blocks; with fine and with coarse pieces; with and without time for all labels. The table has
by how much the optimum is above the bounds in the mean, and how many bounds are above an optimum; the command
ends with 1 if one is.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations_with_replacement
from math import ceil, inf
from statistics import mean
from time import perf_counter

from rich.console import Console
from rich.table import Table

from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.space import all_plans
from gapless.formulations.jobs.tables import tables_of
from gapless.solvers.exhaustive import count_plans
from gapless.solvers.jobs.bounds import price_bound
from gapless.solvers.jobs.instance import Instance, instance_of
from gapless.solvers.jobs.pair_bound import Pair
from gapless.solvers.jobs.pair_modes import lowered
from gapless.solvers.protocol import Deadline
from gapless.solvers.simplex import Floats
from tests.jobs_instances import drawn_pair

_PIECES = (0.002, 0.05)
"""Largest pieces, as shares of the optimum."""


def main() -> int:
    """Compare, print a table, and return 1 if a bound is above an optimum."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--number", type=int, default=300, help="instances")
    parser.add_argument("--plans", type=int, default=1_000, help="most plans of one")
    parser.add_argument("--seed", type=int, default=0, help="the first one that is drawn")
    parser.add_argument("--seconds", type=float, default=inf, help="for all together")
    options = parser.parse_args()
    started, seed, wrong, compared = perf_counter(), options.seed, 0, 0
    above: dict[tuple[int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    while compared < options.number and perf_counter() - started < options.seconds:
        problem, seed = drawn_pair(seed), seed + 1
        if count_plans(problem) > options.plans:
            continue
        compared += 1
        tables = tables_of(problem)
        instance = instance_of(tables, range(tables.unit_count))
        best_us = min(JobValues(tables, code).makespan_us for code in all_plans(tables))
        kind = above[tables.request_count, tables.unit_count]
        for name, bound_us in _bounds(instance, best_us):
            kind[name].append(100 * (best_us / bound_us - 1))
            if bound_us > best_us:
                wrong += 1
                print(f"seed {seed - 1}: {name} {bound_us}, optimum {best_us}")
    Console(width=110).print(_table(above))
    print(f"{compared} instances, {wrong} bounds above an optimum")
    return int(wrong > 0)


def _bounds(instance: Instance, best_us: int) -> Iterator[tuple[str, int]]:
    """Yield bounds; of those of a kind that pairs and pieces give, the largest one."""
    priced = price_bound(instance)
    assert priced is not None
    yield "prices", priced.bound_us
    found: dict[str, int] = defaultdict(int)
    for core in combinations_with_replacement(range(len(instance.networks)), 2):
        if any(core.count(network) > instance.counts[network] for network in core):
            continue
        low = lowered(instance, priced.prices, core)
        paid: dict[str, list[Floats | None]] = {"alone": [None], "with others": [priced.prices, low]}
        for whom, prices in paid.items():
            for pair in filter(None, (Pair.of(instance, core, own) for own in prices)):
                for how, short_us in (("layers", 0.0), ("blocks", inf)):
                    for piece in _PIECES:
                        game = pair.game(short_us, piece * best_us)
                        least = game.least(3.0 * best_us)
                        least = max(least, game.least(3.0 * best_us, Deadline(0.0)))
                        name = f"{whom}, {how}"
                        found[name] = max(found[name], ceil(pair.others + least - 1e-3))
    yield from found.items()


def _table(above: dict[tuple[int, int], dict[str, list[float]]]) -> Table:
    table = Table(title="optimum above the bound in %, in the mean", title_justify="left")
    names = ("prices", "alone, layers", "alone, blocks", "with others, layers", "with others, blocks")
    for name in ("requests, units", "instances", *names):
        table.add_column(name, justify="right")
    for (requests, units), own in sorted(above.items()):
        cells = (f"{mean(own[name]):.2f}" if name in own else "" for name in names)
        table.add_row(f"{requests}, {units}", str(len(own["prices"])), *cells)
    return table


if __name__ == "__main__":
    sys.exit(main())
