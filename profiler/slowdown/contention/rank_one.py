"""Contention in few numbers: slowdown = base[victim's unit][aggressor's unit] x sensitivity x intensity.

The logarithm of the model is linear, so its parameters are logarithms, found by Gauss-Newton steps of least
squares. Two kinds of observations need care:

* *Small ones.* A slowdown of 1 % that is measured within 1 % has no logarithm to speak of, and a negative
  one has none. So the errors are those of the slowdowns themselves: each is weighted by the noise of the
  observation together with a relative error of the model. Pairs of units between which nothing stands out
  from the noise have a base slowdown of 0.
* *What no observation tells.* Sensitivities and intensities are products, so some of them can be shifted
  against each other without any effect (in Table II of the paper, where BERT takes part in every co-run,
  the intensity of BERT against that of SqueezeNet is one such thing). They are drawn weakly towards 1:
  networks are as much alike as the observations permit. This also makes 1 their geometric mean.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod
from statistics import fmean

from ....formulations.costs import Interference, NetworkContention, Provenance
from ....formulations.errors import InvalidInputError
from ....formulations.validation import FileContent
from ..turns import CoRun

MODEL_ERROR = 0.1
"""Relative error that the model itself is credited with: no observation counts as better known than this."""

LIKENESS = 2.0
"""Standard deviation of the logarithms of sensitivities and intensities before anything is observed."""

LEAST_SLOWDOWN = 0.001
"""Smallest slowdown that stands out anyway: one permille, the grain of `Interference`."""

STEPS = 50
"""Gauss-Newton steps; a few are enough unless slowdowns drown in noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPair(FileContent):
    """How much a typical network on one unit suffers from a typical one on another."""

    victim: str
    aggressor: str
    """Names of the units."""
    slowdown: float
    """Relative to the time alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFactors(FileContent):
    """What a network multiplies the base slowdown with."""

    network: str
    """Its name."""
    sensitivity: float = 1.0
    intensity: float = 1.0
    """As the one that suffers, and as the one that causes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOne(FileContent):
    """The fitted model."""

    pairs: tuple[UnitPair, ...]
    networks: tuple[NetworkFactors, ...]
    """Its numbers."""
    clipped: tuple[str, ...] = ()
    """Labels of the observations that do not stand out from their noise."""
    explained: float | None = None
    """Part of the variance of the observed slowdowns that the model explains (at most 1): against the mean of
    all of them. None where they do not vary."""
    mean_error: float = 0.0
    """Mean of |predicted - observed| slowdown."""
    worst_ratio: float | None = None
    """Largest relative error of a slowdown that was not clipped; None without any."""

    def slowdown(self, victim: str, victim_unit: str, aggressor: str, aggressor_unit: str) -> float:
        """Return what the model says; 0 for units that were not observed together."""
        base = next(
            (p.slowdown for p in self.pairs if (p.victim, p.aggressor) == (victim_unit, aggressor_unit)), 0.0
        )
        return base * self.of(victim).sensitivity * self.of(aggressor).intensity

    def of(self, network: str) -> NetworkFactors:
        """Return the factors of a network; one that was not observed is typical."""
        listed = (factors for factors in self.networks if factors.network == network)
        return next(listed, NetworkFactors(network=network))

    def without(self, names: Collection[str]) -> RankOne:
        """Return the same model without some networks: the others have a geometric mean of 1 again."""
        kept = [factors for factors in self.networks if factors.network not in names]
        sensitivity = _geometric_mean([factors.sensitivity for factors in kept])
        intensity = _geometric_mean([factors.intensity for factors in kept])
        return replace(
            self,
            pairs=tuple(
                replace(pair, slowdown=pair.slowdown * sensitivity * intensity) for pair in self.pairs
            ),
            networks=tuple(
                replace(
                    factors,
                    sensitivity=factors.sensitivity / sensitivity,
                    intensity=factors.intensity / intensity,
                )
                for factors in kept
            ),
        )

    def interference(
        self, units: Sequence[str], *, provenance: Provenance, high_from_permille: int | None = None
    ) -> Interference:
        """Return the model in the integers that plans are made with; a clipped pair of units is 0.

        `units`: all units of the platform; pairs that were not observed get 0; `provenance`,
        `high_from_permille`: as in `Interference`.
        """
        base = {(pair.victim, pair.aggressor): pair.slowdown for pair in self.pairs}
        return Interference(
            units=tuple(units),
            slowdown_permille=tuple(
                tuple(round(1000 * base.get((victim, aggressor), 0.0)) for aggressor in units)
                for victim in units
            ),
            networks=tuple(
                NetworkContention(
                    network=factors.network,
                    intensity_permille=round(1000 * factors.intensity),
                    sensitivity_permille=round(1000 * factors.sensitivity),
                )
                for factors in self.networks
            ),
            high_from_permille=high_from_permille,
            provenance=provenance,
        )


def fit_rank_one(observations: Sequence[CoRun]) -> RankOne:
    """Fit the model to co-runs."""
    if not observations:
        raise InvalidInputError("no co-run is given: at least one is needed to fit a model of contention")
    heard = {_units(one) for one in observations if not drowned(one)}
    pairs = list(dict.fromkeys(map(_units, observations)))
    names = list(dict.fromkeys(name for one in observations for name in (one.victim, one.aggressor)))
    design = _Design(pairs=[pair for pair in pairs if pair in heard], names=names)
    bases, sensitivities, intensities = design.solve([one for one in observations if _units(one) in heard])
    model = RankOne(
        pairs=tuple(
            UnitPair(victim=pair[0], aggressor=pair[1], slowdown=bases.get(pair, 0.0)) for pair in pairs
        ),
        networks=tuple(
            NetworkFactors(network=name, sensitivity=sensitivity, intensity=intensity)
            for name, sensitivity, intensity in zip(names, sensitivities, intensities, strict=True)
        ),
    )
    return judged(model, observations)


def _units(one: CoRun) -> tuple[str, str]:
    return one.victim_unit, one.aggressor_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """The unknowns: logarithms of the bases of some pairs, of sensitivities, of intensities."""

    pairs: Sequence[tuple[str, str]]
    names: Sequence[str]

    def solve(
        self, observations: Sequence[CoRun]
    ) -> tuple[dict[tuple[str, str], float], list[float], list[float]]:
        """Return the bases by pair, the sensitivities and the intensities."""
        import numpy as np

        bases, count = len(self.pairs), len(self.names)
        rows = np.array([self._row(one) for one in observations]).reshape(-1, bases + 2 * count)
        slowdowns = np.array([one.slowdown for one in observations])
        noises = np.array([one.noise or 0.0 for one in observations])
        alike = np.eye(bases + 2 * count)[bases:] / LIKENESS
        # the start: geometric means of what can be taken the logarithm of
        found = np.zeros(bases + 2 * count)
        logs = np.log(np.maximum(slowdowns, np.maximum(noises, LEAST_SLOWDOWN)))
        found[:bases] = [logs[rows[:, base] > 0].mean() for base in range(bases)]
        for _ in range(STEPS):
            predicted = np.exp(rows @ found)
            weights = 1 / np.hypot(MODEL_ERROR, noises / predicted)
            moves = np.where(noises > 0, slowdowns / predicted - 1, logs - rows @ found)
            matrix = np.vstack([weights[:, None] * rows, alike])
            targets = np.concatenate(
                [weights * (rows @ found + np.clip(moves, -1.0, 1.0)), np.zeros(2 * count)]
            )
            found = found + 0.5 * (np.linalg.lstsq(matrix, targets)[0] - found)
        values = np.exp(found).tolist()
        by_pair = dict(zip(self.pairs, values[:bases], strict=True))
        return by_pair, values[bases : bases + count], values[bases + count :]

    def _row(self, one: CoRun) -> list[float]:
        ones = {
            self.pairs.index(_units(one)),
            len(self.pairs) + self.names.index(one.victim),
            len(self.pairs) + len(self.names) + self.names.index(one.aggressor),
        }
        return [float(column in ones) for column in range(len(self.pairs) + 2 * len(self.names))]


def judged(model: RankOne, observations: Sequence[CoRun]) -> RankOne:
    """Return a model with what it says of some co-runs, which need not be those that it was fitted to."""
    observed = [one.slowdown for one in observations]
    errors = [
        model.slowdown(one.victim, one.victim_unit, one.aggressor, one.aggressor_unit) - one.slowdown
        for one in observations
    ]
    mean = fmean(observed)
    spread = sum((slowdown - mean) ** 2 for slowdown in observed)
    ratios = [
        abs(error) / one.slowdown for error, one in zip(errors, observations, strict=True) if not drowned(one)
    ]
    return replace(
        model,
        clipped=tuple(one.label for one in observations if drowned(one)),
        explained=1 - sum(error**2 for error in errors) / spread if spread > 0 else None,
        mean_error=fmean(map(abs, errors)),
        worst_ratio=max(ratios, default=None),
    )


def drowned(one: CoRun) -> bool:
    """Return whether a slowdown does not stand out from its noise."""
    return one.slowdown <= max(one.noise or 0.0, LEAST_SLOWDOWN)


def _geometric_mean(values: Sequence[float]) -> float:
    return prod(values) ** (1 / len(values)) if values else 1.0
