"""Recurrent networks: each request of a stream begins with what the last one left, whatever runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.executor.engines.registry import get_engine
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.runner import Budget
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.cycles import cycle_of
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import InvalidInputError, InvalidPlanError, UnitLostError
from gapless.formulations.network import State
from gapless.formulations.plan import Chunk
from gapless.formulations.problem import Problem
from gapless.formulations.streams import Stream
from gapless.requests import with_states

PLATFORM = gapless.this_device(units=["core0", "core1"])
STATES = (State(input="h", output="h_out"),)
FILE = f"{Path(__file__).with_name('recurrent.py')}:NET"


def stream(*ends: tuple[int, str], slots: int | None = None) -> Stream:
    starts = [0, *(stop for stop, _ in ends)]
    chunks = tuple(
        Chunk(network="net", start=start, stop=stop, unit=unit)
        for start, (stop, unit) in zip(starts, ends, strict=False)
    )
    plain = Stream(name="net", chunks=chunks, task_slots=slots, states=STATES)
    if len(ends) == len({unit for _, unit in ends}):
        return plain
    return replace(plain, cycle=cycle_of([900_000] * len(ends), [unit for _, unit in ends]))


def opened(*streams: Stream, **how: Any) -> Pipeline:
    engine = get_engine("callable")
    model = gapless.open_model(FILE)
    return Pipeline(Deployment(streams=streams), {"net": model}, PLATFORM, engine, **how)


def frames(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return inputs; only the state of the first one counts."""
    rng = np.random.default_rng(seed)
    return [{name: rng.normal(size=4).astype(np.float32) for name in "xh"} for _ in range(count)]


def stepped(given: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the outputs of the uncut network, step by step."""
    model, found, state = gapless.open_model(FILE), [], given[0]["h"]
    for frame in given:
        outputs = model.reference({"x": frame["x"], "h": state})
        state = outputs["h_out"]
        found.append(outputs)
    return found


def agree(found: Sequence[Any], right: Sequence[Any]) -> bool:
    pairs = zip(found, right, strict=True)
    return all(np.allclose(one[name], other[name], atol=1e-5) for one, other in pairs for name in other)


@pytest.mark.parametrize("slots", [None, 1, 2])
@pytest.mark.parametrize(
    "ends",
    [
        ((4, "core0"),),
        ((1, "core0"), (4, "core1")),
        ((3, "core0"), (4, "core1")),
        ((1, "core0"), (3, "core1"), (4, "core0")),
    ],
)
def test_outputs_are_those_of_the_uncut_network_step_by_step(
    ends: Sequence[tuple[int, str]], slots: int | None
) -> None:
    with opened(stream(*ends, slots=slots)) as pipeline:
        for seed in (1, 2):  # each run begins with the state of its first frame
            given = frames(25, seed)
            assert agree(list(pipeline.map(given)), stepped(given))
        assert pipeline.measure(Budget(requests=20, warm_up_requests=3)).requests == 20
        assert verify(pipeline, References({"net": gapless.open_model(FILE)})).worst_error == 0


def test_each_of_two_streams_hands_its_own_state_on() -> None:
    two = replace(stream((4, "core0")), name="one"), replace(stream((4, "core1")), name="other")
    with opened(*two) as pipeline:
        assert verify(pipeline, References({"net": gapless.open_model(FILE)})).worst_error == 0


def test_what_does_not_hand_its_state_on_is_found() -> None:
    forgetful = replace(stream((1, "core0"), (4, "core1")), states=())
    with opened(forgetful) as pipeline:
        given = frames(5)
        assert not agree(list(pipeline.map(given)), stepped(given))


def test_a_state_that_another_chunk_makes_is_refused() -> None:
    words = r"state h=h_out of stream 'net' is taken by the chunks \[0\] and made by \[1\]"
    with pytest.raises(InvalidPlanError, match=words):
        opened(stream((2, "core0"), (4, "core1")))


def test_a_lost_worker_ends_the_run_because_the_state_is_lost_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "mark"))
    given = frames(6)
    given[4]["x"] = np.full(4, 13, np.float32)
    with (
        opened(stream((1, "core0"), (4, "core1")), restarts=3) as pipeline,
        pytest.raises(UnitLostError),
    ):
        list(pipeline.map(given))


def network_file(path: Path) -> Path:
    """Write a network with a GRU between dense layers."""
    onnx = pytest.importorskip("onnx")
    helper, size = onnx.helper, 16
    rng = np.random.default_rng(0)
    shapes = {"A": (size, size), "W": (1, 3 * size, size), "R": (1, 3 * size, size), "B": (size, size)}
    weights = [
        onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32) / 4, name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "A"], ["a"]),
        helper.make_node("Tanh", ["a"], ["b"]),
        helper.make_node("GRU", ["b", "W", "R", "", "", "h"], ["ys", "h_out"], hidden_size=size),
        helper.make_node("MatMul", ["h_out", "B"], ["c"]),
        helper.make_node("Tanh", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "A"], ["y"]),
    ]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 1, size]) for name in names]
        for names in (("x", "h"), ("y", "h_out"))
    )
    graph = helper.make_graph(nodes, "gru", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 14)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize("passage", ["once", "any"])
def test_a_gru_is_planned_and_run(tmp_path: Path, passage: str) -> None:
    """From an ONNX file to a plan over two units, whose outputs are those of ONNX Runtime, step by step."""
    runtime = pytest.importorskip("onnxruntime")
    path = network_file(tmp_path / "gru.onnx")
    network = gapless.open_model(path).network
    rows = tuple((10, 90) if layer % 2 else (90, 10) for layer in range(len(network.layers)))
    costs = CostTable(
        units=PLATFORM.unit_names,
        networks=(NetworkCosts(network="gru", layer_us=rows),),
        provenance=Provenance(source="made for this test"),
    )
    bare = Problem(platform=PLATFORM, networks=(network,), costs=costs)
    problem = with_states(gapless.with_passage(bare, passage), {"h": "h_out"})
    plan = gapless.plan(problem, limits=gapless.Limits(min_units=2)).plan
    assert plan is not None
    rng = np.random.default_rng(1)
    given = [{name: rng.normal(size=(1, 1, 16)).astype(np.float32) for name in "xh"} for _ in range(12)]
    session, state = runtime.InferenceSession(str(path)), given[0]["h"]
    with gapless.open_pipeline(problem, plan, engine="onnxruntime") as pipeline:
        assert pipeline.verification is not None
        assert pipeline.verification.largest_error < 1e-3
        for frame, found in zip(given, pipeline.map(given), strict=True):
            right, state = session.run(["y", "h_out"], {"x": frame["x"], "h": state})
            assert np.allclose(found["y"], right, rtol=1e-3, atol=1e-5)
            assert np.allclose(found["h_out"], state, rtol=1e-3, atol=1e-5)
    deployment = pipeline.deployment
    assert deployment.streams[0].states == STATES


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"state": {"h": "hout"}}, "state h=hout: it has no output 'hout'; did you mean h_out"),
        ({"state": {"h": "h_out"}, "layer_order": "free"}, "layer_order=free knows nothing of states"),
        ({"state": {"h": "h_out"}, "pipelines": "many"}, "pipelines=many knows nothing of states"),
        ({"state": {"h": "h_out"}, "rounds": 2}, "rounds=2 knows nothing of states"),
    ],
)
def test_tuning_refuses_states_before_it_measures(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], why: str
) -> None:
    def measured(*_: object, **__: object) -> None:
        raise AssertionError("it is profiled")

    monkeypatch.setattr("gapless.api.tuning.take_profile", measured)
    with pytest.raises(InvalidInputError, match=why):
        gapless.tune(FILE, platform=PLATFORM, **asked)
    with pytest.raises(AssertionError, match="it is profiled"):
        gapless.tune(FILE, platform=PLATFORM, state={"h": "h_out"})
