"""Workloads on the pipeline runtime: right numbers for every request, in plan order, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment, Mode
from gapless.formulations.errors import ExecutionError, InvalidInputError, InvalidPlanError, UnitLostError
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.history import History, Interval
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.workload import Request, Workload
from tests.executor.pipeline.fakes import FakeEngine, FakeModel, chain, platform
from tests.executor.pipeline.test_pipeline import in_plan_order

PLATFORM = platform("a", "b")

ADD = chain("add", "add", "add", name="add")
SCALE = chain(("scale", 2.0), ("scale", 3.0), name="scale")
MIX = chain("add", ("scale", 5.0), name="mix")


def plan(**chunks: Sequence[tuple[int, str]]) -> Plan:
    """Return a plan that serves requests in this order; each is network_number=[(stop, unit), ...]."""
    found = []
    for name, parts in chunks.items():
        starts = [0, *(stop for stop, _ in parts)]
        found += [
            Chunk(request=name, network=name.partition("_")[0], start=start, stop=stop, unit=unit)
            for start, (stop, unit) in zip(starts, parts, strict=False)
        ]
    return Plan(chunks=tuple(found), order=tuple(chunks))


FOUR = plan(
    mix=[(1, "a"), (2, "b")], add_1=[(1, "a"), (3, "b")], scale=[(2, "b")], add_2=[(2, "a"), (3, "b")]
)
"""`scale` skips the first unit; `add` comes twice, cut differently."""


def workload(order: Plan, *, arrivals_us: Sequence[int] = (), **options: object) -> Workload:
    """Return the workload that a plan serves."""
    arrivals = arrivals_us or [0] * len(order.order)
    return Workload(
        requests=tuple(
            Request(name=name, network=name.partition("_")[0], arrival_us=arrival)
            for name, arrival in zip(order.order, arrivals, strict=True)
        ),
        **options,  # type: ignore[arg-type]
    )


def opened(
    deployment: Deployment, *more: FakeModel, stall_limit_s: float | None = None, restarts: int = 0
) -> Pipeline:
    models = {model.network.name: model for model in (ADD, SCALE, MIX, *more)}
    return Pipeline(
        deployment, models, PLATFORM, FakeEngine(), stall_limit_s=stall_limit_s, restarts=restarts
    )


def rounds_of(trace: History) -> list[tuple[Interval, ...]]:
    rounds = trace.rounds()
    assert list(rounds) == list(range(len(rounds)))
    return list(rounds.values())


def test_every_request_is_right_and_served_in_plan_order() -> None:
    with opened(deploy_rounds(FOUR, workload(FOUR))) as pipeline:
        trace = pipeline.trace(requests=5)
        in_plan_order(trace)
        assert [len(events) for events in rounds_of(trace)] == [7] * 5
        served = [trace.names[event.stream] for event in rounds_of(trace)[0] if event.unit == "a"]
        assert served == ["mix", "add_1", "add_2"]
        served = [trace.names[event.stream] for event in rounds_of(trace)[0] if event.unit == "b"]
        assert served == ["mix", "add_1", "scale", "add_2"]
        found = verify(pipeline, References({m.network.name: m for m in (ADD, SCALE, MIX)}))
        assert (found.requests, found.worst_error) == (12, 0)
        frames = [
            {name: {"x": np.full(16, number + index, np.float32)} for index, name in enumerate(FOUR.order)}
            for number in range(4)
        ]
        for number, outputs in enumerate(pipeline.map(frames)):
            values = {name: float(next(iter(tensors.values()))[0]) for name, tensors in outputs.items()}
            right = [5 * (number + 1), number + 4, 6 * (number + 2), number + 6]
            assert values == dict(zip(FOUR.order, right, strict=True))
        with pytest.raises(InvalidInputError, match="request 'add_2' is missing"):
            next(pipeline.map([{name: frames[0][name] for name in FOUR.order[:3]}]))


def test_a_batch_waits_for_its_last_request() -> None:
    with opened(deploy_rounds(FOUR, workload(FOUR))) as pipeline:
        rounds = rounds_of(pipeline.trace(requests=6))
        for before, after in pairwise(rounds):
            assert max(e.end_ns for e in before) <= min(e.start_ns for e in after)
        measured = pipeline.measure(Budget(requests=8, warm_up_requests=2))
    makespan = measured.makespan_us
    assert makespan is not None
    assert makespan.count == 8
    assert measured.requests == 4 * 8
    assert makespan.least <= measured.period_us <= makespan.most
    assert len(measured.period_blocks_us) == 8
    for times in measured.streams:
        assert times.requests == times.latency_us.count == 8
        assert 0 < times.latency_us.least <= times.latency_us.most <= makespan.most
        # From the output before the first round to that of the last one: all rounds but the last are within.
        assert 8 * times.period_us >= 8 * measured.period_us - makespan.most - 1
    for use in measured.units:
        assert 0 < use.busy_us + use.bubble_us <= makespan.most * 1.001
        assert use.bubble_us >= 0


def test_each_unit_serves_chunks_in_its_own_order_and_requests_come_back() -> None:
    parts = plan(mix=[(2, "b")], add_1=[(1, "a"), (2, "b"), (3, "a")], scale=[(1, "b"), (2, "a")])
    # On a the second chunk of `scale` comes before the third one of `add_1`, on b `scale` is first of all.
    order = ("add_1", "scale", "add_1", "scale", "mix", "add_1")
    named = deploy_rounds(parts, workload(parts))
    assert named.rounds is not None
    with opened(replace(named, rounds=replace(named.rounds, order=order))) as pipeline:
        for events in rounds_of(pipeline.trace(requests=4)):
            served = {
                unit: [(parts.order[e.stream], e.chunk) for e in events if e.unit == unit] for unit in "ab"
            }
            assert served == {
                "a": [("add_1", 0), ("scale", 1), ("add_1", 2)],
                "b": [("scale", 0), ("add_1", 1), ("mix", 0)],
            }
        found = verify(pipeline, References({m.network.name: m for m in (ADD, SCALE, MIX)}))
        assert (found.requests, found.worst_error) == (9, 0)


def test_requests_that_run_the_same_chunk_share_its_session() -> None:
    same = plan(add_1=[(3, "a")], add_2=[(3, "a")], add_3=[(1, "a"), (3, "b")])
    with opened(deploy_rounds(same, workload(same))) as pipeline:
        assert [(r.unit, r.piece) for r in pipeline.receipts] == [
            ("a", "add[0:3)"),
            ("a", "add[0:1)"),
            ("b", "add[1:3)"),
        ]
        assert verify(pipeline, References({"add": ADD})).worst_error == 0


@pytest.mark.slow
def test_a_stream_of_rounds_does_not_wait() -> None:
    slow = chain(("sleep", 0.004), ("sleep", 0.004), name="slow")
    served = plan(slow_1=[(1, "a"), (2, "b")], slow_2=[(1, "a"), (2, "b")])
    measured = {}
    for mode in Mode:
        with opened(deploy_rounds(served, workload(served, mode=mode)), slow) as pipeline:
            in_plan_order(pipeline.trace(requests=6))
            measured[mode] = pipeline.measure(Budget(requests=10, warm_up_requests=3))
    assert measured[Mode.STREAM].makespan_us is None
    assert measured[Mode.BATCH].period_us > 12_000  # three sleeps, one after the other
    # Both requests of a round have to pass each unit: their rates do not add up.
    assert 8_000 < measured[Mode.STREAM].period_us == max(s.period_us for s in measured[Mode.STREAM].streams)


def test_a_request_waits_for_its_arrival() -> None:
    pair = plan(add=[(3, "a")], mix=[(2, "b")])
    served = deploy_rounds(pair, workload(pair, arrivals_us=[0, 20_000]))
    with opened(served) as pipeline:
        measured = pipeline.measure(Budget(requests=3, warm_up_requests=0))
    assert measured.makespan_us is not None
    assert measured.makespan_us.least > 20_000
    latencies = {times.stream: times.latency_us.least for times in measured.streams}
    assert 0 < latencies["mix"] < latencies["mix"] + 20_000 <= measured.makespan_us.most


@pytest.mark.slow
def test_waiting_for_an_arrival_is_no_hang() -> None:
    late = plan(add=[(3, "a")], mix=[(2, "b")])
    served = deploy_rounds(late, workload(late, arrivals_us=[2_500_000, 0]))
    with opened(served, stall_limit_s=1.5) as pipeline:
        assert len(pipeline.trace(requests=1).events) == 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("task_slots", [1, 2])
def test_no_more_are_on_their_way_than_there_are_task_slots(mode: Mode, task_slots: int) -> None:
    served = deploy_rounds(FOUR, workload(FOUR, mode=mode, task_slots=task_slots))
    with opened(served) as pipeline:
        trace = pipeline.trace(requests=4)
    in_plan_order(trace)
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    for event in trace.events:
        key = (event.request, event.stream)
        start, end = spans.get(key, (event.start_ns, event.end_ns))
        spans[key] = min(start, event.start_ns), max(end, event.end_ns)
    for number, (start, _) in enumerate(spans[key] for key in sorted(spans)):
        assert sum(end <= start for _, end in spans.values()) >= number + 1 - task_slots


@pytest.mark.slow
def test_budgets_of_time_end_between_rounds() -> None:
    with opened(deploy_rounds(FOUR, workload(FOUR))) as pipeline:
        measured = pipeline.measure(Budget(seconds=0.5))
        assert {times.requests for times in measured.streams} == {measured.requests // 4}
        assert measured.requests > 4
        assert pipeline.measure(Budget(seconds=1e-9, warm_up_requests=0)).requests == 4


@pytest.mark.slow
def test_failures_name_the_request() -> None:
    bad = chain("add", "stumble", name="bad")
    served = plan(add_1=[(3, "a")], bad_7=[(1, "a"), (2, "b")])
    with opened(deploy_rounds(served, workload(served)), bad) as pipeline:
        with pytest.raises(ExecutionError, match=r"request 0 of 'bad_7' \(chunk 1, layers 1 to 1\) failed"):
            pipeline.measure(Budget(requests=3))
        assert not pipeline.is_open
    frozen = chain("freeze", name="frozen")
    served = plan(add_1=[(3, "a")], frozen_1=[(1, "b")])
    with opened(deploy_rounds(served, workload(served)), frozen, stall_limit_s=1) as pipeline:
        with pytest.raises(UnitLostError) as caught:
            pipeline.measure(Budget(requests=1))
        assert "was running request 0 of 'frozen_1'" in str(caught.value)


@pytest.mark.slow
def test_lost_workers_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(mark))
    fragile = chain(("crash once", float(ADD.sample_inputs(0)["x"][0])), name="fragile")
    served = plan(add_1=[(1, "a"), (3, "b")], fragile_1=[(1, "b")])
    with opened(deploy_rounds(served, workload(served)), fragile, restarts=1) as pipeline:
        measured = pipeline.measure(Budget(requests=3))
    assert mark.exists()
    assert measured.makespan_us is not None
    assert measured.makespan_us.count == 3


def test_too_many_requests_are_refused() -> None:
    many = plan(**{f"add_{number}": [(1, "a"), (3, "b")] for number in range(200)})
    with pytest.raises(InvalidPlanError, match="200 streams with all their chunks need 600 pipes"):
        opened(deploy_rounds(many, workload(many)))
