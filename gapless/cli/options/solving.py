"""How plans are searched for, as the options of the command line say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ..base.general_options import heading

if TYPE_CHECKING:
    from ...solvers.protocol import SolveOptions

solving_option = heading("How to solve")

TopOption = Annotated[
    int, solving_option(min=1, max=100_000, help="How many of the best plans.", show_default=True)
]
DistanceOption = Annotated[
    int,
    solving_option(
        min=1,
        max=100_000,
        help="Each plan runs at least so many layers on other units than every plan before it; of a "
        "workload, pairs of requests in the other order count, too.",
        show_default=True,
    ),
]
TimeLimitOption = Annotated[
    float | None,
    solving_option(help="Seconds for each backend; the best that it has found by then is the answer."),
]
MemoryLimitOption = Annotated[
    int | None,
    solving_option(
        min=1,
        max=2**30,
        help="MiB that a backend may take; it then runs in a child process, as third-party solvers "
        "always do (with half of the machine's memory, unless given).",
    ),
]
ParetoOption = Annotated[
    str | None,
    solving_option(
        metavar="TERMS",
        help="Instead of the best plans all trade-offs of two or three terms, e.g. period,energy: every plan "
        "that no other of its class is better than. A time limit is for all of them together.",
    ),
]
StrictRulesOption = Annotated[
    bool, solving_option("--strict-rules", help="Refuse backends that merely check plans against the rules.")
]
SeedOption = Annotated[
    int, solving_option(min=0, max=2**31 - 1, help="Seed of everything random.", show_default=True)
]
ThreadsOption = Annotated[
    int, solving_option(min=1, max=1024, help="Threads of a solver.", show_default=True)
]

StartOption = Annotated[
    str | None,
    solving_option(
        metavar="native|none|both",
        help="What exact third-party solvers begin with: a plan and a bound of native algorithms, which take "
        "a share of the time limit, or nothing. both: `compare` asks them twice. Otherwise native; of many "
        "problems (--instances) none.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SolvingOptions:
    """How plans are searched for, as the options of the command line say it; each field is one of them."""

    top: TopOption = 1
    distance: DistanceOption = 1
    time_limit: TimeLimitOption = None
    memory_limit: MemoryLimitOption = None
    strict_rules: StrictRulesOption = False
    seed: SeedOption = 0
    threads: ThreadsOption = 1
    start: StartOption = None

    @property
    def solver_options(self) -> SolveOptions:
        """The same for a backend."""
        from ...solvers.protocol import SolveOptions
        from ...solvers.sources import start_mode

        return SolveOptions(
            top=self.top,
            distance=self.distance,
            time_limit_s=self.time_limit,
            memory_limit_bytes=None if self.memory_limit is None else self.memory_limit * 2**20,
            seed=self.seed,
            threads=self.threads,
            start=start_mode(self.start),
        )
