"""What a plan is worth, and what it breaks: the values that the judge hands out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from .objective import Limits, Term
from .validation import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One way in which a plan breaks its problem.

    Attributes
    ----------
    rule
        What is broken: `coverage`, `contiguity`, `support`, `conflict`, `cut`, `unit_memory`,
        `device_memory`, the name of a limit, or the name of a user's rule.
    message
        Where, and by how much.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    rule: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a plan is worth; times in microseconds per period, sizes in bytes.

    Attributes
    ----------
    period_us, latency_us, gapness_us, paper_gapness_us, bubbles_us, peak_bytes, idle_permille
        The objective terms (`Term`).
    busy_us, bubble_us, memory_bytes
        By unit of the platform; None for units that the plan does not use.
    violations
        Empty for a valid plan.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    period_us: int
    latency_us: int
    gapness_us: int
    paper_gapness_us: int
    bubbles_us: int
    peak_bytes: int
    idle_permille: int
    busy_us: tuple[int | None, ...]
    bubble_us: tuple[int | None, ...]
    memory_bytes: tuple[int | None, ...]
    violations: tuple[Violation, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the plan breaks nothing."""
        return not self.violations

    @property
    def throughput(self) -> float:
        """Inferences per second in steady state (times the batch of the cost table)."""
        return 1e6 / self.period_us

    @property
    def utilisation_permille(self) -> int:
        """Busy time of all units over (units x period), permille, rounded down."""
        return 1000 - self.idle_permille

    def value(self, term: Term) -> int:
        """Return the value of an objective term."""
        value: int = getattr(self, _TERM_FIELD[term])
        return value

    def values(self, terms: tuple[Term, ...]) -> tuple[int, ...]:
        """Return the values of several terms."""
        return tuple(self.value(term) for term in terms)


_TERM_FIELD = {
    Term.PERIOD: "period_us",
    Term.GAPNESS: "gapness_us",
    Term.PAPER_GAPNESS: "paper_gapness_us",
    Term.LATENCY: "latency_us",
    Term.BUBBLES: "bubbles_us",
    Term.PEAK_MEMORY: "peak_bytes",
    Term.IDLE: "idle_permille",
    Term.MAKESPAN: "makespan_us",
    Term.BOTTLENECK: "bottleneck_us",
    Term.WORK: "work_us",
    Term.CONTENTION: "contention",
    Term.DISPLACEMENT: "displacement",
}


class Loads(Protocol):
    """What the filters look at: the values of a plan, with or without a workload."""

    @property
    def period_us(self) -> int:
        """Largest load."""
        ...

    @property
    def gapness_us(self) -> int:
        """Largest minus smallest load."""
        ...

    @property
    def idle_permille(self) -> int:
        """Unused share."""
        ...

    @property
    def busy_us(self) -> dict[int, int]:
        """Load of each unit in use."""
        ...


def limit_violations(limits: Limits, values: Loads) -> list[Violation]:
    """Return the filters that a plan does not pass."""
    return [
        Violation(rule=name, message=f"{name} is {limit}, the plan has {value}")
        for name, value, limit in limits_missed(limits, values)
    ]


def limits_missed(limits: Limits, values: Loads) -> list[tuple[str, int, int]]:
    """Return (name, value, limit) of the filters that a plan does not pass."""
    period, gapness = values.period_us, values.gapness_us
    balance = 1000 * (period - gapness) // period
    utilisation = 1000 - values.idle_permille
    checks = (
        ("max_period_us", period, limits.max_period_us, 1),
        ("min_units", len(values.busy_us), limits.min_units, -1),
        ("max_units", len(values.busy_us), limits.max_units, 1),
        ("min_balance_permille", balance, limits.min_balance_permille, -1),
        ("max_gapness_us", gapness, limits.max_gapness_us, 1),
        ("min_utilisation_permille", utilisation, limits.min_utilisation_permille, -1),
    )
    return [
        (name, value, limit)
        for name, value, limit, sense in checks
        if limit is not None and sense * value > sense * limit
    ]
