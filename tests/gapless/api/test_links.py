"""Plans with the traffic that they make themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.api import links as module
from gapless.formulations.cluster import Pipelines
from gapless.formulations.cluster_platform import DeviceType, Speed
from gapless.formulations.errors import InvalidInputError
from tests.profiler.links.messages import LATENCY_US, links

from .test_clusters import NETWORK_OF_TWO


@pytest.fixture
def problem() -> gapless.Problem:
    speeds = {"a": 10**8, "b": 10**8, "c": 10**7}
    platform = gapless.clusters.ClusterPlatform(
        name="three",
        types=tuple(
            DeviceType(name=name, speed=Speed(flops_per_second=speed)) for name, speed in speeds.items()
        ),
        links=(gapless.clusters.Link(source="a", target="b", bytes_per_second=10**9),),
    )
    tensors = tuple(replace(tensor, bytes=3_000_000) for tensor in NETWORK_OF_TWO.tensors)
    return gapless.clusters.cluster_problem(
        replace(NETWORK_OF_TWO, tensors=tensors), platform, pipelines="one"
    )


@pytest.mark.slow
def test_traffic_of_the_plan_slows_its_links(problem: gapless.Problem) -> None:
    fits = [gapless.clusters.fit_link(one) for one in links("a", "b", "c").links]
    found = gapless.clusters.plan_with_traffic(problem, fits)
    assert found.settled
    assert found.result.plan is not None
    assert str(found.result.plan) == "0-0 a | 1-1 b"
    mean = 3_000_000 // 6  # one message, six links
    assert isinstance(found.problem.data, Pipelines)
    for link in found.problem.data.links:  # 0.003 us a byte of other traffic, see `messages.sent`
        assert link.latency_us == pytest.approx(LATENCY_US + 0.003 * mean, abs=2)
    assert found.rounds == 2


def test_plans_that_go_round_in_a_circle_end(
    problem: gapless.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = iter([10, 20, 10])
    monkeypatch.setattr(module, "_traffic", lambda *_: next(made))
    found = gapless.clusters.plan_with_traffic(problem, [])
    assert (found.settled, found.rounds) == (False, 3)
    many = iter(range(1, 100))
    monkeypatch.setattr(module, "_traffic", lambda *_: next(many))
    found = gapless.clusters.plan_with_traffic(problem, [])
    assert (found.settled, found.rounds) == (False, module.MOST_ROUNDS)


def test_only_devices_with_links_have_traffic() -> None:
    board = gapless.load_problem("pixel7a/alexnet-sparse")
    with pytest.raises(InvalidInputError, match="only pipelines over devices with links have traffic"):
        gapless.clusters.plan_with_traffic(board, [])
