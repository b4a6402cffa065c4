"""Model files of strangers are opened in a child with limits; errors name the step."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fuzz import hostile
from gapless.api.models import open_each, open_model
from gapless.cli.main import main
from gapless.executor.graph import opening
from gapless.executor.graph.choices import COMPARING
from gapless.executor.graph.onnx_model import load_onnx
from gapless.executor.graph.opening import Opener, OpeningLimits
from gapless.executor.workers import Link, Worker
from gapless.formulations.errors import InvalidInputError, InvalidModelError

from .models import residual, tiny, value

SMALL = OpeningLimits(memory_bytes=400 * 2**20)


def dying(link: Link, settings: Mapping[str, Any]) -> None:
    """Be a child that is killed while it checks."""
    link.receive()
    link.send({"kind": "step", "name": "the check"})
    os.kill(os.getpid(), 11)


def failing(link: Link, settings: Mapping[str, Any]) -> None:
    """Be a child in which somebody else's code raises what nobody expects."""
    link.receive()
    link.send({"kind": "step", "name": "inferring shapes"})
    raise KeyError("surprise")


def at(folder: Path, content: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return path


def refusal(path: Path, limits: OpeningLimits) -> str:
    with pytest.raises(InvalidModelError) as caught:
        open_model(path, limits=limits)
    return str(caught.value)


@pytest.mark.slow
def test_the_child_makes_what_this_process_would(tmp_path: Path) -> None:
    path = at(tmp_path, residual().SerializeToString())
    here, there = load_onnx(path, name="n"), open_model(f"n={path}")
    assert there.network == here.network
    assert (there.inputs, there.outputs) == (here.inputs, here.outputs)
    whole = [model.pieces(0, len(here.network.layers))[0] for model in (here, there)]
    assert whole[0].digest == whole[1].digest
    assert whole[0].content.read() == whole[1].content.read()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "step"),
    [
        (hostile.exploding_functions, "inlining its functions (met .*memory limit|ended its process)"),
        (hostile.doubled_constant, "inferring shapes met the memory limit of 0.4 GiB"),
        (lambda: hostile.empty_nodes(6_000_000), "reading the file (met its memory limit|ended its process)"),
    ],
)
def test_a_file_that_takes_all_memory_meets_its_limit(make: Any, step: str, tmp_path: Path) -> None:
    said = refusal(at(tmp_path, make()), SMALL)
    assert re.search(step, said), said
    assert "GAPLESS_OPEN_MEMORY_MB" in said


@pytest.mark.slow
def test_a_file_that_takes_for_ever_meets_its_limit(tmp_path: Path) -> None:
    said = refusal(at(tmp_path, hostile.endless_loop()), OpeningLimits(seconds=6.0))
    assert "folding constants and simplifying met the time limit of 6 s" in said
    assert "(--open-seconds, or GAPLESS_OPEN_SECONDS=... in the environment)" in said


@pytest.mark.slow
@pytest.mark.parametrize("command", ["tools inspect", "profile"])
def test_the_command_line_sets_the_limit(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = at(tmp_path, hostile.endless_loop())
    assert main([*command.split(), str(path), "--open-seconds", "2s"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "met the time limit of 2 s" in said
    assert "(--open-seconds, or GAPLESS_OPEN_SECONDS=... in the environment)" in said
    assert "GAPLESS_OPEN_SECONDS" not in os.environ


@pytest.mark.parametrize("text", ["0", "-1s", "5", "soon", "nan", "inf", ""])
def test_a_limit_is_a_time_with_its_unit(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "pixel7a/octree", f"--open-seconds={text}"]) == 2
    said = capsys.readouterr().err
    words = {"0": " is '0', must be at least 1us", "5": ": '5' has no unit (us, ms, s, min, h)"}
    assert f"--open-seconds{words.get(text, f' is {text!r}, must be a time with its unit')}" in said


def hanging(link: Link, settings: Mapping[str, Any]) -> None:
    """Be a child that compares for ever, and refuses what need not be compared."""
    question = link.receive()
    assert question is not None
    if question["compared"]:
        link.send({"kind": "step", "name": COMPARING})
        link.receive()
    link.send({"kind": "refused", "message": "opened without a comparison", "problems": [], "shapes": False})


@pytest.mark.slow
def test_a_comparison_without_end_leaves_time_to_open_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "open_there", f"{__name__}:hanging")
    limits: list[float | None] = []
    receive = Worker.receive

    def noted(worker: Worker, timeout_s: float | None) -> Any:
        limits.append(timeout_s)
        return receive(worker, timeout_s)

    monkeypatch.setattr(Worker, "receive", noted)
    path = at(tmp_path, tiny().SerializeToString())
    with (
        Opener(OpeningLimits(seconds=10.0)) as opener,
        pytest.raises(InvalidModelError, match="opened without a comparison"),
    ):
        opener.prepare(path, shapes={})
    first, second, third = map(float, filter(None, limits))
    assert second <= 5.0, "a comparison may take half of the time that is left"
    assert first + third < 16.0, "both questions share the time"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "said"),
    [
        (dying, "the check ended its process, which was killed by SIGSEGV"),
        (failing, "inferring shapes failed .*KeyError: 'surprise'"),
    ],
)
def test_a_death_and_a_surprise_are_errors_that_name_the_step(
    role: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at(tmp_path, tiny().SerializeToString())
    monkeypatch.setattr(opening, "open_there", f"{__name__}:{role.__name__}")
    with Opener() as opener:
        with pytest.raises(InvalidModelError, match=said):
            opener.prepare(path, shapes={})
        monkeypatch.undo()
        assert opener.prepare(path, shapes={}).inputs == ("x",)  # the next file finds a new child


@pytest.mark.slow
def test_defects_come_back_one_by_one_and_the_child_goes_on(tmp_path: Path) -> None:
    good, bad = at(tmp_path, tiny().SerializeToString()), tmp_path / "bad.onnx"
    bad.write_bytes(tiny(inputs=[value("x", ["n", "m"])]).SerializeToString())
    with Opener() as opener:
        with pytest.raises(InvalidModelError) as caught:
            opener.prepare(bad, shapes={})
        assert len(caught.value.problems) == 1
        child = opener._worker
        assert opener.prepare(good, shapes={}).warnings == ()
        assert opener._worker is child
    assert [model.network.name for model in open_each([good, good])] == ["model", "model"]


def test_limits_grow_with_the_model_unless_they_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = OpeningLimits.usual()
    assert (usual.seconds_for(0), usual.memory_for(0)) == (45.0, 2 * 2**30)
    assert (usual.seconds_for(10**9), usual.memory_for(10**9)) == (545.0, 2 * 2**30 + 8 * 10**9)
    monkeypatch.setenv("GAPLESS_OPEN_SECONDS", "7.5")
    monkeypatch.setenv("GAPLESS_OPEN_MEMORY_MB", "300")
    assert OpeningLimits.usual() == OpeningLimits(seconds=7.5, memory_bytes=300 * 2**20)
    monkeypatch.setenv("GAPLESS_OPEN_SECONDS", "soon")
    with pytest.raises(InvalidInputError, match="GAPLESS_OPEN_SECONDS is 'soon', must be a positive number"):
        OpeningLimits.usual()
