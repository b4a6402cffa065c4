"""The shell script: what its lines say, and that they run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.executor.export.kinds import ExportKind
from gapless.executor.model import Model
from gapless.formulations.deployment import Deployment, replicas
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.plan import Plan
from gapless.formulations.streams import Stream
from gapless.formulations.workload import Request, Workload

from .exports import chunks, opened, skipping, units, write

THREE = chunks("skip", (1, "a"), (2, "b"), (4, "c"))


@pytest.fixture
def skip(tmp_path: Path) -> Model:
    return opened(skipping(), tmp_path, "skip")


def shell(script: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        timeout=120,
        env={**os.environ, "PYTHON": sys.executable, "REQUESTS": "12"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["onnxruntime", "mnn"])
def test_every_chunk_has_a_line_and_the_lines_run(skip: Model, tmp_path: Path, engine: str) -> None:
    out = tmp_path / "out with 'odd' name"
    platform = units("a", "b", "c")
    write(out, THREE, skip, kind=ExportKind.TASKSET, engine=engine)
    lines = (out / "taskset.sh").read_text().splitlines()
    for number, unit in enumerate(platform.units):
        line = f'taskset -c {unit.cores[0]} "$PYTHON" run.py --chunk {number} --no-pin |'
        assert lines[-4 + number] == line
    done = shell(out / "taskset.sh")
    assert done.returncode == 0, done.stderr
    assert f"12 requests by {engine}" in done.stdout
    assert "the numbers agree" in done.stdout


@pytest.mark.slow
def test_replicas_run_side_by_side(tmp_path: Path, skip: Model) -> None:
    two = replicas("skip", 4, ("a", "b"))
    odd = Deployment(streams=(replace(two.streams[0], name="it's"), two.streams[1]))
    out = tmp_path / "out"
    write(out, odd, skip, kind=ExportKind.TASKSET)
    done = shell(out / "taskset.sh")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("12 requests") == 2
    (out / "skip.0-3.a+b.onnx").write_bytes(b"no model")
    assert shell(out / "taskset.sh").returncode == 5


@pytest.mark.slow
def test_a_broken_pipe_is_told(tmp_path: Path, skip: Model) -> None:
    out = tmp_path / "out"
    write(out, THREE, skip, kind=ExportKind.TASKSET)
    (out / "skip.1-1.b.onnx").unlink()
    done = shell(out / "taskset.sh")
    assert done.returncode == 5
    assert "skip.1-1.b.onnx" in done.stderr
    assert "the pipe was broken off: an earlier process has failed" in done.stderr
    assert not done.stdout


def test_quotas_are_told_and_units_without_cores_are_not_pinned(tmp_path: Path, skip: Model) -> None:
    first, second, third = units("a", "b", "c").units
    platform = replace(
        units("a"),
        units=(replace(first, quota_permille=500), replace(second, cores=()), replace(third, cores=(4, 5))),
    )
    out = tmp_path / "out"
    write(out, THREE, skip, kind=ExportKind.TASKSET, platform=platform)
    script = (out / "taskset.sh").read_text()
    assert "# a was emulated by a quota, which nothing sets here" in script
    assert "CPUQuota=50%" in script
    assert '\n"$PYTHON" run.py --chunk 1' in script
    assert "\ntaskset -c 4,5 " in script


def test_the_order_of_a_workload_is_not_for_taskset(tmp_path: Path, skip: Model) -> None:
    plan = Plan(
        chunks=tuple(replace(chunk, request=name) for name in "pq" for chunk in THREE), order=("p", "q")
    )
    requests = tuple(Request(name=name, network="skip") for name in "pq")
    deployment = deploy_rounds(plan, Workload(requests=requests))
    with pytest.raises(InvalidInputError, match="a, b, c serve several requests in the order of the plan"):
        write(tmp_path / "out", deployment, skip, kind=ExportKind.TASKSET)
    alone = Deployment(streams=(Stream(name="p\n; rm", chunks=THREE),))
    write(tmp_path / "out", alone, skip, kind=ExportKind.TASKSET)
    assert "rm" not in (tmp_path / "out" / "taskset.sh").read_text()
