"""Backends that are really there."""

from __future__ import annotations

import onnx
import pytest

from gapless.executor.engines.probe import TINY, working_backends
from gapless.formulations.errors import InvalidInputError


def test_the_tiny_piece_is_a_model() -> None:
    model = onnx.load_from_string(TINY.content.read())
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in (*model.graph.input, *model.graph.output)] == ["x", "y"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["mnn", "onnxruntime"])
def test_what_is_not_there_is_not_listed(engine: str) -> None:
    assert working_backends(engine, ("abacus", "cpu", "hiai")) == ("cpu",)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no engine 'abacus'"):
        working_backends("abacus", ("cpu",))
