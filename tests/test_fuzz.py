"""Damaged files are opened or refused, never more: a few hundred of what `make fuzz` does with thousands."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.fuzz.__main__ import Corpus, corpus, fuzz
from benchmarks.fuzz.damage import truncate
from benchmarks.fuzz.models import valid_models
from gapless.executor.graph.onnx_model import load_onnx

SEED = 14


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("onnx", 200), ("json", 100)])
def test_damaged_files_are_opened_or_refused(kind: str, count: int, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    found = corpus(kind, tmp_path)
    failures = list(fuzz(found, SEED, range(count), tmp_path / "kept", counts=counts))
    assert not failures, "\n".join(f"{each.case} ({each.path}): {each.verdict}" for each in failures)
    assert set(counts) == {"opened", "refused"}
    assert counts["opened"] > count // 20


def test_the_same_seed_makes_the_same_files() -> None:
    found = corpus("onnx", Path())
    assert [found.case(3, number) for number in range(40)] == [found.case(3, number) for number in range(40)]
    assert found.case(3, 1) != found.case(4, 1)


@pytest.mark.slow
def test_what_is_damaged_was_valid(tmp_path: Path) -> None:
    for name, content in valid_models().items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(content)
        assert load_onnx(path).network.layers


@pytest.mark.slow
def test_what_fails_is_kept_by_its_seed_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.fuzz.__main__.ROLE", "tests.test_fuzz:dying")
    monkeypatch.setattr("benchmarks.fuzz.__main__._by_the_command", lambda _, verdict: verdict)
    found = Corpus(kind="onnx", files={"a": b"abc"}, damage=[truncate])
    counts: Counter[str] = Counter()
    (failure,) = fuzz(found, SEED, [7], tmp_path, counts=counts)
    assert failure.path == tmp_path / "14-7.onnx"
    assert failure.path.read_bytes() == found.case(SEED, 7)
    assert failure.verdict.startswith("death or hang: ")
    assert "exit code 3" in failure.verdict


def dying(*_: object) -> None:
    """Be a child that ends at once."""
    raise SystemExit(3)
