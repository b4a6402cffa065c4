"""Gradient-boosted trees on the features of single layers (as AP2 has them), written as ONNX.

They predict what the transformer predicts: the logarithm of the time of a layer relative to the regression of
the device. LightGBM trains them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lightgbm
import numpy as np
from onnx import TensorProto, helper, save

from .examples import LEAST_US, Dataset

if TYPE_CHECKING:
    from numpy.typing import NDArray

TREES, LEAVES, RATE = 300, 15, 0.05

_DOMAIN = "ai.onnx.ml"


def layer_rows(data: Dataset, *, extended: bool = True) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return features of all measured layers with the embedding of their device, log ratios, and weights."""
    rows, ratios, weights = [], [], []
    for kind in data.types:
        for entry in kind.times:
            if not entry.layer_us:
                continue
            features, measured = data.networks[entry.network], np.array(entry.layer_us)
            linear_us = kind.embedding.linear_us(features)
            kept = (measured >= LEAST_US) & (linear_us > 0)
            inputs = features.inputs(extended=extended)[kept]
            rows.append(np.hstack([inputs, np.tile(kind.embedding.vector(), (len(inputs), 1))]))
            ratios.append(np.log(measured[kept] / linear_us[kept]))
            weights.append(np.sqrt(measured[kept]))  # what takes longer counts more, as it does in plans
    return np.concatenate(rows), np.concatenate(ratios), np.concatenate(weights)


def train_trees(data: Dataset, *, extended: bool = True, seed: int = 0) -> lightgbm.Booster:
    """Train the trees on the measured layers of a data set."""
    rows, ratios, weights = layer_rows(data, extended=extended)
    settings = {
        "objective": "l1",
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "min_data_in_leaf": 10,
        "feature_fraction": 0.7,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "seed": seed,
        "deterministic": True,
        "verbosity": -1,
    }
    return lightgbm.train(settings, lightgbm.Dataset(rows, ratios, weight=weights), num_boost_round=TREES)


def write_trees(booster: lightgbm.Booster, path: Path, *, devices: int) -> None:
    """Write the trees as ONNX, with the inputs and outputs of `transformer.write_transformer`.

    `booster`: the trees; the last `devices` features are those of the device.
    """
    dump = booster.dump_model()
    nodes: dict[str, Any] = defaultdict(list)
    for tree, entry in enumerate(dump["tree_info"]):
        _add(entry["tree_structure"], tree, [0], nodes)
    ensemble = helper.make_node(
        "TreeEnsembleRegressor",
        ["rows"],
        ["values"],
        domain=_DOMAIN,
        n_targets=1,
        post_transform="NONE",
        **nodes,
    )
    width = dump["max_feature_idx"] + 1 - devices
    graph = helper.make_graph(
        [*_PAIRED, ensemble, helper.make_node("Reshape", ["values", "grid"], ["log_ratio"])],
        "trees",
        [
            helper.make_tensor_value_info("layers", TensorProto.FLOAT, ["layer", width]),
            helper.make_tensor_value_info("devices", TensorProto.FLOAT, ["device", devices]),
        ],
        [helper.make_tensor_value_info("log_ratio", TensorProto.FLOAT, ["device", "layer"])],
        [
            helper.make_tensor("one", TensorProto.INT64, [1], [1]),
            helper.make_tensor("layers_wide", TensorProto.INT64, [1], [width]),
            helper.make_tensor("devices_wide", TensorProto.INT64, [1], [devices]),
            helper.make_tensor("flat", TensorProto.INT64, [2], [-1, width + devices]),
            helper.make_tensor("first", TensorProto.INT64, [1], [0]),
            helper.make_tensor("second", TensorProto.INT64, [1], [1]),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_DOMAIN, 3)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


_PAIRED = (
    helper.make_node("Shape", ["layers"], ["layer_count"], start=0, end=1),
    helper.make_node("Shape", ["devices"], ["device_count"], start=0, end=1),
    helper.make_node("Concat", ["device_count", "layer_count"], ["grid"], axis=0),
    helper.make_node("Unsqueeze", ["layers", "first"], ["layers3"]),
    helper.make_node("Unsqueeze", ["devices", "second"], ["devices3"]),
    helper.make_node("Concat", ["device_count", "layer_count", "layers_wide"], ["layers_shape"], axis=0),
    helper.make_node("Concat", ["device_count", "layer_count", "devices_wide"], ["devices_shape"], axis=0),
    helper.make_node("Expand", ["layers3", "layers_shape"], ["layers_each"]),
    helper.make_node("Expand", ["devices3", "devices_shape"], ["devices_each"]),
    helper.make_node("Concat", ["layers_each", "devices_each"], ["pairs"], axis=2),
    helper.make_node("Reshape", ["pairs", "flat"], ["rows"]),
)
"""Every layer with every device, as rows."""


def _add(node: dict[str, Any], tree: int, free: list[int], nodes: dict[str, Any]) -> int:
    """Add a node with all below it; return its number in the tree."""
    number = free[0]
    free[0] += 1
    leaf = "split_feature" not in node
    nodes["nodes_treeids"].append(tree)
    nodes["nodes_nodeids"].append(number)
    nodes["nodes_featureids"].append(0 if leaf else node["split_feature"])
    nodes["nodes_modes"].append("LEAF" if leaf else "BRANCH_LEQ")
    nodes["nodes_values"].append(0.0 if leaf else _below(node["threshold"]))
    place = len(nodes["nodes_truenodeids"])
    nodes["nodes_truenodeids"].append(0)
    nodes["nodes_falsenodeids"].append(0)
    if leaf:
        for name, value in (
            ("treeids", tree),
            ("nodeids", number),
            ("ids", 0),
            ("weights", node["leaf_value"]),
        ):
            nodes[f"target_{name}"].append(value)
    else:
        nodes["nodes_truenodeids"][place] = _add(node["left_child"], tree, free, nodes)
        nodes["nodes_falsenodeids"][place] = _add(node["right_child"], tree, free, nodes)
    return number


def _below(threshold: float) -> float:
    """Return the largest 32-bit number that is not above a threshold: inputs have 32 bits."""
    value = np.float32(threshold)
    return float(value if float(value) <= threshold else np.nextafter(value, np.float32(-np.inf)))
