from __future__ import annotations

from pathlib import Path

from gapless.executor.graph.inspection import inspect_model

from .models import load, residual


def test_an_inspection_agrees_with_the_network(tmp_path: Path) -> None:
    loaded = load(residual(2), tmp_path)
    found = inspect_model(loaded)
    network = loaded.network
    assert [layer.name for layer in found.layers] == list(network.layer_names)
    assert sum(layer.operators for layer in found.layers) == sum(count for _, count in found.op_counts) == 13
    assert found.op_counts[0] == ("Conv", 5)
    assert [(cut.cut, cut.bytes) for cut in found.cuts] == [
        (c, network.boundary_bytes[c]) for c in range(1, 5)
    ]
    assert [cut.tensors for cut in found.cuts] == [1, 2, 1, 2]
    assert found.flops == sum(layer.flops for layer in found.layers if layer.flops is not None)
    assert found.layers_without_flops == 0
    assert found.weight_bytes == 4 * (8 * 3 * 9 + 4 * 8 * 8 * 9 + 2 * 8)
    assert found.layers[0].out_bytes == 4 * 8 * 12 * 12
    assert found.foreign_operators == ()
    assert found.path == str(tmp_path / "model.onnx")
    assert (found.inputs, found.outputs) == (loaded.inputs, loaded.outputs)
