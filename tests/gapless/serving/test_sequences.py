"""Recurrent models: a request begins with the state that the one before it has left, and waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.answers.words import microseconds
from gapless.cli.tasks import serving as tasks
from gapless.cli.tasks.serving import parse_states
from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.question.service import Hosting
from gapless.question.service import Service as Said
from gapless.question.subjects import Machine
from gapless.running import TensorSpec
from gapless.serving import sequences, service
from gapless.serving.access import Access
from gapless.serving.app import App
from gapless.serving.messages import Refusal
from gapless.serving.parameters import Wishes
from gapless.serving.sequences import Sequences, states_by_model
from gapless.serving.service import Service
from tests.gapless.serving.clients import Response, ask, asked, killing, over_socket

INFER = "/v2/models/net/infer"
STATES = {"net": {"h": "h_out"}}
NET, ODD = (f"{Path(__file__).with_name('recurrent.py')}:{name}" for name in ("NET", "ODD"))


@pytest.fixture(scope="module")
def opened() -> Iterator[Coordinator]:
    units = gapless.this_device(units=["core0", "core1"])
    with gapless.coordination.open_coordinator([NET], platform=units, check=False) as found:
        yield found


@pytest.fixture
def app(opened: Coordinator) -> Iterator[App]:
    service = Service()
    service.begin(opened, STATES)
    found = App(service, access=Access(), most_bytes=100_000)
    yield found
    found.close()


def body(value: float, **parameters: Any) -> bytes:
    tensor = {"name": "x", "shape": [4], "datatype": "FP32", "data": [value] * 4}
    return json.dumps({"inputs": [tensor], "parameters": parameters}).encode()


def value(found: Response) -> float:
    assert found.code == 200, found.error
    (output,) = found.document["outputs"]
    assert output["name"] == "y"
    return float(output["data"][0])


@pytest.mark.slow
def test_each_request_begins_with_the_state_of_the_one_before(app: App) -> None:
    assert value(ask(app, "POST", INFER, body(1, sequence_id=1, sequence_start=True))) == 1
    assert value(ask(app, "POST", INFER, body(2, sequence_id=1))) == 3
    assert value(ask(app, "POST", INFER, body(5, sequence_id="other", sequence_start=True))) == 5
    assert value(ask(app, "POST", INFER, body(3, sequence_id=1, sequence_end=True))) == 6
    gone = ask(app, "POST", INFER, body(1, sequence_id=1))
    assert (gone.code, "sequence '1' of 'net' has not begun, has ended" in gone.error) == (400, True)
    assert value(ask(app, "POST", INFER, body(1, sequence_id="other"))) == 6
    assert value(ask(app, "POST", INFER, body(7, sequence_id="other", sequence_start=True))) == 7  # again
    none = ask(app, "POST", INFER, body(1))
    assert (none.code, "keeps a state for each sequence of requests" in none.error) == (400, True)


def test_states_are_not_inputs_and_outputs_of_clients(app: App) -> None:
    told = ask(app, "GET", "/v2/models/net").document
    assert [tensor["name"] for tensor in told["inputs"]] == ["x"]
    assert [tensor["name"] for tensor in told["outputs"]] == ["y"]
    config = ask(app, "GET", "/v2/models/net/config").document
    assert config["sequence_batching"]["state"] == [
        {"input_name": "h", "output_name": "h_out", "data_type": "TYPE_FP32", "dims": [4]}
    ]
    assert "dynamic_batching" not in config
    given = json.loads(body(1, sequence_id=9, sequence_start=True))
    given["inputs"].append({**given["inputs"][0], "name": "h"})
    found = ask(app, "POST", INFER, json.dumps(given).encode())
    assert (found.code, "2 inputs are given; 'net' takes 1: 'x'" in found.error) == (400, True)


def test_requests_of_a_sequence_that_come_at_once_are_one_behind_the_other(
    app: App, opened: Coordinator
) -> None:
    async def many() -> list[float]:
        await asked(app, "POST", INFER, body(0, sequence_id=2, sequence_start=True))
        tasks = list[asyncio.Task[Response]]()
        for number in range(1, 21):
            tasks.append(asyncio.ensure_future(asked(app, "POST", INFER, body(number, sequence_id=2))))
            await asyncio.sleep(0)
        assert len(opened._loop.requests.by_number) <= 1  # a recurrence has no overlap
        return [value(each) for each in await asyncio.gather(*tasks)]

    assert asyncio.run(many()) == [sum(range(number + 1)) for number in range(1, 21)]


def test_those_that_wait_behind_a_failure_fail_and_the_state_stays(app: App) -> None:
    async def several() -> list[Response]:
        await asked(app, "POST", INFER, body(1, sequence_id=3, sequence_start=True))
        tasks = [asyncio.ensure_future(asked(app, "POST", INFER, body(v, sequence_id=3))) for v in (-1, 1, 1)]
        return await asyncio.gather(*tasks)

    failed, *behind = asyncio.run(several())
    assert (failed.code, "minus one" in failed.error) == (500, True)
    for each in behind:
        assert (each.code, "a request before this one failed" in each.error) == (409, True)
    assert value(ask(app, "POST", INFER, body(2, sequence_id=3))) == 3


def test_a_client_that_leaves_leaves_the_state(app: App) -> None:
    async def leave() -> None:
        await asked(app, "POST", INFER, body(1, sequence_id=4, sequence_start=True))
        task = asyncio.ensure_future(asked(app, "POST", INFER, body(5, sequence_id=4)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    assert value(ask(app, "POST", INFER, body(2, sequence_id=4))) == 3


def test_sequences_are_bounded_and_forgotten(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    (kept,) = app.service._sequences.values()
    monkeypatch.setattr(kept, "_most", 2)
    for name in ("a", "b"):
        assert value(ask(app, "POST", INFER, body(1, sequence_id=name, sequence_start=True))) == 1
    full = ask(app, "POST", INFER, body(1, sequence_id="c", sequence_start=True))
    assert (full.code, "has 2 sequences, and no more are kept" in full.error) == (429, True)
    monkeypatch.setattr(sequences, "IDLE_S", 0.0)
    assert ask(app, "POST", INFER, body(1, sequence_id="a")).code == 400  # had no request for so long
    for name in ("c", "d"):  # the second one has to make room
        assert value(ask(app, "POST", INFER, body(1, sequence_id=name, sequence_start=True))) == 1
    assert set(kept._known) == {"d"}


def test_the_memory_of_states_bounds_their_number() -> None:
    spec = TensorSpec(name="h", shape=(1 << 20,))  # 4 MiB
    assert Sequences("net", {"h": "h_out"}, [spec])._most == 64
    assert Sequences("net", {"h": "h_out"}, [TensorSpec(name="h", shape=(4,))])._most == 1024


def test_requests_that_wait_for_states_are_bounded(app: App, opened: Coordinator) -> None:
    with ExitStack() as places:
        for _ in range(63):
            places.enter_context(opened.hold("net"))
        assert value(ask(app, "POST", INFER, body(1, sequence_id=6, sequence_start=True))) == 1
        with opened.hold("net"):
            full = ask(app, "POST", INFER, body(1, sequence_id=6))
            assert (full.code, "64 requests wait for their answers" in full.error) == (429, True)
        assert value(ask(app, "POST", INFER, body(1, sequence_id=6))) == 2
    assert opened.statistics().waiting == 0


def test_an_end_that_failed_can_be_sent_again(app: App) -> None:
    assert value(ask(app, "POST", INFER, body(1, sequence_id=7, sequence_start=True))) == 1
    assert ask(app, "POST", INFER, body(-1, sequence_id=7, sequence_end=True)).code == 500
    assert value(ask(app, "POST", INFER, body(2, sequence_id=7, sequence_end=True))) == 3
    assert ask(app, "POST", INFER, body(1, sequence_id=7)).code == 400


def test_a_sequence_is_over_for_those_that_wait_behind_its_end(app: App) -> None:
    async def several() -> list[Response]:
        await asked(app, "POST", INFER, body(1, sequence_id=8, sequence_start=True))
        wishes: list[dict[str, Any]] = [{"sequence_end": True}, {}, {"sequence_start": True}, {}]
        sent = [body(number, sequence_id=8, **each) for number, each in enumerate(wishes, 2)]
        return await asyncio.gather(*(asked(app, "POST", INFER, each) for each in sent))

    end, behind, *again = asyncio.run(several())
    assert value(end) == 3
    assert (behind.code, "has not begun, has ended" in behind.error) == (400, True)
    assert [value(each) for each in again] == [4, 9]


def test_a_sequence_whose_start_failed_has_not_begun(app: App) -> None:
    def start(value: float, **wishes: Any) -> Response:
        return ask(app, "POST", INFER, body(value, sequence_id=10, sequence_start=True, **wishes))

    for before in (False, True):  # no sequence of this name, or another one
        if before:
            assert value(start(1)) == 1
        assert start(-1).code == 500
        assert ask(app, "POST", INFER, body(1, sequence_id=10)).code == 400
    (kept,) = app.service._sequences.values()
    assert "10" not in kept._known


def test_a_start_needs_nothing_of_what_failed_before_it(app: App) -> None:
    async def several() -> list[Response]:
        await asked(app, "POST", INFER, body(1, sequence_id=11, sequence_start=True))
        sent = [
            body(-1, sequence_id=11),
            body(2, sequence_id=11, sequence_start=True),
            body(3, sequence_id=11),
        ]
        return await asyncio.gather(*(asked(app, "POST", INFER, each) for each in sent))

    failed, *later = asyncio.run(several())
    assert failed.code == 500
    assert [value(each) for each in later] == [2, 5]


@pytest.mark.parametrize(("starts", "code"), [(False, 409), (True, 400)])
def test_who_leaves_while_it_waits_fails_for_those_behind(starts: bool, code: int) -> None:
    found = Sequences("net", {"h": "h_out"}, [TensorSpec(name="h", shape=(1,))])

    async def sent(**wishes: bool) -> float:
        async with found.turn(Wishes(sequence="a", **wishes)) as turn:
            await asyncio.sleep(0.01)
            turn.after = {"h": turn.before["h"] + 1}
        return float(turn.before["h"][0])

    async def several() -> list[float | BaseException]:
        await sent(starts=True)
        tasks = [asyncio.ensure_future(each) for each in (sent(), sent(starts=starts), sent())]
        await asyncio.sleep(0)
        tasks[1].cancel()
        ran = await asyncio.gather(*tasks, return_exceptions=True)
        return [*ran, *await asyncio.gather(sent(), return_exceptions=True)]

    first, left, behind, later = asyncio.run(several())
    assert first == 1
    assert isinstance(left, asyncio.CancelledError)
    assert isinstance(behind, Refusal)
    assert behind.code == code
    assert isinstance(later, Refusal) if starts else later == 2  # a start that left was the end of the others


UNLOAD, LOAD = (f"/v2/repository/models/net/{what}" for what in ("unload", "load"))


def test_sequences_that_are_open_end_before_their_model_is_unloaded(app: App) -> None:
    async def meanwhile() -> list[Response]:
        for name in (5, 12):
            await asked(app, "POST", INFER, body(1, sequence_id=name, sequence_start=True))
        leaving = asyncio.ensure_future(asked(app, "POST", UNLOAD))
        while app.service.index(ready=True):
            await asyncio.sleep(0)
        assert not app.service.takes("net")
        found = [
            await asked(app, "POST", INFER, body(2, sequence_id=sequence, **wishes))
            for sequence, wishes in (
                (13, {"sequence_start": True}),
                (5, {"sequence_start": True}),
                (5, {}),
                (13, {}),
                (5, {"sequence_end": True}),
            )
        ]
        await asyncio.sleep(0.2)
        assert not leaving.done()  # the other one is open
        found.append(await asked(app, "POST", INFER, body(3, sequence_id=12, sequence_end=True)))
        return [*found, await leaving]

    new, again, on, unknown, end, other, unloaded = asyncio.run(meanwhile())
    for refused in (new, again):
        assert (refused.code, "does not begin: the model is being unloaded" in refused.error) == (503, True)
    assert [value(each) for each in (on, end, other)] == [3, 5, 4]
    assert unknown.code == 400
    assert unloaded.code == 200
    gone = ask(app, "POST", INFER, body(1, sequence_id=5, sequence_start=True))
    assert (gone.code, "model 'net' is not loaded (unloaded)" in gone.error) == (503, True)
    assert ask(app, "POST", LOAD).code == 200
    assert value(ask(app, "POST", INFER, body(4, sequence_id=5, sequence_start=True))) == 4


@pytest.mark.parametrize(("drain_s", "idle_s"), [(0.1, 60.0), (600.0, 0.0)])
def test_sequences_that_do_not_end_are_over_when_their_model_is_unloaded(
    app: App, monkeypatch: pytest.MonkeyPatch, drain_s: float, idle_s: float
) -> None:
    assert value(ask(app, "POST", INFER, body(1, sequence_id=5, sequence_start=True))) == 1
    monkeypatch.setattr(service, "DRAIN_S", drain_s)
    monkeypatch.setattr(sequences, "IDLE_S", idle_s)
    assert ask(app, "POST", UNLOAD).code == 200
    gone = ask(app, "POST", INFER, body(1, sequence_id=5))
    assert (gone.code, "model 'net' is not loaded (unloaded)" in gone.error) == (503, True)
    assert ask(app, "POST", LOAD).code == 200
    monkeypatch.setattr(sequences, "IDLE_S", 60.0)
    assert ask(app, "POST", INFER, body(1, sequence_id=5)).code == 400


def test_a_model_whose_unloading_is_given_up_keeps_its_sequences(
    app: App, opened: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def give_up() -> None:
        await asked(app, "POST", INFER, body(1, sequence_id=14, sequence_start=True))
        leaving = asyncio.ensure_future(asked(app, "POST", UNLOAD))
        while app.service.index(ready=True):
            await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving

    asyncio.run(give_up())
    assert value(ask(app, "POST", INFER, body(2, sequence_id=14))) == 3
    assert value(ask(app, "POST", INFER, body(1, sequence_id=15, sequence_start=True))) == 1


def test_sequences_that_are_open_end_before_the_server_does(opened: Coordinator) -> None:
    with gapless.serve([NET], platform=opened.platform, check=False, port=0, states=STATES) as server:
        port = int(server.url.rpartition(":")[2])

        def send(number: float, **wishes: Any) -> Response:
            return over_socket(port, "POST", INFER, body(number, **wishes))

        assert value(send(1, sequence_id=1, sequence_start=True)) == 1
        with ThreadPoolExecutor(1) as pool:
            closed = pool.submit(server.close, patience_s=600.0)
            while over_socket(port, "GET", "/v2/health/ready").code == 200:
                assert not closed.done()
            new = send(1, sequence_id=2, sequence_start=True)
            assert (new.code, "or the server stops, and only sequences" in new.error) == (503, True)
            assert value(send(2, sequence_id=1)) == 3
            assert value(send(3, sequence_id=1, sequence_end=True)) == 6
            assert closed.result(timeout=300) == ()


def test_sequences_that_nobody_ends_are_over_when_the_server_stops(opened: Coordinator) -> None:
    with gapless.serve([NET], platform=opened.platform, check=False, port=0, states=STATES) as server:
        port = int(server.url.rpartition(":")[2])
        first = over_socket(port, "POST", INFER, body(1, sequence_id=1, sequence_start=True))
        assert value(first) == 1
        assert server.close(patience_s=0.2) == ()
        assert not server._service._sequences["net"].any_open  # closing it again does not wait for them


def test_a_server_that_is_stopped_twice_waits_for_nothing(
    opened: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with gapless.serve([NET], platform=opened.platform, check=False, port=0, states=STATES) as server:
        port = int(server.url.rpartition(":")[2])
        first = over_socket(port, "POST", INFER, body(1, sequence_id=1, sequence_start=True))
        assert value(first) == 1
        monkeypatch.setattr(service, "sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            server.close()
        assert not server._service.live  # closing it again finds nothing that is under way


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"net": {"hh": "h_out"}}, "'net' has no input 'hh'; did you mean h"),
        ({"net": {"h": "out"}}, "'net' has no output 'out'"),
        ({"net": {"h": "h_out", "x": "h_out"}}, "two states of 'net' come from one output"),
        ({"nett": {"h": "h_out"}}, "--state names the model 'nett'; did you mean net"),
    ],
)
def test_states_that_do_not_fit_are_refused(
    opened: Coordinator, states: dict[str, dict[str, str]], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Service().begin(opened, states)


def test_states_of_other_shapes_are_refused() -> None:
    words = r"is float32 \[2\], the output float32 \[4\]"
    with gapless.coordination.open_coordinator([ODD], check=False) as own:
        service = Service()
        with pytest.raises(InvalidInputError, match=words):
            service.begin(own, {"odd": {"h": "y"}})


def test_what_the_command_line_says_of_states() -> None:
    assert parse_states(["h=h_out"]) == {"": {"h": "h_out"}}
    assert parse_states(None) == {}
    with pytest.raises(InvalidInputError, match="--state 'h': expected an input and an output"):
        parse_states(["h"])
    with pytest.raises(InvalidInputError, match="--state h=other: 'h' is given twice"):
        parse_states(["h=h_out", "h=other"])
    given = [("", {"net/h": "out", "a/b": "c"})]
    assert states_by_model([("", {"h": "out"})], ["net"]) == {"net": {"h": "out"}}
    assert states_by_model(given, ["net"]) == {"net": {"h": "out", "a/b": "c"}}
    known = ("net", {"h": "out"})
    both = [known, ("", {"h": "out", "c": "d"})]
    assert states_by_model(both, ["net"]) == {"net": {"h": "out", "c": "d"}}
    with pytest.raises(InvalidInputError, match="input 'h' of 'net' takes two states, out and other: give"):
        states_by_model([known, ("", {"h": "other"})], ["net"])
    with pytest.raises(InvalidInputError, match="--state a/b=c: say of which model"):
        states_by_model(given, ["net", "two"])


def test_a_plan_promises_no_overlap_to_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = SimpleNamespace(streams=[SimpleNamespace(network="net"), SimpleNamespace(network="other")])
    times = SimpleNamespace(chunk_us=lambda *_: ((2000, 3000, 1000), (5000, 5000)))
    monkeypatch.setattr(tasks, "operation_of", lambda _: times)
    served: Any = SimpleNamespace(plan=plan, problem=object())
    (note,) = tasks._recurrent_notes(served, STATES)
    assert f"a sequence gets one answer in {microseconds(6000)} at best, not in {microseconds(3000)}" in note
    served.plan = None
    assert not list(tasks._recurrent_notes(served, STATES))


def test_a_plan_brings_its_states_along() -> None:
    units = gapless.this_device(units=["core0", "core1"])
    model = gapless.open_model(NET)
    costs = CostTable(
        units=units.unit_names,
        networks=(NetworkCosts(network="net", layer_us=((10, 90), (90, 10))),),
        provenance=Provenance(source="made for this test"),
    )
    bare = Problem(platform=units, networks=(model.network,), costs=costs)
    problem = gapless.requests.with_states(bare, STATES["net"])
    plan = gapless.plan(problem).plan
    assert plan is not None
    assert [chunk.unit for chunk in plan.chunks] == ["core0", "core1"]
    deployed = operation_of(problem).deploy(problem, plan)
    subject = tasks.Subject(models=[model], problem=problem, plan=deployed)
    server, _ = tasks.opened(lambda: subject, Machine(), Hosting(port=0), Said(), check=False)
    with server:
        assert server.states == STATES
        port = int(server.url.rpartition(":")[2])
        sent = [body(number, sequence_id=1, sequence_start=number == 1) for number in (1, 2, 3)]
        assert [value(over_socket(port, "POST", INFER, each)) for each in sent] == [1, 3, 6]
    opened = gapless.coordination.open_coordinator([model], problem=problem, plan=deployed, check=False)
    with gapless.serve(opened, port=0) as server:
        assert server.states == STATES


def test_states_survive_killed_workers() -> None:
    units = gapless.this_device(units=["core0", "core1"])
    with (
        gapless.coordination.open_coordinator([NET], platform=units, check=False, restarts=1000) as own,
        gapless.serve(own, port=0, states=STATES) as server,
    ):
        port = int(server.url.rpartition(":")[2])

        def client(name: int) -> list[float]:
            sent = [body(1, sequence_id=name, sequence_start=number == 0) for number in range(60)]
            return [value(over_socket(port, "POST", INFER, each)) for each in sent]

        with killing(own, "core0"), ThreadPoolExecutor(4) as pool:
            found = list(pool.map(client, range(1, 5)))
        assert found == [[float(number) for number in range(1, 61)]] * 4
        assert sum(unit.losses for unit in own.statistics().units) > 0


def test_a_gru_over_grpc_is_what_onnx_runtime_computes(tmp_path: Path) -> None:
    """A real recurrent network, cut by nobody: its outputs over a sequence are those of one long run."""
    grpc = pytest.importorskip("tritonclient.grpc")
    runtime = pytest.importorskip("onnxruntime")
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = {
        "W": rng.normal(size=(1, 24, 5)).astype(np.float32),
        "R": rng.normal(size=(1, 24, 8)).astype(np.float32),
    }
    node = helper.make_node("GRU", ["x", "W", "R", "", "", "h"], ["y", "h_out"], hidden_size=8)
    graph = helper.make_graph(
        [node],
        "gru",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 5]),
            helper.make_tensor_value_info("h", TensorProto.FLOAT, [1, 1, 8]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 8]),
            helper.make_tensor_value_info("h_out", TensorProto.FLOAT, [1, 1, 8]),
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    path = tmp_path / "gru.onnx"
    onnx.save(model, path)
    session = runtime.InferenceSession(str(path))
    with (
        gapless.serve(
            [path], port=0, grpc_port=0, engine="onnxruntime", states={"gru": {"h": "h_out"}}
        ) as server,
        grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
    ):
        state = np.zeros((1, 1, 8), np.float32)
        for number in range(10):
            x = rng.normal(size=(1, 1, 5)).astype(np.float32)
            tensor = grpc.InferInput("x", [1, 1, 5], "FP32")
            tensor.set_data_from_numpy(x)
            found = client.infer("gru", [tensor], sequence_id=1, sequence_start=number == 0)
            right, state = session.run(None, {"x": x, "h": state})
            assert np.allclose(found.as_numpy("y"), right, rtol=1e-4, atol=1e-5)
