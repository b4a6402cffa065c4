"""What is minimised: terms by name, most important first.

Which terms there are, and what they mean, a formulation says (`terms.py`); a problem refuses those that its
formulation does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InvalidProblemError
from .validation import Defects, FileContent

MOST_TERMS = 20
"""Most terms of one objective."""

PERIOD = "period"
"""The term that the slack mode is about."""

SPECIAL = ("paper", "slack:PERMILLE")
"""What a text can name besides terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(FileContent):
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

    terms: tuple[str, ...] = ("period", "gapness")
    period_slack_permille: int | None = None
    present_by: str | None = None

    def __post_init__(self) -> None:
        defects = Defects("objective")
        defects.check_size("terms", len(self.terms), most=MOST_TERMS)
        defects.check_unique("terms", self.terms)
        if self.period_slack_permille is not None:
            defects.check_count("period_slack_permille", self.period_slack_permille)
        defects.raise_as(InvalidProblemError)

    @property
    def first(self) -> str:
        """What counts first: the first term, but the period where all others need a near-optimal one."""
        return self.terms[0] if self.period_slack_permille is None else PERIOD

    @classmethod
    def slack(cls, permille: int, term: str = "idle") -> Objective:
        """Return the `slack` mode: among near-optimal periods the least idle time (or another term)."""
        return cls(terms=(term,), period_slack_permille=permille)

    @classmethod
    def paper(cls) -> Objective:
        """Return BetterTogether's mode: rank by (gapness, period), one-unit plans 0, show by period."""
        return cls(terms=("paper_gapness", PERIOD), present_by=PERIOD)

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Return the objective that a text such as "period,gapness", "paper" or "slack:50" names.

        "slack:50" is the least idle time within 50 permille of the least period;
        "slack:50:gapness,latency" the least of these terms instead.

        Raises
        ------
        InvalidProblemError
            The text has another form. Whether there are such terms the problem says.
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
        return cls(terms=_parse_terms(terms or "idle"), period_slack_permille=int(permille))

    def __str__(self) -> str:
        words = ",".join(self.terms)
        if self == Objective.paper():
            return "paper"
        if self.period_slack_permille is not None:
            return f"slack:{self.period_slack_permille}:{words}"
        return words


def _parse_terms(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))
