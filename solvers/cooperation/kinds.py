"""Devices that stand for one another: sets of devices are counted by kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
import numpy.typing as npt

from ...formulations.cooperation.quantities import QUANTITIES
from ...formulations.cooperation.service import Devices
from ...formulations.cooperation.tables import Groups
from ...formulations.expr import variables
from ...formulations.problem import Problem
from ..pipelines.arrays import Ints
from ..pipelines.program import States

Bools = npt.NDArray[np.bool_]


def kinds_of(problem: Problem, groups: Groups) -> tuple[int, ...]:
    """Return the kind of each device: neighbours in the list of devices that may be swapped are of one kind.

    Only neighbours, because tiles lie in the order of devices. A device that a rule names is a kind of its
    own, and so is each where a rule is a function of plans.
    """
    devices = range(groups.device_count)
    named = set(devices) if problem.opaque_rules else set[int]()
    for rule in problem.expression_rules:
        for name, args in variables(rule.expr):
            indices = zip(QUANTITIES[name].indices, args, strict=True)
            named |= {value for index, value in indices if index.name == "device"}
    kinds = [0]
    for one, other in pairwise(devices):
        alike = not named & {one, other} and _alike(groups, one, other)
        kinds.append(kinds[-1] + (not alike))
    return tuple(kinds)


def _alike(groups: Groups, one: int, other: int) -> bool:
    """Return whether to swap two devices changes nothing."""
    chain, link = groups.chain, groups.links
    rest = [device for device in range(groups.device_count) if device not in (one, other)]
    tables = (chain.layer_us, chain.transfer_in_us, chain.transfer_out_us, groups.data.fixed_us)
    numbers = (chain.unit_memory, groups.enter_us, groups.leave_us, groups.power_mw, groups.idle_mw)
    return (
        all(row[one] == row[other] for table in tables for row in table)
        and all(row[one] == row[other] for row in numbers)
        and not (chain.exclusive[one] or chain.exclusive[other])
        and link[one][other] == link[other][one]
        and all(link[one][d] == link[other][d] and link[d][one] == link[d][other] for d in rest)
    )


@dataclass(frozen=True)
class Kinds:
    """Kinds of devices, and the sets of devices by how many of each kind they have."""

    of: tuple[int, ...]  # the kind of each device, not decreasing

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The first device of each kind."""
        return tuple(self.of.index(kind) for kind in range(self.of[-1] + 1))

    @cached_property
    def states(self) -> States:
        """All sets."""
        return States([self.of.count(kind) for kind in range(len(self.firsts))])

    @cached_property
    def counts(self) -> Ints:
        """How many devices of each kind a set has, by [set][kind]."""
        return np.ascontiguousarray(self.states.digits.T, dtype=np.int64)

    @cached_property
    def sizes(self) -> Ints:
        """Number of devices of each set."""
        found: Ints = self.counts.sum(axis=1)
        return found

    def pair(self, one: int, other: int) -> tuple[int, int] | None:
        """Return two different devices of two kinds; None: there are none."""
        first, second = self.firsts[one], self.firsts[other]
        if one != other:
            return first, second
        return (first, first + 1) if self.states.counts[one] > 1 else None

    def devices(self, group: int, used: int = 0) -> Devices:
        """Return the devices of a set, the first of each kind that another set leaves."""
        rows = zip(self.firsts, self.counts[group].tolist(), self.counts[used].tolist(), strict=True)
        return tuple(first + taken + n for first, count, taken in rows for n in range(count))

    def valid(self, groups: Groups) -> Bools:
        """Return by set whether no two of its devices exclude each other."""
        found = np.ones(self.states.number, bool)
        for one, other in combinations(range(len(self.of)), 2):
            if other in groups.chain.exclusive[one]:
                found &= (self.counts[:, self.of[one]] == 0) | (self.counts[:, self.of[other]] == 0)
        return found
