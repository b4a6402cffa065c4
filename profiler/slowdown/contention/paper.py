"""Contention as Hetero2Pipe prints it: Table II and the numbers of Section III, and what follows from them.

The paper measured on a Kirin 990. Its table has four pairs of networks, and BERT takes part in each: so
the intensity of BERT against the others, and its sensitivity, are hardly told (see `rank_one`). Section III
tells for one pair of networks how much less the NPU interferes than CPU and GPU do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import prod

from ....formulations.costs import Interference, Provenance
from ....formulations.files import Schema, parse
from ....formulations.validation import FileContent
from ..turns import CoRun
from .rank_one import RankOne, UnitPair, fit_rank_one

PAPER_UNITS = ("npu", "cpu_big", "gpu")
"""Units of which the paper prints slowdowns; the CPU of the text is taken for its big cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCoRun(FileContent):
    """One row of Table II."""

    victim: str
    victim_unit: str
    aggressor: str
    aggressor_unit: str
    """Who ran where, beside whom."""
    alone_us: int
    beside_us: int
    """As printed (in milliseconds)."""
    printed_percent: float
    """The slowdown as printed; two of the eight are rounded differently from what the times give."""

    @property
    def corun(self) -> CoRun:
        """The row as an observation."""
        return CoRun(
            victim=self.victim,
            victim_unit=self.victim_unit,
            aggressor=self.aggressor,
            aggressor_unit=self.aggressor_unit,
            alone_us=(self.alone_us,),
            beside_us=(self.beside_us,),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedPair(FileContent):
    """A sentence of Section III: two networks side by side on two units."""

    units: tuple[str, str]
    networks: tuple[str, str]
    """Who ran where; the paper does not say which network was on which unit."""
    percents: tuple[float, float]
    """Slowdown of each network, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperContention(FileContent):
    """All that the paper prints."""

    source: str
    """Where."""
    table_ii: tuple[PrintedCoRun, ...]
    text: tuple[PrintedPair, ...]
    """See the types."""


PAPER = Schema(format="gapless.paper_contention", version=1, content=PaperContention)


@cache
def paper_contention() -> PaperContention:
    """Return what the paper prints."""
    data = files(__package__).joinpath("data/hetero2pipe.json").read_bytes()
    return parse(data, PAPER, name="the paper's contention")


def table_ii() -> tuple[CoRun, ...]:
    """Return the eight co-runs of Table II, microseconds."""
    return tuple(row.corun for row in paper_contention().table_ii)


def paper_rank_one() -> RankOne:
    """Return the model of contention fitted to Table II, with the NPU's base slowdowns from the text.

    Section III gives the slowdowns of the same two networks on three pairs of units. By the model, the
    geometric mean of the two slowdowns is the base slowdown (geometric mean of both directions) times a
    factor of the networks alone; so the ratio of these means between two pairs of units is the ratio of
    their base slowdowns, whichever network was on which unit.
    """
    fitted = fit_rank_one(table_ii())
    means = {frozenset(pair.units): prod(pair.percents) ** 0.5 for pair in paper_contention().text}
    known = frozenset(("cpu_big", "gpu"))
    base = prod(pair.slowdown for pair in fitted.pairs) ** 0.5
    more = tuple(
        UnitPair(victim=victim, aggressor=aggressor, slowdown=base * mean / means[known])
        for units, mean in means.items()
        if units != known
        for victim, aggressor in (tuple(sorted(units)), tuple(sorted(units, reverse=True)))
    )
    return replace(fitted, pairs=(*fitted.pairs, *more))


def paper_interference(units: tuple[str, ...] = PAPER_UNITS) -> Interference:
    """Return the paper's contention for planning.

    `units`: units of the platform; those that the paper tells nothing about get 0.
    """
    model = paper_rank_one()
    return model.interference(
        units,
        provenance=Provenance(
            source=paper_contention().source,
            method="rank-one model fitted to Table II; NPU by the ratios of Section III",
            estimated=True,
            notes=(
                f"largest relative error of the eight slowdowns {model.worst_ratio or 0:.0%}; "
                "intensities of networks other than squeezenet, bert and vit are not printed"
            ),
        ),
    )
