"""Random networks: chains, branches, skips, several inputs and outputs, shared and captured tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto

from .models import constant, model, node, value, weights

SIZE = 4


@dataclass
class _Builder:
    draw: Any
    tensors: dict[str, int] = field(default_factory=dict)
    """Channels of each tensor so far."""
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)

    def pick(self, channels: int | None = None) -> str:
        names = [name for name, count in self.tensors.items() if channels in (None, count)]
        recent: bool = self.draw(st.booleans())
        name: str = self.draw(st.sampled_from(names[-6:] if recent else names))
        return name

    def add(self, op_type: str, inputs: str, *channels: int, **attributes: Any) -> None:
        names = [f"t{len(self.tensors) + index}" for index in range(len(channels))]
        self.nodes.append(node(op_type, inputs, " ".join(names), **attributes))
        self.tensors |= dict(zip(names, channels, strict=True))

    def unary(self) -> None:
        x = self.pick()
        self.add(self.draw(st.sampled_from(["Relu", "Sigmoid", "Tanh", "Identity"])), x, self.tensors[x])

    def binary(self) -> None:
        x = self.pick()
        y = self.pick(self.tensors[x])
        self.add(self.draw(st.sampled_from(["Add", "Mul", "Max", "Sub"])), f"{x} {y}", self.tensors[x])

    def convolution(self) -> None:
        x = self.pick()
        channels, made = self.tensors[x], self.draw(st.sampled_from([2, 4]))
        known = [w.name for w in self.weights if list(w.dims) == [made, channels, 1, 1]]
        if known and self.draw(st.booleans()):
            weight = known[0]
        else:
            weight = f"w{len(self.weights)}"
            self.weights += weights(len(self.weights), **{weight: (made, channels, 1, 1)})
        self.add("Conv", f"{x} {weight}", made)

    def concatenation(self) -> None:
        x, y = self.pick(), self.pick()
        if self.tensors[x] + self.tensors[y] <= 8:
            self.add("Concat", f"{x} {y}", self.tensors[x] + self.tensors[y], axis=1)

    def split(self) -> None:
        x = self.pick()
        half, odd = divmod(self.tensors[x], 2)
        if not odd:
            self.add("Split", x, half, half, axis=1)

    def squeeze_and_excite(self) -> None:
        x = self.pick()
        self.nodes.append(node("GlobalAveragePool", x, f"g{len(self.tensors)}"))
        self.add("Mul", f"{x} g{len(self.tensors)}", self.tensors[x])

    def branch(self) -> None:
        """Add an If whose branches use tensors from outside."""
        x = self.pick()
        y, index = self.pick(self.tensors[x]), len(self.tensors)
        bodies = [
            model([node(op, f"{x} {y}", f"{op}{index}")], [], [value(f"{op}{index}", [1, None, SIZE, SIZE])])
            for op in ("Add", "Sub")
        ]
        self.nodes += [
            node("ReduceMax", x, f"m{index}", keepdims=0),
            node("Cast", f"m{index}", f"c{index}", to=TensorProto.BOOL),
        ]
        self.add("If", f"c{index}", self.tensors[x], then_branch=bodies[0].graph, else_branch=bodies[1].graph)


@st.composite
def models(draw: st.DrawFn) -> ModelProto:
    """Return strategies for random models."""
    builder = _Builder(draw)
    inputs = {f"in{index}": draw(st.sampled_from([2, 4])) for index in range(draw(st.integers(1, 3)))}
    builder.tensors |= inputs
    kinds = ("unary", "binary", "convolution", "concatenation", "split", "squeeze_and_excite", "branch")
    builder.convolution()
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=14)):
        getattr(builder, kind)()
    made = [name for name in builder.tensors if name not in inputs]
    extra = draw(st.sets(st.sampled_from(list(builder.tensors)), max_size=2)) - {made[-1]}
    return model(
        builder.nodes,
        [value(name, [1, count, SIZE, SIZE]) for name, count in inputs.items()],
        [value(name, [1, builder.tensors[name], SIZE, SIZE]) for name in [*sorted(extra), made[-1]]],
        [*builder.weights, constant("unused", [1, 2])],
    )
