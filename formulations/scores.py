"""What a plan is worth, and what it breaks: the values that the judge hands out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from .validation import FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation(FileContent):
    """One way in which a plan breaks its problem.

    Attributes
    ----------
    rule
        What is broken: `coverage`, `contiguity`, `support`, `conflict`, `cut`, `unit_memory`,
        `device_memory`, the name of a limit, or the name of a user's rule.
    message
        Where, and by how much.
    """

    rule: str
    message: str


def clashes(exclusive: Sequence[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of units that exclude each other; `exclusive`: by unit, those that it excludes."""
    return (
        (unit, other) for unit, others in enumerate(exclusive) for other in sorted(others) if other > unit
    )


def shared_cores(
    used: Iterable[int], exclusive: Sequence[frozenset[int]], names: Sequence[str]
) -> Iterator[Violation]:
    """Yield each pair of units in use that share cores; `exclusive`: by unit, those that it excludes."""
    for one, other in combinations(sorted(used), 2):
        if other in exclusive[one]:
            yield Violation(rule="conflict", message=f"{names[one]!r} and {names[other]!r} share cores")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a plan is worth; times in microseconds per period, sizes in bytes.

    Terms and columns are attributes, too: `score.period_us`, `score.busy_us`.

    Attributes
    ----------
    terms
        The objective terms of the formulation, by their name with the unit (`TermInfo.field`).
    later
        Further terms, whose values take long: they are computed when they are asked for
        (`TermInfo.costly`).
    columns
        Numbers that come as lists, by name: by unit of the platform (None for units that the plan does not
        use), or as the formulation says.
    names
        From the names of terms to those of `terms`.
    key
        What orders plans whose terms are equal (`Formulation.key`).
    throughput
        Inferences per second (times the batch of the cost table), or None where that means nothing.
    violations
        Empty for a valid plan.
    """

    terms: Mapping[str, int]
    columns: Mapping[str, tuple[int | None, ...]]
    names: Mapping[str, str]
    key: tuple[int, ...]
    throughput: float | None = None
    violations: tuple[Violation, ...] = ()
    later: Mapping[str, Callable[[], int]] = field(default_factory=dict, compare=False, repr=False)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            if name in self.later:
                return self.later[name]()
            for known in (self.terms, self.columns):
                if name in known:
                    return known[name]
        raise AttributeError(f"a score of this problem has no {name!r}")

    @property
    def valid(self) -> bool:
        """Whether the plan breaks nothing."""
        return not self.violations

    @property
    def utilisation_permille(self) -> int:
        """Busy time of all units over (units x period), permille, rounded down."""
        return 1000 - self.terms["idle_permille"]

    def value(self, term: str) -> int:
        """Return the value of an objective term."""
        name = self.names[term]
        return self.later[name]() if name in self.later else self.terms[name]

    def values(self, terms: Iterable[str]) -> tuple[int, ...]:
        """Return the values of several terms."""
        return tuple(map(self.value, terms))
