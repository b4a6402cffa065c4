"""`kill -9` of the tuner, and two tuners on one store, with real processes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from gapless.formulations.errors import StoreError

from .contest import Repeatable, go_on, recorded, table

pytestmark = pytest.mark.slow

KILLS = 10


def start(*words: str) -> subprocess.Popen[str]:
    """Start a tuner and return once it has begun."""
    child = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begin\n"
    return child


def end(child: subprocess.Popen[str]) -> int:
    """Kill a tuner and return its exit code."""
    child.kill()
    assert child.stdout is not None
    child.stdout.close()
    return child.wait(60)


def test_nothing_is_lost_or_doubled_by_kill_9(tmp_path: Path) -> None:
    store, log = tmp_path / "tuning.db", tmp_path / "log"
    rng = random.Random()
    before: dict[tuple[object, ...], str] = {}
    killed = 0
    for _ in range(KILLS):
        child = start("-m", "tests.executor.tuning.contest", str(store), str(log))
        time.sleep(rng.uniform(0.0, 0.45))
        killed += end(child) == -signal.SIGKILL
        after = recorded(store)
        assert after.items() >= before.items()
        before = after
    assert killed >= 3

    resumed = go_on(store, Repeatable(Counter(str(key[1]) for key in before)))
    whole = go_on(tmp_path / "whole.db", Repeatable(Counter()))
    assert table(resumed) == table(whole)
    assert resumed.reused == len(before)
    assert recorded(store).keys() == recorded(tmp_path / "whole.db").keys()
    begun = len(log.read_text().splitlines())
    assert len(before) <= begun <= len(before) + killed  # each kill costs the visit at hand at most
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "tuning.db", "whole.db"]


STUCK = """
import sys, time
from collections import Counter
from pathlib import Path
from tests.executor.tuning.contest import Repeatable, go_on

class Stuck(Repeatable):
    def measure(self, deployment, budget):
        if sum(self.visits.values()) == 3:
            print("begin", flush=True)
            time.sleep(600)
        return super().measure(deployment, budget)

go_on(Path(sys.argv[1]), Stuck(Counter()))
"""


def test_a_second_tuner_is_told_who_works_until_that_one_is_dead(tmp_path: Path) -> None:
    store = tmp_path / "tuning.db"
    child = start("-c", STUCK, str(store))
    try:
        with pytest.raises(StoreError, match=f"worked on by process {child.pid}; wait for it"):
            go_on(store, Repeatable(Counter()))
    finally:
        end(child)
    seen = recorded(store)
    assert len(seen) == 3
    result = go_on(store, Repeatable(Counter(str(key[1]) for key in seen)))
    assert result.reused == 3
    assert recorded(store).items() >= seen.items()
