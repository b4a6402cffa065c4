"""Sweeps over real nodes of Ray on this machine; one of them dies."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from gapless.executor.cluster.nodes import LocalCluster, parse_local_nodes
from gapless.executor.machine.cores import usable_cores
from gapless.executor.progress import Step
from gapless.sweeps.run import sweep
from gapless.sweeps.spec import LimitSet, Sweep

pytest.importorskip("ray", reason="needs Ray: pip install 'gapless[cluster]'")
pytestmark = pytest.mark.slow

ASKED = Sweep(
    models=("octree",),
    platforms=("pixel7a", "oneplus11"),
    backends=("native", "exhaustive"),
    limits=tuple(LimitSet(max_period_us=10_000 + number) for number in range(6)),
)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in token.items():
        monkeypatch.setenv(name, value)
    cores = (usable_cores() * 2)[:2]
    with closing(LocalCluster(token)) as found:
        for node in parse_local_nodes(
            ",".join(f"node{number}=core{core}" for number, core in enumerate(cores))
        ):
            found.start(node)
        yield found


def test_all_answers_are_there_although_a_node_dies(cluster: LocalCluster) -> None:
    seen: list[Step] = []

    def kill(step: Step) -> None:
        seen.append(step)
        if step.done >= 6 and "node1" in cluster._keepers:
            cluster.kill("node1")

    started = time.monotonic()
    found = sweep(ASKED, address=cluster.address, report=kill)
    assert time.monotonic() - started < 300
    assert len(found.rows) == 24
    assert not found.failed, [row.error for row in found.failed]
    alone = sweep(ASKED, jobs=1)
    assert [(row.value, row.plan_id) for row in found.rows] == [
        (row.value, row.plan_id) for row in alone.rows
    ]
    assert all("was lost" in note or "ended with" in note for note in found.notes)
    assert "node1" not in cluster._keepers
