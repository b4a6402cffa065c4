"""How far the answer of a tuning run can be trusted, and what that is based on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...formulations.validation import FileContent


class Trust(StrEnum):
    """How far an answer can be trusted.

    HIGH
        Nothing that is known speaks against it.
    LIMITED
        Something does: the verdict says what.
    NONE
        There is no answer: the strongest rival was not measured, or nothing was.
    """

    HIGH = "high"
    LIMITED = "limited"
    NONE = "none"


class Ground(StrEnum):
    """What trust is based on.

    NOISE
        By how much ratios between candidates vary from round to round.
    DRIFT
        By how much the machine was slower in the last round than in the first.
    OTHERS
        Share of the cores that other programs kept busy while candidates ran.
    SUMS
        Mean error of sums of measured layers against chunks that were measured as such.
    UNSTEADY
        Share of the pieces of the profile that stayed unsteady, however often they were measured.
    BASELINES
        Mean difference of the baselines from their predictions, which nobody has chosen for being small.
    SUSTAINED
        By how much the finalist that slowed down most was slower at the end of the sustained run.
    """

    NOISE = "noise"
    DRIFT = "drift"
    OTHERS = "other programs"
    SUMS = "sums of layers"
    UNSTEADY = "unsteady layers"
    BASELINES = "baselines against prediction"
    SUSTAINED = "slower when sustained"


LIMITS_PERCENT = {
    Ground.NOISE: 5.0,
    Ground.DRIFT: 10.0,
    Ground.OTHERS: 15.0,
    Ground.SUMS: 10.0,
    Ground.UNSTEADY: 10.0,
    Ground.BASELINES: 10.0,
    Ground.SUSTAINED: 10.0,
}
"""Above these a number speaks against an answer."""

_SIGNED = (Ground.DRIFT, Ground.SUSTAINED)


def percent(share: float | None) -> float | None:
    """Return a share in percent; None stays None."""
    return None if share is None else 100 * share


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(FileContent):
    """One number that trust is based on."""

    ground: Ground
    """What it is."""
    percent: float | None
    """The number; None: not known."""
    limit_percent: float
    """Above it, or below its negative, it speaks against the answer."""

    @property
    def doubtful(self) -> bool:
        """Whether it speaks against the answer."""
        return self.percent is not None and abs(self.percent) > self.limit_percent

    @property
    def words(self) -> str:
        """The number as text."""
        sign = "+" if self.ground in _SIGNED else ""
        return "not known" if self.percent is None else f"{self.percent:{sign}.1f} %".replace("-0.0", "0.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(FileContent):
    """How far the answer of a tuning run can be trusted."""

    trust: Trust
    """In a word."""
    reasons: tuple[str, ...]
    """What speaks against it, in words, what weighs most first; empty where trust is high."""
    evidence: tuple[Evidence, ...]
    """The numbers that it is based on, one for each ground that applies."""

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.trust is Trust.NONE:
            return f"No verdict: {'; '.join(self.reasons)}."
        if self.trust is Trust.LIMITED:
            return f"Trust is limited: {'; '.join(self.reasons)}."
        known = [f"{one.ground} {one.words}" for one in self.evidence if one.percent is not None]
        return f"Trust is high: {', '.join(known) or 'nothing speaks against it'}."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is known of the measured table that plans were made from, as shares; None: not known."""

    sums_error: float | None = None  # mean error of sums of layers against chunks that were measured as such
    unsteady: float | None = None  # share of the measured pieces that stayed unsteady


def verdict_of(evidence: Sequence[Evidence], *, missing: Sequence[str], cut: Sequence[str]) -> Verdict:
    """Return a verdict.

    `missing`: what was not measured and without which there is no answer, in words; `cut`: what else speaks
    against the answer, in words.
    """
    doubts = [f"{one.ground} {one.words}" for one in evidence if one.doubtful]
    reasons = (*missing, *cut, *doubts)
    return Verdict(
        trust=Trust.NONE if missing else Trust.LIMITED if reasons else Trust.HIGH,
        reasons=reasons,
        evidence=tuple(evidence),
    )
