from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.graph.choices import Granularity, Simplification
from gapless.formulations.errors import InvalidModelError

from .models import constant, load, model, node, run_in_chunks, value, weights


def boxes(*nodes: Any, outputs: str = "priors boxes", **parts: Any) -> ModelProto:
    """A convolution, and anchors that depend on nothing but the size of its map."""
    arrays = {"anchors": np.arange(64.0).reshape(64, 1), "scale": np.array([0.5, 1, 2, 4]), **parts}
    return model(
        [*nodes, node("Conv", "x w", "c"), node("Relu", "c", "boxes")],
        [value("x", [1, 3, 8, 8])],
        [value(name, None) for name in outputs.split()],
        [*weights(w=(4, 3, 1, 1)), *(constant(name, array, "float32") for name, array in arrays.items())],
    )


def used() -> ModelProto:
    """Anchors are an output, and added to what the network finds, too; so are those behind an If."""
    proto = boxes(
        node("Mul", "anchors scale", "priors"),
        node("Exp", "priors", "sizes"),
        outputs="priors sizes decoded inside",
    )
    branch = [
        helper.make_graph([node("Neg", "priors", f"o{i}")], "b", [], [value(f"o{i}", [64, 4])]) for i in "ab"
    ]
    proto.graph.node.extend(
        [
            node("Reshape", "boxes shape", "flat"),
            node("Add", "flat priors", "decoded"),
            node("ReduceSum", "x", "s", keepdims=0),
            node("Cast", "s", "q", to=9),
            node("If", "q", "inner", then_branch=branch[0], else_branch=branch[1]),
            node("Add", "inner flat", "inside"),
        ]
    )
    proto.graph.initializer.append(constant("shape", [64, 4]))
    return proto


CASES = {
    "computed": boxes(node("Mul", "anchors scale", "priors")),
    "a weight": boxes(node("Identity", "anchors", "priors")),
    "a weight as it is": boxes(outputs="anchors boxes"),
    "a shape": boxes(node("Shape", "x", "s"), node("Cast", "s", "priors", to=1)),
    "a Constant": boxes(node("Constant", "", "priors", value=constant("v", [1, 2]))),
    "used inside": used(),
}


@pytest.mark.parametrize("how", Simplification)
@pytest.mark.parametrize("granularity", [Granularity.OPERATOR, Granularity.LAYER, Granularity.PIECE])
@pytest.mark.parametrize("name", CASES)
def test_constant_outputs_are_answered(
    name: str, granularity: Granularity, how: Simplification, tmp_path: Path
) -> None:
    opened = load(CASES[name], tmp_path, granularity=granularity, simplification=how)
    assert [each.name for each in opened.outputs] == [each.name for each in CASES[name].graph.output]
    inputs = opened.sample_inputs(3)
    right = reference_outputs(CASES[name].SerializeToString(), inputs)
    found = run_in_chunks(opened, opened.network.legal_cuts, inputs)
    for key, array in right.items():
        np.testing.assert_allclose(found[key], array, rtol=1e-5, atol=1e-6)


def test_no_tensor_crosses_a_cut_for_what_is_constant(tmp_path: Path) -> None:
    opened = load(CASES["used inside"], tmp_path, granularity=Granularity.OPERATOR)
    last = len(opened.network.layers)
    for tensor in opened.network.tensors:
        if tensor.name in {"priors", "sizes"}:
            assert tensor.targets == (last,)
            assert tensor.source == last - 1


@pytest.mark.parametrize(
    "proto",
    [
        boxes(node("Identity", "anchors", "priors"), outputs="priors"),
        boxes(node("RandomNormal", "", "priors", shape=[2])),
    ],
)
def test_a_network_of_constants_and_random_outputs_is_refused(proto: ModelProto, tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match="'priors' does not depend on any input"):
        load(proto, tmp_path)
