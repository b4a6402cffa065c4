"""An engine whose numbers are wrong: one exit code for all commands; `run` uses the engine of the profile."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from gapless.api.device import this_device
from gapless.cli.base.exits import ExitCode
from tests.executor.graph.models import residual

from ..conftest import Cli

pytestmark = [pytest.mark.measures, pytest.mark.slow]

WRONG = """
from gapless.executor.engines.ort_engine import OrtEngine

class Wrong(OrtEngine):
    name = f"{__file__}:Wrong"

    def open(self, artifact, unit):
        session = super().open(artifact, unit)
        copy_out = session.copy_out

        def off(arrays):
            copy_out(arrays)
            for array in arrays:
                array += 1

        session.copy_out = off
        return session
"""


def test_wrong_numbers_have_one_exit_code(cli: Cli, tmp_path: Path) -> None:
    model_file = tmp_path / "small.onnx"
    onnx.save(residual(), str(model_file))
    units = min(this_device().units, key=lambda unit: len(unit.cores) or 1000).name
    (tmp_path / "wrong.py").write_text(WRONG)
    engine = ("--engine", f"{tmp_path / 'wrong.py'}:Wrong")
    here = (model_file, *engine, "--units", units)
    assert cli("device", "bench", *here, "--seconds", "0").code == ExitCode.VERIFICATION
    run = cli("tune", *here, "--budget", "5s", "--out", tmp_path / "tuned")
    assert run.code == ExitCode.VERIFICATION
    assert "gives wrong numbers" in run.err.replace("\n", " ")
    out = tmp_path / "profiled"
    run = cli("profile", model_file, "--engine", "onnxruntime", "--units", units, "--out", out)
    assert run.code == 0, run.err
    problem, plan = out / "problem.json", out / "plan.json"
    assert cli("plan", problem, "--out", plan).code == 0
    assert cli("run", problem, plan, *engine, "--seconds", "100ms").code == ExitCode.VERIFICATION
    run = cli("run", problem, plan, "--requests", "3", "--json")  # by the engine of the profile
    assert run.code == 0, run.err
    assert run.document["receipts"][0]["engine"].startswith("ONNX Runtime")
    run = cli("run", problem, plan, "--engine", "mnn,callable")
    assert run.code == ExitCode.USAGE
    assert "not profiled for mnn, callable each" in run.err.replace("\n", " ")
