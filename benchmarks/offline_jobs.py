"""The offline bound: what an all-knowing planner reaches on 20 frames of 6 to 23 requests, and its proof.

    python -m benchmarks.offline_jobs
    python -m benchmarks.offline_jobs --frames 0,8,19 --without windows,equal
    python -m benchmarks.offline_jobs --agree 300

Each frame (`offline_frames.py`) gets list schedules, `native` for a second, and CP-SAT with two threads until
the limit. "listed" is the best of four list schedules, each request on the way on which it ends first (as
Band's policies do); "prices" is the native bound. `--without` leaves redundant rows out of the model: route,
equal, windows; "none" of them is the plain model. `--agree N` compares all exact backends with the
oracle on N drawn problems instead.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.offline_frames import FRAMES, drawn, frame
from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.judge import score
from gapless.formulations.model import Encoded
from gapless.formulations.problem import Problem
from gapless.solvers.exact.cp_sat import CpSatBackend
from gapless.solvers.families import EXACT_BACKENDS, Start
from gapless.solvers.jobs.annealing import Play, list_schedules
from gapless.solvers.jobs.bounds import bound_of
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve

REDUNDANT = ("route", "equal", "windows")


class Reduced(CpSatBackend):
    """CP-SAT on the model without some of its redundant rows."""

    def __init__(self, without: frozenset[str]) -> None:
        self._without = without

    def encode(self, problem: Problem, options: SolveOptions, start: Start) -> Encoded[Any]:
        """Return what is left of the model."""
        encoded = super().encode(problem, options, start)
        model = encoded.model
        kept = tuple(row for row in model.constraints if row.name not in self._without)
        return replace(encoded, model=replace(model, constraints=kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was found for one frame; times in microseconds."""

    requests: int
    listed: int
    native: int
    prices: int
    best: int
    bound: int
    proven: bool

    @property
    def gap(self) -> float:
        """How far the bound is below the best plan, as a share of it."""
        return 1 - self.bound / self.best


def main() -> int:
    """Measure and print; return 1 if backends disagree, or a plan is below a bound."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--frames", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--limit", type=float, default=25.0, help="seconds for CP-SAT and each frame")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--without", type=lambda text: frozenset(text.split(",")), default=frozenset())
    parser.add_argument("--agree", type=int, metavar="N")
    options = parser.parse_args()
    if options.agree:
        return _agree(options.agree)
    without = frozenset(REDUNDANT) if options.without == {"none"} else options.without
    outcomes = []
    table = Table(title=f"{options.limit:g} s, {options.threads} threads", title_justify="left")
    for column in ("frame", "requests", "listed ms", "native ms", "prices ms", "best ms", "bound ms", "gap"):
        table.add_column(column, justify="right")
    for number in options.frames or range(len(FRAMES)):
        found = _measure(number, options, without)
        outcomes.append(found)
        times = (found.listed, found.native, found.prices, found.best, found.bound)
        gap = "proved" if found.proven else f"{100 * found.gap:.1f} %"
        table.add_row(str(number), str(found.requests), *(f"{time / 1000:.1f}" for time in times), gap)
    console = Console(width=110)
    console.print(table)
    for text in _summary(outcomes):
        console.print(text)
    return int(any(outcome.bound > outcome.best for outcome in outcomes))


def _measure(number: int, options: argparse.Namespace, without: frozenset[str]) -> Outcome:
    problem = frame(*FRAMES[number])
    tables = tables_of(problem)
    play = Play(problem, tables, frozenset(range(tables.unit_count)))
    native = solve(problem, "native", SolveOptions(time_limit_s=1.0))
    asked = SolveOptions(time_limit_s=options.limit, threads=options.threads)
    claim = Reduced(without).solve(problem, asked)
    assert native.objective is not None
    assert claim.values is not None
    return Outcome(
        requests=tables.request_count,
        listed=min(play.value(sequence)[0] for sequence in list_schedules(play)),
        native=native.objective,
        prices=bound_of(problem),
        best=min(native.objective, claim.values[0]),
        bound=claim.bound or 0,
        proven=claim.status is SolveStatus.OPTIMAL,
    )


def _summary(outcomes: list[Outcome]) -> list[str]:
    found = []
    for least, most in ((6, 13), (14, 23)):
        own = [outcome for outcome in outcomes if least <= outcome.requests <= most]
        if own:
            gaps = [0.0 if outcome.proven else outcome.gap for outcome in own]
            found.append(
                f"{least} to {most} requests: {sum(o.proven for o in own)} of {len(own)} proved; gap "
                f"{100 * mean(gaps):.1f} % in the mean, {100 * max(gaps):.1f} % at most; listed "
                f"{100 * mean(o.listed / o.best - 1 for o in own):.1f} % above the best, native "
                f"{100 * mean(o.native / o.best - 1 for o in own):.1f} %"
            )
    return found


def _agree(count: int) -> int:
    wrong = 0
    for seed in range(count):
        problem, options = drawn(seed), SolveOptions(top=1 + seed % 3)
        claims = {name: get_backend(name).solve(problem, options) for name in EXACT_BACKENDS}
        answers = {name: (claim.status, _values(problem, claim)) for name, claim in claims.items()}
        oracle = answers["exhaustive"]
        if bound_of(problem) > oracle[1][0][0] or any(answer != oracle for answer in answers.values()):
            wrong += 1
            Console().print(f"seed {seed}: {answers}, bound {bound_of(problem)}")
    Console().print(f"{count - wrong} of {count} drawn problems: all exact backends equal the oracle")
    return int(wrong > 0)


def _values(problem: Problem, claim: Claim) -> list[tuple[int, ...]]:
    return [score(problem, plan).values(problem.objective.terms) for plan in claim.plans]


if __name__ == "__main__":
    sys.exit(main())
