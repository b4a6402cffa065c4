from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless import open_model
from gapless.api.models import models_of, open_models, opening_notes
from gapless.executor.joined import join
from gapless.formulations.errors import InvalidInputError, OpenShapesError
from tests.executor.graph.models import tiny, value
from tests.executor.graph.test_rewriting import CASES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "net.onnx").write_bytes(CASES["clips"].SerializeToString())
    return tmp_path / "net.onnx"


def test_a_model_that_was_not_simplified_is_opened_again_as_it_was(path: Path) -> None:
    network = open_model(path, simplify="off").network
    assert models_of(network).network == network
    assert network != open_model(path).network


def test_notes_of_simplification_reach_who_opens(path: Path) -> None:
    usual = open_model(path)
    (note,) = opening_notes([join([usual, open_model(path, simplify="off")])])
    assert note.startswith("net: simplified without merging equal operators")


def test_an_unknown_way_to_simplify_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInputError, match="simplify is 'some'; choose one of auto, off"):
        open_model(path, simplify="some")


def test_the_open_inputs_of_all_models_are_asked_for_at_once(tmp_path: Path) -> None:
    for name in ("a", "b c"):
        proto = tiny(inputs=[value("x", ("batch", 4))], outputs=[value("y", ("batch", 4))])
        (tmp_path / f"{name}.onnx").write_bytes(proto.SerializeToString())
    places = [tmp_path / "a.onnx", tmp_path / "b c.onnx"]
    with pytest.raises(OpenShapesError) as caught:
        open_models(places)
    assert [one.partition(":")[0] for one in caught.value.problems] == ["a", "b c"]
    assert "fix them with --shape a/x=batch,4" in caught.value.problems[0]
    assert "fix them with --shape 'b c'/x=batch,4" in caught.value.problems[1]
    with pytest.raises(OpenShapesError) as caught:
        open_models(places, shapes={"a/x": (1, 4)})
    assert [one.partition(":")[0] for one in caught.value.problems] == ["b c"]


def test_the_source_of_a_built_in_network_does_not_depend_on_the_cache() -> None:
    network = gapless.open_model("squeezenet").network
    assert network.source == network.models[0].locator == "zoo:squeezenet"
