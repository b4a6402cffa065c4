from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapless.executor.joined import join
from gapless.executor.model import Model
from gapless.formulations.errors import InvalidModelError, InvalidPlanError

from .graph.models import load, model, node, residual, run_in_chunks, tiny, value, weights


@pytest.fixture
def joined(tmp_path: Path) -> Model:
    models: list[Model] = []
    for name, proto in (("a", residual(1)), ("b", tiny()), ("a", residual(2))):
        folder = tmp_path / str(len(models))
        folder.mkdir()
        models.append(load(proto, folder, name=name))
    return join(models)


def test_layers_and_tensors_carry_the_name_of_their_model(joined: Model) -> None:
    network = joined.network
    assert network.name == "a+b+a#2"
    assert [name.split("/")[0] for name in network.layer_names] == ["a"] * 3 + ["b"] + ["a#2"] * 5
    assert [spec.name for spec in joined.inputs] == ["a/x", "b/x", "a#2/x"]
    assert [spec.name for spec in joined.outputs] == ["a/b1", "b/y", "a#2/b2"]
    assert len(network.models) == 3


def test_inputs_wait_from_the_beginning_and_outputs_to_the_end(joined: Model) -> None:
    network = joined.network
    tensors = {tensor.name: tensor for tensor in network.tensors}
    count = len(network.layers)
    assert [tensors[spec.name].source for spec in joined.inputs] == [-1, -1, -1]
    assert [max(tensors[spec.name].targets) for spec in joined.outputs] == [count] * 3
    assert tensors["b/x"].targets == (3,)
    assert network.boundary_bytes[0] == sum(spec.bytes for spec in joined.inputs)
    assert network.boundary_bytes[count] == sum(spec.bytes for spec in joined.outputs)


@pytest.mark.parametrize("cuts", [[], [1], [3], [4], [2, 3, 5], [*range(1, 9)]])
def test_chunks_compute_what_the_models_compute(joined: Model, cuts: list[int]) -> None:
    inputs = joined.sample_inputs(3)
    right = joined.reference(inputs)
    found = run_in_chunks(joined, cuts, inputs)
    assert found.keys() == right.keys() == {"a/b1", "b/y", "a#2/b2"}
    for name, array in right.items():
        assert np.allclose(found[name], array, atol=1e-5)


def test_a_chunk_has_one_piece_for_each_model_that_it_touches(joined: Model) -> None:
    assert [piece.prefix for piece in joined.pieces(0, 9)] == ["a/", "b/", "a#2/"]
    assert [piece.prefix for piece in joined.pieces(2, 4)] == ["a/", "b/"]
    assert [piece.prefix for piece in joined.pieces(3, 4)] == ["b/"]
    assert [spec.name for piece in joined.pieces(3, 5) for spec in piece.inputs] == ["x", "x"]
    for start, stop in ((0, 10), (4, 4)):
        with pytest.raises(InvalidPlanError):
            joined.pieces(start, stop)


def test_layers_of_tensors_are_found_by_prefix(joined: Model) -> None:
    for tensor in joined.network.tensors:
        assert joined.layer_of(tensor.name) == (tensor.source if tensor.source >= 0 else None)
    assert joined.layer_of("nowhere/x") is None


def test_further_reference_tensors_are_found_by_prefix(joined: Model) -> None:
    inner = next(t.name for t in joined.network.tensors if t.name.startswith("a#2/") and t.source > 3)
    assert inner in joined.reference(joined.sample_inputs(0), also=[inner])


def test_joined_models_can_be_joined_again(joined: Model, tmp_path: Path) -> None:
    twice = join([joined, load(tiny(), tmp_path, name="more")], name="all")
    assert twice.network.name == "all"
    assert [piece.prefix for piece in twice.pieces(0, 10)] == [
        "a+b+a#2/a/",
        "a+b+a#2/b/",
        "a+b+a#2/a#2/",
        "more/",
    ]
    inputs = twice.sample_inputs(0)
    found = run_in_chunks(twice, [1, 4, 9], inputs)
    for name, array in twice.reference(inputs).items():
        assert np.allclose(found[name], array, atol=1e-5)


def test_one_model_is_itself_and_none_is_an_error(tmp_path: Path) -> None:
    alone = load(tiny(), tmp_path)
    assert join([alone]) is alone
    with pytest.raises(InvalidModelError, match="at least one"):
        join([])


def test_hostile_and_long_names_are_bounded(tmp_path: Path) -> None:
    nodes = [node("Relu", "t" * 120, "y", name="n" * 190)]
    proto = model(nodes, [value("t" * 120, [2])], [value("y", [2])], weights(w=(1,)))
    long = join([load(proto, tmp_path, name="m" * 200), load(proto, tmp_path, name="m" * 199)])
    assert len(set(long.network.layer_names)) == 2
    assert all(len(name) <= 200 for name in long.network.layer_names)
    (piece, _) = long.pieces(0, 2)
    assert piece.prefix + piece.inputs[0].name == long.inputs[0].name == long.network.tensors[0].name
