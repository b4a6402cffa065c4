"""Are bounds of schedules below every optimum? `python -m benchmarks.schedule_bounds --number 5000`.

    python -m benchmarks.schedule_bounds --number 5000 --plans 300      # both kinds of instances
    python -m benchmarks.schedule_bounds --kinds pairs --number 300     # by how much optima are above bounds

Two kinds of instances are drawn in turn, with at most `--plans` plans, which are all played:

- *schedules*: two to four requests with all passages, releases, deadlines, requests that wait for others,
  limits, rules, memory, shared cores, most with slowdown, by slice or by network (`any_schedule`). The bound
  on each term is compared with the least value of the term over all valid plans; bounds on the makespan also
  one by one: by prices, by windows, by branching, by the pair of requests that the native search would
  take, and what the search says after 20 ms.
- *pairs*: two or three requests, the slowdown of two thirds by slice (`drawn_pair`). Each two of them play
  their game: without the others and with them at prices, as they are and lowered; over single layers and over
  blocks; with fine and with coarse pieces; with and without time for all labels.

Tables have by how much the optimum is above the bounds in the mean; the command ends with 1 if a bound is
above an optimum.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, count
from math import ceil, inf
from statistics import mean
from time import perf_counter

from rich.console import Console
from rich.table import Table

from benchmarks.schedule_instances import any_schedule, sliced
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.space import all_plans
from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Term
from gapless.solvers.contention import Floats
from gapless.solvers.exhaustive import count_plans
from gapless.solvers.jobs.bounds import PassageTree, bound_of, price_bound, windows_bound
from gapless.solvers.jobs.pair_bound import Pair, PairBound
from gapless.solvers.jobs.pair_ways import lowered
from gapless.solvers.jobs.passages import Instance, instance_of
from gapless.solvers.protocol import NEVER, Deadline, SolveOptions
from gapless.solvers.session import solve
from tests.jobs_instances import drawn_pair

_PIECES = (0.002, 0.05)
"""Largest pieces, as shares of the optimum."""

_PROGRAMS = 300
"""Linear programs of a bound by branching."""

_NATIVE_S, _PAIR_S = 0.02, 0.2
"""Seconds of the search, and of the bound by a pair."""

Compared = tuple[str, int, int]
"""Which bound, the bound, and the optimum that it must not be above."""


@dataclass(slots=True)
class _Tally:
    """What has been compared of a kind of instances: percents of optima above bounds, by group and bound."""

    above: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(_percents))
    instances: int = 0
    without: int = 0  # of them, those that have no plan
    bounds: int = 0
    wrong: int = 0


def _percents() -> dict[str, list[float]]:
    return defaultdict(list)


def main() -> int:
    """Compare, print tables, and return 1 if a bound is above an optimum."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=300, help="instances, of all kinds together")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--plans", type=int, default=300, help="most plans of one")
    parser.add_argument("--seed", type=int, default=0, help="the first one that is drawn")
    parser.add_argument("--seconds", type=float, default=inf, help="for all together")
    options = parser.parse_args()
    started, tallies = perf_counter(), {kind: _Tally() for kind in options.kinds}
    for seed in count(options.seed):
        for kind, tally in tallies.items():
            compared = sum(each.instances for each in tallies.values())
            if compared < options.number and perf_counter() - started < options.seconds:
                _compare(kind, seed, options.plans, tally)
        if compared >= options.number or perf_counter() - started >= options.seconds:
            break
    console = Console(width=150)
    for kind, tally in tallies.items():
        console.print(_table(kind, tally))
        console.print(
            f"{kind}: {tally.instances} instances ({tally.without} of them have no plan), {tally.bounds} "
            f"bounds, {tally.wrong} above an optimum"
        )
    return int(any(tally.wrong for tally in tallies.values()))


def _compare(kind: str, seed: int, most: int, tally: _Tally) -> None:
    draw, bounds = KINDS[kind]
    problem = draw(seed, most)
    if count_plans(problem) > most:
        return
    group, found = tally.above[_group(problem)], list(bounds(problem))
    tally.instances += 1
    tally.without += not found
    tally.bounds += len(found)
    for name, bound, least in found:
        if bound:
            group[name].append(100 * (least / bound - 1))
        if bound > least:
            tally.wrong += 1
            print(f"{kind}, seed {seed}: {name} {bound}, optimum {least}")


def _group(problem: Problem) -> str:
    tables = tables_of(problem)
    return f"{tables.request_count}, {tables.unit_count}, {tables.jobs.passage.partition(':')[0]}"


def _of_schedules(problem: Problem) -> Iterator[Compared]:
    """Yield the bounds on each term, and those that the one on the makespan is made of."""
    best = _optima(problem)
    if not best:
        return
    for term, least in best.items():
        yield f"{term}", bound_of(problem.with_objective(term)), least
    least_us, asked = best[Term.MAKESPAN], problem.with_objective(Term.MAKESPAN)
    tables = tables_of(asked)
    instance = instance_of(tables, range(tables.unit_count))
    priced = price_bound(instance)
    assert priced is not None
    yield "by prices", priced.bound_us, least_us
    yield "by windows", windows_bound(tables), least_us
    if PassageTree.applies(instance):
        tree = PassageTree(instance, priced.bound_us)
        tree.improve(2 * least_us, NEVER, _PROGRAMS)
        yield "by branching", tree.bound_us, least_us
    pair = PairBound(instance, priced.bound_us, priced.prices)
    if pair.core is not None:
        pair.improve(2 * least_us, Deadline(_PAIR_S))  # a limit that is never met may take minutes
        yield "by a pair", pair.bound_us, least_us
    found = solve(asked, "native", SolveOptions(time_limit_s=_NATIVE_S), explain=False)
    yield "native", found.bound or 0, least_us


def _optima(problem: Problem) -> dict[str, int]:
    """Return the least value of each term over all valid plans; nothing: there are none."""
    best: dict[str, int] = {}
    for code in all_plans(tables_of(problem)):
        numbers, wrong = examined(problem, code)
        if not wrong:
            for term in numbers.terms:
                best[term] = min(best.get(term, sys.maxsize), numbers.term(term))
    return best


def _of_pairs(problem: Problem) -> Iterator[Compared]:
    """Yield bounds on the makespan; of those of a kind that pairs and pieces give, the largest one."""
    tables = tables_of(problem)
    instance = instance_of(tables, range(tables.unit_count))
    best_us = min(JobValues(tables, code).makespan_us for code in all_plans(tables))
    priced = price_bound(instance)
    assert priced is not None
    yield "by prices", priced.bound_us, best_us
    found: dict[str, int] = defaultdict(int)
    for core in combinations_with_replacement(range(len(instance.networks)), 2):
        if all(core.count(network) <= instance.counts[network] for network in core):
            low = lowered(instance, priced.prices, core)
            for whom, own in (("alone", None), ("with others", priced.prices), ("with others", low)):
                for how, bound_us in _games(instance, core, own, best_us):
                    name = f"{whom}, {how}"
                    found[name] = max(found[name], bound_us)
    yield from ((name, bound_us, best_us) for name, bound_us in found.items())


def _games(
    instance: Instance, core: tuple[int, int], prices: Floats | None, best_us: int
) -> Iterator[tuple[str, int]]:
    """Yield what the games of two requests prove: over layers or blocks, with fine and coarse pieces."""
    pair = Pair.of(instance, core, prices)
    if pair is None:
        return
    for how, short_us in (("layers", 0.0), ("blocks", inf)):
        for piece in _PIECES:
            game = pair.game(short_us, piece * best_us)
            least = max(game.least(3.0 * best_us), game.least(3.0 * best_us, Deadline(0.0)))
            yield how, ceil(pair.others + least - 1e-3)


def _any_pair(seed: int, _: int) -> Problem:
    """Return one of `drawn_pair`; the slowdown of two thirds is by slice."""
    problem = drawn_pair(seed)
    return sliced(problem, seed) if seed % 3 else problem


KINDS: dict[str, tuple[Callable[[int, int], Problem], Callable[[Problem], Iterator[Compared]]]] = {
    "schedules": (any_schedule, _of_schedules),
    "pairs": (_any_pair, _of_pairs),
}
"""How instances are drawn by seed and most plans, and which bounds are compared."""


def _table(kind: str, tally: _Tally) -> Table:
    table = Table(title=f"{kind}: optimum above the bound in %, in the mean", title_justify="left")
    names = list(dict.fromkeys(name for own in tally.above.values() for name in own))
    for name in ("requests, units, passage", *names):
        table.add_column(name, justify="right")
    for group, own in sorted(tally.above.items()):
        table.add_row(group, *(f"{mean(own[name]):.2f}" if own.get(name) else "" for name in names))
    return table


if __name__ == "__main__":
    sys.exit(main())
