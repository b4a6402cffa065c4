"""`make quick` has something of every package: a mark too many must not take one out of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.mark.slow
def test_every_folder_of_tests_takes_part() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "not slow", str(TESTS)]
    run = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:]
    chosen = {Path(line.partition("::")[0]).parent for line in run.stdout.splitlines() if "::" in line}
    assert chosen == {path.parent.relative_to(TESTS.parent) for path in TESTS.rglob("test_*.py")}
