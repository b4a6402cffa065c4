"""Groups of devices that compute one chunk together: right numbers, exact times, losses made good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.executor.cluster.cluster import Cluster
from gapless.executor.cluster.endpoint import LinkRate
from gapless.executor.cluster.loss import Loss
from gapless.executor.cluster.pipeline import ClusterPipeline, verify_on_cluster
from gapless.executor.cluster.routes import ARRIVED, END, SENT, START
from gapless.executor.cluster.station import Station
from gapless.executor.cluster.stream import ClusterTask, run_stream
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.pipeline.trace_file import load_trace, trace_parts
from gapless.executor.pipeline.verify import References
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import InvalidPlanError, OutputMismatchError
from gapless.formulations.history import is_message
from gapless.formulations.streams import Stream
from tests.executor.cluster.devices import OwnMembers, own_cluster
from tests.executor.graph.models import load, residual
from tests.executor.pipeline.test_groups import stream

Started = tuple[Cluster, OwnMembers]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OnnxModel:
    return load(residual(2), tmp_path_factory.mktemp("model"), name="net")


@pytest.fixture(scope="module")
def four() -> Iterator[Started]:
    with own_cluster("a", "b", "c", "d") as started:
        yield started


def opened(cluster: Cluster, model: OnnxModel, *streams: Stream, **options: object) -> ClusterPipeline:
    return ClusterPipeline(cluster, Deployment(streams=streams), model, "onnxruntime", **options)  # type: ignore[arg-type]


def in_groups(model: OnnxModel) -> Stream:
    """Return a group of three that the last leads, then one device."""
    parts = stream(model, (2, "abc", [4, 7]), (len(model.network.layers), "d", []))
    return replace(parts, leaders=(2, 3))


@pytest.mark.slow
def test_groups_give_the_right_numbers_and_their_times(
    four: Started, model: OnnxModel, tmp_path: Path
) -> None:
    with opened(four[0], model, in_groups(model)) as pipeline:
        assert verify_on_cluster(pipeline, References({"net": model})).largest_error < 1e-5
        measured = pipeline.measure(Budget(requests=10))
        trace = pipeline.trace(requests=4)
        frames = [model.sample_inputs(seed) for seed in range(9)]
        found = list(pipeline.map(frames))
        rows = [result.passed for result in pipeline.play([None] * 5, wanted=False)]
    for frame, outputs in zip(frames, found, strict=True):
        np.testing.assert_allclose(outputs["b2"], model.reference(frame)["b2"], atol=1e-5)
    assert [receipt.unit for receipt in measured.receipts] == ["a", "b", "c", "d"]
    assert {(times.chunk, times.unit) for times in measured.chunks} == set(enumerate("abcd"))
    links = {(link.source, link.target): link.size for link in measured.links}
    assert links.keys() == {("c", "a"), ("a", "c"), ("c", "b"), ("b", "c"), ("c", "d")}
    # b makes rows 4 to 6 of 12, and reads more of them, of 3 channels for 8.
    assert links["b", "c"] == 3 * links["c", "d"] // 12
    assert 3 * 12 * 3 * 4 < links["c", "b"] < 12 * 12 * 3 * 4
    messages = [event for event in trace.events if is_message(event, trace.streams)]
    assert (len(messages), len(trace.events)) == (4 * 5, 4 * 9)
    path = tmp_path / "trace.json"
    path.write_text("".join(trace_parts(trace)))
    assert load_trace(path) == trace
    for passed in rows:
        a, _, c, d = passed.times_ns
        assert c[ARRIVED] <= a[SENT] <= a[ARRIVED] <= a[START] <= a[END] <= a[-1]
        assert max(a[-1], c[END]) <= d[SENT]
        assert passed.end_ns == d[END]


@pytest.mark.slow
def test_results_pass_by_a_group_that_does_not_read_them(four: Started, model: OnnxModel) -> None:
    assert any(max(tensor.targets) > tensor.source + 1 for tensor in model.network.tensors)
    parts = stream(model, (1, "a", []), (2, "bc", [5]), (len(model.network.layers), "d", []))
    with opened(four[0], model, replace(parts, leaders=(0, 2, 3))) as pipeline:
        assert verify_on_cluster(pipeline, References({"net": model})).largest_error < 1e-5


@pytest.mark.slow
def test_scattering_and_gathering_do_not_wait_for_computing(model: OnnxModel) -> None:
    """Tiles go out and come back at the same time, and requests are on their way in all phases."""
    last, latency_us = len(model.network.layers), 50_000
    with (
        own_cluster(
            "a", "b", a=LinkRate(latency_us=latency_us), b=LinkRate(latency_us=latency_us)
        ) as started,
        opened(started[0], model, stream(model, (last, "ab", [6]))) as pipeline,
    ):
        measured = pipeline.measure(Budget(requests=6))
    # There and back in turn would be a period of both.
    assert measured.period_us < 1.9 * latency_us
    assert measured.latency_us.least > 1.9 * latency_us


@pytest.mark.slow
def test_a_lost_member_and_a_lost_leader_are_made_good(model: OnnxModel) -> None:
    last, seen = len(model.network.layers), list[str]()

    def replan(loss: Loss) -> Deployment:
        seen.append(loss.device)
        group, alone = ("bc", "d") if loss.device == "a" else ("bd", "")
        parts = [(2, group, [5]), (last, alone, [])] if alone else [(last, group, [5])]
        return Deployment(streams=(replace(stream(model, *parts), leaders=(1, 2) if alone else (0,)),))

    frames, found = [model.sample_inputs(seed) for seed in range(40)], []
    with (
        own_cluster("a", "b", "c", "d") as (cluster, members),
        opened(cluster, model, in_groups(model), replan=replan) as pipeline,
    ):
        for outputs in pipeline.map(frames):
            found.append(outputs["b2"])
            if len(found) in (10, 25):
                members.actors["a" if len(found) == 10 else "c"].lose("its power was cut")
    assert seen == ["a", "c"]
    right = [model.reference(frame)["b2"] for frame in frames]
    np.testing.assert_allclose(found, right, atol=1e-5)


@pytest.mark.slow
def test_a_link_that_stalls_and_a_member_that_hangs_are_told_from_the_leader(
    model: OnnxModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, seen = len(model.network.layers), list[tuple[str, tuple[str, ...]]]()

    def replan(loss: Loss) -> Deployment:
        seen.append((loss.device, loss.link))
        left = stream(model, (last, "bc", [5])) if loss.link else stream(model, (last, "c", []))
        return Deployment(streams=(replace(left, leaders=(len(left.chunks) - 1,)),))

    computed, hangs = Station._computed, set[str]()
    monkeypatch.setattr(
        Station, "_computed", lambda self, made: None if self._name in hangs else computed(self, made)
    )
    first = replace(stream(model, (last, "abc", [4, 7])), leaders=(2,))
    # A message that waits for an emulated link waits where that can be changed meanwhile.
    with (
        own_cluster("a", "b", "c", c=LinkRate(latency_us=1000)) as (cluster, members),
        opened(cluster, model, first, replan=replan, stall_limit_s=0.6) as pipeline,
    ):
        numbers = []
        for result in pipeline.play([None] * 24, wanted=False):
            numbers.append(result.number)
            if len(numbers) == 8:
                members.actors["c"].call("slow_down", "a", '{"latency_us": 1000000000}')
            if len(numbers) == 16:
                hangs.add("b")
    assert numbers == list(range(24))
    assert seen == [("", ("c", "a")), ("b", ())]


@pytest.mark.slow
def test_tasks_in_groups_follow_each_other_on_every_device(four: Started, model: OnnxModel) -> None:
    last = len(model.network.layers)
    led_by_c = replace(stream(model, (last, "cab", [4, 8])), leaders=(0,))
    tasks = [
        ClusterTask(model=model, engine="onnxruntime", deployment=Deployment(streams=(parts,)), items=15)
        for parts in (in_groups(model), led_by_c, in_groups(model))
    ]
    found = run_stream(four[0], tasks).tasks
    assert [(task.items, set(task.devices)) for task in found] == [
        (15, {*names}) for names in ("abcd", "abc", "abcd")
    ]
    for before, after in pairwise(found):
        for name in before.devices.keys() & after.devices.keys():
            assert after.devices[name][0] >= before.devices[name][1]


@pytest.mark.slow
def test_a_wrong_tile_is_named_with_its_device(
    four: Started, model: OnnxModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = Station._computed

    def wrong(self: Station, made: dict[str, Any]) -> None:
        computed(self, {name: array + (self._name == "b") for name, array in made.items()})

    monkeypatch.setattr(Station, "_computed", wrong)
    with (
        opened(four[0], model, in_groups(model)) as pipeline,
        pytest.raises(OutputMismatchError, match=r"layers 0 to 1, rows 4-6\) on device 'b'.*ONNX Runtime"),
    ):
        verify_on_cluster(pipeline, References({"net": model}))


def test_a_device_with_two_chunks_is_refused(four: Started, model: OnnxModel) -> None:
    parts = stream(model, (2, "ab", [5]), (len(model.network.layers), "a", []))
    with pytest.raises(InvalidPlanError, match=r"a device has two chunks of stream 'net': a, b, a"):
        opened(four[0], model, parts)
