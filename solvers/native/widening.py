"""Widening: look for the best plans where they must be, and prove that nothing better is elsewhere.

The canonical order compares the first term first. So all plans whose first term is at most some cap
come before all others, and a cap bounds which chunks can occur. Starting from a lower bound, the cap
grows until the box below it holds as many plans as wanted: the best ones of the box are then the best
of all. The cost follows the plans near the optimum, not the size of the space.

*Plateaus* - one dominant layer, and millions of plans share the least period - make a box with a
single value of the term too large to build. Then the value is settled: everything below it has been
collected, and the next term is widened in the same way among the plans that attain it.

*Filters* that ask for a least busy time (balance, gapness, utilisation) cut chunks off from below,
the more the larger the period. Let f(T) be the least period of a plan whose chunks are all at least
as busy as the filters demand of period T. f is monotone, every plan that passes has
period >= f(its period), and so iterating T <- f(T) from a lower bound climbs to the least period that
passes without ever skipping one (Kleene's fixed point).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...formulations.objective import Term
from ..protocol import StopReason
from .boxes import Box, Narrowing
from .graph import START, StateGraph, build_graph
from .lattice import Lattice
from .search import GraphSearch, Setting, StopSearch
from .tables import Tables, TooLargeError, Window

_SMALL_GRAPH, _GRAPH, _LARGE_GRAPH = 6_000, 400_000, 2_500_000
"""Most arcs: of a graph tried before anything else, of a box, and of a box that cannot be split."""
_ENUMERABLE = 8_000
"""Up to so many walks, making them all is cheaper than searching."""
_STEPS = {Term.IDLE: 100, Term.GAPNESS: 256, Term.PAPER_GAPNESS: 256, Term.BUBBLES: 128}
_DEFAULT_STEPS = 512
"""First step of a cap, as a fraction of the value it is compared with."""
_BEAM = (32, 512)


@dataclass(slots=True)
class Widening:
    """One solve.

    Parameters
    ----------
    tables, lattices
        The instance; lattices from fine to coarse.
    setting
        What the searches share.
    narrowing
        How bounds on plans become bounds on chunks.
    progress
        Called with a proven lower bound of the key of everything not examined yet.
    """

    tables: Tables
    lattices: Iterator[Lattice]
    setting: Setting
    narrowing: Narrowing
    lattice: Lattice
    frontier: tuple[int, ...] = ()

    def run(self) -> None:
        """Fill the pool with the best plans of at least two chunks.

        Raises
        ------
        StopSearch
            A limit was hit; `frontier` bounds the key of everything that was not examined.
        """
        box = self._everything()
        if box is None:
            return
        try:
            self._collect(self._graph(box, _SMALL_GRAPH), ())
        except TooLargeError:
            self._widen((), box)
