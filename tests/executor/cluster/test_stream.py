"""Task streams: the next plan is placed while the present one runs; tasks keep their order everywhere."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from gapless.executor.cluster.driver import Replan
from gapless.executor.cluster.loss import Loss
from gapless.executor.cluster.stream import ClusterTask, run_stream
from gapless.executor.progress import Step
from gapless.formulations.deployment import Deployment
from tests.executor.cluster.devices import over, own_cluster
from tests.executor.pipeline.fakes import ENGINE, FakeModel, chain

pytestmark = pytest.mark.slow


def task(model: FakeModel, *parts: tuple[int, str], items: int) -> ClusterTask:
    return ClusterTask(
        model=model, engine=ENGINE, deployment=Deployment(streams=(over(model, *parts),)), items=items
    )


def test_tasks_follow_each_other_and_are_placed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    first = chain(("sleep", 0.02), ("sleep", 0.02), name="first")
    second = chain(("sleep", 0.01), ("sleep", 0.02), ("sleep", 0.01), name="second")
    third = chain(("sleep", 0.02), name="third")
    steps: list[Step] = []
    opens_us: list[float] = []
    with own_cluster("a", "b") as (cluster, members):
        device = members.actors["b"].device
        openly = device.open

        def noted(settings: str) -> str:
            opens_us.append((time.monotonic() - began) * 1e6)
            return openly(settings)

        monkeypatch.setattr(device, "open", noted)
        began = time.monotonic()
        found = run_stream(
            cluster,
            [
                task(first, (1, "a"), (1, "b"), items=100),
                task(second, (1, "b"), (2, "a"), items=100),
                task(third, (1, "b"), items=20),
            ],
            report=steps.append,
        )
    assert [(one.network, one.items) for one in found.tasks] == [
        ("first", 100),
        ("second", 100),
        ("third", 20),
    ]
    for before, after in pairwise(found.tasks):
        for name in before.devices.keys() & after.devices.keys():
            assert after.devices[name][0] >= before.devices[name][1]  # never two tasks at once
    # Its sessions are opened while the task before runs; how long that takes is the machine's affair.
    assert opens_us[1] < found.tasks[0].end_us
    assert opens_us[2] < found.tasks[1].end_us
    assert [(switch.device, switch.task) for switch in found.switches] == [("b", 1), ("a", 1), ("b", 2)]
    assert min(switch.idle_us for switch in found.switches) >= 0
    assert [step.text.split()[0] for step in steps] == ["first", "second", "third"]


def test_a_stream_goes_on_without_a_lost_device() -> None:
    models = [chain(("sleep", 0.01), ("sleep", 0.01), name=f"net{index}") for index in range(3)]

    def without_b(model: FakeModel) -> Replan:
        def replan(loss: Loss) -> Deployment:
            assert loss.device == "b"
            return Deployment(streams=(over(model, (1, "a"), (1, "c")),))

        return replan

    with own_cluster("a", "b", "c") as (cluster, members):
        tasks = [
            ClusterTask(
                model=model,
                engine=ENGINE,
                deployment=Deployment(streams=(over(model, (1, "a"), (1, "b")),)),
                items=60,
                replan=without_b(model),
            )
            for model in models
        ]

        def watch(step: Step) -> None:
            if step.text.startswith("net1"):
                members.actors["b"].lose("it went away")

        found = run_stream(cluster, tasks, report=watch)
    assert [one.items for one in found.tasks] == [60, 60, 60]
    assert "b" not in found.tasks[2].devices
    assert [loss.device for loss in found.tasks[2].losses] == ["b"]
