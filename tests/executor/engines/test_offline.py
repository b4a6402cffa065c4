"""No engine opens a socket, installs anything or writes into the home folder: by themselves both would."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.executor.offline import run_offline, supported

pytestmark = pytest.mark.slow

PROGRAM = """
from gapless.executor.engines.bench import BenchEffort, bench_engine
from gapless.executor.engines.registry import get_engine
from tests.executor.engines.pieces import UNIT, direction

model = direction()
short = BenchEffort(min_repetitions=1, min_seconds=0.0, warm_up_repetitions=0)
for name in ("mnn", "onnxruntime", "openvino"):
    assert get_engine(name).backends()[0] == "cpu"
    assert bench_engine(model, UNIT, engine=name, effort=short).right
print("done")
"""


@pytest.mark.skipif(not supported(), reason="needs Linux on x86-64 or 64-bit ARM")
def test_engines_work_without_a_network(cache_folder: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    allowed = {"ORT_DISABLE_TELEMETRY": "0", "HOME": str(home), "XDG_CACHE_HOME": "", "XDG_DATA_HOME": ""}
    run = run_offline([sys.executable, "-c", PROGRAM], env=allowed)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "done"
    assert len(list(cache_folder.glob("*.mnn"))) == 2
    assert list(home.rglob("*")) == []  # the first step of ONNX Runtime and of OpenVINO is an id
