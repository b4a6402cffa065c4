"""Loads of units as expressions: what every formulation with units shares."""

from __future__ import annotations

from collections.abc import Sequence

from .expr import Expr, linear, max_of


def gapness(period: Expr, loads: Sequence[Expr], uses: Sequence[Expr], most: Sequence[int]) -> Expr:
    """Return the largest load minus the smallest one of the units in use.

    Of several units a lonely one has its period: Tmin counts as 0 there.
    """
    return period + max_of(negated(loads, uses, most) + _lonely(uses, max(most)))


def negated(loads: Sequence[Expr], uses: Sequence[Expr], most: Sequence[int]) -> list[Expr]:
    """Return minus the load of each unit, and for units not in use something that is never the largest.

    Their largest is minus Tmin; the period plus it is the gapness (BetterTogether III-D, O1).
    """
    found = []
    for unit, (load, used) in enumerate(zip(loads, uses, strict=True)):
        others = max((bound for other, bound in enumerate(most) if other != unit), default=0)
        found.append(linear([(-1, load), (others, used)], -others))
    return found


def _lonely(uses: Sequence[Expr], most: int) -> list[Expr]:
    """Return 0 for a plan on one unit of several, where Tmin counts as 0, and less than -Tmin otherwise."""
    return [linear(((-most, used) for used in uses), most)] if len(uses) > 1 else []
