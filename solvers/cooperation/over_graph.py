"""The optimum over the graph itself: chunks between any down-sets, not only between given pieces.

Chunks that any two down-sets of a graph of operators bound, as places and spans of the program. A chain of
chunks over a graph is a chain of down-sets D0 < D1 < ...; results may pass by chunks that do not read them.
What tiles of a chunk (D, E) compute follows from its results backward, D says what of it counts; so one sweep
serves all chunks that end at E with the same results (cooperation, section 3).

The optimum over the graph itself: chunks between any down-sets, not only between given pieces. PICO fixes the
pieces first (Algorithm 1); plans are then optimal given these. Where a graph has few down-sets all chains of
them are compared, and the difference is what the pieces cost (cooperation, section 3). A chunk counts as one
piece: its time on a device is the sum of its operators, of which a tile takes the share of its operations
(PICO, Eq. 5).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...formulations.bit_sets import members
from ...formulations.cooperation.segments import Amount, Segment
from ...formulations.cooperation.tables import PER_US, Groups, groups_of, scaled_ps
from ...formulations.costs import NetworkCosts
from ...formulations.errors import InvalidProblemError
from ...formulations.groups import GraphOptimum
from ...formulations.judge import score
from ...formulations.network import Layer, Network, Tensor
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.spatial import SpatialNetwork
from ...formulations.terms import Term as T
from ...formulations.weights import Weights
from ..pipelines.arrays import Ints
from ..protocol import NEVER as NO_DEADLINE
from ..protocol import Deadline, TimeIsUpError
from ..topological_orders import Set, TooManySetsError, down_sets
from .arrays import build_arrays
from .branching import copies
from .kinds import Kinds, kinds_of
from .optimum import Optimum, wanted_terms
from .program import Program


def operator_sets(network: SpatialNetwork, most: int) -> tuple[Set, ...]:
    """Return all down-sets of the operators of a network, small ones first; inputs are not in them.

    Raises TooManySetsError: there are more than `most`.
    """
    place = {node: index for index, node in enumerate(network.operators)}
    before = [
        sum(1 << place[source] for source in set(network.nodes[node].sources) if source in place)
        for node in network.operators
    ]
    nodes = list(place)
    return tuple(sum(1 << nodes[index] for index in members(one)) for one in down_sets(before, most))


@dataclass(frozen=True, eq=False)
class Lattice:
    """Down-sets as places, and the chunks between them.

    `network`, `side`: the graph, and along which axis maps are split.
    """

    network: SpatialNetwork
    side: int
    sets: tuple[Set, ...]  # down-sets, small ones first; the first is empty, the last has all operators
    deadline: Deadline  # when to give up, with `TimeIsUpError`

    @cached_property
    def _readers(self) -> list[Set]:
        return [sum(1 << reader for reader in readers) for readers in self.network.readers]

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The chunks: (place where it begins, place where it ends)."""
        return tuple(
            (start, stop)
            for start, done in enumerate(self.sets)
            for stop in range(start + 1, len(self.sets))
            if done & ~self.sets[stop] == 0
        )

    @cached_property
    def boundary_bytes(self) -> tuple[int, ...]:
        """Bytes that are made before each place and used behind it, inputs and results of the network too."""
        nodes = self.network.nodes
        inputs = [node for node, about in enumerate(nodes) if about.is_input]
        return tuple(
            sum(nodes[node].bytes for node in inputs if self._readers[node] & ~done)
            + sum(nodes[node].bytes for node in sinks)
            for done, sinks in zip(self.sets, self._sinks, strict=True)
        )

    def amounts(self, by_node: Sequence[int]) -> tuple[int, ...]:
        """Return the sum of some amounts of nodes over each down-set."""
        return tuple(sum(by_node[node] for node in members(done)) for done in self.sets)

    def of(self, start: int, stop: int) -> Segment:
        """Return the chunk between two places, as one piece."""
        return self._segments[start, stop]

    @cached_property
    def _segments(self) -> Mapping[tuple[int, int], Segment]:
        sweeps: dict[tuple[int, tuple[int, ...]], _Sweep] = {}
        found = {}
        for start, stop in self.spans:
            if self.deadline.passed:
                raise TimeIsUpError
            sinks = tuple(node for node in self._sinks[stop] if not self.sets[start] >> node & 1)
            if (stop, sinks) not in sweeps:
                sweeps[stop, sinks] = _Sweep(self, self.sets[stop], sinks)
            found[start, stop] = sweeps[stop, sinks].segment(self.sets[start])
        return found

    @cached_property
    def _sinks(self) -> list[list[int]]:
        """By place the nodes before it whose results are used behind it, or are those of the network."""
        results = set(self.network.outputs)
        return [
            [node for node in members(done) if self._readers[node] & ~done or node in results]
            for done in self.sets
        ]


class _Sweep:
    """What tiles of the results of a down-set need of every node before them."""

    def __init__(self, lattice: Lattice, end: Set, sinks: tuple[int, ...]) -> None:
        self._lattice, self._end, self._sinks = lattice, end, sinks
        network, side = lattice.network, lattice.side
        self._rows = min((network.nodes[node].size[side] for node in sinks), default=1)
        borders = np.arange(self._rows + 1)
        self._shares = {n: borders * network.nodes[n].size[side] // self._rows for n in sinks}
        self._needs: dict[int, tuple[Ints, Ints]] = {n: (own, own) for n, own in self._shares.items()}
        self._reads: dict[int, list[tuple[int, tuple[Ints, Ints]]]] = {}
        for reader in sorted(members(end), reverse=True):
            if reader in self._needs:
                self._reads[reader] = list(self._read(reader))
                for source, need in self._reads[reader]:
                    self._join(self._needs, source, need)

    def segment(self, start: Set) -> Segment:
        """Return the chunk from a down-set on, whose results are all its own."""
        nodes, side = self._lattice.network.nodes, self._lattice.side
        inside = list(members(self._end & ~start))
        if not all(nodes[node].splits[side] for node in inside):
            return self._whole(inside)
        received: dict[int, tuple[Ints, Ints]] = {}
        for reader in inside:
            for source, need in self._reads[reader]:
                if nodes[source].is_input or start >> source & 1:
                    self._join(received, source, need)
        work = self._total([(max(1, nodes[node].flops), node) for node in inside], self._needs)
        shares = {node: (own, own) for node, own in self._shares.items()}
        return Segment(
            rows=self._rows,
            work=(work,),
            received=self._total([(nodes[node].bytes, node) for node in received], received),
            sent=self._total([(nodes[node].bytes, node) for node in self._sinks], shares),
        )

    def _whole(self, inside: Sequence[int]) -> Segment:
        work = sum(max(1, self._lattice.network.nodes[node].flops) for node in inside)
        nothing = Amount(starts=(0, 0), ends=(0, 0))
        return Segment(rows=1, work=(Amount(starts=(0, 0), ends=(0, work)),), received=nothing, sent=nothing)

    def _read(self, reader: int) -> Iterator[tuple[int, tuple[Ints, Ints]]]:
        """Yield what a node reads of each of its sources."""
        nodes, side = self._lattice.network.nodes, self._lattice.side
        first, last = self._needs[reader]
        for source, windows in zip(nodes[reader].sources, nodes[reader].windows, strict=True):
            window, size = windows[side], nodes[source].size[side]
            if window is None:
                yield source, (np.zeros_like(first), np.full_like(last, size))
                continue
            above = (first * window.stride - window.before) // window.up
            reach = (last - 1) * window.stride - window.before + window.extent - 1
            below = reach // window.up + 1
            # `np.clip` takes five times as long.
            yield source, (np.minimum(np.maximum(above, 0), size - 1), np.minimum(np.maximum(below, 1), size))

    @staticmethod
    def _join(needs: dict[int, tuple[Ints, Ints]], node: int, need: tuple[Ints, Ints]) -> None:
        before = needs.get(node, need)
        needs[node] = (np.minimum(before[0], need[0]), np.maximum(before[1], need[1]))

    def _total(self, amounts: Sequence[tuple[int, int]], needs: Mapping[int, tuple[Ints, Ints]]) -> Amount:
        nodes, side = self._lattice.network.nodes, self._lattice.side
        starts, ends = (np.zeros(self._rows + 1, np.int64) for _ in range(2))
        for amount, node in amounts:
            a_row = -(-amount // nodes[node].size[side])
            starts += a_row * needs[node][0]
            ends += a_row * needs[node][1]
        # Arrays: lists of numbers would take five times as much memory, and there are thousands of chunks.
        return Amount(starts=array("q", starts.tolist()), ends=array("q", ends.tolist()))


MOST_SETS = 200
"""Most down-sets of a graph all of whose chains are compared."""


def solve_over_graph(
    problem: Problem, most_sets: int | None = None, deadline: Deadline = NO_DEADLINE
) -> tuple[Problem, Plan]:
    """Return the plan with the least period over the graph of a problem of groups, and what its pieces cost.

    `problem`: groups of devices, whose costs have no fixed part. `most_sets`: most down-sets; None:
    `MOST_SETS`. `deadline`: when to give up, with `TimeIsUpError`.
    Returns the chunks of the best plan as a network with a layer for each of them, with what was compared
    (`Cooperation.over_graph`), and the plan.
    Raises TimeIsUpError: the deadline has passed.
    """
    _refuse(problem)
    groups = groups_of(problem)
    network = groups.data.spatial
    most_sets = most_sets or MOST_SETS
    try:
        sets = operator_sets(network, most_sets)
    except TooManySetsError:
        raise InvalidProblemError(
            f"network {problem.network.name!r} has more than {most_sets} down-sets of operators: plans of it "
            "are compared given its pieces"
        ) from None
    cuts = groups.chain.cuts
    between = tuple(
        sum(1 << node for node, piece in enumerate(groups.data.pieces) if 0 <= piece < cut) for cut in cuts
    )
    side = int(groups.data.side)
    given = _best(problem, groups, Lattice(network, side, between, deadline), None)
    return _best(problem, groups, Lattice(network, side, sets, deadline), _period_us(*given))


def _period_us(problem: Problem, plan: Plan) -> int:
    return score(problem, plan).value(T.PERIOD)


def _refuse(problem: Problem) -> None:
    """Refuse what is not known of chunks between down-sets."""
    groups = groups_of(problem)
    chain = groups.chain
    most_bytes = chain.weights.copied + max(chain.working_bytes)
    capacities = [c for c in (*chain.unit_memory, chain.device_memory) if c is not None]
    reasons = {
        "rules name its layers": problem.rules,
        "tiles have a fixed cost": groups.data.fixed_us,
        "copies cost time": any(map(any, (*chain.transfer_in_us, *chain.transfer_out_us))),
        "memory is short": any(capacity < most_bytes for capacity in capacities),
        f"something else than the {T.PERIOD} comes first": problem.objective.terms != (T.PERIOD,),
    }
    for reason, holds in reasons.items():
        if holds:
            raise InvalidProblemError(
                f"plans over the graph are not known where {reason}: plan given the pieces"
            )


def _best(problem: Problem, groups: Groups, lattice: Lattice, given_us: int | None) -> tuple[Problem, Plan]:
    """Return the best plan with cuts at some down-sets, and its problem.

    `given_us`: the least period given the pieces; None: that is asked for here.
    """
    tables = _tables(groups, lattice)
    kinds = Kinds(kinds_of(problem, tables))
    arrays = build_arrays(tables, kinds, wanted_terms(problem, problem.objective.terms), lattice.deadline)
    program = Program(arrays, lattice.deadline)
    found = Optimum(problem, program).find()
    if found is None:
        raise InvalidProblemError(f"network {problem.network.name!r} has no plan within the limits")
    parts = next(copies(program, found.line))
    places = [0, *(stop for _, stop, _ in parts)]
    facts = None
    if given_us is not None:
        facts = GraphOptimum(sets=len(lattice.sets), period_us=found.value, given_pieces_us=given_us)
    own = _of_chunks(problem, tables, places, facts)
    plan = own.formulation.plan(own, tuple((i, i + 1, group) for i, (*_, group) in enumerate(parts)))
    assert _period_us(own, plan) == found.value, "the judge has another period than the program"
    return own, plan


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tables(Groups):
    """Tables whose boundaries are down-sets; a chunk is one piece."""

    lattice: Lattice

    @cached_property
    def spans(self) -> Sequence[tuple[int, int]]:
        """The chunks of the lattice, without those that take no time: nobody needs a group for them."""
        runs, busy = self.chain.runs, self.chain.busy_us
        devices = range(self.device_count)
        return [span for span in self.lattice.spans if all(busy(*span, d) for d in devices if runs(*span, d))]

    def _tile_ps(self, start: int, stop: int, device: int, group: int) -> list[int]:
        work = self.segments.of(start, stop).work[0]
        return scaled_ps(self.chain.busy_us(start, stop, device), work, group)


def _tables(groups: Groups, lattice: Lattice) -> _Tables:
    """Return the tables of a problem with down-sets as boundaries."""
    chain, pieces, nodes = groups.chain, groups.data.pieces, groups.data.spatial.nodes
    work = [max(1, node.flops) for node in nodes]
    whole = [0] * chain.layer_count
    for node, piece in enumerate(pieces):
        whole[piece] += work[node] if piece >= 0 else 0
    prefix, blocked = [], []
    for device in range(chain.unit_count):
        times = [row[device] for row in chain.layer_us]
        shares = [
            (times[piece] or 0) * work[node] * PER_US // whole[piece] if piece >= 0 else 0
            for node, piece in enumerate(pieces)
        ]
        prefix.append(tuple(-(-total // PER_US) for total in lattice.amounts(shares)))
        blocked.append(lattice.amounts([int(piece >= 0 and times[piece] is None) for piece in pieces]))
    places = len(lattice.sets)
    no_copies = ((0,) * chain.unit_count,) * places
    return _Tables(
        chain=replace(
            chain,
            prefix_us=tuple(prefix),
            blocked=tuple(blocked),
            transfer_in_us=no_copies,
            transfer_out_us=no_copies,
            weights=Weights(lattice.amounts([node.weight_bytes for node in nodes])),
            unit_memory=(None,) * chain.unit_count,
            device_memory=None,
            cuts=tuple(range(places)),
        ),
        data=groups.data,
        boundary_bytes=lattice.boundary_bytes,
        links=groups.links,
        segments=lattice,
        lattice=lattice,
    )


def _of_chunks(
    problem: Problem, tables: _Tables, places: Sequence[int], facts: GraphOptimum | None
) -> Problem:
    """Return a problem whose layers are the chunks between some places of the tables."""
    chain, sets, spatial = tables.chain, tables.lattice.sets, tables.data.spatial
    spans = list(pairwise(places))
    labels = [-1] * len(spatial.nodes)
    for chunk, (start, stop) in enumerate(spans):
        for node in members(sets[stop] & ~sets[start]):
            labels[node] = chunk
    layers = tuple(
        Layer(
            name=_name([spatial.nodes[n].name for n, own in enumerate(labels) if own == chunk]),
            weight_bytes=chain.weights.between(start, stop),
            flops=sum(spatial.nodes[n].flops for n, own in enumerate(labels) if own == chunk),
        )
        for chunk, (start, stop) in enumerate(spans)
    )
    tensors = []
    for node, about in enumerate(spatial.nodes):
        targets = {labels[reader] for reader in spatial.readers[node]} - {labels[node]}
        targets |= {len(spans)} if node in spatial.outputs else set()
        if targets:
            tensors.append(
                Tensor(
                    name=about.name, bytes=about.bytes, source=labels[node], targets=tuple(sorted(targets))
                )
            )
    network = Network(
        name=problem.network.name,
        layers=layers,
        tensors=tuple(tensors),
        source=f"{problem.network.source or problem.network.name}: chunks over the graph",
    )
    devices = range(chain.unit_count)
    rows = tuple(
        tuple(chain.busy_us(*span, d) if chain.runs(*span, d) else None for d in devices) for span in spans
    )
    costs = NetworkCosts(network=network.name, layer_us=rows)
    return replace(
        problem,
        networks=(network,),
        costs=replace(problem.costs, networks=(costs,)),
        data=replace(tables.data, pieces=tuple(labels), over_graph=facts),
    )


def _name(operators: Sequence[str]) -> str:
    return operators[0] if len(operators) == 1 else f"{operators[0]} .. {operators[-1]}"
