"""When a change of pace is noticed, and when noise is taken for one: `python -m benchmarks.drift`.

    python -m benchmarks.drift --seconds 30                 # record here, then compare rules
    python -m benchmarks.drift --keep noise.json            # the same; --noise noise.json takes it again

A plan over two cores is served as it is at a share of its rate, and what its chunks take is recorded: that is
the noise of this machine, as loaded as it is. Rules read it one after the other: `mean` is the expected time
of Band, which has drifted when it is a quarter off (the rule until now); `median` compares the median of a
window with that of the first 64 runs; `test` is the one that `adaptive` has, also with other constants.
Each says whether the two units have come apart by a quarter.

False alarms are those per 1,000 requests, in the recording, and in blocks of 20 requests of it in a random
order; after one a rule begins again. Then one unit is slowed 1.3, 2 or 5 times from request 600 on: after
how many requests that is noticed (median / 90th percentile of `--draws` orders), and how often not within
300; orders in which it had a false alarm before are left out, and counted. `back`: it is slowed 5 times for
100 requests, and then as before: after how many requests the plan that was left may be taken again.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import log
from pathlib import Path
from statistics import fmean, median
from typing import Protocol
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from benchmarks.adaptive import planned_here, stream
from gapless.api.coordinators import open_coordinator
from gapless.formulations.coordination.record import percentile
from gapless.formulations.coordination.times import SMOOTHING
from gapless.solvers.coordination import paces
from gapless.solvers.coordination.paces import Paces, imbalance

Noise = Mapping[int, Sequence[float]]
"""What the chunk of each unit took, request after request."""

BLOCK, BEGUN, WITHIN = 20, 600, 300
LEAVE, RETURN = log(1.25), log(1.15)
SLOWED = (1.3, 2.0, 5.0)


class Rule(Protocol):
    """Says from what chunks take how far units have come apart."""

    def took(self, unit: int, took_us: float) -> None:
        """Take what a chunk took."""

    def apart(self) -> float:
        """Return the logarithm of how many times as much one unit has become slower than another."""


class Mean:
    """Expected times as policies know them."""

    def __init__(self) -> None:
        self._means: dict[int, float] = {}
        self._first: dict[int, float] = {}
        self._runs = 0

    def took(self, unit: int, took_us: float) -> None:
        """See `Rule`."""
        before = self._means.get(unit, took_us)
        self._means[unit] = before + SMOOTHING * (took_us - before)
        self._runs += 1
        if self._runs == 100:  # chunks, after which the plan counted as settled
            self._first = dict(self._means)

    def apart(self) -> float:
        """Return how far one is off by itself: so it was."""
        return max((abs(log(self._means[unit] / first)) for unit, first in self._first.items()), default=0.0)


class Median:
    """Medians of a window."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._seen: dict[int, list[float]] = {}

    def took(self, unit: int, took_us: float) -> None:
        """See `Rule`."""
        self._seen.setdefault(unit, []).append(took_us)

    def apart(self) -> float:
        """See `Rule`."""
        if any(len(seen) < 64 + self._window for seen in self._seen.values()):
            return 0.0
        return imbalance(
            [log(median(seen[-self._window :]) / median(seen[:64])) for seen in self._seen.values()]
        )


class Test:
    """The test of `adaptive`."""

    def __init__(self) -> None:
        self._paces = Paces()

    def took(self, unit: int, took_us: float) -> None:
        """See `Rule`."""
        self._paces.took((0, 0, 1, unit), took_us, took_us)

    def apart(self) -> float:
        """See `Rule`."""
        return imbalance(self._paces.now(2))


def main() -> None:
    """Record noise, or read it; print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="squeezenet")
    parser.add_argument("--load", type=float, default=0.6, help="of the rate that the plan predicts")
    parser.add_argument("--seconds", type=float, default=30.0, help="for the recording")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="write the recording")
    parser.add_argument("--noise", type=Path, help="read one instead")
    options = parser.parse_args()
    if options.noise is None:
        noise = _recorded(options.model, options.load, options.seconds)
    else:
        noise = {int(unit): times for unit, times in json.loads(options.noise.read_text()).items()}
    if options.keep is not None:
        options.keep.write_text(json.dumps(noise))
    console = Console(width=150)
    for unit, times in sorted(noise.items()):
        shown = [percentile(sorted(times), permille) or 0.0 for permille in (100, 500, 900, 990)]
        text = " / ".join(f"{time_us / 1000:.2f}" for time_us in shown)
        console.print(f"unit {unit}: {len(times):,} runs, ms at 10 / 50 / 90 / 99 %: {text}")
    console.print(_table(noise, options.draws))


def _recorded(model: str, load: float, seconds: float) -> Noise:
    problem, plan, full = planned_here(model)
    with open_coordinator([model], problem=problem, plan=plan, check=False) as coordinator:
        _, served, _ = stream(coordinator, model, load * full, seconds)
    chunks = sorted((chunk for answer in served for chunk in answer.chunks), key=lambda one: one.times_ns)
    names = sorted({chunk.unit for chunk in chunks})
    return {
        unit: [(one.times_ns[-1] - one.times_ns[0]) / 1000 for one in chunks if one.unit == name]
        for unit, name in enumerate(names)
    }


def _table(noise: Noise, draws: int) -> Table:
    table = Table(title="Requests until a change is noticed: median / 90 % (not noticed, alarm before)")
    for name in ("rule", "false in 1,000", "in blocks", *(f"{k:g} times" for k in SLOWED), "back from 5"):
        table.add_column(name, justify="left" if name == "rule" else "right")
    constants = [
        (paces._ALLOWANCE, limit, outlier) for limit, outlier in ((paces._LIMIT, 3.0), (8.0, 3.0), (8.0, 2.0))
    ]
    rules: list[tuple[str, Callable[[], Rule], tuple[float, float, float] | None]] = [
        ("mean", Mean, None),
        *((f"median of {window}", lambda window=window: Median(window), None) for window in (7, 15, 31)),
        *((f"test {a:g}, {limit:g}, {out:g}", Test, (a, limit, out)) for a, limit, out in constants),
        ("test 0.5, 10, 3", Test, (0.5, 10.0, 3.0)),
    ]
    for name, rule, changed in rules:
        with ExitStack() as stack:
            for constant, value in zip(("_ALLOWANCE", "_LIMIT", "_OUTLIER"), changed or (), strict=False):
                stack.enter_context(patch.object(paces, constant, value))
            orders = [_in_blocks(noise, random.Random(seed)) for seed in range(draws)]
            blocks = fmean(_false_alarms(rule, order) for order in orders[:10])
            cells = [_noticed(rule, orders, slowed) for slowed in SLOWED]
            back = _noticed(rule, orders, 5.0, until=BEGUN + 100)
            table.add_row(name, f"{_false_alarms(rule, noise):.2f}", f"{blocks:.2f}", *cells, back)
    return table


def _in_blocks(noise: Noise, draw: random.Random) -> Noise:
    """Return requests in another order, by blocks: what hit both units at a time still does."""
    most = min(map(len, noise.values())) - BLOCK
    starts = [draw.randrange(most) for _ in range((BEGUN + 100 + WITHIN) // BLOCK)]
    return {unit: [time for at in starts for time in times[at : at + BLOCK]] for unit, times in noise.items()}


def _false_alarms(make: Callable[[], Rule], noise: Noise) -> float:
    rule, count, requests = make(), 0, min(map(len, noise.values()))
    for at in range(requests):
        for unit, times in noise.items():
            rule.took(unit, times[at])
        if rule.apart() > LEAVE:
            rule, count = make(), count + 1
    return 1000 * count / requests


def _noticed(
    make: Callable[[], Rule], orders: Sequence[Noise], slowed: float, until: int | None = None
) -> str:
    """Return after how many requests it is noticed that a unit is slower; or back, if it is `until` then."""
    delays: list[int] = []
    missed = early = 0
    for noise in orders:
        rule, begun = make(), until or BEGUN
        for at in range(begun + WITHIN):
            for unit, times in noise.items():
                slow = unit == 1 and at >= BEGUN and (until is None or at < until)
                rule.took(unit, times[at] * (slowed if slow else 1.0))
            if at < BEGUN and rule.apart() > LEAVE:
                early += 1
                break
            if at >= begun and (rule.apart() > LEAVE if until is None else rule.apart() <= RETURN):
                delays.append(at - begun + 1)
                break
        else:
            missed += 1
    said = f"{median(delays):g} / {percentile(sorted(delays), 900):g}" if delays else "-"
    return f"{said} ({missed}, {early})"


if __name__ == "__main__":
    main()
