"""`gapless profile` on a machine that is noisy: what is refused, what is accepted, and how long items take.

The bench is a fake whose times change by a formula: nothing here depends on the noise of a real machine.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gapless.cli.base.exits import ExitCode
from gapless.profiler.profile import Profile, ProfileOptions
from tests.profiler.test_profile import bench, take

from ..conftest import Cli

DRIFTS = {"little": (1.0, 5.0, 25.0, 125.0)}
"""The reference layers of a unit take five times as long from each measurement to the next."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ProfileOptions]:
    """The options of each profile that was taken, on a bench that drifts."""
    seen: list[ProfileOptions] = []

    def drifting(model: object, *, options: ProfileOptions, **how: Any) -> Profile:
        seen.append(options)
        return take(
            bench(wobble=DRIFTS), **{each.name: getattr(options, each.name) for each in fields(options)}
        )

    monkeypatch.setattr("gapless.cli.tasks.measuring.profile", drifting)
    return seen


@pytest.mark.slow
def test_a_profile_of_a_noisy_machine_is_refused_and_says_what_to_do(
    cli: Cli, tmp_path: Path, asked: list[ProfileOptions]
) -> None:
    run = cli("profile", "squeezenet", "--engine", "onnxruntime", "--out", tmp_path / "out")
    assert run.code == ExitCode.FAILURE
    words = " ".join(run.err.split())
    assert "unit 'little'" in words
    for option in ("--resume", "--item-seconds", "--accept-noise"):
        assert option in words
    assert not (tmp_path / "out" / "problem.json").exists()
    assert len(asked) == 1


@pytest.mark.slow
def test_accepted_noise_is_written_and_said(cli: Cli, tmp_path: Path, asked: list[ProfileOptions]) -> None:
    run = cli("profile", "squeezenet", "--engine", "onnxruntime", "--out", tmp_path / "out", "--accept-noise")
    assert run.code == 0, run.err
    assert "unit 'little': the same layers took" in " ".join((run.out + run.err).split())
    written = json.loads((tmp_path / "out" / "problem.json").read_text())
    assert any("unit 'little': the same layers took" in str(part) for part in written["costs"].values())
    assert len(asked) == 1


@pytest.mark.parametrize(("text", "limits_s"), [("500ms", (0.5, 1.0)), ("2.5s", (2.5, 2.5))])
def test_seconds_for_each_item_reach_the_bench(
    cli: Cli, tmp_path: Path, asked: list[ProfileOptions], text: str, limits_s: tuple[float, float]
) -> None:
    words = ("profile", "squeezenet", "--engine", "onnxruntime", "--out", tmp_path / "out", "--accept-noise")
    assert cli(*words, "--item-seconds", text).code == 0
    ((effort),) = {(options.effort.min_seconds, options.effort.max_seconds) for options in asked}
    assert effort == limits_s


@pytest.mark.parametrize("text", ["0", "-1s", "61s", "1", "nan", "soon"])
def test_seconds_for_each_item_that_are_none_are_refused(
    cli: Cli, tmp_path: Path, asked: list[ProfileOptions], text: str
) -> None:
    run = cli("profile", "squeezenet", "--out", tmp_path / "out", "--item-seconds", text)
    assert run.code == 2
    assert "--item-seconds" in run.err
    assert not asked
