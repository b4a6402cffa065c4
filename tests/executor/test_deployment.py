"""What plans become when they are deployed, and what cannot be deployed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.chunking.operation import deploy
from gapless.formulations.deployment import Mode, Rounds
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.workload import Execution, LoadPolicy, Request, Workload

PLAN = Plan(
    order=("b", "a"),
    chunks=(
        Chunk(request="a", network="net", start=0, stop=2, unit="x"),
        Chunk(request="b", network="net", start=0, stop=1, unit="x"),
        Chunk(request="b", network="net", start=1, stop=2, unit="y"),
    ),
)
WORKLOAD = Workload(
    requests=(Request(name="a", network="net", arrival_us=7), Request(name="b", network="net")),
    task_slots=3,
)
TOGETHER = tuple(Request(name=name, network="net") for name in "ab")


def test_a_plan_for_a_workload_is_one_stream_a_request_in_its_order() -> None:
    found = deploy_rounds(PLAN, WORKLOAD)
    assert [stream.name for stream in found.streams] == ["b", "a"]
    assert found.rounds == Rounds(mode=Mode.BATCH, arrivals_us=(0, 7), task_slots=3)
    assert {stream.slots for stream in found.streams} == {1}
    assert found.networks == ("net",)
    assert found.units == ("x", "y")
    assert found.is_batch
    assert found.plan == PLAN
    assert str(found) == "b: 0-0 x | 1-1 y; a: 0-1 x"
    endless = deploy_rounds(PLAN, Workload(requests=TOGETHER, mode=Mode.STREAM))
    assert not endless.is_batch
    assert [stream.slots for stream in endless.streams] == [4, 2]


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (replace(WORKLOAD, requests=WORKLOAD.requests[:1]), "is no plan for the requests a"),
        (replace(WORKLOAD, load_policy=LoadPolicy.RUNNING), "keeps all weights in memory"),
        (Workload(requests=TOGETHER, execution=Execution.COLUMNS), "columns are a way to score"),
    ],
)
def test_plans_that_the_runtime_does_not_serve_are_refused(workload: Workload, words: str) -> None:
    with pytest.raises(InvalidPlanError) as caught:
        deploy_rounds(PLAN, workload)
    assert words in str(caught.value)


def test_a_plan_for_a_workload_is_no_plan_for_one_network() -> None:
    with pytest.raises(InvalidPlanError, match="is a plan for a workload; say which one"):
        deploy(PLAN)
