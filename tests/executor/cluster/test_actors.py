"""Devices as actors of Ray on local nodes: the whole way, and what is lost there."""

from __future__ import annotations

import os
import signal
import time

import pytest

from gapless.executor.cluster.actors import RayMembers, local_cluster
from gapless.executor.cluster.loss import Loss
from gapless.executor.cluster.pipeline import verify_on_cluster
from gapless.executor.pipeline.verify import References
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment
from tests.executor.cluster.devices import opened, over
from tests.executor.pipeline.fakes import chain, cores

pytestmark = [pytest.mark.slow, pytest.mark.measures]


def test_a_process_and_a_node_are_lost_and_the_requests_go_on() -> None:
    pytest.importorskip("ray", reason="needs the extra cluster")
    model = chain("add", ("sleep", 0.005), "add", name="net")
    usable = cores()
    nodes = ",".join(f"{name}=core{usable[index % len(usable)]}" for index, name in enumerate("abc"))
    seen: list[Loss] = []

    def replan(loss: Loss) -> Deployment:
        seen.append(loss)
        last = (3, "c") if len(seen) == 2 else (2, "c")
        return Deployment(streams=(over(model, *([] if len(seen) == 2 else [(1, "a")]), last),))

    with local_cluster(nodes) as cluster:
        members = cluster.members
        assert isinstance(members, RayMembers)
        stream = over(model, (1, "a"), (1, "b"), (1, "c"))
        with opened(cluster, model, stream, replan=replan) as pipeline:
            assert verify_on_cluster(pipeline, References({"net": model})).largest_error < 1e-6
            assert pipeline.measure(Budget(requests=20)).requests == 20
            numbers = []
            for result in pipeline.play([None] * 150, wanted=True):
                numbers.append(result.number)
                if len(numbers) == 30:
                    os.kill(cluster.status("b")["processes"][0], signal.SIGKILL)
                if len(numbers) == 90:
                    members.membership.kill_node("a")
            assert numbers == list(range(150))
            assert [loss.device for loss in seen] == ["b", "a"]
            assert seen[0].words == "its process has died"
            # Ray hears of the process before it misses the node.
            assert seen[1].words in ("its node has left the cluster", "its process has died")
            until = time.monotonic() + 30  # a loss is known by a refused connection before Ray says it
            while "a" in members.membership.alive() and time.monotonic() < until:
                time.sleep(0.2)
            assert "a" not in members.membership.alive()
            assert pipeline.deployment.units == ("c",)
