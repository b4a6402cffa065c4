"""Requests that nothing tells apart: plans that differ by who of them is who are one plan."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from ..problem import Problem
from .needs import needs_of
from .tables import FlowShop, Schedule, shop_of

Groups = tuple[tuple[int, ...], ...]
"""Indices of requests that are alike, those of a group in ascending order."""


def alike(shop: FlowShop, named: Collection[int]) -> Groups:
    """Return the groups of requests of one network that come and are due at the same times.

    `named`: requests that rules tell from others: in no group.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for request, facts in enumerate(shop.workload.requests):
        if request not in named:
            kind = (facts.network, facts.arrival_us, facts.deadline_us)
            groups.setdefault(kind, []).append(request)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def groups_of(problem: Problem) -> Groups:
    """Return the groups that can trade places; none where the order is given, or rules are opaque."""
    shop = shop_of(problem)
    if not shop.order_is_free or problem.opaque_rules:
        return ()
    return alike(shop, needs_of(problem).named)


def settled(schedule: Schedule, groups: Groups) -> Schedule:
    """Return the schedule that stands for all that are alike: of a group, the first is served first.

    It is as good as the others, its displacement is the least of them, and it comes first in the canonical
    order.
    """
    order, cuts = list(schedule.order), list(schedule.cuts)
    place = {request: index for index, request in enumerate(schedule.order)}
    for group in groups:
        for request, stands_for in zip(group, sorted(group, key=place.__getitem__), strict=True):
            order[place[stands_for]] = request
            cuts[request] = schedule.cuts[stands_for]
    return Schedule(tuple(order), tuple(cuts))


def neighbours_in(groups: Groups) -> Sequence[tuple[int, int]]:
    """Return the pairs of requests of which the first is served first in settled schedules."""
    return [pair for group in groups for pair in pairwise(group)]
