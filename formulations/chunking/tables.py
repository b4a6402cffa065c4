"""The integer tables of a problem with one network: a `Chain`."""

from __future__ import annotations

from ..chain import Chain, build_chain
from ..limits import capped
from ..problem import Problem


def chain_of(problem: Problem) -> Chain:
    """Return the tables of a problem of this formulation."""
    tables = problem.tables
    assert isinstance(tables, Chain)
    return tables


def build_tables(problem: Problem) -> Chain:
    """Return the tables of a problem with one network."""
    return build_chain(
        capped(problem.platform, problem.limits), problem.network, problem.costs.of(problem.network.name)
    )
