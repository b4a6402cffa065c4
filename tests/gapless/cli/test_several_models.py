"""Several models on one device: independent of each other by default, one network where that is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.cli.tasks import measuring
from gapless.executor.model import Model
from gapless.formulations.errors import GaplessError, InvalidInputError

from ...executor.graph.models import tiny
from ..conftest import Cli


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("det", "cls"):
        (tmp_path / f"{name}.onnx").write_bytes(tiny().SerializeToString())
    return tmp_path / "det.onnx", tmp_path / "cls.onnx"


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is to be measured, by name: all of one list share the units. Nothing is measured."""
    found: list[list[str]] = []

    def noted(subject: Model | Sequence[Model], *_: object, **__: object) -> Any:
        several = subject if isinstance(subject, Sequence) else [subject]
        found.append([model.network.name for model in several])
        raise GaplessError("enough")

    for name in ("profile", "profile_together", "tune"):
        monkeypatch.setattr(measuring, name, noted)
    return found


@pytest.mark.parametrize("command", ["profile", "tune"])
def test_they_share_the_units_unless_they_are_chained(
    cli: Cli, models: tuple[Path, Path], networks: list[list[str]], tmp_path: Path, command: str
) -> None:
    here = ("--engine", "onnxruntime", "--out", tmp_path / "run", "--overwrite")
    cli(command, *models, *here)
    cli(command, *models, *here, "--chain")
    cli(command, models[0], *here)
    assert networks == [["det", "cls"], ["det+cls"], ["det"]]


def test_what_they_are_taken_for_is_told(models: tuple[Path, Path]) -> None:
    opened = [gapless.open_model(path) for path in models]
    (told,) = measuring.shared_notes(measuring.Target(subject=opened, engine=None))
    assert "det and cls share the units" in told
    assert '--workload "detx2,cls"' in told
    assert "--chain makes one network" in told
    for one in (opened[0], opened[:1]):
        assert not measuring.shared_notes(measuring.Target(subject=one, engine=None))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("tune", "--chain", "--workload", "detx2,cls"),
            "--chain makes one network of the models, --workload",
        ),
        (("profile", "--chain", "--side-by-side"), "--chain makes one network of the models, --side-by-side"),
        (("profile", "--chain", "--batch", "1,2"), "--chain makes one network of the models, --batch"),
        (("tune", "--groups", "2"), "--groups is about one network"),
        (("tune", "--pipelines", "many"), "--pipelines is about one network"),
        (("tune", "--layer-order", "best"), "one network of several models with --chain"),
        (("plan",), "`gapless profile MODEL MODEL` measures several models"),
        (("compare",), "`gapless tune MODEL MODEL` does all of it"),
    ],
)
def test_what_does_not_go_together_is_refused(
    cli: Cli, models: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    place = () if words[0] in ("plan", "compare") else ("--out", tmp_path / "run")
    answer = cli(words[0], *models, *words[1:], *place)
    assert answer.code == 2
    assert told in " ".join(answer.err.split())
    assert not (tmp_path / "run").exists()


def test_two_of_one_name_are_refused_before_anything_is_measured(
    cli: Cli, models: tuple[Path, Path], tmp_path: Path
) -> None:
    answer = cli("tune", models[0], models[0], "--engine", "onnxruntime", "--out", tmp_path / "run")
    assert answer.code == 2
    assert "network 'det' is there more than once" in answer.err
    assert not (tmp_path / "run").exists()


def test_in_python_they_are_not_joined_in_silence(models: tuple[Path, Path]) -> None:
    measures: tuple[Any, ...] = (gapless.profile, gapless.tune)
    for measure in measures:
        with pytest.raises(InvalidInputError, match=r"list of 2 models .*`profile_together`.*`open_models`"):
            measure(list(models))
