"""Fitting the rates of a unit to the few networks whose times are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.network import Network
from gapless.profiler.analytic.costs import time_of, works_of
from gapless.profiler.analytic.model import UnitModel

_STEPS = 60
_SLOWEST, _FASTEST = log(1.0), log(1e9)  # operations a microsecond


def fit_rates(unit: UnitModel, networks: Sequence[Network]) -> UnitModel:
    """Return a unit with the rates at which its printed totals are met in the geometric mean.

    Networks that mainly convolve decide the rate of convolutions, the others that of products. Without any
    of the others, the rate of products keeps its ratio to that of convolutions.

    `unit`: its rates are where to start from, its `totals` what to fit; `networks`: at least those whose
    totals are printed.
    Raises InvalidInputError: launching the layers and moving their bytes alone takes longer than a printed
    total, or no network that mainly convolves is printed.
    """
    printed = {total.network: total.total_us for total in unit.totals if total.printed}
    found = [network for network in networks if network.name in printed]
    convolving = [network for network in found if not _multiplies(network)]
    bare, ratio = replace(unit, totals=()), unit.product_flops_per_us / unit.flops_per_us

    def misfit(model: UnitModel, fitted: Sequence[Network]) -> float:
        return sum(log(_total_us(network, model) / printed[network.name]) for network in fitted)

    def both(rate: int) -> UnitModel:
        return replace(bare, flops_per_us=rate, product_flops_per_us=max(1, round(ratio * rate)))

    bare = both(_root(lambda rate: misfit(both(rate), convolving), unit.unit))
    multiplying = [network for network in found if _multiplies(network)]
    if multiplying:
        product = _root(lambda rate: misfit(replace(bare, product_flops_per_us=rate), multiplying), unit.unit)
        bare = replace(bare, product_flops_per_us=product)
    return replace(bare, totals=unit.totals)


def _multiplies(network: Network) -> bool:
    works = works_of(network)
    return 2 * sum(work.flops for work in works if work.product) > sum(work.flops for work in works)


def _total_us(network: Network, unit: UnitModel) -> float:
    time = time_of(network, unit)
    if time is None:
        raise InvalidInputError(
            f"a time of {network.name!r} on {unit.unit!r} is given, which cannot run all of its layers"
        )
    return time.of(1)


def _root(misfit: Callable[[int], float], unit: str) -> int:
    """Return the rate at which a misfit that falls with it is zero."""
    low, high = _SLOWEST, _FASTEST
    if not misfit(round(exp(high))) < 0 < misfit(round(exp(low))):
        raise InvalidInputError(
            f"no rate of {unit!r} meets its printed times: bring its bandwidth up, or its launch time down"
        )
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if misfit(round(exp(middle))) > 0 else (low, middle)
    return round(exp(high))
