"""Layer graphs and operator graphs like those that device placement is studied on, drawn from seeds.

Shapes as in Tarnawski et al. (NeurIPS 2020, section 6): layer graphs of a residual network, of Inception, of
a translation network and of a transformer, and operator graphs of a transformer and a residual network, for
inference and for training. Times, sizes and costs are drawn; nothing is copied.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gapless.formulations.costs import Provenance
from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.partitions import GraphNode, graph_problem
from gapless.formulations.problem import Problem


@dataclass(kw_only=True)
class Sketch:
    """A graph that is being drawn: (time on an accelerator, cost of its tensor, bytes), and edges."""

    rng: random.Random
    nodes: list[tuple[int, int, int]] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def node(self, sources: Sequence[int], time_us: float, sends_us: float, size: float = 0) -> int:
        """Add a node about so large; return its number."""
        drawn = [max(0, round(value * self.rng.uniform(0.6, 1.4))) for value in (time_us, sends_us, size)]
        self.nodes.append((drawn[0], drawn[1], drawn[2]))
        self.edges += [(source, len(self.nodes) - 1) for source in sources]
        return len(self.nodes) - 1

    def line(self, source: int, count: int, time_us: float, sends_us: float, size: float = 0) -> int:
        """Add nodes one after the other; return the last one."""
        for _ in range(count):
            source = self.node([source], time_us, sends_us, size)
        return source


def residual(sketch: Sketch, count: int) -> None:
    """Draw bottlenecks of three layers with a way around them; maps shrink on the way."""
    last = sketch.node([], 900, 800, 1e5)
    while len(sketch.nodes) < count:
        depth = len(sketch.nodes) / count
        sends_us, size = 700 * (1 - 0.8 * depth), 4e5 * (1 + 8 * depth)
        inner = sketch.line(last, 3, 700, sends_us, size)
        around = sketch.node([last], 400, sends_us, size) if sketch.rng.random() < 0.25 else last
        last = sketch.node([inner, around], 120, sends_us)


def inception(sketch: Sketch, count: int) -> None:
    """Draw blocks of four branches of one to five layers."""
    last = sketch.line(sketch.node([], 600, 900, 1e5), 4, 800, 800, 2e5)
    while len(sketch.nodes) < count:
        sends_us = 500 * (1 - 0.6 * len(sketch.nodes) / count)
        ends = [
            sketch.line(last, length, 450, sends_us, 5e5) for length in (1, 2, 3, sketch.rng.randint(2, 5))
        ]
        last = sketch.node(ends, 90, 1.5 * sends_us)


def translation(sketch: Sketch, count: int) -> None:
    """Draw an encoder, and a decoder each of whose layers looks at what the encoder made."""
    last = sketch.node([], 300, 200, 8e6)
    for _ in range(count // 2):
        following = sketch.node([last], 2500, 260, 6e6)
        last = sketch.node([following, last], 80, 260)
    memory, state = last, sketch.node([], 300, 200, 8e6)
    while len(sketch.nodes) < count * 2:
        attention = sketch.node([state, memory], 700, 200, 1e6)
        state = sketch.node([attention, state], 2600, 260, 6e6)
    sketch.node([state], 4000, 300, 2e7)


def transformer(sketch: Sketch, count: int) -> None:
    """Draw layers of a transformer as one node each, with the mask that all of them read."""
    mask, last = sketch.node([], 20, 20), sketch.node([], 700, 400, 3e7)
    for _ in range(count - 4):
        last = sketch.node([last, mask], 3000, 420, 1e7)
    last = sketch.node([last], 300, 60, 1e6)
    sketch.node([last], 900, 20, 3e7)


def transformer_operators(sketch: Sketch, layers: int) -> None:
    """Draw the operators of a transformer: projections, attention, normalisation; weights are nodes."""
    mask = sketch.line(sketch.node([], 2, 10), 3, 3, 10)
    last = sketch.node([sketch.node([], 0, 40, 3e7)], 60, 300)
    for _ in range(layers):
        last = _attention_layer(sketch, last, mask)
    sketch.line(last, 6, 60, 100, 1e6)


def _attention_layer(sketch: Sketch, last: int, mask: int) -> int:
    def projected(source: int, time_us: float) -> int:
        weight, bias = sketch.node([], 0, 60, 2.4e6), sketch.node([], 0, 1, 4e3)
        return sketch.node([sketch.node([source, weight], time_us, 300), bias], 40, 300)

    query, key, value = (sketch.line(projected(last, 260), 2, 25, 300) for _ in range(3))
    scores = sketch.node([sketch.node([query, key], 150, 500), mask], 60, 500)
    mixed = sketch.node([sketch.line(scores, 2, 90, 500), value], 150, 300)
    attended = sketch.node([projected(sketch.line(mixed, 2, 25, 300), 260), last], 45, 300)
    normal = sketch.line(attended, 3, 55, 300)
    hidden = sketch.line(projected(normal, 900), 4, 70, 900)
    return sketch.line(sketch.node([projected(hidden, 900), normal], 45, 300), 3, 55, 300)


def residual_operators(sketch: Sketch, blocks: int) -> None:
    """Draw the operators of a residual network: convolution, normalisation with its constants, activation."""
    last = sketch.node([], 500, 700)

    def convolved(source: int, depth: float) -> int:
        weight = sketch.node([], 0, 30, 4e5 * (1 + 8 * depth))
        constants = [sketch.node([], 0, 1, 2e3) for _ in range(4)]
        return sketch.node([sketch.node([source, weight], 600, 500 * (1.2 - depth)), *constants], 90, 500)

    for block in range(blocks):
        depth = block / blocks
        inner = last
        for _ in range(3):
            inner = sketch.node([convolved(inner, depth)], 40, 500 * (1.2 - depth))
        around = convolved(last, depth) if block % 4 == 0 else last
        last = sketch.node([sketch.node([inner, around], 50, 500)], 40, 500 * (1.2 - depth))


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A graph to draw, and what it is for.

    Attributes
    ----------
    name
        What it is called.
    draw, size
        The shape, and how large.
    units, kinds, hosts
        Accelerators, of how many kinds, and hosts that run everything slowly and send at no cost.
    training
        Whether there is a backward pass.
    operators
        Whether the host is 23 times slower, as for operators; layers run 5 to 15 times slower there.
    """

    name: str
    draw: Callable[[Sketch, int], None]
    size: int
    units: int
    kinds: int = 1
    hosts: int = 1
    training: bool = False
    operators: bool = False

    def problem(self, seed: int = 0) -> Problem:
        """Return its problem."""
        sketch = Sketch(rng=random.Random(f"{self.name} {seed}"))
        self.draw(sketch, self.size)
        if self.training:
            return self._problem(sketch, [*self._nodes(sketch), *self._backward(sketch)], [*_twice(sketch)])
        return self._problem(sketch, [*self._nodes(sketch)], [(f"n{a}", f"n{b}") for a, b in sketch.edges])

    def _nodes(self, sketch: Sketch) -> Iterator[GraphNode]:
        for number, (time_us, sends_us, size) in enumerate(sketch.nodes):
            slow = 23.0 if self.operators else sketch.rng.uniform(5, 15)
            other = sketch.rng.uniform(1.2, 2.5)
            first = self.units - (self.units // 2 if self.kinds == 2 else 0)
            times = [time_us] * first + [round(other * time_us)] * (self.units - first)
            times += [round(slow * time_us)] * self.hosts
            yield GraphNode(
                name=f"n{number}",
                times_us=tuple(times),
                sends_us=(sends_us,) * self.units + (0,) * self.hosts,
                bytes=size,
                colour=number if self.training else None,
            )

    def _backward(self, sketch: Sketch) -> Iterator[GraphNode]:
        for node in self._nodes(replace(sketch, rng=random.Random(self.name))):
            times = tuple(None if time is None else round(1.9 * time) for time in node.times_us)
            yield replace(node, name=f"{node.name}b", times_us=times, backward=True, bytes=0)

    def _problem(self, sketch: Sketch, nodes: list[GraphNode], edges: list[tuple[str, str]]) -> Problem:
        share = 1.1 if self.operators else 1.8 / self.units  # layers: memory can be short
        room = round(share * sum(size for _, _, size in sketch.nodes))
        units = [ProcessingUnit(name=f"acc{number}", memory_bytes=room) for number in range(self.units)]
        units += [ProcessingUnit(name=f"host{number}") for number in range(self.hosts)]
        source = Provenance(source=f"benchmarks.partition_graphs: {self.name}", estimated=True)
        return graph_problem(nodes, edges, units, network=self.name, platform="drawn", provenance=source)


def _twice(sketch: Sketch) -> Iterator[tuple[str, str]]:
    """Yield the edges forward and backward, and what the backward pass keeps of the forward one."""
    ends = set(range(len(sketch.nodes))) - {source for source, _ in sketch.edges}
    for source, target in sketch.edges:
        yield f"n{source}", f"n{target}"
        yield f"n{target}b", f"n{source}b"
    for end in sorted(ends):
        yield f"n{end}", f"n{end}b"


PUBLIC_LIKE = (
    Instance(name="transformer-layers", draw=transformer, size=32, units=6),
    Instance(name="transformer-layers-training", draw=transformer, size=32, units=6, training=True),
    Instance(name="translation-layers", draw=translation, size=48, units=6),
    Instance(name="translation-layers-training", draw=translation, size=48, units=6, training=True),
    Instance(name="residual-layers", draw=residual, size=177, units=6),
    Instance(name="residual-layers-training", draw=residual, size=177, units=6, training=True),
    Instance(name="inception-layers", draw=inception, size=326, units=6),
    Instance(name="inception-layers-training", draw=inception, size=326, units=6, training=True),
    Instance(name="transformer-3-operators", draw=transformer_operators, size=3, units=3, operators=True),
    Instance(
        name="transformer-3-operators-training",
        draw=transformer_operators,
        size=3,
        units=3,
        operators=True,
        training=True,
    ),
    Instance(name="transformer-6-operators", draw=transformer_operators, size=6, units=3, operators=True),
    Instance(name="transformer-12-operators", draw=transformer_operators, size=12, units=6, operators=True),
    Instance(name="residual-operators", draw=residual_operators, size=16, units=6, operators=True),
    Instance(
        name="residual-operators-training",
        draw=residual_operators,
        size=16,
        units=6,
        operators=True,
        training=True,
    ),
)
"""Like the public inputs: 3 or 6 accelerators and a host."""

HARDER = (
    Instance(name="residual-4", draw=residual, size=177, units=4),
    Instance(name="residual-8", draw=residual, size=177, units=8),
    Instance(name="inception-12", draw=inception, size=326, units=12),
    Instance(name="inception-16", draw=inception, size=326, units=16),
    Instance(name="residual-two-kinds-4", draw=residual, size=177, units=4, kinds=2),
    Instance(name="inception-two-kinds-6", draw=inception, size=326, units=6, kinds=2),
    Instance(name="translation-two-kinds-8", draw=translation, size=48, units=8, kinds=2),
)
"""Up to 16 accelerators, and two kinds of them."""

LARGE = (
    Instance(name="transformer-60-operators", draw=transformer_operators, size=60, units=6, operators=True),
    Instance(name="inception-10000", draw=inception, size=10_000, units=8, operators=True),
    Instance(name="residual-10000", draw=residual, size=10_000, units=16, operators=True),
    Instance(name="transformer-200-operators", draw=transformer_operators, size=224, units=8, operators=True),
)
"""2,000 to 10,000 nodes."""
