"""Requests that are alike: of one network, and kept by rules to the same layers on the same units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...formulations.expr import And, BoolExpr, BoolVar, Interval, Variable
from ...formulations.flow_shop.tables import FlowShop, shop_of
from ...formulations.problem import Problem
from ...formulations.terms import Quantity
from .arrays import Ints, without
from .ways import Ways

_MOST_TRUTHS = 64
"""Rules that speak about more units and layers than this are not looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Requests that are alike."""

    ways: Ways  # how each may be cut
    chain: int  # index of the network
    requests: tuple[int, ...]  # their indices

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.requests)


def kinds_of(problem: Problem, networks: Sequence[Ways]) -> tuple[Kind, ...]:
    """Return the requests of a problem by kind.

    `networks`: the ways to cut each network, by index of the chain.
    """
    shop = shop_of(problem)
    kept = _kept(problem, networks)
    groups: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for request, chain in enumerate(shop.chain_of):
        groups[chain, kept[request].tobytes() if request in kept else b""].append(request)
    kinds = []
    for (chain, _), requests in groups.items():
        ways = networks[chain]
        if requests[0] in kept:
            ways = Ways(replace(ways.arrays, last=kept[requests[0]]))
        kinds.append(Kind(ways=ways, chain=chain, requests=tuple(requests)))
    return tuple(kinds)


def _kept(problem: Problem, networks: Sequence[Ways]) -> dict[int, Ints]:
    """Return how far chunks reach (`ChainArrays.last`), by request that rules keep from somewhere."""
    shop, found = shop_of(problem), dict[int, Ints]()
    for rule in problem.expression_rules:
        for part in _parts(rule.expr):
            for variable, value in _settled(part):
                request = variable.args[0]
                ways = networks[shop.chain_of[request]]
                last = found.get(request, ways.arrays.last)
                for unit, start, stop in _closed(shop, ways, variable, value=value):
                    last = without(last, slice(unit, unit + 1), start, stop)
                found[request] = last
    return found


def _parts(expr: BoolExpr) -> Iterator[BoolExpr]:
    """Yield conditions that all have to hold."""
    if isinstance(expr, And):
        for part in expr.args:
            yield from _parts(part)
    else:
        yield expr


def _settled(expr: BoolExpr) -> Iterator[tuple[Variable, bool]]:
    """Yield what a condition says about single units and layers, whatever else a plan does."""
    truths: dict[tuple[str, tuple[int, ...]], Variable] = {}

    def usual(variable: Variable) -> Interval:
        if isinstance(variable, BoolVar):
            if variable.name in (Quantity.USES, Quantity.ON):
                truths[variable.key] = variable
            return 0, 1
        return variable.low, variable.high

    expr.bounds(usual)
    if len(truths) > _MOST_TRUTHS:
        return
    for key, truth in list(truths.items()):
        for value in (False, True):
            one = (int(not value),) * 2
            if not expr.bounds(lambda v, key=key, one=one: one if v.key == key else usual(v))[1]:  # type: ignore[misc]
                yield truth, value


def _closed(shop: FlowShop, ways: Ways, variable: Variable, *, value: bool) -> Iterator[tuple[int, int, int]]:
    """Yield (unit, first, last + 1) of pieces that may not run there."""
    if variable.name == Quantity.USES:
        if not value:
            yield variable.args[1], 0, ways.size
        return
    _, layer, unit = variable.args
    piece = int(np.searchsorted(ways.arrays.cuts, layer, side="right")) - 1
    for other in range(shop.unit_count):
        if (other == unit) is not value:
            yield other, piece, piece + 1
