"""Whole pipelines: right numbers in the right order, whatever is cut where."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment, replicas
from gapless.formulations.errors import (
    ExecutionError,
    InvalidInputError,
    InvalidPlanError,
    OutputMismatchError,
)
from gapless.formulations.history import History
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream
from tests.executor.pipeline.fakes import Array, FakeEngine, FakeLayer, FakeModel, chain, platform
from tests.processes import workers

PLATFORM = platform("a", "b", "c")


def stream(name: str, *parts: tuple[int, str], slots: int | None = None, network: str = "") -> Stream:
    """Return a stream from (stop, unit) of its chunks."""
    starts = [0, *(stop for stop, _ in parts)]
    return Stream(
        name=name,
        chunks=tuple(
            Chunk(network=network or name, start=start, stop=stop, unit=unit)
            for start, (stop, unit) in zip(starts, parts, strict=False)
        ),
        task_slots=slots,
    )


def opened(models: Sequence[FakeModel], *streams: Stream, **options: float) -> Pipeline:
    by_name = {model.network.name: model for model in models}
    return Pipeline(
        Deployment(streams=streams),
        by_name,
        PLATFORM,
        FakeEngine(),
        **options,  # type: ignore[arg-type]
    )


def frames(count: int, length: int = 16) -> list[dict[str, Array]]:
    return [{"x": np.full(length, number + 1, np.float32)} for number in range(count)]


def in_plan_order(trace: History) -> None:
    """Assert what must hold in every trace."""
    for unit in trace.units:
        served = [event for event in trace.events if event.unit == unit]
        assert all(a.end_ns <= b.start_ns for a, b in pairwise(served))
        keys = [(event.request, event.stream, event.chunk) for event in served]
        assert keys == sorted(keys)
    done = {(event.stream, event.request, event.chunk): event for event in trace.events}
    for (stream, request, index), event in done.items():
        assert [start <= end for start, end in event.parts_ns] == [True] * 3
        if index:
            assert done[stream, request, index - 1].end_ns <= event.start_ns
        slots, last = trace.streams[stream].slots, len(trace.streams[stream].chunks) - 1
        if (stream, request + slots, 0) in done:
            assert done[stream, request, last].end_ns <= done[stream, request + slots, 0].start_ns


@st.composite
def random_models(draw: st.DrawFn, name: str) -> FakeModel:
    """Draw a chain with skip tensors and several outputs."""
    count = draw(st.integers(1, 6))
    rng = random.Random(draw(st.integers(0, 10**6)))
    names = ["x", *(f"t{index}" for index in range(count))]
    layers = [
        FakeLayer(
            does=rng.choice(("add", "scale", "same")),
            takes=tuple(dict.fromkeys((names[index], *rng.sample(names[: index + 1], min(2, index + 1))))),
            makes=names[index + 1],
            value=rng.choice((0.5, 2.0, 3.0)),
        )
        for index in range(count)
    ]
    outputs = sorted({names[-1], rng.choice(names[1:])})
    joints = sorted(rng.sample(range(count), rng.randint(0, 1)))
    return FakeModel(name, layers, outputs=outputs, joints=joints, length=rng.choice((1, 7, 1000)))


@st.composite
def random_streams(draw: st.DrawFn, model: FakeModel, name: str) -> Stream:
    """Draw a chunking; a unit may come more than once."""
    count = len(model.layers)
    cuts = sorted(draw(st.sets(st.integers(1, count - 1), max_size=3))) if count > 1 else []
    units = [draw(st.sampled_from(PLATFORM.unit_names)) for _ in range(len(cuts) + 1)]
    slots = draw(st.sampled_from((None, 1, 2, 5)))
    return stream(name, *zip([*cuts, count], units, strict=True), slots=slots, network=model.network.name)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=12)
def test_any_chunking_gives_the_right_numbers_in_order(data: st.DataObject) -> None:
    models = [data.draw(random_models("one")), data.draw(random_models("two"))]
    used = data.draw(st.sampled_from(((0,), (0, 1), (0, 0), (0, 0, 0), (0, 1, 1))))
    streams = [
        data.draw(random_streams(models[which], f"stream {number}")) for number, which in enumerate(used)
    ]
    with opened(models, *streams) as pipeline:
        if used == (0, 1, 1):
            with pytest.raises(InvalidInputError, match="one stream of each"):
                next(pipeline.map([]))
        else:
            check_map(pipeline, [models[which] for which in sorted(set(used))])
        trace = pipeline.trace(requests=6)
        in_plan_order(trace)
        assert len(trace.events) == 6 * sum(len(s.chunks) for s in streams)
        measured = pipeline.measure(Budget(requests=5, warm_up_requests=2))
        assert [times.requests for times in measured.streams] == [5] * len(streams)
        checked = verify(pipeline, References({model.network.name: model for model in models}))
        assert checked.requests == 3 * len(streams)
        assert checked.worst_error == 0


def check_map(pipeline: Pipeline, models: Sequence[FakeModel]) -> None:
    """Send different inputs through, and assert that the right outputs come in order."""
    inputs = [{model.network.name: model.sample_inputs(seed) for model in models} for seed in range(9)]
    right = [
        {model.network.name: model.reference(row[model.network.name]) for model in models} for row in inputs
    ]
    single = models[0].network.name if len(models) == 1 else None
    given_frames = [row[single] if single else row for row in inputs]
    for found, row in zip(pipeline.map(given_frames), right, strict=True):
        np.testing.assert_equal(found, row[single] if single else row)


@pytest.fixture(scope="module")
def simple() -> Iterator[Pipeline]:
    model = chain("add", ("scale", 2.0), "add", name="net")
    with opened([model], stream("net", (1, "a"), (2, "b"), (3, "a"), slots=3)) as pipeline:
        yield pipeline


def test_a_measurement_adds_up(simple: Pipeline) -> None:
    measured = simple.measure(Budget(requests=40, warm_up_requests=3))
    assert measured.requests == 40
    assert measured.deployment == simple.deployment
    assert len(measured.period_blocks_us) == 10
    assert measured.seconds == pytest.approx(measured.period_us * 40 / 1e6)
    assert np.mean(measured.period_blocks_us) == pytest.approx(measured.period_us)
    assert [times.unit for times in measured.chunks] == ["a", "b", "a"]
    assert all(times.busy_us.count == 40 for times in measured.chunks)
    for times in measured.chunks:
        assert times.busy_us.most >= times.run_us.least + times.copy_in_us.least
    for unit in measured.units:  # its time of a request is the sum of its chunks
        own = [times.busy_us for times in measured.chunks if times.unit == unit.unit]
        assert 0 < sum(one.least for one in own) <= unit.busy_us <= sum(one.most for one in own)
        assert unit.bubble_us >= 0
        assert unit.rss_bytes > 10**6
    assert measured.latency_us.median >= sum(times.busy_us.least for times in measured.chunks)
    assert [receipt.unit for receipt in measured.receipts] == ["a", "a", "b"]
    assert measured.taken_at


def test_a_budget_of_time_ends(simple: Pipeline) -> None:
    measured = simple.measure(Budget(seconds=0.5))
    assert 0 < measured.seconds <= 0.5
    assert measured.requests > 5
    short = simple.measure(Budget(seconds=1e-9, warm_up_requests=0))
    assert short.requests == 1
    both = simple.measure(Budget(seconds=60, requests=4))
    assert both.requests == 4


@pytest.mark.parametrize("warm_up", [0, 1])
def test_few_requests_can_be_measured(simple: Pipeline, warm_up: int) -> None:
    for requests in (1, 2):
        measured = simple.measure(Budget(requests=requests, warm_up_requests=warm_up))
        assert measured.requests == requests
        assert measured.period_us > 0


def test_bad_budgets_are_refused_at_once(simple: Pipeline) -> None:
    with pytest.raises(InvalidInputError, match="give seconds"):
        simple.measure(Budget())
    with pytest.raises(InvalidInputError) as caught:
        simple.measure(Budget(seconds=-1, requests=0, warm_up_requests=-1))
    assert len(caught.value.problems) == 3
    with pytest.raises(InvalidInputError, match="between 1 and"):
        simple.trace(requests=0)


def test_results_come_in_order_and_are_the_callers_own(simple: Pipeline) -> None:
    found = [output["t2"] for output in simple.map(frames(20))]
    assert [float(array[0]) for array in found] == [(number + 2) * 2 + 1 for number in range(20)]
    assert list(simple.map([])) == []


def test_a_slow_consumer_slows_the_source_down(simple: Pipeline) -> None:
    taken: list[int] = []

    def source() -> Iterator[dict[str, Array]]:
        for number, frame in enumerate(frames(50)):
            taken.append(number)
            yield frame

    for number, _ in enumerate(simple.map(source())):
        assert len(taken) <= number + 1 + 3  # as many ahead as there are task slots
        if number == 10:
            break
    assert len(taken) <= 11 + 3
    assert simple.measure(Budget(requests=3)).requests == 3  # what was on its way is gone


def test_bad_frames_are_named_after_the_good_ones_came_out(simple: Pipeline) -> None:
    bad: list[object] = [
        {"y": np.zeros(16, np.float32)},
        {"x": np.zeros(15, np.float32)},
        {"x": np.zeros(16)},
        {"x": [0.0] * 16},
        None,
    ]
    texts = ("'y' is no input", "needs float32 (16,)", "is float64", "is list", "mapping")
    for frame, text in zip(bad, texts, strict=True):
        results = simple.map([*frames(4), frame, *frames(2)])  # type: ignore[list-item]
        for _ in range(4):
            next(results)
        with pytest.raises(InvalidInputError, match="frame 4 cannot be run") as caught:
            next(results)
        assert text in str(caught.value)


def test_what_the_source_raises_comes_through(simple: Pipeline) -> None:
    def source() -> Iterator[dict[str, Array]]:
        yield from frames(2)
        raise LookupError("camera gone")

    results = simple.map(source())
    assert len([next(results), next(results)]) == 2
    with pytest.raises(LookupError, match="camera gone"):
        next(results)
    assert simple.is_open


def test_one_run_at_a_time(simple: Pipeline) -> None:
    results = simple.map(frames(5))
    next(results)
    with pytest.raises(ExecutionError, match="still running"):
        simple.measure(Budget(requests=1))
    results.close()  # type: ignore[attr-defined]
    assert simple.measure(Budget(requests=1)).requests == 1


def test_replicas_share_the_work() -> None:
    model = chain(("sleep", 0.01), name="net")
    deployment = replicas("net", 1, ("a", "b"))
    with Pipeline(deployment, {"net": model}, PLATFORM, FakeEngine()) as pipeline:
        found = [float(output["t0"][0]) for output in pipeline.map(frames(12))]
        assert found == list(range(1, 13))
        measured = pipeline.measure(Budget(requests=6))
        assert measured.requests == 12
        each = [times.period_us for times in measured.streams]
        assert measured.period_us == pytest.approx(1 / sum(1 / period for period in each))


def test_networks_side_by_side() -> None:
    models = [chain("add", "add", name="one"), chain(("scale", 4.0), name="two")]
    with opened(models, stream("one", (1, "a"), (2, "b")), stream("two", (1, "b"))) as pipeline:
        rows = [{"one": one, "two": two} for one, two in zip(frames(6), reversed(frames(6)), strict=True)]
        found = list(pipeline.map(rows))
        assert [float(row["one"]["t1"][0]) for row in found] == [3, 4, 5, 6, 7, 8]
        assert [float(row["two"]["t0"][0]) for row in found] == [24, 20, 16, 12, 8, 4]
        with pytest.raises(InvalidInputError, match="'two' is missing"):
            next(pipeline.map([{"one": frames(1)[0]}]))
        measured = pipeline.measure(Budget(requests=10))
        assert measured.period_us == pytest.approx(max(times.period_us for times in measured.streams))


def test_wrong_numbers_are_traced_to_their_chunk() -> None:
    model = chain("add", "add", "wrong", "add", name="net")
    with opened([model], stream("net", (2, "a"), (3, "b"), (4, "c"))) as pipeline:
        with pytest.raises(OutputMismatchError) as caught:
            verify(pipeline, References({"net": model}))
        text = str(caught.value)
        assert "'t2', made by 'net' (chunk 1, layers 2 to 2) on unit 'b'" in text
        assert "request 0, output 't3'" in text
        assert "fake 1, backend cpu" in text
        assert "'a'" not in text


def test_wrong_numbers_of_one_of_several_streams_are_found() -> None:
    models = [chain("add", "add", name="good"), chain("same", "wrong", name="bad")]
    streams = stream("good", (1, "a"), (2, "b")), stream("bad", (1, "b"), (2, "a"))
    with opened(models, *streams) as pipeline:
        with pytest.raises(OutputMismatchError, match=r"'t1', made by 'bad' \(chunk 1, .* on unit 'a'"):
            verify(pipeline, References({model.network.name: model for model in models}))
        assert pipeline.measure(Budget(requests=2)).requests == 4


@pytest.mark.parametrize("does", ["nan", "lose nan"])
def test_numbers_that_are_not_finite_on_one_side_are_wrong(does: str) -> None:
    model = chain("add", does, name="net")
    with (
        opened([model], stream("net", (1, "a"), (2, "b"))) as pipeline,
        pytest.raises(OutputMismatchError, match="not finite"),
    ):
        verify(pipeline, References({"net": model}))


def test_a_deployment_that_does_not_fit_is_refused_with_all_defects() -> None:
    model = chain("add", "add", name="net")
    with pytest.raises(InvalidPlanError) as caught:
        opened([model], stream("net", (1, "nowhere")), stream("other", (1, "a"), slots=1000))
    assert len(caught.value.problems) == 4
    for text in ("'nowhere' is not one of", "ends before layer 1", "no model is given", "at most 128"):
        assert text in str(caught.value)


@pytest.mark.slow
def test_nothing_is_left_behind() -> None:
    model = chain("add", "add", name="net", length=1 << 16)
    streams = stream("net", (1, "a"), (2, "b"))

    def once() -> None:
        with opened([model], streams) as pipeline:
            pipeline.measure(Budget(requests=2))
            list(pipeline.map(frames(3, 1 << 16)))

    once()
    before = left()
    once()
    assert left() == before


def left() -> tuple[int, int, set[int]]:
    """Return descriptors, mapped shared memories and children of this process."""
    maps = Path("/proc/self/maps").read_text()
    return len(os.listdir("/proc/self/fd")), maps.count("memfd:gapless"), workers(os.getpid())
