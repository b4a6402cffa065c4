"""Pieces of a network by several methods: `find_pieces` (formulations, section 13; PICO 4)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum

from ...formulations.errors import InvalidInputError
from ...formulations.spatial import SpatialNetwork
from ...formulations.tiles import extra_flops
from ...formulations.validation import FileContent
from ..protocol import Deadline
from .contraction import Contraction, contract
from .methods import Found, by_beam, by_paper, exact
from .search import Effort

DIAMETER = 5
"""Most edges of a path inside a piece by the paper (PICO 4.3)."""

EFFORT = 200_000
"""Candidates for pieces that are looked at where the answer has to be the same each time."""


class PieceMethod(StrEnum):
    """How pieces are found."""

    EXACT = "exact"
    """Least largest cost, then most pieces, then least total cost: proven unless the time is up."""
    CPSAT = "cpsat"
    """The same by CP-SAT, whose model does not grow with the width of the network."""
    PAPER = "paper"
    """Algorithm 1 of PICO, repaired, with its limit on the diameter of pieces."""
    BEAM = "beam"
    """Beam search for very wide networks: a heuristic, which proves nothing."""
    BLOCKS = "blocks"
    """Cut only behind operators through which everything passes."""
    LAYERS = "layers"
    """The most pieces, whatever they cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces(FileContent):
    """A chain of pieces."""

    labels: tuple[int, ...]
    """By node of the network the number of its piece; -1 for inputs."""
    costs: tuple[int, ...]
    """By piece, operations that halos inside it add (`formulations.tiles.extra_flops`)."""
    bound: int
    """Largest cost that no chain can fall below; 0: none is known."""
    proven: bool
    """Whether no chain is better: by largest cost, then number of pieces, then total cost."""
    method: PieceMethod
    """How it was found."""
    seconds: float
    """How long that took."""

    @property
    def count(self) -> int:
        """Number of pieces."""
        return len(self.costs)

    @property
    def largest(self) -> int:
        """The cost C of the chain: that of its most expensive piece."""
        return max(self.costs)

    @property
    def score(self) -> tuple[int, int, int]:
        """What is minimised, the most important first."""
        return self.largest, -self.count, sum(self.costs)

    def members(self, piece: int) -> tuple[int, ...]:
        """Return the nodes of a piece."""
        return tuple(index for index, label in enumerate(self.labels) if label == piece)


def find_pieces(
    network: SpatialNetwork,
    *,
    method: PieceMethod | str = PieceMethod.EXACT,
    time_limit_s: float | None = None,
    diameter: int = DIAMETER,
    threads: int = 1,
) -> Pieces:
    """Divide a network into a chain of pieces.

    Parameters
    ----------
    network
        The network.
    method
        How (see `PieceMethod`).
    time_limit_s
        When to stop. The exact method spends half of it on its proof, and the rest on a beam search where
        that has not ended; the bound is what it has proven.
    diameter
        Most edges of a path inside a piece, for the method of the paper.
    threads
        Of CP-SAT.

    Returns
    -------
    Pieces
        Valid for `formulations.spatial.check_pieces`.

    Raises
    ------
    InvalidInputError
        There is no such method, no operator, or the method of the paper did not end in time.
    BackendUnavailableError
        OR-Tools is not installed.
    """
    started = time.monotonic()
    try:
        chosen = PieceMethod(method)
    except ValueError:
        raise InvalidInputError(
            f"method of pieces is {method!r}, must be one of {', '.join(PieceMethod)}"
        ) from None
    if not network.operators:
        raise InvalidInputError(f"network {network.name!r} has no operator to divide into pieces")
    graph, effort = contract(network), Effort(deadline=Deadline(time_limit_s))
    match chosen:
        case PieceMethod.EXACT:
            found = exact(graph, effort)
        case PieceMethod.CPSAT:
            from .cpsat import by_cpsat

            start = exact(graph, Effort(deadline=effort.deadline, candidates=EFFORT // 20))
            found = by_cpsat(graph, start, effort.deadline, threads)
        case PieceMethod.PAPER:
            found = by_paper(graph, effort, diameter)
        case PieceMethod.BEAM:
            found = by_beam(graph, effort)
        case PieceMethod.BLOCKS:
            found = Found(labels=graph.blocks())
        case PieceMethod.LAYERS:
            found = Found(labels=graph.finest())
    return _finished(graph, found, chosen, started)


def usual_pieces(network: SpatialNetwork) -> Pieces:
    """Return pieces that are always the same: by the exact method, with `EFFORT` instead of a time limit."""
    started = time.monotonic()
    graph = contract(network)
    found = exact(graph, Effort(deadline=Deadline(None), candidates=EFFORT))
    return _finished(graph, found, PieceMethod.EXACT, started)


def _finished(graph: Contraction, found: Found, method: PieceMethod, started: float) -> Pieces:
    labels = graph.labels(found.labels)
    groups: list[list[int]] = [[] for _ in range(max(found.labels) + 1)]
    for index, label in enumerate(labels):
        if label >= 0:
            groups[label].append(index)
    return Pieces(
        labels=labels,
        costs=tuple(extra_flops(graph.network, group) for group in groups),
        bound=found.bound,
        proven=found.proven,
        method=method,
        seconds=time.monotonic() - started,
    )
