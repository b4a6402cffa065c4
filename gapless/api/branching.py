"""How much of an order the graph of a network leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..executor.model import Model
from ..formulations.bit_sets import members
from ..formulations.branches import later_runs, runs_of, width_of
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..formulations.validation import STRICT
from ..solvers.topological_orders import TooManySetsError, down_sets

MOST_DOWN_SETS = 100_000
"""Down-sets are counted so far: where there are fewer, all chains of them can be compared: a proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branching:
    """The branches of a network, and how many orders of its layers they leave open.

    Attributes
    ----------
    width
        The most layers of which none needs what another makes, directly or not: 1 for a chain.
    branches
        Number of unbranched runs of layers that have another run beside them.
    longest_branch
        Layers of the longest of these runs; 0 where there is none.
    down_sets
        Number of sets of layers that hold, with a layer, all that it needs: what can lie before a cut, in
        any order, from no layer to all of them. None: more than `counted_to`.
    counted_to
        How far down-sets are counted.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    width: int
    branches: int
    longest_branch: int
    down_sets: int | None
    counted_to: int

    @property
    def is_chain(self) -> bool:
        """Whether its layers have one order only."""
        return self.width == 1


def branching(subject: Network | Model | Problem, *, count_to: int = MOST_DOWN_SETS) -> Branching:
    """Return the branches of a network, and how many orders of its layers they leave open.

    Parameters
    ----------
    subject
        A network, a model, or a problem of one network. Where it has no tensors, it is a chain.
    count_to
        How far down-sets are counted.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.graphs.branching(gapless.load_problem("pixel7a/alexnet-sparse"))
    >>> found.is_chain, found.down_sets
    (True, 10)
    """
    network = subject if isinstance(subject, Network) else subject.network
    count = len(network.layers)
    if not network.tensors:
        return Branching(width=1, branches=0, longest_branch=0, down_sets=count + 1, counted_to=count_to)
    runs = runs_of(network)
    later = later_runs(network, runs)
    related = [len([*members(after)]) for after in later]
    for after in later:
        for other in members(after):
            related[other] += 1
    beside = [len(run) for run, others in zip(runs, related, strict=True) if others < len(runs) - 1]
    return Branching(
        width=width_of(later),
        branches=len(beside),
        longest_branch=max(beside, default=0),
        down_sets=_down_sets(network, count_to),
        counted_to=count_to,
    )


def _down_sets(network: Network, most: int) -> int | None:
    before = [0] * len(network.layers)
    for tensor in network.tensors:
        for target in tensor.targets if tensor.source >= 0 else ():
            if target < len(before):
                before[target] |= 1 << tensor.source
    try:
        return len(down_sets(before, most))
    except TooManySetsError:
        return None
