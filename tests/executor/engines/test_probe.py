"""Backends that are really there."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from gapless.executor.engines.helper import TINY, working_backends
from gapless.executor.workers import Worker
from gapless.formulations.errors import InvalidInputError


def test_the_tiny_piece_is_a_model() -> None:
    model = onnx.load_from_string(TINY.content.read())
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in (*model.graph.input, *model.graph.output)] == ["x", "y"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["mnn", "onnxruntime"])
def test_what_is_not_there_is_not_listed(engine: str) -> None:
    assert working_backends(engine, ("abacus", "cpu", "hiai")) == ("cpu",)


@pytest.mark.slow
def test_one_child_tries_all_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    class Counted(Worker):
        def __init__(self, *args: Any, **settings: Any) -> None:
            started.append("worker")
            super().__init__(*args, **settings)

    monkeypatch.setattr("gapless.executor.engines.helper.Worker", Counted)
    assert working_backends("onnxruntime", ("abacus", "hiai", "cpu", "qnn")) == ("cpu",)
    assert started == ["worker"]


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no engine 'abacus'"):
        working_backends("abacus", ("cpu",))
