"""Up to which numbers engines that compute whole numbers in 32 bits, or in floats, are right."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto

from gapless.executor.engine import Artifact, artifact_of, parse_artifact
from gapless.executor.engines.registry import get_engine
from gapless.executor.model import Piece
from gapless.formulations.errors import UnfitNumbersError
from gapless.formulations.hardware import ProcessingUnit

from .models import constant, load, model, node, value

FLOATS = 2**24
"""Up to there float32 holds all whole numbers."""


def whole(nodes: Sequence[NodeProto], folder: Path, kind: int = TensorProto.INT64, **constants: Any) -> Piece:
    """Return one piece that makes "y" of "x" (2, 8)."""
    parts = [constant(name, numbers) for name, numbers in constants.items()]
    opened = load(model(nodes, [value("x", [2, 8], kind)], [value("y", None)], parts), folder)
    (piece,) = opened.pieces(0, len(opened.network.layers))
    return piece


_ZEROS = {"z": [[0] * 8] * 2, "at": [[0] * 8] * 2}


@pytest.mark.parametrize(
    ("nodes", "constants", "most"),
    [
        ([node("Add", "x k", "y")], {"k": 100}, 2**31 - 1 - 100),
        ([node("Sub", "k x", "y")], {"k": -100}, 2**31 - 1 - 100),
        ([node("ReduceSum", "x axes", "y")], {"axes": [1]}, (2**31 - 1) // 8),
        ([node("CumSum", "x axis", "y")], {"axis": 1}, (2**31 - 1) // 8),
        ([node("Mul", "x k", "y")], {"k": [3, -5, 2, 1, 1, 1, 1, 1]}, FLOATS // 5),
        ([node("Mul", "x x", "y")], {}, 4096),
        ([node("Pow", "x k", "y")], {"k": 3}, 256),
        ([node("Mod", "x k", "y")], {"k": 10}, FLOATS),
        ([node("Div", "x k", "y")], {"k": 10}, FLOATS),
        ([node("Reshape", "x s", "h"), node("Mul", "h k", "y")], {"s": [4, 4], "k": 2**20}, 16),
        ([node("Where", "b x k", "h"), node("Mul", "h h", "y")], {"k": 5}, 4096),
        ([node("Concat", "x x", "h", axis=0), node("Max", "h k", "y")], {"k": 5}, FLOATS),
        ([node("Clip", "x low high", "h"), node("Mul", "h k", "y")], {"low": 0, "high": 9, "k": 100}, FLOATS),
        ([node("Mod", "x m", "h"), node("Mul", "h k", "y")], {"m": 9, "k": 100}, FLOATS),
        ([node("Gather", "table x", "y")], {"table": [2**40] * 9}, 8),
        ([node("Gather", "x x", "y", axis=1)], {}, 7),
        ([node("GatherElements", "x x", "y", axis=-1)], {}, 7),
        ([node("Add", "x k", "h"), node("Gather", "table h", "y")], {"k": 3, "table": [0] * 9}, 5),
        ([node("Mod", "x k", "h"), node("Gather", "table h", "y")], {"k": 9, "table": [0] * 9}, FLOATS),
        (
            [node("Div", "x k", "h"), node("Gather", "table h", "y")],
            {"k": 256, "table": [0] * 9},
            9 * 256 - 1,
        ),
        ([node("Pad", "x p k", "h"), node("Mul", "h h", "y")], {"p": [0, 0, 0, 1], "k": 5}, 4096),
        ([node("ScatterElements", "z at x", "h"), node("Mul", "h h", "y")], _ZEROS, 4096),
    ],
)
def test_results_stay_exact_up_to_there(
    nodes: Sequence[NodeProto], constants: dict[str, Any], most: int, tmp_path: Path
) -> None:
    booleans = [node("Greater", "x zero", "b")] if "b" in nodes[0].input else []
    more = {"zero": 0} if booleans else {}
    assert whole([*booleans, *nodes], tmp_path, **constants, **more).most == (most,)


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ([node("Gather", "x two", "y")], {"two": [1, 0]}),  # nothing is computed
        ([node("Cast", "x", "h", to=TensorProto.FLOAT), node("Mul", "h h", "y")], {}),
        ([node("Mul", "x k", "y")], {"k": 2**40}),  # a sample shows it
    ],
)
def test_no_limit_where_nothing_is_computed_or_samples_show_it(
    nodes: Sequence[NodeProto], constants: dict[str, Any], tmp_path: Path
) -> None:
    assert whole(nodes, tmp_path, **constants).most == ()


def test_each_input_has_the_limit_of_what_is_made_of_it(tmp_path: Path) -> None:
    """Tokens of two segments: the small table says nothing of the large one."""
    nodes = [node("Gather", "words ids", "a"), node("Gather", "segments kinds", "b"), node("Add", "a b", "y")]
    nodes += [node("Mul", "ids scale", "z")]
    kinds = [value(name, [2, 8], TensorProto.INT64) for name in ("ids", "kinds", "scale")]
    parts = [constant("words", [[0.5]] * 30_000, "float32"), constant("segments", [[0.5]] * 2, "float32")]
    opened = load(model(nodes, kinds, [value("y", None), value("z", None)], parts), tmp_path)
    (piece,) = opened.pieces(0, len(opened.network.layers))
    found = dict(zip((spec.name for spec in piece.inputs), piece.most, strict=True))
    assert found == {"ids": 4096, "kinds": 1, "scale": 4096}


def limits(
    nodes: Sequence[NodeProto], inputs: dict[str, list[int]], folder: Path, table: int
) -> dict[str, int | None]:
    """Return what is found for a model with these inputs of whole numbers, an output "y" and a table "t"."""
    given = [value(name, shape, TensorProto.INT64) for name, shape in inputs.items()]
    parts = [constant("t", [[0.5]] * table, "float32"), constant("k", [3])]
    opened = load(model(nodes, given, [value("y", None)], parts), folder)
    (piece,) = opened.pieces(0, len(opened.network.layers))
    return dict(zip((spec.name for spec in piece.inputs), piece.most, strict=True))


@pytest.mark.parametrize("kind", ["Gather", "GatherElements"])
def test_an_index_into_hidden_states_says_nothing_of_the_tokens_behind_them(
    kind: str, tmp_path: Path
) -> None:
    """The state of the last token is taken: 16 of them, of 30,000 words."""
    nodes = [node("Gather", "t ids", "h"), node("Sin", "h", "s"), node(kind, "s last", "y", axis=1)]
    found = limits(nodes, {"ids": [1, 16], "last": [1] if kind == "Gather" else [1, 1, 1]}, tmp_path, 30_000)
    assert found == {"ids": 29_999, "last": 15}


def test_an_index_into_whole_numbers_is_no_limit_of_these(tmp_path: Path) -> None:
    nodes = [node("GatherElements", "ids at", "h", axis=1), node("Gather", "t h", "y")]
    assert limits(nodes, {"ids": [2, 8], "at": [2, 8]}, tmp_path, 100) == {"ids": 99, "at": 7}


def test_where_the_largest_numbers_stand_is_not_how_large_they_are(tmp_path: Path) -> None:
    nodes = [
        node("TopK", "x k", "numbers at"),
        node("Gather", "t at", "h"),
        node("Add", "numbers numbers", "n"),
    ]
    nodes += [node("Cast", "n", "f", to=TensorProto.FLOAT), node("ReduceSum", "f", "s", keepdims=0)]
    assert limits([*nodes, node("Add", "h s", "y")], {"x": [2, 20]}, tmp_path, 20) == {"x": 2**30 - 1}


def test_the_terms_of_a_product_of_matrices_are_those_of_a_row(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "h"), node("Gather", "t h", "y")]
    assert limits(nodes, {"x": [64, 2], "w": [2, 1]}, tmp_path, 100) == {"x": 7, "w": 7}


def test_what_fits_its_type_needs_no_limit(tmp_path: Path) -> None:
    nodes = [node("Cast", "x", "h", to=TensorProto.INT64), node("Mul", "h k", "y")]
    assert whole(nodes, tmp_path, TensorProto.INT8, k=1000).most == ()
    assert whole(nodes, tmp_path, TensorProto.INT16, k=1000).most == (FLOATS // 1000,)


def test_an_artifact_keeps_it_on_its_way_to_a_worker(tmp_path: Path) -> None:
    artifact = artifact_of(whole([node("Mul", "x x", "y")], tmp_path), engine="mnn", path=tmp_path)
    assert parse_artifact(json.loads(json.dumps(asdict(artifact)))) == artifact
    assert artifact.most == (4096,)


def test_an_index_that_onnx_runtime_refuses_is_told_by_its_input(tmp_path: Path) -> None:
    """The request is to blame, not the unit: `gapless serve` answers 400."""
    piece = whole([node("Add", "x k", "h"), node("Gather", "table h", "y")], tmp_path, k=3, table=[2] * 9)
    (artifact,) = get_engine("onnxruntime").prepare([piece])
    assert _run(artifact, np.full((2, 8), 5)) == [[2] * 8] * 2
    assert _run(artifact, np.full((2, 8), -7)) == [[2] * 8] * 2  # beyond the limit, and right
    with pytest.raises(UnfitNumbersError, match="'x' holds numbers from 6 to 6: beyond 5, an index may lie"):
        _run(artifact, np.full((2, 8), 6))


def _run(artifact: Artifact, numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> object:
    unit = ProcessingUnit(name="u", threads=1)
    session = get_engine(artifact.engine).open(artifact, unit)
    found = [spec.empty() for spec in artifact.outputs]
    try:
        session.copy_in([numbers])
        session.run()
        session.copy_out(found)
    finally:
        session.close()
    return found[0].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["mnn", "openvino"])
def test_an_engine_refuses_numbers_of_which_it_would_compute_wrong_ones(engine: str, tmp_path: Path) -> None:
    """They are hashed: with 32 bits, or in floats, other numbers come out, and nothing told of it."""
    pytest.importorskip({"mnn": "MNN"}.get(engine, engine))
    piece = whole([node("Mul", "x k", "h"), node("Mod", "h m", "y")], tmp_path, k=100_003, m=50)
    (artifact,) = get_engine(engine).prepare([piece])
    small = np.full((2, 8), 167)
    assert _run(artifact, small) == (small * 100_003 % 50).tolist()
    with pytest.raises(UnfitNumbersError, match="'x' holds numbers from 168 to 168: beyond 167"):
        _run(artifact, np.full((2, 8), 168))
