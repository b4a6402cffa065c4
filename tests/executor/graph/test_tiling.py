"""Tiles compute what the whole model computes: every kind of operator, every border, real networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto

from benchmarks.tiles import Combination, Trial, ocr, small
from gapless.executor.callables import load_callable
from gapless.executor.graph.choices import Granularity
from gapless.executor.graph.onnx_model import load_onnx
from gapless.executor.graph.tiling import Tiler
from gapless.executor.model import TensorPart, TensorSpec, tolerance
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.spatial import Axis, SpatialNetwork

from .models import constant, load, model, node, residual, value, weights

TOLERANCE = 1e-5


def proto(nodes: Sequence[NodeProto], inputs: Mapping[str, tuple[int, ...]], **more: Any) -> ModelProto:
    """Return a model with an output "y" of a shape that is inferred."""
    shapes, initializers = more.pop("weights", {}), more.pop("constants", [])
    return model(
        nodes,
        [value(name, shape) for name, shape in inputs.items()],
        [value(name, None) for name in more.pop("outputs", ["y"])],
        [*weights(**shapes), *initializers],
        **more,
    )


X = {"x": (1, 4, 13, 11)}

CASES: dict[str, ModelProto] = {
    "strides": proto(
        [
            node("Conv", "x w", "h", strides=[2, 3], pads=[1, 2, 1, 2]),
            node("Conv", "h v", "y", strides=[2, 1]),
        ],
        {"x": (1, 4, 21, 26)},
        weights={"w": (4, 4, 3, 5), "v": (4, 4, 3, 3)},
    ),
    "a stride larger than the kernel": proto(
        [node("Conv", "x w", "y", strides=[3, 2])], X, weights={"w": (3, 4, 2, 1)}
    ),
    "asymmetric pads": proto(
        [node("Conv", "x w", "h", pads=[0, 2, 3, 1]), node("Conv", "h w", "y", pads=[2, 0, 1, 2])],
        X,
        weights={"w": (4, 4, 4, 4)},
    ),
    "dilations": proto(
        [node("Conv", "x w", "y", dilations=[2, 3], pads=[2, 3, 2, 3])], X, weights={"w": (2, 4, 3, 3)}
    ),
    "groups": proto([node("Conv", "x w", "y", group=2, pads=[1] * 4)], X, weights={"w": (6, 2, 3, 3)}),
    "depthwise": proto(
        [node("Conv", "x w b", "h", group=4, pads=[2] * 4, strides=[2, 2]), node("Conv", "h v", "y")],
        X,
        weights={"w": (4, 1, 5, 5), "b": (4,), "v": (8, 4, 1, 1)},
    ),
    "same upper": proto(
        [node("Conv", "x w", "y", auto_pad="SAME_UPPER", strides=[2, 2])], X, weights={"w": (2, 4, 4, 3)}
    ),
    "same lower": proto(
        [node("Conv", "x w", "y", auto_pad="SAME_LOWER", strides=[2, 2])], X, weights={"w": (2, 4, 4, 5)}
    ),
    "valid": proto([node("Conv", "x w", "y", auto_pad="VALID")], X, weights={"w": (2, 4, 4, 5)}),
    "max pool": proto([node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])], X),
    "max pool that rounds up": proto(
        [node("MaxPool", "x", "y", kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)], {"x": (1, 2, 12, 11)}
    ),
    "average pool that rounds up": proto(
        [node("AveragePool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 1, 0], ceil_mode=1)],
        {"x": (1, 2, 13, 11)},
    ),
    "average pool that counts its padding": proto(
        [
            node("AveragePool", "x", "h", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
            node(
                "AveragePool",
                "h",
                "y",
                kernel_shape=[3, 3],
                strides=[2, 2],
                pads=[1] * 4,
                count_include_pad=1,
                ceil_mode=1,
            ),
        ],
        {"x": (1, 2, 12, 14)},
    ),
    "two branches": proto(
        [
            node("Conv", "x w", "a", pads=[1] * 4),
            node("Relu", "a", "ar"),
            node("Conv", "x v", "b", pads=[2] * 4),
            node("Concat", "ar b x", "c", axis=1),
            node("BatchNormalization", "c s o m d", "n"),
            node("Conv", "n u", "e", pads=[1] * 4),
            node("Add", "e x", "y"),
        ],
        X,
        weights={
            "w": (4, 4, 3, 3),
            "v": (4, 4, 5, 5),
            "u": (4, 12, 3, 3),
            "s": (12,),
            "o": (12,),
            "m": (12,),
        },
        constants=[constant("d", np.linspace(0.5, 2, 12), "float32")],
    ),
    "a result that is also read inside": proto(
        [
            node("Conv", "x w", "a", pads=[1] * 4),
            node("Conv", "a w", "b", pads=[1] * 4),
            node("MaxPool", "b", "y", kernel_shape=[2, 2], strides=[2, 2]),
        ],
        X,
        weights={"w": (4, 4, 3, 3)},
        outputs=["a", "b", "y"],
    ),
    "broadcast": proto(
        [
            node("Mul", "x scale", "a"),
            node("PRelu", "a slope", "b"),
            node("Clip", "b low high", "c"),
            node("Add", "c row", "y"),
        ],
        {**X, "scale": (1, 4, 1, 1), "row": (1, 1, 1, 11)},
        weights={"slope": (4, 1, 1)},
        constants=[constant("low", -1.0, "float32"), constant("high", 1.0, "float32")],
    ),
    "transposed": proto(
        [node("ConvTranspose", "x w", "y", strides=[2, 2], pads=[1, 0, 1, 1])], X, weights={"w": (4, 3, 4, 3)}
    ),
    "transposed with more at the end": proto(
        [node("ConvTranspose", "x w", "y", strides=[2, 3], pads=[1, 1, 1, 1], output_padding=[1, 2])],
        X,
        weights={"w": (4, 3, 3, 3)},
    ),
    "nearest by scales": proto(
        [
            node("Conv", "x w", "a", pads=[1] * 4),
            node(
                "Resize",
                "a _ scales",
                "b",
                mode="nearest",
                coordinate_transformation_mode="asymmetric",
                nearest_mode="floor",
            ),
            node("Conv", "b w", "y", pads=[1] * 4),
        ],
        X,
        weights={"w": (4, 4, 3, 3)},
        constants=[constant("scales", [1, 1, 2, 3], "float32")],
    ),
    "nearest by sizes": proto(
        [
            node("Resize", "x _ _ sizes", "b", mode="nearest"),
            node("Conv", "b w", "y", pads=[1] * 4),
        ],
        X,
        weights={"w": (4, 4, 3, 3)},
        constants=[constant("sizes", [1, 4, 26, 33])],
    ),
    "linear": proto(
        [node("Resize", "x _ scales", "b", mode="linear"), node("Relu", "b", "y")],
        X,
        constants=[constant("scales", [1, 1, 2, 4], "float32")],
    ),
    "padding as an operator": proto(
        [node("Pad", "x pads", "a"), node("Conv", "a w", "y", strides=[2, 1])],
        X,
        weights={"w": (4, 4, 3, 3)},
        constants=[constant("pads", [0, 0, 5, 1, 0, 0, 2, 3])],
    ),
    "padding wider than the kernel": proto(
        [node("Conv", "x w", "y", pads=[5, 4, 6, 3], strides=[1, 2])], X, weights={"w": (2, 4, 3, 2)}
    ),
    "blocks": proto(
        [
            node("SpaceToDepth", "x", "a", blocksize=2),
            node("Relu", "a", "b"),
            node("DepthToSpace", "b", "c", blocksize=2),
            node("Conv", "c w", "y", pads=[1] * 4),
        ],
        {"x": (1, 4, 12, 10)},
        weights={"w": (2, 4, 3, 3)},
    ),
    "channels": proto(
        [
            node("Split", "x sizes", "a b", axis=1),
            node("Conv", "a w", "c", pads=[1] * 4),
            node("Softmax", "c", "d", axis=1),
            node("Concat", "d b", "y", axis=1),
        ],
        X,
        weights={"w": (2, 1, 3, 3)},
        constants=[constant("sizes", [1, 3])],
    ),
    "an old operator set": proto(
        [
            node("Pad", "x", "p", pads=[0, 0, 1, 1, 0, 0, 1, 1]),
            node("Conv", "p w", "a"),
            node("Conv", "a w", "b", pads=[1] * 4),
            node("Add", "a b", "y"),
        ],
        X,
        weights={"w": (4, 4, 3, 3)},
        opsets={"": 9},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_every_tile_of_every_operator_is_right(case: str, tmp_path: Path) -> None:
    trial = Trial(load(CASES[case], tmp_path))
    network = trial.model.network
    for axis in Axis:
        total = Tiler(trial.model).rows(0, len(network.layers), axis)
        assert total > 3
        for size in (1, 2, total // 2):
            bounds = [*range(0, total, size), total]
            chosen = Combination(start=0, stop=len(network.layers), axis=axis, parts=tuple(pairwise(bounds)))
            for piece in trial.pieces(chosen):
                onnx.checker.check_model(piece.content.read(), full_check=True)
            assert max(error for _, error in trial.errors(chosen)) <= TOLERANCE


def test_a_tile_takes_what_it_needs_and_no_more(tmp_path: Path) -> None:
    loaded = load(residual(1, channels=4, size=12), tmp_path)
    stop = len(loaded.network.layers)
    piece = Tiler(loaded).piece(0, stop, Axis.ROWS, (4, 6))
    part = TensorPart(whole=TensorSpec(name="x", shape=(1, 3, 12, 12)), axis=2, start=1, stop=9)
    assert piece.inputs == (
        TensorSpec(name="x", shape=(1, 3, 8, 12)),
    )  # three convolutions: 3 rows each side
    assert piece.outputs == (TensorSpec(name="b1", shape=(1, 4, 2, 12)),)
    assert piece.parts[0] == part
    assert piece.content.read() == Tiler(loaded).piece(0, stop, Axis.ROWS, (4, 6)).content.read()
    assert piece.digest == Tiler(loaded).piece(0, stop, Axis.ROWS, (5, 7)).digest  # no border: prepared once
    assert piece.digest != Tiler(loaded).piece(0, stop, Axis.ROWS, (2, 4)).digest


def test_a_part_of_a_tensor_knows_where_it_lies() -> None:
    array = np.arange(2 * 3 * 5 * 7, dtype=np.float32).reshape(2, 3, 5, 7)
    for axis in range(4):
        part = TensorPart(whole=TensorSpec(name="t", shape=array.shape), axis=axis, start=1, stop=2)
        offset, strides = part.place
        seen = np.ndarray(part.spec.shape, np.float32, array.tobytes(), offset, strides)
        assert (seen == part.of(array)).all()
    scalar = TensorPart(whole=TensorSpec(name="s", shape=()), axis=0, start=0, stop=0)
    assert (scalar.place, scalar.spec) == ((0, ()), scalar.whole)
    assert scalar.of(np.float32(3) * np.ones(())) == 3


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("GlobalAveragePool", "x", "y", name="the mean")], r"'the mean' \(GlobalAveragePool\)"),
        ([node("Softmax", "x", "y", axis=2, name="over rows")], r"'over rows' \(Softmax\)"),
        ([node("Flatten", "x", "y", name="flat")], r"'flat' \(Flatten\)"),
        ([node("Transpose", "x", "y", perm=[0, 1, 3, 2], name="turn")], r"'turn' \(Transpose\)"),
    ],
)
def test_what_does_not_split_is_refused_by_name(nodes: list[NodeProto], words: str, tmp_path: Path) -> None:
    loaded = load(proto(nodes, X, weights={"w": (2, 4, 3, 3)}), tmp_path)
    with pytest.raises(InvalidPlanError, match=words):
        Tiler(loaded).piece(0, len(loaded.network.layers), Axis.ROWS, (0, 1))


def test_pieces_can_be_divided_whatever_lies_between_their_operators(tmp_path: Path) -> None:
    # The convolutions a and b are side by side: b (5 x 5) is the first piece, a with its activation the next.
    def labels(network: SpatialNetwork) -> tuple[int, ...]:
        found: list[int] = []
        for one in network.nodes:
            reads_input = one.op_type == "Conv" and found[one.sources[0]] == -1
            is_wide = any(rows is not None and rows.extent == 5 for rows, _ in one.windows)
            place = {"Input": -1, "Relu": 1, "Add": 3}.get(one.op_type, 2)
            found.append((0 if is_wide else 1) if reads_input else place)
        return tuple(found)

    path = tmp_path / "branches.onnx"
    onnx.save(CASES["two branches"], str(path))
    loaded = load_onnx(path, granularity=Granularity.PIECE, pieces=labels)
    trial, count = Trial(loaded), len(loaded.network.layers)
    assert count == 4
    for start, stop in [(0, count), *((index, index + 1) for index in range(count))]:
        chosen = Combination(start=start, stop=stop, axis=Axis.ROWS, parts=((0, 4), (4, 5), (5, 13)))
        assert max(error for _, error in trial.errors(chosen)) <= TOLERANCE


def test_rows_that_are_not_there_are_refused(tmp_path: Path) -> None:
    tiler = Tiler(load(CASES["groups"], tmp_path))
    for rows in ((0, 0), (5, 14), (-1, 3)):
        with pytest.raises(InvalidPlanError, match=r"have the rows 0 to 12; \[.*\) is no tile"):
            tiler.piece(0, 1, Axis.ROWS, rows)
    with pytest.raises(InvalidPlanError, match="is no chunk"):
        tiler.rows(0, 9, Axis.ROWS)


def test_functions_are_not_divided(tmp_path: Path) -> None:
    from tests.executor.pipelines import write

    with pytest.raises(
        InvalidPlanError, match="'two' cannot be computed in tiles: only a model from an ONNX"
    ):
        Tiler(load_callable(write(tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "side", "count"), [("squeezenet", 96, 24), ("googlenet", 64, 24), ("mobilenetv3-large", 64, 24)]
)
def test_random_tiles_of_built_in_networks_are_right(
    name: str, side: int, count: int, tmp_path: Path
) -> None:
    assert_right(Trial(small(name, side, tmp_path)), count)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["det", "cls", "rec"])
def test_random_tiles_of_text_models_are_right(task: str) -> None:
    assert_right(Trial(ocr(task)), 20)


def assert_right(trial: Trial, count: int) -> None:
    """Require that some random combinations, always the same ones, are right in all their tiles."""
    for chosen in islice(trial.combinations(Random(1)), count):
        for tile, error in trial.errors(chosen):
            # By channel, as plans are compared: what two convolution kernels make of a faint channel differs
            # by some 1e-4 of it on some processors.
            assert error <= tolerance("high"), tile
