"""Exported folders: what is there already, and what becomes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.executor.export.folder import changed_files, load_manifest, require_free
from gapless.executor.export.kinds import ExportKind
from gapless.executor.export.manifest import EXPORT
from gapless.executor.model import Model
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.errors import ExecutionError, InvalidInputError
from gapless.formulations.files import dump, parse
from gapless.formulations.plan import Chunk, Plan

from .exports import chunks, opened, skipping, units, write


@pytest.fixture
def skip(tmp_path: Path) -> Model:
    return opened(skipping(), tmp_path, "skip")


def test_an_older_export_is_replaced_and_other_files_stay(skip: Model, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, chunks("skip", (1, "a"), (2, "b"), (4, "c")), skip)
    (out / "notes.txt").write_text("mine")
    (out / "mine").mkdir()
    exported = write(out, chunks("skip", (4, "a")), skip)
    assert sorted(path.name for path in out.iterdir()) == [
        "manifest.json", "mine", "notes.txt", "run.py", "skip.0-3.a.onnx", "skip.expected.npz",
        "skip.sample.npz",
    ]  # fmt: skip
    assert changed_files(out) == ()
    assert exported.bytes == {name: (out / name).stat().st_size for name in exported.bytes}
    assert (out / "run.py").stat().st_mode & 0o111
    (out / "skip.0-3.a.onnx").unlink()
    assert changed_files(out) == ("skip.0-3.a.onnx",)
    require_free(out)  # what is missing cannot be overwritten


def test_the_same_export_has_the_same_files(skip: Model, tmp_path: Path) -> None:
    first, second = (
        write(tmp_path / name, chunks("skip", (2, "a"), (4, "b")), skip).manifest for name in ("1", "2")
    )
    assert first == second


def test_foreign_and_edited_files_are_never_overwritten(skip: Model, tmp_path: Path) -> None:
    foreign, edited = tmp_path / "foreign", tmp_path / "edited"
    foreign.mkdir()
    (foreign / "run.py").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"holds files, but no manifest\.json of an older export"):
        write(foreign, chunks("skip", (4, "a")), skip)
    assert (foreign / "run.py").read_text() == "mine"
    write(edited, chunks("skip", (4, "a")), skip)
    (edited / "run.py").write_text("mine, too")
    with pytest.raises(InvalidInputError, match=r"run.py in .*edited changed since the last export"):
        write(edited, chunks("skip", (4, "a")), skip)
    assert (edited / "run.py").read_text() == "mine, too"
    with pytest.raises(InvalidInputError, match="it is a file"):
        require_free(edited / "run.py")
    with pytest.raises(InvalidInputError, match="does not exist"):
        require_free(tmp_path / "no" / "where")
    (foreign / "manifest.json").write_text('{"format": "something.else", "version": 1}')
    with pytest.raises(InvalidInputError, match=r"no gapless\.export file"):
        require_free(foreign)


def test_what_fails_leaves_nothing_behind(
    skip: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise ExecutionError("no")

    monkeypatch.setattr("gapless.executor.export.folder.runner_source", fail)
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.iterdir())
    for name in ("new", "empty"):
        with pytest.raises(ExecutionError):
            write(tmp_path / name, chunks("skip", (4, "a")), skip)
    assert sorted(tmp_path.iterdir()) == before
    assert not list((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("name", ["../other", "/etc/passwd", "..", "", "manifest.json", "a\\b"])
def test_a_manifest_that_names_files_elsewhere_is_refused(skip: Model, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    write(out, chunks("skip", (4, "a")), skip)
    tree = json.loads((out / "manifest.json").read_text())
    tree["files"][name] = "0" * 64
    (out / "manifest.json").write_text(json.dumps(tree))
    with pytest.raises(InvalidInputError, match="is no name of a file in its folder"):
        load_manifest(out)


def test_names_of_files_are_plain_and_distinct(tmp_path: Path) -> None:
    hostile = ["../a b", "../a?b", "ä" * 150]
    models = [opened(skipping(), tmp_path, f"m{index}") for index in range(3)]
    named = [_renamed(model, name) for model, name in zip(models, hostile, strict=True)]
    deployment = deploy(Plan(chunks=tuple(Chunk(network=n, start=0, stop=4, unit="a") for n in hostile)))
    exported = write(tmp_path / "out", deployment, *named, platform=units("a"))
    names = [name for name in exported.manifest.files if name.endswith((".onnx", ".npz"))]
    assert len(names) == 7  # the three models are one: they share their file
    assert all(name.isascii() and len(name) < 120 and name[0].isalnum() for name in names)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(exported.bytes)


def _renamed(model: Model, name: str) -> Model:
    return replace(model, network=replace(model.network, name=name))  # type: ignore[type-var]


def test_the_manifest_survives_the_journey(skip: Model, tmp_path: Path) -> None:
    for kind, engine in ((ExportKind.MNN, "mnn"), (ExportKind.TASKSET, "onnxruntime")):
        manifest = write(
            tmp_path / kind, chunks("skip", (1, "a"), (4, "b")), skip, kind=kind, engine=engine
        ).manifest  # fmt: skip
        assert parse(dump(manifest, EXPORT).encode(), EXPORT, name="it") == manifest
