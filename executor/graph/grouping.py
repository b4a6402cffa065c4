"""Operators that a runtime runs as one, and layers of them, in an order with few bytes alive at the cuts.

Quantised graphs made ready for cuts: integers cross them, in the layout in which runtimes compute. A runtime
fuses DequantizeLinear -> operator -> QuantizeLinear into one operator on integers. So a DequantizeLinear
belongs to the operator that reads it, and integers cross every cut: a quarter of the bytes. Where it belonged
to what comes before it, float32 would cross and the operator would run in floats.

Convolutions on integers run with the channels last. ONNX Runtime carries that layout through a whole graph,
but not from an input that has its channels first: it then transposes around every convolution behind a
residual connection (5 to 8 % of the time; `benchmarks.foreign_models --parts int8`). So maps are handed over
with the channels last. Inside a chunk the two transpositions meet, and a runtime removes both.

Operators that a runtime runs as one: clusters of the operator graph, contracted without making cycles. Two
neighbours A -> B may always be contracted when B is the only successor of A, or A the only predecessor of B:
no other way leads from A to B, so that no cycle can arise.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, pairwise
from typing import TYPE_CHECKING, Literal

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.helper import make_node, make_tensor_value_info

from ...formulations.errors import InvalidModelError
from ...formulations.network import MAX_LAYERS, Layer, SharedWeights, Tensor
from ..names import distinct, safe_name
from .choices import Granularity
from .model_file import weight_bytes
from .op_types import ELEMENTWISE, MOVING

if TYPE_CHECKING:
    from .operators import OperatorCost, OperatorGraph

DEQUANTISE, QUANTISE = "DequantizeLinear", "QuantizeLinear"

CHANNELS_LAST = "/channels_last"
"""End of the name of a map that is handed over with its channels last."""

_IN_INTEGERS = "QLinear"
_LAST, _FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_BYTES = (TensorProto.INT8, TensorProto.UINT8)


def ready_for_cuts(model: ModelProto) -> None:
    """Change a simplified model, in place, so that it can be cut without loss; it computes the same."""
    give_each_user_its_own(model)
    if any(node.op_type == QUANTISE or node.op_type.startswith(_IN_INTEGERS) for node in model.graph.node):
        _hand_over_channels_last(model.graph)


def give_each_user_its_own(model: ModelProto) -> None:
    """Copy, in place, each DequantizeLinear with several users so that each of them has its own.

    Simplification makes them common, because they compute the same. Users in subgraphs, and outputs of the
    model, keep the original.
    """
    graph = model.graph
    names = {each.name for each in (*graph.input, *graph.initializer)}
    names |= {name for node in graph.node for name in node.output}
    values = {value.name: value for value in graph.value_info}
    users: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            users.setdefault(name, []).append((node, place))
    nodes: list[NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != DEQUANTISE:
            continue
        (name,) = node.output
        first = 0 if any(output.name == name for output in graph.output) else 1
        for user, place in users.get(name, [])[first:]:
            own = _free(name, names)
            copy = NodeProto()
            copy.CopyFrom(node)
            copy.name = copy.output[0] = user.input[place] = own  # nodes of a name are refused, too
            nodes.append(copy)
            if name in values:
                graph.value_info.add().CopyFrom(values[name])
                graph.value_info[-1].name = own
    if len(nodes) > len(graph.node):
        _replace(graph, nodes)


def _hand_over_channels_last(graph: GraphProto) -> None:
    """Put a pair of transpositions between what makes a map of bytes and all that read it."""
    names = {name for node in graph.node for name in node.output}
    values = {value.name: value for value in graph.value_info}
    users: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            users.setdefault(name, []).append((node, place))
    kept = {value.name for value in graph.output}
    nodes: list[NodeProto] = []
    for node in graph.node:
        readers = users.get(node.output[0], [])
        value = values.get(node.output[0])
        nodes.append(node)
        if value is None or value.name in kept or not _is_map(node, value, [user for user, _ in readers]):
            continue
        shape = [size.dim_value for size in value.type.tensor_type.shape.dim]
        kind = value.type.tensor_type.elem_type
        last = _free(value.name + CHANNELS_LAST, names)
        nodes.append(_transposition(value.name, last, _LAST))
        graph.value_info.append(make_tensor_value_info(last, kind, [shape[place] for place in _LAST]))
        for user, place in readers:
            own = _free(value.name, names)
            nodes.append(_transposition(last, own, _FIRST))
            graph.value_info.append(make_tensor_value_info(own, kind, shape))
            user.input[place] = own
    if len(nodes) > len(graph.node):
        _replace(graph, nodes)


def _is_map(node: NodeProto, value: ValueInfoProto, readers: Sequence[NodeProto]) -> bool:
    """Return whether a tensor holds bytes with channels in the second of four dimensions, for integers."""
    tensor = value.type.tensor_type
    return (
        tensor.elem_type in _BYTES
        and len(tensor.shape.dim) == len(_LAST)
        and all(size.dim_value > 0 for size in tensor.shape.dim)
        and (node.op_type == QUANTISE or node.op_type.startswith(_IN_INTEGERS))
        and bool(readers)
        and all(user.op_type == DEQUANTISE or user.op_type.startswith(_IN_INTEGERS) for user in readers)
    )


def _transposition(taken: str, made: str, order: Sequence[int]) -> NodeProto:
    return make_node("Transpose", [taken], [made], name=made, perm=order)


def _free(name: str, used: set[str]) -> str:
    """Return a name like this one that is not used yet, and note that it is."""
    numbered = (f"{name}#{number}" for number in count(2))
    found = next(own for own in chain([name], numbered) if own not in used)
    used.add(found)
    return found


def _replace(graph: GraphProto, nodes: Sequence[NodeProto]) -> None:
    changed = GraphProto()
    changed.node.extend(nodes)  # copies: those of the graph go with the next line
    del graph.node[:]
    graph.node.extend(changed.node)


def side_of_cut(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str]
) -> Literal["maker", "reader"] | None:
    """Return whom an operator belongs to that stands at the side of a possible cut; None: it does not."""
    if op_type == QUANTISE or (op_type == "Transpose" and CHANNELS_LAST in outputs[0]):
        return "maker"
    if op_type == DEQUANTISE or (op_type == "Transpose" and CHANNELS_LAST in "".join(inputs)):
        return "reader"
    return None


_LIGHT = MOVING | ELEMENTWISE
"""Types that a runtime fuses into a neighbour, or does on the way."""

_TINY_SHARE = 0.05


class Clusters:
    """Sets of operators, contracted step by step."""

    def __init__(self, graph: OperatorGraph) -> None:
        count = len(graph.operators)
        self._members: list[list[int]] = [[index] for index in range(count)]
        self._home = list(range(count))
        self.first = list(range(count))
        """The first operator of each cluster."""
        self.successors: list[set[int]] = [set() for _ in range(count)]
        self.predecessors: list[set[int]] = [set() for _ in range(count)]
        made = graph.producers()
        for index, operator in enumerate(graph.operators):
            for name in operator.inputs:
                if name in made:
                    self.successors[made[name]].add(index)
                    self.predecessors[index].add(made[name])

    def merge(self, one: int, other: int) -> int:
        """Contract two clusters and return the number of the result."""
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        for ahead, back in ((self.successors, self.predecessors), (self.predecessors, self.successors)):
            for neighbour in ahead[other]:
                back[neighbour].discard(other)
                back[neighbour].add(one)
            ahead[one] |= ahead[other]
            ahead[other] = set()
        for ahead in (self.successors, self.predecessors):
            ahead[one] -= {one, other}
        for member in self._members[other]:
            self._home[member] = one
        self._members[one] += self._members[other]
        self._members[other] = []
        self.first[one] = min(self.first[one], self.first[other])
        return one

    def home(self, operator: int) -> int:
        """Return the cluster that holds an operator."""
        return self._home[operator]

    def members(self, cluster: int) -> Sequence[int]:
        """Return the operators of a cluster."""
        return self._members[cluster]

    def in_order(self) -> list[tuple[int, ...]]:
        """Return the operators of all clusters, in the topological order nearest to that of the graph."""
        missing = {
            cluster: len(self.predecessors[cluster])
            for cluster, members in enumerate(self._members)
            if members
        }
        ready = [(self.first[cluster], cluster) for cluster, count in missing.items() if not count]
        heapq.heapify(ready)
        found = []
        while ready:
            _, cluster = heapq.heappop(ready)
            found.append(tuple(sorted(self._members[cluster])))
            for successor in self.successors[cluster]:
                missing[successor] -= 1
                if not missing[successor]:
                    heapq.heappush(ready, (self.first[successor], successor))
        return found


def absorb_sources(graph: OperatorGraph, clusters: Clusters) -> None:
    """Join each operator without inputs (constants, random numbers) with its home (`homes_of_sources`)."""
    for index, home in homes_of_sources(graph).items():
        clusters.merge(clusters.home(index), clusters.home(home))


def homes_of_sources(graph: OperatorGraph) -> dict[int, int]:
    """Return where each operator without inputs belongs: to the first that uses it, or to the last of all.

    Every other user comes later in the order of the operators, so that none lies between the two. What nobody
    uses is an output of the model, and is made when it is due.
    """
    users = graph.consumers()
    last = max((index for index, operator in enumerate(graph.operators) if operator.inputs), default=None)
    found = {}
    for index, operator in enumerate(graph.operators):
        if not operator.inputs:
            later = [users[name][0] for name in operator.outputs if name in users]
            home = min(later, default=last)
            if home is not None:
                found[index] = home
    return found


def fuse(
    graph: OperatorGraph,
    clusters: Clusters,
    costs: Sequence[OperatorCost],
    classes: Sequence[Hashable] = (),
) -> None:
    """Contract what a runtime would run as one, and what costs next to nothing on its own.

    Light operators (element by element work, moving data), and clusters whose cost is tiny beside the mean
    of the heavy ones, join a neighbour: the producer that feeds nothing else; or a light cluster that alone
    uses them; or the consumer; or the only producer. Operators of different `classes` stay apart.
    """
    kinds = _with_sources(graph, classes or [None] * len(graph.operators))
    _join_quantised(graph, clusters, kinds)
    light = _Lightness(graph, clusters, costs)
    before, after = clusters.predecessors, clusters.successors

    def feeds_only(cluster: int) -> list[int]:
        return [other for other in before[cluster] if len(after[other]) == 1]

    def light_consumer(cluster: int) -> list[int]:
        return [other for other in after[cluster] if len(after[cluster]) == 1 and light(other)]

    def consumer(cluster: int) -> list[int]:
        return [other for other in after[cluster] if len(after[cluster]) == 1 or len(before[other]) == 1]

    def only_producer(cluster: int) -> list[int]:
        return [other for other in before[cluster] if len(before[cluster]) == 1]

    rules = ((feeds_only, max), (light_consumer, min), (consumer, min), (only_producer, max))
    step = 0
    while step < len(rules):
        partners, nearest = rules[step]
        merged = False
        for index in range(len(graph.operators)):
            cluster = clusters.home(index)
            kind = kinds[clusters.first[cluster]]
            near = partners(cluster) if light(cluster) else ()
            found = [other for other in near if kinds[clusters.first[other]] == kind]
            if found:
                partner = nearest(found, key=clusters.first.__getitem__)
                light.add(cluster, partner, clusters.merge(cluster, partner))
                merged = True
        step = 0 if merged else step + 1


def _join_quantised(graph: OperatorGraph, clusters: Clusters, kinds: Sequence[Hashable]) -> None:
    """Join each DequantizeLinear with the one that reads it, each QuantizeLinear with what it reads.

    Integers then cross the cuts, and a runtime finds what it fuses (see above).
    """
    sides = [side_of_cut(each.op_type, each.inputs, each.outputs) for each in graph.operators]
    makers = [index for index, side in enumerate(sides) if side == "maker"]
    readers = [index for index, side in enumerate(sides) if side == "reader"]
    for members, near in ((makers, clusters.predecessors), (reversed(readers), clusters.successors)):
        for index in members:
            cluster = clusters.home(index)
            if len(near[cluster]) != 1 or len(clusters.members(cluster)) > 1:  # or of a weight: it is at home
                continue
            (other,) = near[cluster]
            if kinds[clusters.first[cluster]] == kinds[clusters.first[other]]:
                clusters.merge(cluster, other)


def _with_sources(graph: OperatorGraph, classes: Sequence[Hashable]) -> list[Hashable]:
    """Return the classes; operators without inputs have that of the one that they belong to."""
    kinds = list(classes)
    for index, home in reversed(homes_of_sources(graph).items()):
        kinds[index] = kinds[home]
    return kinds


class _Lightness:
    """Which clusters hold nothing that deserves a layer of its own."""

    def __init__(self, graph: OperatorGraph, clusters: Clusters, costs: Sequence[OperatorCost]) -> None:
        heavy = [bool(op.domain) or op.has_subgraphs or op.op_type not in _LIGHT for op in graph.operators]
        effort = [cost.effort for cost in costs]
        efforts = [each for each, counts in zip(effort, heavy, strict=True) if counts]
        self._tiny = _TINY_SHARE * sum(efforts) / max(1, len(efforts))
        members = [clusters.members(cluster) for cluster in range(len(heavy))]
        self._heavy = [any(heavy[index] for index in own) for own in members]
        self._effort = [sum(effort[index] for index in own) for own in members]

    def __call__(self, cluster: int) -> bool:
        return not self._heavy[cluster] or self._effort[cluster] < self._tiny

    def add(self, one: int, other: int, result: int) -> None:
        """Note that two clusters have become one."""
        heavy, effort = self._heavy[one] or self._heavy[other], self._effort[one] + self._effort[other]
        self._heavy[result], self._effort[result] = heavy, effort


def thrifty_order(count: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return an order of nodes with few bytes alive at the cuts; deterministic.

    The given order is compared with a greedy one (next comes the node after which the fewest bytes are
    alive, the first in the given order among equals); the better of the two by the sum of bytes over all
    cuts is returned, the given one when they are equal.

    `count`: number of nodes, numbered in a topological order. `tensors`: what flows between them; `count` as
    target stands for an output, -1 as source for an input.
    """
    given = tuple(range(count))
    return min((given, _greedy(count, tensors)), key=lambda order: _bytes_at_cuts(order, tensors))


def order_in_runs(classes: Sequence[Hashable], tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return a topological order in which nodes of one class stand together as far as dependencies let them.

    A run takes every node of its class that is ready, or becomes ready on the way. The class of the next run
    is the one with most such nodes. Delegates of TensorFlow Lite are made in this way; it is no proof that
    there are not fewer runs.

    `classes`: of each node, numbered in a topological order.
    """
    after: list[set[int]] = [set() for _ in classes]
    for tensor in tensors:
        if tensor.source >= 0:
            after[tensor.source].update(target for target in tensor.targets if target < len(classes))
    waiting = Counter(target for targets in after for target in targets)
    ready = {node for node in range(len(classes)) if not waiting[node]}
    order: list[int] = []
    while ready:
        kinds = dict.fromkeys(classes[node] for node in sorted(ready))
        runs = [_run(kind, classes, after, waiting, ready) for kind in kinds]
        longest = max(runs, key=len)
        for node in longest:
            waiting.subtract(after[node])
        ready |= {target for node in longest for target in after[node] if not waiting[target]}
        ready -= set(longest)
        order += longest
    return tuple(order)


def _run(
    kind: Hashable,
    classes: Sequence[Hashable],
    after: Sequence[set[int]],
    waiting: Mapping[int, int],
    ready: set[int],
) -> list[int]:
    """Return the nodes of one class that can run now one after the other, in the given order."""
    left: dict[int, int] = {}
    heap = sorted(node for node in ready if classes[node] == kind)
    run = []
    while heap:
        node = heapq.heappop(heap)
        run.append(node)
        for target in after[node]:
            left[target] = left.get(target, waiting[target]) - 1
            if not left[target] and classes[target] == kind:
                heapq.heappush(heap, target)
    return run


def _bytes_at_cuts(order: Sequence[int], tensors: Sequence[Tensor]) -> int:
    place = {node: position for position, node in enumerate(order)}
    place[-1], place[len(order)] = -1, len(order)
    return sum(
        tensor.bytes * (max(place[target] for target in tensor.targets) - place[tensor.source])
        for tensor in tensors
    )


def _greedy(count: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    made: list[list[int]] = [[] for _ in range(count)]
    used: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    users = [set(tensor.targets) for tensor in tensors]
    growth = [0] * count
    for index, tensor in enumerate(tensors):
        if tensor.source >= 0:
            made[tensor.source].append(index)
            growth[tensor.source] += tensor.bytes
        for target in users[index] - {count}:
            used[target].append(index)
            waiting[target] += tensor.source >= 0
        if len(users[index]) == 1:
            for target in users[index] - {count}:
                growth[target] -= tensor.bytes
    ready = [(growth[node], node) for node in range(count) if not waiting[node]]
    heapq.heapify(ready)
    order: list[int] = []
    done = [False] * count
    while ready:
        bytes_more, node = heapq.heappop(ready)
        if done[node] or bytes_more != growth[node]:
            continue  # a later entry of the same node replaces this one
        done[node] = True
        order.append(node)
        for index in made[node]:
            for target in users[index] - {count}:
                waiting[target] -= 1
                if not waiting[target]:
                    heapq.heappush(ready, (growth[target], target))
        for index in used[node]:
            users[index].discard(node)
            if len(users[index]) == 1 and count not in users[index]:
                (last,) = users[index]
                growth[last] -= tensors[index].bytes
                if not waiting[last]:
                    heapq.heappush(ready, (growth[last], last))
    return tuple(order)


MANY_LAYERS = 256
TINY_LAYER = 0.001
TINY_LAYERS = 1 / 3
"""Of more than so many layers, if so large a share does less than this share of the work, blocks are made."""

_UNKNOWN_BYTES = 2**31
"""What a tensor of unknown size counts in the search for an order: its users are kept close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Layers as sets of operators."""

    layers: tuple[Layer, ...]  # the layers in their order
    tensors: tuple[Tensor, ...]  # what crosses their borders, inputs and outputs of the model included
    operators: tuple[tuple[int, ...], ...]
    """Indices of the operators of each layer, ascending: layer by layer a topological order."""
    shared: tuple[SharedWeights, ...]  # weights that several layers read
    obstacles: tuple[str, ...]  # where and why several layers had to become one, in words


def group(
    graph: OperatorGraph,
    costs: Sequence[OperatorCost],
    granularity: Granularity,
    *,
    pieces: Sequence[int] = (),
    classes: Sequence[Hashable] = (),
    limited: bool = True,
) -> Grouping:
    """Return the layers of a model.

    A tensor that cannot wait between two chunks (see `OperatorGraph.obstacles`) makes one layer of
    everything from its producer to its last consumer.

    `pieces`: for granularity "piece" the number of the piece of each operator; `classes`: operators of
    different classes (say, that other units can run) are in different layers, and layers of one class come
    one after the other as far as possible; `limited`: whether more layers than the planner takes are refused.
    Raises InvalidModelError: there are more layers than the planner takes.
    """
    if granularity == Granularity.PIECE:
        groups = _by_piece(pieces)
    else:
        groups = _ordered(graph, _clusters(graph, costs, granularity, classes))
        groups = _in_runs(graph, groups, classes) if classes else groups
    groups, obstacles = _without_obstacles(graph, groups)
    if granularity == Granularity.BLOCK:
        groups = _joined(groups, _block_cuts(len(groups), _tensors(graph, groups)))
    if limited:
        _check_count(groups, granularity)
    return Grouping(
        layers=_layers(graph, costs, groups),
        shared=_shared(graph, groups),
        tensors=_tensors(graph, groups),
        operators=tuple(groups),
        obstacles=obstacles,
    )


def _check_count(groups: Sequence[object], granularity: Granularity) -> None:
    if len(groups) > MAX_LAYERS:
        raise InvalidModelError(
            f"the model has {len(groups)} layers at --granularity {granularity}, at most {MAX_LAYERS} can be "
            "planned: use --granularity block"
        )


def usual_grouping(graph: OperatorGraph, costs: Sequence[OperatorCost]) -> tuple[Granularity, Grouping, str]:
    """Return a grouping of a fitting granularity, and why it is not the usual one; "" if it is.

    A network of very many layers, many of which do next to nothing, takes long to measure and to plan, and
    what such a layer costs is less than the noise of a measurement: it is divided into blocks.
    """
    layers = group(graph, costs, Granularity.LAYER, limited=False)
    efforts = [sum(costs[index].effort for index in members) for members in layers.operators]
    tiny = sum(effort < TINY_LAYER * sum(efforts) for effort in efforts)
    if len(efforts) <= MANY_LAYERS or tiny < TINY_LAYERS * len(efforts):
        _check_count(layers.layers, Granularity.LAYER)
        return Granularity.LAYER, layers, ""
    blocks = group(graph, costs, Granularity.BLOCK)
    return (
        Granularity.BLOCK,
        blocks,
        f"of its {len(efforts)} layers {tiny} do less than {100 * TINY_LAYER:g} % of the work each: they are "
        f"grouped into {len(blocks.layers)} blocks; --granularity layer keeps them apart",
    )


def _by_piece(pieces: Sequence[int]) -> list[tuple[int, ...]]:
    groups: list[list[int]] = [[] for _ in range(max(pieces, default=-1) + 1)]
    for index, piece in enumerate(pieces):
        groups[piece].append(index)
    return list(map(tuple, groups))


def _clusters(
    graph: OperatorGraph,
    costs: Sequence[OperatorCost],
    granularity: Granularity,
    classes: Sequence[Hashable],
) -> list[tuple[int, ...]]:

    clusters = Clusters(graph)
    absorb_sources(graph, clusters)
    if granularity != Granularity.OPERATOR:
        fuse(graph, clusters, costs, classes)
    return clusters.in_order()


def _ordered(graph: OperatorGraph, groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [groups[place] for place in thrifty_order(len(groups), _tensors(graph, groups))]


def _in_runs(
    graph: OperatorGraph, groups: list[tuple[int, ...]], classes: Sequence[Hashable]
) -> list[tuple[int, ...]]:
    kinds = [classes[group[-1]] for group in groups]  # the first may be a constant, which has no class
    return [groups[place] for place in order_in_runs(kinds, _tensors(graph, groups))]


def _without_obstacles(
    graph: OperatorGraph, groups: list[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], tuple[str, ...]]:
    """Join the groups between which a tensor would have to wait that cannot; say where and why."""
    blocked = [tensor for tensor in _tensors(graph, groups) if tensor.name in graph.obstacles]
    closed = {cut for tensor in blocked for cut in range(tensor.source + 1, max(tensor.targets) + 1)}
    cuts = [cut for cut in range(1, len(groups)) if cut not in closed]
    reasons = []
    for start, stop in pairwise([0, *cuts, len(groups)]):
        inside = [tensor for tensor in blocked if start <= tensor.source < stop]
        if inside:
            makers = {graph.operators[index].kind for index in groups[inside[0].source]}
            reasons.append(
                f"tensor {inside[0].name!r}, made by {' or '.join(sorted(makers))}, cannot wait between two "
                f"chunks: {graph.obstacles[inside[0].name]}; so the {sum(map(len, groups[start:stop]))} "
                f"operators around it are one layer"
            )
    return _joined(groups, cuts), tuple(reasons)


def _joined(groups: Sequence[tuple[int, ...]], cuts: Sequence[int]) -> list[tuple[int, ...]]:
    return [
        tuple(sorted(index for part in groups[start:stop] for index in part))
        for start, stop in pairwise([0, *cuts, len(groups)])
    ]


def _block_cuts(count: int, tensors: Sequence[Tensor]) -> list[int]:
    """Return the cuts with the fewest tensors alive, and those with locally the fewest bytes."""
    alive = _alive(count, tensors, [1] * len(tensors))
    held = _alive(count, tensors, [tensor.bytes for tensor in tensors])
    fewest = min(alive[1:count], default=0)
    cuts = [
        cut for cut in range(1, count) if alive[cut] == fewest or held[cut - 1] > held[cut] <= held[cut + 1]
    ]
    while len(cuts) >= MAX_LAYERS:
        cuts = cuts[1::2]
    return cuts


def _alive(count: int, tensors: Sequence[Tensor], amounts: Sequence[int]) -> list[int]:
    change = [0] * (count + 2)
    for tensor, amount in zip(tensors, amounts, strict=True):
        change[tensor.source + 1] += amount
        change[max(tensor.targets) + 1] -= amount
    return list(accumulate(change))


def _tensors(graph: OperatorGraph, groups: Sequence[tuple[int, ...]]) -> tuple[Tensor, ...]:
    """Return the tensors that leave the group that makes them, in the order of their sources."""
    home = {index: place for place, group in enumerate(groups) for index in group}
    users = graph.consumers()
    outputs = {spec.name for spec in graph.outputs}
    named = [(-1, spec.name) for spec in graph.inputs]
    named += [
        (home[index], name)
        for index in sorted(home, key=home.__getitem__)
        for name in graph.operators[index].outputs
    ]
    found = []
    for source, name in named:
        targets = {home[index] for index in users.get(name, ())} - {source}
        targets |= {len(groups)} if name in outputs else set()
        if targets:
            size = graph.specs[name].bytes if name in graph.specs else _UNKNOWN_BYTES
            found.append(Tensor(name=name, bytes=size, source=source, targets=tuple(sorted(targets))))
    return tuple(found)


def _shared(graph: OperatorGraph, groups: Sequence[tuple[int, ...]]) -> tuple[SharedWeights, ...]:
    """Return the weights that several layers read: those of the same layers as one."""
    readers: dict[str, dict[int, None]] = {}
    for layer, members in enumerate(groups):
        for name in (name for index in members for name in graph.operators[index].weights):
            readers.setdefault(name, {})[layer] = None
    found: dict[tuple[int, ...], int] = {}
    for name, layers in readers.items():
        if len(layers) > 1 and (size := weight_bytes(graph.weights[name])):
            found[tuple(layers)] = found.get(tuple(layers), 0) + size
    return tuple(SharedWeights(bytes=size, layers=layers) for layers, size in sorted(found.items()))


def _layers(
    graph: OperatorGraph, costs: Sequence[OperatorCost], groups: Sequence[tuple[int, ...]]
) -> tuple[Layer, ...]:
    names = distinct(_name(graph, costs, members) for members in groups)
    layers = []
    for name, members in zip(names, groups, strict=True):
        flops = [costs[index].flops for index in members]
        layers.append(
            Layer(
                name=name,
                weight_bytes=graph.weight_bytes_of(graph.operators[index] for index in members),
                flops=None if None in flops else sum(count for count in flops if count is not None),
                op_types=tuple(dict.fromkeys(graph.operators[index].kind for index in members)),
            )
        )
    return tuple(layers)


def _name(graph: OperatorGraph, costs: Sequence[OperatorCost], members: Sequence[int]) -> str:
    """Return the name of the operator that does most of the work."""
    main = max(members, key=lambda index: (costs[index].flops or 0, costs[index].moved_bytes, -index))
    operator = graph.operators[main]
    return safe_name(operator.name or f"{operator.op_type}_{main}")
