"""Everything about one problem that its searches share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ...formulations.chain import Chain, Part
from ...formulations.chunking.quantities import PlanValues, most_energy_nj
from ...formulations.chunking.tables import chain_of
from ...formulations.errors import InvalidProblemError
from ...formulations.expr import variables
from ...formulations.limits import limits_missed
from ...formulations.problem import Problem
from ...formulations.rules import Rule
from ...formulations.terms import Quantity, Term
from .facts import Facts, Narrowing
from .lattice import Lattice, Lattices, group_units, resources_of
from .propagation import Layout, forbid_ends
from .ranking import Ints, Ranking
from .tables import Restrictions, Tables

_LATTICE_POINTS = (4096, 512, 96, 1)
"""Largest sizes of the lattices, from fine to coarse."""

_MOST_ENERGY_NJ = 1 << 58
"""Sums of energies have to stay within 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Tables of one problem.

    `chain`, `rules`, `facts`: the integer tables, the rules that the search keeps, and what follows from
    them; `tables`, `lattices`: the chunks, and the sets of used units, from fine to coarse; `ranking`,
    `layout`, `narrowing`: what orders plans, how they are written, and how bounds on plans become bounds on
    chunks.
    """

    chain: Chain
    rules: tuple[Rule, ...]
    facts: Facts
    tables: Tables
    lattices: Lattices
    ranking: Ranking
    layout: Layout
    narrowing: Narrowing

    def lonely(self) -> Ints:
        """Return the ranks of all valid plans of a single chunk, by [row][plan].

        They stand apart: their gapness follows another definition, and there are few.
        """
        chain, count = self.chain, self.chain.layer_count
        capacity = self.ranking.device_memory
        found = [np.empty((self.layout.rank.stop, 0), dtype=np.int64)]
        for unit in range(chain.unit_count):
            if not (chain.runs(0, count, unit) and chain.fits(0, count, unit)):
                continue
            values = PlanValues(chain, ((0, count, unit),))
            if (
                (capacity is None or values.peak_bytes <= capacity)
                and not limits_missed(self.ranking.limits, values)
                and all(rule.holds(values) for rule in self.rules)
            ):
                rank = np.zeros((self.layout.rank.stop, 1), dtype=np.int64)
                rank[: len(self.ranking.terms), 0] = [values.term(term) for term in self.ranking.terms]
                code = np.array([self.tables.last * chain.unit_count + unit])
                self.layout.append(rank, np.zeros(1, dtype=np.int64), code)
                found.append(rank)
        return np.concatenate(found, axis=1)

    def parts(self, ranks: Ints) -> list[tuple[Part, ...]]:
        """Return plans as chunks by layer."""
        return self.layout.parts(ranks, self.tables.cuts)


def build_instance(problem: Problem, rules: tuple[Rule, ...], facts: Facts) -> Instance:
    """Return the tables of a problem whose rules are not contradictory."""
    chain, terms = chain_of(problem), problem.ranking
    spoken = {key[0] for rule in rules for key in variables(rule.expr)}
    weigh = chain.device_memory is not None or Term.PEAK_MEMORY in terms or Quantity.PEAK in spoken
    metered = Term.ENERGY in terms or problem.limits.max_energy_nj is not None or Quantity.ENERGY in spoken
    powers = chain.powers if metered else None
    if metered and most_energy_nj(chain) > _MOST_ENERGY_NJ:
        raise InvalidProblemError(
            f"plans may take up to {most_energy_nj(chain)} nJ, native takes at most {_MOST_ENERGY_NJ}: give "
            "times or powers in a coarser unit, or use --backend z3"
        )
    restrictions = facts.restrictions
    tables = Tables(
        chain, restrictions, weigh_memory=weigh, extra_mw=None if powers is None else powers.extra_mw
    )
    idle_mw = 0 if powers is None else powers.idle_mw
    limit = problem.limits.most_chunks
    most = len(set(resources_of(chain.exclusive)))
    chunks = min(most, tables.last, most if limit is None else limit)
    return Instance(
        chain=chain,
        rules=rules,
        facts=facts,
        tables=tables,
        lattices=_lattices(problem, facts, restrictions, tables.extra_mw.tolist()),
        ranking=Ranking(
            terms=terms,
            limits=problem.limits,
            resources=chain.unit_count,
            device_memory=chain.device_memory,
            idle_mw=idle_mw,
        ),
        layout=Layout.fitting(len(terms), tables.last, chain.unit_count),
        narrowing=Narrowing(
            limits=problem.limits,
            unit_count=chain.unit_count,
            most_chunks=chunks,
            facts=facts,
            idle_mw=idle_mw,
            least_drain=tables.least_drain,
        ),
    )


def _lattices(
    problem: Problem, facts: Facts, restrictions: Restrictions, extra_mw: Sequence[int]
) -> Lattices:
    """Return lattices from fine to coarse; units that rules name or that conflict stay apart if possible."""
    chain = chain_of(problem)
    named = {
        args[-1]
        for part in facts.open
        for name, args in variables(part)
        if name in (Quantity.ON, Quantity.USES, Quantity.BUSY, Quantity.MEMORY)
    }
    resources = resources_of(chain.exclusive)
    apart = {resources[u] for u in named}
    signatures: list[Hashable] = [
        # Which of the units of one resource is used matters to nobody, unless a rule names one of them.
        resources[u]
        if resources.count(resources[u]) > 1 and resources[u] not in apart
        else (
            chain.prefix_us[u],
            chain.blocked[u],
            tuple(row[u] for row in chain.transfer_in_us),
            tuple(row[u] for row in chain.transfer_out_us),
            chain.unit_memory[u],
            frozenset(layer for layer, unit in restrictions.blocked if unit == u),
            u if u in named or chain.exclusive[u] else None,
            extra_mw[u],
        )
        for u in range(chain.unit_count)
    ]
    totals = [prefix[-1] for prefix in chain.prefix_us]
    groupings = dict.fromkeys(group_units(signatures, totals, size, resources) for size in _LATTICE_POINTS)

    def make(classes: tuple[int, ...]) -> Lattice:
        lattice = Lattice(classes, chain.exclusive)
        least, most = problem.limits.min_units or 0, problem.limits.most_chunks
        lattice.require_chunks(least, chain.unit_count if most is None else most)
        forbid_ends(lattice, facts)
        return lattice

    return Lattices(tuple(groupings), make)
