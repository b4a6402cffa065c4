"""What skl2onnx and its relatives write: trees, scalers, linear models, of the domain ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from .building import Writer, model, value

FEATURES, CLASSES = 8, 3
_ML = "ai.onnx.ml"
_INT = TensorProto.INT64


def _trees(count: int, depth: int, weights: int) -> dict[str, Any]:
    """Return the attributes of complete trees over random features."""
    random = np.random.default_rng(count)
    inner, total = 2**depth - 1, 2 ** (depth + 1) - 1
    nodes = [(tree, node) for tree in range(count) for node in range(total)]
    is_inner = [node < inner for _, node in nodes]
    leaves = [(tree, node) for tree, node in nodes if node >= inner]
    return {
        "nodes_treeids": [tree for tree, _ in nodes],
        "nodes_nodeids": [node for _, node in nodes],
        "nodes_featureids": random.integers(0, FEATURES, len(nodes)).tolist(),
        "nodes_values": random.normal(0, 1, len(nodes)).tolist(),
        "nodes_modes": ["BRANCH_LEQ" if inside else "LEAF" for inside in is_inner],
        "nodes_truenodeids": [2 * n + 1 if i else 0 for (_, n), i in zip(nodes, is_inner, strict=True)],
        "nodes_falsenodeids": [2 * n + 2 if i else 0 for (_, n), i in zip(nodes, is_inner, strict=True)],
        "leaf": [tree for tree, _ in leaves for _ in range(weights)],
        "leaf_node": [node for _, node in leaves for _ in range(weights)],
        "leaf_ids": [place for _ in leaves for place in range(weights)],
        "leaf_weights": random.random(len(leaves) * weights).tolist(),
    }


def _leaves(trees: dict[str, Any], prefix: str) -> dict[str, Any]:
    names = {"leaf": "treeids", "leaf_node": "nodeids", "leaf_ids": "ids", "leaf_weights": "weights"}
    return {f"{prefix}_{names[key]}" if key in names else key: found for key, found in trees.items()}


def forest_classifier() -> ModelProto:
    """Return a scaler and a random forest, with `zipmap` off: a label and probabilities."""
    w = Writer(31, names="{op}{number}")
    offset, scale = [0.1] * FEATURES, [0.5] * FEATURES
    x = w.add("Scaler", "X", domain=_ML, offset=offset, scale=scale)
    trees = _leaves(_trees(20, 4, CLASSES), "class")
    w.several(
        "TreeEnsembleClassifier",
        x,
        outputs=["label", "probabilities"],
        domain=_ML,
        classlabels_int64s=list(range(CLASSES)),
        post_transform="SOFTMAX",
        **trees,
    )
    return model(
        w,
        [value("X", [None, FEATURES])],
        [value("label", [None], _INT), value("probabilities", [None, CLASSES])],
        opset=15,
        producer="skl2onnx",
        domains={_ML: 3},
    )


def boosted_regressor() -> ModelProto:
    """Return gradient boosting by onnxmltools: a tree ensemble, then arithmetic of ONNX itself."""
    w = Writer(32, names="{op}{number}")
    trees = _leaves(_trees(30, 3, 1), "target")
    x = w.add("Normalizer", "X", domain=_ML, norm="L2")
    y = w.add("TreeEnsembleRegressor", x, domain=_ML, n_targets=1, aggregate_function="SUM", **trees)
    y = w.add("Mul", y, w.constant([0.1], "float32"))
    w.add("Exp", y, output="variable")
    return model(
        w,
        [value("X", ["N", FEATURES])],
        [value("variable", ["N", 1])],
        opset=12,
        producer="OnnxMLTools",
        domains={_ML: 1},
    )


def linear_pipeline() -> ModelProto:
    """Return imputer, scaler and logistic regression; the label is picked by ArrayFeatureExtractor."""
    w = Writer(33, names="{op}{number}")
    x = w.add("Imputer", "X", domain=_ML, imputed_value_floats=[0.0] * FEATURES, replaced_value_float=-1.0)
    x = w.add("Scaler", x, domain=_ML, offset=[0.0] * FEATURES, scale=[2.0] * FEATURES)
    scores = w.add("Gemm", x, w.weight(FEATURES, CLASSES), w.weight(CLASSES))
    probabilities = w.add("Softmax", scores, output="probabilities", axis=1)
    best = w.add("ArgMax", probabilities, axis=1, keepdims=0)
    w.add("ArrayFeatureExtractor", w.constant([10, 20, 30], "int64"), best, domain=_ML, output="label")
    return model(
        w,
        [value("X", [None, FEATURES])],
        [value("label", ["M"], _INT), value("probabilities", [None, CLASSES])],
        opset=13,
        producer="skl2onnx",
        domains={_ML: 1},
    )


def zipped_classifier() -> ModelProto:
    """Return a linear classifier as skl2onnx writes it by default: probabilities in dictionaries."""
    w = Writer(34, names="{op}{number}")
    _, scores = w.several(
        "LinearClassifier",
        "X",
        outputs=["label", "scores"],
        domain=_ML,
        coefficients=np.linspace(-1, 1, FEATURES * CLASSES).tolist(),
        intercepts=[0.0] * CLASSES,
        classlabels_ints=list(range(CLASSES)),
    )
    w.add("ZipMap", scores, output="probabilities", domain=_ML, classlabels_int64s=list(range(CLASSES)))
    kind = helper.make_sequence_type_proto(
        helper.make_map_type_proto(_INT, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    )
    return model(
        w,
        [value("X", [1, FEATURES])],
        [value("label", [1], _INT), helper.make_value_info("probabilities", kind)],
        opset=15,
        producer="skl2onnx",
        domains={_ML: 1},
    )
