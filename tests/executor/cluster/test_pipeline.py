"""Plans over devices: right numbers, exact times, losses made good, nothing answered twice."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.executor.cluster.cluster import Cluster
from gapless.executor.cluster.endpoint import LinkRate
from gapless.executor.cluster.loss import Loss
from gapless.executor.cluster.pipeline import verify_on_cluster
from gapless.executor.cluster.routes import ARRIVED, END, QUEUED, SENT, START
from gapless.executor.cluster.station import Station
from gapless.executor.pipeline.verify import References
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import ExecutionError, InvalidInputError, OutputMismatchError, UnitLostError
from gapless.formulations.history import is_message
from tests.executor.cluster.devices import OwnMembers, opened, over, own_cluster
from tests.executor.pipeline.fakes import FakeLayer, FakeModel, chain

pytestmark = pytest.mark.slow

Started = tuple[Cluster, OwnMembers]


@pytest.fixture
def three() -> Iterator[Started]:
    with own_cluster("a", "b", "c") as started:
        yield started


def test_all_requests_come_out_once_in_order_with_right_numbers(three: Started) -> None:
    layers = [
        FakeLayer(does="scale", takes=("x",), makes="t0", value=2.0),
        FakeLayer(does="add", takes=("t0",), makes="t1", value=1.0),
        FakeLayer(does="add", takes=("x", "t0", "t1"), makes="t2", value=3.0),
    ]
    model = FakeModel("skip", layers, outputs=["t2", "t0"])
    frames = [model.sample_inputs(seed) for seed in range(30)]
    with opened(three[0], model, over(model, (1, "a"), (1, "b"), (1, "c"))) as pipeline:
        found = list(pipeline.map(frames))
        again = list(pipeline.map(frames[:3]))
    for frame, outputs in zip([*frames, *frames[:3]], [*found, *again], strict=True):
        right = model.reference(frame)
        assert outputs.keys() == right.keys()
        for name in right:
            np.testing.assert_allclose(outputs[name], right[name], rtol=1e-6)


def test_a_station_hears_that_it_is_closed_at_any_moment(
    three: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it is just about to take an earlier call, which it then takes together with this one."""
    cluster, members = three
    model = chain("add")
    taking, called = threading.Event(), threading.Event()
    read, write = os.eventfd_read, os.eventfd_write

    def slow_read(descriptor: int) -> int:
        taking.set()
        called.wait(10)
        return read(descriptor)

    def noted_write(descriptor: int, value: int) -> None:
        write(descriptor, value)
        if taking.is_set():
            called.set()

    with opened(cluster, model, over(model, (1, "a"))) as pipeline:
        list(pipeline.map([model.sample_inputs(0)]))
        (station,) = members.actors["a"].device._stations.values()
        assert isinstance(station, Station)
        monkeypatch.setattr(os, "eventfd_read", slow_read)
        monkeypatch.setattr(os, "eventfd_write", noted_write)
        station._wake()
        assert taking.wait(10)
        closing = threading.Thread(target=pipeline.close, daemon=True)
        closing.start()
        closing.join(10)
        is_stuck = closing.is_alive()
        station._wake()
    assert not is_stuck


def test_a_device_ends_while_its_links_fail(three: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, members = three
    model = chain("add", "add")
    with opened(cluster, model, over(model, (1, "a"), (1, "b"))) as pipeline:
        list(pipeline.map([model.sample_inputs(0)]))
        device = members.actors["a"].device
        assert set(device._outlets) == {"", "b"}
        for target, outlet in device._outlets.items():
            monkeypatch.setattr(outlet, "close", lambda target=target: device._link_failed(target, "it fell"))
        members.actors["a"].lose("it fell")
        assert not device._outlets.keys() & {"b"}


def test_a_consumer_that_leaves_disturbs_nobody(three: Started) -> None:
    model = chain("add", "add")
    with opened(three[0], model, over(model, (1, "a"), (1, "b"))) as pipeline:
        results: Any = pipeline.map(model.sample_inputs(seed) for seed in range(50))
        next(results)
        results.close()
        frames = [model.sample_inputs(seed) for seed in range(100, 110)]
        found = list(pipeline.map(frames))
    np.testing.assert_allclose(
        [outputs["t1"] for outputs in found], [model.reference(frame)["t1"] for frame in frames], rtol=1e-6
    )


def test_a_frame_that_does_not_fit_is_refused_after_those_before(three: Started) -> None:
    model = chain("add")
    with opened(three[0], model, over(model, (1, "a"))) as pipeline:
        results = pipeline.map([model.sample_inputs(0), {"x": np.zeros(3, dtype=np.float32)}])
        with pytest.raises(InvalidInputError, match="frame 1 cannot be run"):
            list(results)


def test_the_slowest_device_sets_the_pace_and_links_are_timed() -> None:
    model = chain(("sleep", 0.01), ("sleep", 0.03), ("sleep", 0.01), length=25_000)
    rate = LinkRate(bytes_per_second=10_000_000, latency_us=1000)
    with (
        own_cluster("a", "b", "c", a=rate) as (cluster, _),
        opened(cluster, model, over(model, (1, "a"), (1, "b"), (1, "c"))) as pipeline,
    ):
        found = pipeline.measure(Budget(requests=30, warm_up_requests=3))
        trace = pipeline.trace(requests=6)
    assert found.requests == 30
    assert found.period_us >= 30_000
    slow = next(times for times in found.chunks if times.unit == "b")
    assert found.period_us >= 0.99 * slow.busy_us.least
    first, second = found.links
    assert (first.source, first.target, first.size) == ("a", "b", 100_000)
    assert first.time_us.least >= 11_000
    assert second.time_us.median < first.time_us.median
    assert [receipt.unit for receipt in found.receipts] == ["a", "b", "c"]
    messages = [event for event in trace.events if is_message(event, trace.streams)]
    assert {event.unit for event in messages} == {"a -> b", "b -> c"}
    assert len(messages) == 12
    assert len(trace.events) == 30


def test_sending_and_receiving_do_not_wait_for_computing() -> None:
    """EPipe 3.1.2: requests arrive, and results leave, while a device computes."""
    model = chain(("sleep", 0.01), ("sleep", 0.15), ("sleep", 0.01), length=250_000)
    rate = LinkRate(latency_us=100_000)
    with (
        own_cluster("a", "b", "c", b=rate) as (cluster, _),
        opened(cluster, model, over(model, (1, "a"), (1, "b"), (1, "c"), slots=6)) as pipeline,
    ):
        found = [result.passed.times_ns for result in pipeline.play([None] * 12, wanted=False)]
    computing = [(row[1][START], row[1][END]) for row in found]
    arrivals = [row[1][ARRIVED] for row in found]
    inside = sum(start < at < end for at in arrivals for start, end in computing)
    assert inside >= 6
    sending = [(row[2][SENT], row[2][ARRIVED]) for row in found]
    beside = sum(
        min(end, sent_end) - max(start, sent) > 0.05e9
        for sent, sent_end in sending
        for start, end in computing
    )
    assert beside >= 6
    gaps_ns = [following[0] - before[1] for before, following in pairwise(computing)]
    assert sorted(gaps_ns)[len(gaps_ns) // 2] < 0.05e9  # half of a message at most: it did not wait for them
    assert all(row[2][QUEUED] <= row[2][SENT] for row in found)


def test_pipelines_side_by_side_share_the_work_as_they_can(three: Started) -> None:
    model = chain(("sleep", 0.01), ("sleep", 0.01))
    fast = over(model, (1, "a"), (1, "b"), name="pair")
    slow = over(model, (2, "c"), name="single")
    with opened(three[0], model, fast, slow) as pipeline:
        results = list(pipeline.play([None] * 60, wanted=True))
        measured = pipeline.measure(Budget(requests=20))
    assert [result.number for result in results] == list(range(60))
    shares = [sum(result.passed.stream == index for result in results) for index in (0, 1)]
    assert sum(shares) == 60
    assert shares[0] > shares[1] > 5
    rates = [1 / times.period_us for times in measured.streams]
    assert 1 / measured.period_us == pytest.approx(sum(rates))


def test_a_lost_device_is_made_good_and_nothing_is_answered_twice(three: Started) -> None:
    cluster, members = three
    model = chain(*["add"] * 3, ("sleep", 0.005))
    seen: list[Loss] = []

    def replan(loss: Loss) -> Deployment:
        seen.append(loss)
        return Deployment(streams=(over(model, (2, "a"), (2, "c")),))

    frames = [model.sample_inputs(seed) for seed in range(60)]
    with opened(cluster, model, over(model, (1, "a"), (1, "b"), (2, "c")), replan=replan) as pipeline:
        found = []
        for outputs in pipeline.map(frames):
            found.append(outputs["t3"])
            if len(found) == 20:
                members.actors["b"].lose("its power was cut")
        assert [loss.device for loss in pipeline.losses] == ["b"]
        assert pipeline.deployment.units == ("a", "c")
        (loss,) = pipeline.losses
        assert loss.then == str(pipeline.deployment)
        assert datetime.fromisoformat(loss.at).utcoffset() is not None
    assert len(found) == len(frames)
    np.testing.assert_allclose(found, [model.reference(frame)["t3"] for frame in frames], rtol=1e-6)
    assert [str(loss) for loss in seen] == ["device 'b' is lost: its power was cut"]
    assert list(cluster.devices) == ["a", "c"]


def test_a_measurement_begins_anew_after_a_loss(three: Started) -> None:
    cluster, members = three
    model = chain(("sleep", 0.01), ("sleep", 0.01))
    with opened(
        cluster,
        model,
        over(model, (1, "a"), (1, "b")),
        replan=lambda loss: Deployment(streams=(over(model, (1, "a"), (1, "c")),)),
    ) as pipeline:
        threading.Timer(0.3, members.actors["b"].lose, ["it went away"]).start()
        found = pipeline.measure(Budget(requests=60))
    assert found.requests == 60
    assert found.deployment.units == ("a", "c")
    assert {use.unit for use in found.units} == {"a", "c"}


def test_without_a_plan_the_lost_requests_are_named(three: Started) -> None:
    cluster, members = three
    model = chain("add", ("sleep", 0.02), name="net")
    with opened(cluster, model, over(model, (1, "a"), (1, "b"), slots=2)) as pipeline:
        results = pipeline.map(model.sample_inputs(seed) for seed in range(50))
        next(results)
        members.actors["a"].lose("it fell")
        with pytest.raises(
            UnitLostError,
            match=r"device 'a' is lost: it fell; not answered yet: request \d+(, \d+)? of 'net'",
        ):
            list(results)


def test_a_stalled_link_is_named_and_avoided() -> None:
    model = chain("add", "add")
    losses = []

    def replan(loss: Loss) -> Deployment:
        losses.append(loss)
        return Deployment(streams=(over(model, (1, "a"), (1, "c")),))

    with own_cluster("a", "b", "c", a=LinkRate(latency_us=1000)) as (cluster, members):
        stream = over(model, (1, "a"), (1, "b"))
        with opened(cluster, model, stream, replan=replan, stall_limit_s=1.0) as pipeline:
            numbers = []
            for result in pipeline.play([None] * 40, wanted=False):
                numbers.append(result.number)
                if len(numbers) == 10:
                    members.actors["a"].call("slow_down", "b", '{"latency_us": 1000000000}')
    assert numbers == list(range(40))
    assert [(loss.device, loss.link) for loss in losses] == [("", ("a", "b"))]
    assert "has been on its way for" in losses[0].words


def test_a_worker_that_dies_is_a_lost_device(three: Started) -> None:
    model = chain("add", "crash")
    with (
        opened(three[0], model, over(model, (1, "a"), (1, "b"))) as pipeline,
        pytest.raises(UnitLostError, match=r"device 'b' is lost: .*killed by SIGKILL"),
    ):
        pipeline.measure(Budget(requests=3))


def test_what_an_engine_raises_comes_with_device_and_request(three: Started) -> None:
    model = chain("add", "fail", name="net")
    with (
        opened(three[0], model, over(model, (1, "a"), (1, "b"))) as pipeline,
        pytest.raises(ExecutionError, match=r"device 'b': request 0 of 'net .*the fake engine cannot"),
    ):
        pipeline.measure(Budget(requests=3))
    with pytest.raises(ExecutionError, match=r"device 'b'.*not here"):
        opened(three[0], chain("add", "absent"), over(model, (1, "a"), (1, "b")))
    assert not three[0]._takers


def test_numbers_are_checked_and_the_first_wrong_chunk_is_named(three: Started) -> None:
    model = chain("add", "scale", "add", name="net")
    stream = over(model, (1, "a"), (1, "b"), (1, "c"))
    with opened(three[0], model, stream) as pipeline:
        found = verify_on_cluster(pipeline, References({"net": model}))
    assert (found.requests, found.largest_error < 1e-6) == (3, True)
    wrong = chain("add", "wrong", "add", name="net")
    with (
        opened(three[0], wrong, stream) as pipeline,
        pytest.raises(OutputMismatchError, match=r"first wrong tensor is 't1'.* on device 'b'"),
    ):
        verify_on_cluster(pipeline, References({"net": wrong}))


DEVICE = """
import json, sys, time
from gapless.executor.cluster.device import Device
device = Device(json.dumps({"name": "a", "rate": {}, "host": "127.0.0.1"}), b"k" * 32)
device.write("d", b"half", is_last=False)
device.write("e", b"a piece", is_last=True)
assert json.loads(device.missing('["d", "e"]')) == ["d"]
assert device._read("e") == b"a piece"
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_pieces_are_gone_when_a_device_is_killed(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", DEVICE], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    assert not list(tmp_path.iterdir())


def test_pieces_travel_once(three: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, members = three
    written: list[str] = []
    device = members.actors["a"].device
    write = device.write

    def noted(digest: str, content: bytes, *, is_last: bool) -> None:
        written.append(digest)
        write(digest, content, is_last=is_last)

    monkeypatch.setattr(device, "write", noted)
    model = chain("add", "add")
    for _ in range(2):
        with opened(cluster, model, over(model, (1, "a"), (1, "b"))):
            pass
    assert len(written) == 1


def test_clocks_of_one_machine_agree(three: Started) -> None:
    three[0].set_clocks()
    for member in three[0].devices.values():
        assert abs(member.clock.offset_ns) <= member.clock.error_ns + 1000
        assert member.clock.error_ns < 50e6


def test_nothing_is_left_behind() -> None:
    before = threading.active_count()
    model = chain("add", "add")
    with (
        own_cluster("a", "b") as (cluster, _),
        opened(cluster, model, over(model, (1, "a"), (1, "b"))) as pipeline,
    ):
        pipeline.measure(Budget(requests=5))
    until = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.05)
    assert threading.active_count() <= before  # threads of earlier tests may have ended meanwhile
