"""Deployments: their identity, their files, and what none can be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.deployment import Deployment, Mode, Rounds, replicas
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.files import Schema, dump, parse
from gapless.formulations.flow_shop.formulation import deploy
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.workload import Request, Workload

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


def test_what_makes_a_difference_changes_the_identity() -> None:
    one = deploy(PLAN, WORKLOAD)
    others = [
        deploy(replace(PLAN, order=("a", "b")), WORKLOAD),
        deploy(PLAN, replace(WORKLOAD, task_slots=None)),
        deploy(PLAN, replace(WORKLOAD, requests=TOGETHER)),
        replace(one, rounds=None),
    ]
    assert len({one.deployment_id, *(other.deployment_id for other in others)}) == 5
    assert deploy(PLAN, WORKLOAD).deployment_id == one.deployment_id


def test_deployments_survive_files() -> None:
    schema = Schema(format="gapless.deployment", version=1, content=Deployment)
    for deployment in (deploy(PLAN, WORKLOAD), replicas("net", 2, ("x", "y"))):
        assert parse(dump(deployment, schema).encode(), schema, name="it") == deployment


def test_replicas_are_no_plan() -> None:
    both = replicas("net", 2, ("x", "y"))
    assert both.plan is None
    assert [plan.chunks[0].unit for plan in both.plans] == ["x", "y"]
    alone = replicas("net", 2, ("x",))
    assert alone.plan == Plan(chunks=(Chunk(network="net", start=0, stop=2, unit="x"),))
    assert alone.plans == (alone.plan,)


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        (Rounds(mode=Mode.BATCH, arrivals_us=(0,)), "1 arrivals for 2 streams"),
        (Rounds(mode=Mode.BATCH, arrivals_us=(0, -1)), "must not be negative"),
        (Rounds(mode=Mode.STREAM, arrivals_us=(0, 1)), "0 in a stream"),
        (Rounds(mode=Mode.BATCH, arrivals_us=(0, 1), task_slots=0), "at least one is needed"),
    ],
)
def test_rounds_that_fit_nothing_are_refused(rounds: Rounds, words: str) -> None:
    streams = deploy(PLAN, WORKLOAD).streams
    with pytest.raises(InvalidPlanError, match=words):
        Deployment(streams=streams, rounds=rounds)
