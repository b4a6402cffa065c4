"""Deployments: what plans become, and what cannot be deployed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.executor.deployment import Deployment, Rounds, deploy, replicas
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.files import Schema, dump, parse
from gapless.formulations.flow_shop.workload import Execution, LoadPolicy, Mode, Request, Workload
from gapless.formulations.plan import Chunk, Plan

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
    found = deploy(PLAN, workload=WORKLOAD)
    assert [stream.name for stream in found.streams] == ["b", "a"]
    assert found.rounds == Rounds(mode=Mode.BATCH, arrivals_us=(0, 7), task_slots=3)
    assert {stream.slots for stream in found.streams} == {1}
    assert found.networks == ("net",)
    assert found.units == ("x", "y")
    assert found.is_batch
    assert found.plan == PLAN
    assert str(found) == "b: 0-0 x | 1-1 y; a: 0-1 x"
    endless = deploy(PLAN, workload=Workload(requests=TOGETHER, mode=Mode.STREAM))
    assert not endless.is_batch
    assert [stream.slots for stream in endless.streams] == [4, 2]


def test_what_makes_a_difference_changes_the_identity() -> None:
    one = deploy(PLAN, workload=WORKLOAD)
    others = [
        deploy(replace(PLAN, order=("a", "b")), workload=WORKLOAD),
        deploy(PLAN, workload=replace(WORKLOAD, task_slots=None)),
        deploy(PLAN, workload=replace(WORKLOAD, requests=TOGETHER)),
        replace(one, rounds=None),
    ]
    assert len({one.deployment_id, *(other.deployment_id for other in others)}) == 5
    assert deploy(PLAN, workload=WORKLOAD).deployment_id == one.deployment_id


def test_deployments_survive_files() -> None:
    schema = Schema(format="gapless.deployment", version=1, content=Deployment)
    for deployment in (deploy(PLAN, workload=WORKLOAD), replicas("net", 2, ("x", "y"))):
        assert parse(dump(deployment, schema).encode(), schema, name="it") == deployment


def test_replicas_are_no_plan() -> None:
    assert replicas("net", 2, ("x", "y")).plan is None
    alone = replicas("net", 2, ("x",))
    assert alone.plan == Plan(chunks=(Chunk(network="net", start=0, stop=2, unit="x"),))


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (None, "is a plan for a workload; say which one"),
        (replace(WORKLOAD, requests=WORKLOAD.requests[:1]), "is no plan for the requests a"),
        (replace(WORKLOAD, load_policy=LoadPolicy.RUNNING), "keeps all weights in memory"),
        (Workload(requests=TOGETHER, execution=Execution.COLUMNS), "columns are a way to score"),
    ],
)
def test_plans_that_the_runtime_does_not_serve_are_refused(workload: Workload | None, words: str) -> None:
    with pytest.raises(InvalidPlanError) as caught:
        deploy(PLAN, workload=workload)
    assert words in str(caught.value)


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
    streams = deploy(PLAN, workload=WORKLOAD).streams
    with pytest.raises(InvalidPlanError, match=words):
        Deployment(streams=streams, rounds=rounds)
