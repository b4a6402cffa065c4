"""What is minimised, and the filters a plan must pass."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from .errors import InvalidProblemError
from .nearness import meant, near
from .validation import STRICT, Defects


class Term(StrEnum):
    """A quantity to minimise (formulations, sections 1 and 3).

    PERIOD
        Largest busy time of a unit, microseconds.
    GAPNESS
        Largest minus smallest busy time of the units in use; a plan on one unit has its period
        (idle units count as 0), unless the platform has one unit only.
    PAPER_GAPNESS
        The same without that exception: a plan on one unit has 0, as in BetterTogether (O1).
    LATENCY
        One request from entry to exit, microseconds: the sum of the busy times.
    BUBBLES
        Idle time of the units in use per period, microseconds.
    PEAK_MEMORY
        Bytes of weights and live tensors while every chunk runs at once.
    IDLE
        Share of the platform that is not used, permille, rounded up: 1000 - utilisation.

    In problems with a workload, PERIOD and GAPNESS are about the loads of the units (busy times of all
    requests together, without slowdown), LATENCY is the sum over all requests of arrival to exit,
    BUBBLES the idle time of each unit between its first start and its last end, IDLE the share of the
    makespan, PEAK_MEMORY the most bytes at any instant; and there are further terms (formulations,
    section 6):

    MAKESPAN
        End of the last request, microseconds.
    BOTTLENECK
        Sum over the requests of their longest chunk: each request's own slicing (P1).
    WORK
        Busy time of all chunks, without slowdown.
    CONTENTION
        Sum over pairs of high-contention requests at distance d < K in the order of K - d (P3).
    DISPLACEMENT
        Sum over the requests of the distance from their position of arrival (P3).
    """

    PERIOD = "period"
    GAPNESS = "gapness"
    PAPER_GAPNESS = "paper_gapness"
    LATENCY = "latency"
    BUBBLES = "bubbles"
    PEAK_MEMORY = "peak_memory"
    IDLE = "idle"
    MAKESPAN = "makespan"
    BOTTLENECK = "bottleneck"
    WORK = "work"
    CONTENTION = "contention"
    DISPLACEMENT = "displacement"


CHAIN_TERMS = frozenset(
    {
        Term.PERIOD,
        Term.GAPNESS,
        Term.PAPER_GAPNESS,
        Term.LATENCY,
        Term.BUBBLES,
        Term.PEAK_MEMORY,
        Term.IDLE,
    }
)
"""The terms of problems with one network and no workload."""

WORKLOAD_TERMS = frozenset(Term) - {Term.PAPER_GAPNESS}
"""The terms of problems with a workload."""

TIE_BREAK = (Term.PERIOD, Term.GAPNESS, Term.LATENCY)
"""How plans with equal objectives are ordered; what still ties goes to the earlier, shorter chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A lexicographic objective: the first term first, later terms among its optima.

    Attributes
    ----------
    terms
        What to minimise, most important first.
    period_slack_permille
        `slack` mode: optimise `terms` among all plans whose period is at most
        (1000 + slack) / 1000 times the least possible one. None: off.
    present_by
        Order in which the best plans are shown, when it is not the order of `terms`
        (the paper mode ranks by gapness and shows by period).
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    terms: tuple[Term, ...] = (Term.PERIOD, Term.GAPNESS)
    period_slack_permille: int | None = None
    present_by: Term | None = None

    def __post_init__(self) -> None:
        defects = Defects("objective")
        defects.check_size("terms", len(self.terms), most=len(Term))
        defects.check_unique("terms", self.terms)
        if self.period_slack_permille is not None:
            defects.check_count("period_slack_permille", self.period_slack_permille)
        defects.raise_as(InvalidProblemError)

    @property
    def ranking(self) -> tuple[Term, ...]:
        """All terms that order plans: `terms`, then the tie-break without repetitions."""
        return self.terms + tuple(term for term in TIE_BREAK if term not in self.terms)

    @property
    def first(self) -> Term:
        """What counts first: the first term, but the period where all others need a near-optimal one."""
        return self.terms[0] if self.period_slack_permille is None else Term.PERIOD

    @classmethod
    def slack(cls, permille: int, term: Term = Term.IDLE) -> Objective:
        """Return the `slack` mode: among near-optimal periods the least idle time (or another term)."""
        return cls(terms=(term,), period_slack_permille=permille)

    @classmethod
    def paper(cls) -> Objective:
        """Return BetterTogether's mode: rank by (gapness, period), one-unit plans 0, show by period."""
        return cls(terms=(Term.PAPER_GAPNESS, Term.PERIOD), present_by=Term.PERIOD)

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Return the objective that a text such as "period,gapness", "paper" or "slack:50" names.

        "slack:50" is the least idle time within 50 permille of the least period;
        "slack:50:gapness,latency" the least of these terms instead.

        Raises
        ------
        InvalidProblemError
            A word is not known.
        """
        name, _, rest = text.strip().partition(":")
        if name == "paper" and not rest:
            return cls.paper()
        if name != "slack":
            return cls(terms=_parse_terms(text))
        permille, _, terms = rest.partition(":")
        if not permille.isdecimal() or len(permille) > 9:
            raise InvalidProblemError(
                f"objective {text!r}: slack needs a whole number of permille, e.g. slack:50"
            )
        return cls(terms=_parse_terms(terms or Term.IDLE), period_slack_permille=int(permille))

    def __str__(self) -> str:
        words = ",".join(self.terms)
        if self == Objective.paper():
            return "paper"
        if self.period_slack_permille is not None:
            return f"slack:{self.period_slack_permille}:{words}"
        return words


def _parse_terms(text: str) -> tuple[Term, ...]:
    words = [word.strip() for word in text.split(",")]
    unknown = [word for word in words if word not in set(Term)]
    if unknown:
        names = (*Term, "paper", "slack:PERMILLE")
        hints = [f"{word!r} is not known; {meant(word, names)}" for word in unknown if near(word, names)]
        listed = (
            f"{', '.join(map(repr, unknown))} is not known; "
            f"use one or more of {', '.join(Term)} (comma-separated), paper, or slack:PERMILLE"
        )
        raise InvalidProblemError(f"objective {text!r}: {'; '.join(hints) or listed}")
    return tuple(map(Term, words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Filters that a plan must pass; None is off (formulations, section 1).

    Attributes
    ----------
    max_period_us
        Largest period, microseconds.
    min_units, max_units
        Fewest and most units in use.
    min_balance_permille
        Least balance: smallest over largest busy time, permille. Gapness and balance agree that a
        plan on one unit of several is not balanced at all (0).
    max_gapness_us
        Largest gapness, microseconds.
    min_utilisation_permille
        Least utilisation: busy time of all units over (units of the platform x period).
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    max_period_us: int | None = None
    min_units: int | None = None
    max_units: int | None = None
    min_balance_permille: int | None = None
    max_gapness_us: int | None = None
    min_utilisation_permille: int | None = None

    def __post_init__(self) -> None:
        defects = Defects("limits")
        for field in (entry.name for entry in fields(self)):
            value = getattr(self, field)
            if value is not None and defects.check_count(field, value):
                if field.endswith("_permille") and value > 1000:
                    defects.add(f"{field} is {value}, must be at most 1000")
        defects.raise_as(InvalidProblemError)

    def __repr__(self) -> str:
        # Without `max_units` while it is off: problems keep the fingerprints they had before there was one.
        shown = (f for f in fields(self) if f.name != "max_units" or self.max_units is not None)
        return f"Limits({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in shown)})"


LIMIT_NAMES = tuple(field.name for field in fields(Limits))
"""The filters, by name."""
