from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from gapless.executor.engines.cache import Cache
from gapless.executor.graph import preparing
from gapless.executor.graph.preparing import SUFFIX, Prepared, prepare

from .models import model, node, value, weights


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(preparing, "LEAST_S", 0.0)
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "r"), node("Relu", "r", "y")]
    proto = model(nodes, [value("x", ["n", 40])], [value("y", ["n", 40])], weights(w=(40, 40)))
    onnx.save(proto, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def prepared(path: Path, cache: Cache, rows: int = 2) -> Prepared:
    return prepare(path, shapes={"x": (rows, 40)}, cache=cache)


def test_what_is_kept_is_what_was_made(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path / "cache")
    first = prepared(path, cache)
    (entry,) = cache.entries()
    assert (entry.suffix, entry.size_bytes < 40 * 40 * 4) == (SUFFIX, True)  # without the weights
    monkeypatch.setattr(preparing, "rewritten", None)
    again = prepared(path, cache)
    assert again == first
    assert again.model.SerializeToString(deterministic=True) == first.model.SerializeToString(
        deterministic=True
    )


def test_other_shapes_and_contents_are_made_anew(path: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    prepared(path, cache)
    prepared(path, cache, rows=3)
    proto = onnx.load(path)
    proto.graph.node[1].op_type = "Tanh"
    onnx.save(proto, path)
    assert any(each.op_type == "Tanh" for each in prepared(path, cache).model.graph.node)
    assert len(cache.entries()) == 3


def test_a_strange_entry_is_made_anew(path: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    first = prepared(path, cache)
    (entry,) = cache.entries()
    entry.path.unlink()
    cache.put(entry.key, SUFFIX, b"something else")
    assert prepared(path, cache) == first
