"""Dynamic batching: what runs together has the answers that it has alone, and waits no longer than it may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, monotonic_ns
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.api.models import split_locator
from gapless.cli.tasks.serving import _delay_us, subject
from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.outstanding import Place
from gapless.executor.coordination.requests import Served
from gapless.executor.coordination.tally import Fate
from gapless.formulations.errors import DroppedRequestError, InvalidInputError, OutputMismatchError
from gapless.question.service import Service as Said
from gapless.question.subjects import Opening
from gapless.serving import service
from gapless.serving.access import Access
from gapless.serving.app import App
from gapless.serving.batching import Batcher, variants_of, worthwhile
from gapless.serving.parameters import Wishes
from gapless.serving.service import Service
from tests.gapless.serving.clients import Response, ask, asked, killing, over_socket

FILE = Path(__file__).with_name("batched.py")
INFER = "/v2/models/slow/infer"


def places(name: str, *sizes: int) -> list[str]:
    """Return the locators of a model and its batches."""
    return [f"{name}{'' if size == 1 else f'*{size}'}={FILE}:{name.upper()}{size}" for size in (1, *sizes)]


def coordinator(*models: str, **how: Any) -> Coordinator:
    units = gapless.this_device(units=["core0"])
    return gapless.coordination.open_coordinator(models, platform=units, check=False, **how)


@pytest.fixture(scope="module")
def opened() -> Iterator[Coordinator]:
    with coordinator(*places("slow", 2, 4), queue=16) as found:
        yield found


@pytest.fixture
def app(opened: Coordinator) -> Iterator[App]:
    service = Service()
    service.begin(opened, max_delay_s=0.0)
    found = App(service, access=Access(), most_bytes=100_000)
    yield found
    found.close()


def body(value: float, **parameters: Any) -> bytes:
    tensor = {"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [value] * 8}
    return json.dumps({"inputs": [tensor], "parameters": parameters}).encode()


def value(found: Response) -> float:
    assert found.code == 200, found.error
    (output,) = found.document["outputs"]
    assert output["shape"] == [1, 8]
    return float(output["data"][0])


def right(value: float) -> float:
    return 10 * value


def together(app: App, *bodies: bytes) -> list[Response]:
    async def all_of_them() -> list[Response]:
        return await asyncio.gather(*(asked(app, "POST", INFER, each) for each in bodies))

    return asyncio.run(all_of_them())


def sizes(opened: Coordinator) -> dict[str, int]:
    """Return how many answers each model has given."""
    return {model.name: model.spent.answers for model in opened.statistics().models}


@pytest.mark.slow
def test_requests_that_wait_run_together_and_have_their_own_answers(app: App, opened: Coordinator) -> None:
    before = sizes(opened)
    found = together(app, *(body(number) for number in range(11)))
    assert [value(each) for each in found] == [right(number) for number in range(11)]
    after = sizes(opened)
    ran = {name: after[name] - before[name] for name in after}
    assert ran["slow*4"] >= 2
    assert ran["slow"] + 2 * ran["slow*2"] + 4 * ran["slow*4"] == 11
    assert found[3].document["model_name"] == "slow"
    assert value(ask(app, "POST", INFER, body(5))) == right(5)


def test_latency_and_lateness_count_from_the_first_byte(app: App) -> None:
    for deadline_ms, late in ((50_000, True), (500_000, False)):
        sent = body(1, deadline_ms=deadline_ms)
        told = ask(app, "POST", INFER, sent, arrival_s=monotonic() - 100).document["parameters"]
        assert told["late"] is late
        assert 100e6 <= told["latency_us"] < 150e6


def test_what_clients_see_is_one_model(app: App, opened: Coordinator) -> None:
    assert ask(app, "GET", "/v2/models").document == {"models": ["slow"]}
    config = ask(app, "GET", "/v2/models/slow/config").document["dynamic_batching"]
    assert config["preferred_batch_size"] == [2, 4]
    (stats,) = ask(app, "GET", "/v2/models/slow/stats").document["model_stats"]
    answers = sizes(opened)
    assert stats["inference_count"] == answers["slow"] + 2 * answers["slow*2"] + 4 * answers["slow*4"]
    assert stats["execution_count"] == sum(answers.values())
    assert stats["inference_stats"]["compute_infer"]["count"] == stats["inference_count"]
    assert {each["batch_size"]: each["compute_infer"]["count"] for each in stats["batch_stats"]} == {
        size: count for size, count in zip((1, 2, 4), answers.values(), strict=True) if count
    }
    lines = ask(app, "GET", "/metrics").body.decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['nv_inference_count{model="slow",version="1"}']) == stats["inference_count"]
    assert float(values['nv_inference_exec_count{model="slow",version="1"}']) == stats["execution_count"]


def test_only_sizes_that_pay_are_used(opened: Coordinator) -> None:
    assert variants_of({"net": 1, "net*4": 2, "other*2": 3, "net*04": 4, "net:2": 5, "net:2*2": 6}) == {  # type: ignore[dict-item]
        "net": {4: "net*4"},
        "net:2": {2: "net:2*2"},
    }
    variants = {2: "slow*2", 4: "slow*4"}
    assert worthwhile(opened, "slow", variants).used == {1: "slow", **variants}
    with coordinator(*places("linear", 2)) as own:
        assert worthwhile(own, "linear", {2: "linear*2"}).used == {1: "linear"}
        service = Service()
        service.begin(own, max_delay_s=600.0)
        (told,) = service.statistics()["model_stats"]  # what was measured at the start is no request
        assert (told["inference_count"], told["execution_count"], told["last_inference"]) == (0, 0, 0)
        assert own.statistics().total(Fate.ANSWERED) == 0
        before = sizes(own)["linear"]
        found = App(service, access=Access(), most_bytes=100_000)
        url = INFER.replace("slow", "linear")
        assert ask(found, "POST", url, body(2)).code == 200  # it waits for no others
        assert "preferred_batch_size" not in service.model_config("linear")["dynamic_batching"]
        (told,) = service.statistics("linear")["model_stats"]
        assert told["execution_count"] == before + 1 + sizes(own)["linear*2"]
        found.close()


def test_models_that_mix_a_batch_and_batches_of_others_are_refused(opened: Coordinator) -> None:
    with coordinator(*places("mixed", 2)) as own:
        with pytest.raises(OutputMismatchError, match="gives other numbers in a batch of 2 than alone"):
            Service().begin(own, max_delay_s=0.0)
        Service().begin(own)  # without batches they are models like others
    with pytest.raises(InvalidInputError, match=r"no batch of 3 of 'slow': input 'x' has the shape \[1, 8\]"):
        worthwhile(opened, "slow", {3: "slow*2"})


def test_one_that_fails_fails_alone(app: App) -> None:
    found = together(app, body(0), body(1), body(-1), body(2), body(3))
    assert [each.code for each in found] == [200, 200, 500, 200, 200]
    assert "minus one" in found[2].error
    assert [value(each) for each in found if each.code == 200] == [right(number) for number in range(4)]


def test_one_that_is_too_late_is_dropped_alone(app: App) -> None:
    found = together(app, body(0), *(body(number, timeout=time) for number, time in ((1, 10**7), (2, 1))))
    assert [each.code for each in found] == [200, 200, 503]
    assert value(found[1]) == right(1)


def test_each_request_counts_once_also_when_its_batch_fails(app: App, opened: Coordinator) -> None:
    def failures() -> tuple[int, float]:
        (stats,) = ask(app, "GET", "/v2/models/slow/stats").document["model_stats"]
        lines = ask(app, "GET", "/metrics").body.decode().splitlines()
        told = [line.rsplit(" ", 1)[1] for line in lines if line.startswith("nv_inference_request_failure{")]
        return stats["inference_stats"]["fail"]["count"], sum(map(float, told))

    assert failures() == (0, 0)
    found = together(app, body(0), body(1), body(-1), body(2), body(3))
    assert [each.code for each in found] == [200, 200, 500, 200, 200]
    assert failures() == (1, 1)
    found = together(app, body(0), body(1), body(2, timeout=1), body(3), body(4))
    assert sorted(each.code for each in found) == [200] * 4 + [503]
    assert failures() == (2, 2)
    assert [each.code for each in together(app, *(body(number) for number in range(17)))].count(429) == 1
    assert failures() == (3, 3)
    assert opened.statistics().waiting == 0


def batched(*wishes: Wishes, least_us: int = 0, delay_s: float = 0.0) -> tuple[list[str], list[int]]:
    """Return which of requests that come at once are answered, and the sizes of the batches that were tried.

    `least_us`: batches that have less time are dropped.
    """
    tried = list[int]()

    async def submit(key: str, inputs: dict[str, Any], wished: Wishes, places: Sequence[Place]) -> Served:
        tried.append(len(inputs["x"]))
        assert [place.leave() for place in places] == [True] * tried[-1], "all count, at a second try, too"
        await asyncio.sleep(0)
        if tried[-1] > 1 and (wished.deadline_us or least_us) < least_us:
            raise DroppedRequestError("late")
        return Served(
            number=1, name=key, outputs={"y": inputs["x"]}, chunks=(), arrival_ns=0, done_ns=monotonic_ns()
        )

    async def all_of_them() -> list[str]:
        sizes = {1: "net", 2: "net*2", 4: "net*4"}
        took_us = dict.fromkeys(sizes, 50_000.0)
        batcher = Batcher(sizes, submit, delay_s=delay_s, units=1, took_us=took_us)
        places = [Place(lambda _: None) for _ in wishes]
        sent = (
            batcher.served({"x": np.zeros((1, 1))}, each, place, lambda: None)
            for each, place in zip(wishes, places, strict=True)
        )
        found = await asyncio.wait_for(asyncio.gather(*sent, return_exceptions=True), 20)
        return [each.name if isinstance(each, Served) else type(each).__name__ for each in found]

    return asyncio.run(all_of_them()), tried


def test_one_that_its_batch_would_answer_too_late_goes_before_it_alone() -> None:
    late, soon = (Wishes(deadline_us=us, expires=True) for us in (40_000, 80_000_000))
    found, tried = batched(soon, soon, late, soon, soon, soon)
    assert tried == [1, 1, 4]
    assert found[2] == "net"
    assert found.count("net*4") == 4


def test_the_others_of_a_batch_that_is_dropped_stay_together() -> None:
    tight, free = (Wishes(deadline_us=us, expires=True) for us in (60_000_000, 80_000_000))
    found, tried = batched(free, free, tight, free, free, free, least_us=70_000_000)
    assert tried == [1, 4, 1, 4]
    assert found == ["net", "net*4", "net", "net*4", "net*4", "net*4"]


def test_a_request_does_not_wait_for_others_until_it_is_too_late() -> None:
    for expires in (False, True):
        assert batched(Wishes(deadline_us=200_000, expires=expires), delay_s=1000) == (["net"], [1])
    soon, later = Wishes(deadline_us=200_000), Wishes(deadline_us=800_000)
    found, tried = batched(later, later, soon, delay_s=1000)
    assert tried == [2, 1]
    assert found[2] == "net*2"


def test_loads_do_not_hold_up_answers(app: App, opened: Coordinator) -> None:
    async def while_they_wait() -> None:
        with opened._registering:  # as while a model is opened
            loads = [
                asyncio.ensure_future(asked(app, "POST", "/v2/repository/models/slow/load"))
                for _ in range(40)
            ]
            await asyncio.sleep(0.05)
            metrics = asked(app, "GET", "/metrics", headers={"Accept-Encoding": "gzip"})
            assert (await asyncio.wait_for(metrics, 20)).code == 200
            assert not any(load.done() for load in loads)
        assert [each.code for each in await asyncio.gather(*loads)] == [200] * 40

    asyncio.run(while_they_wait())


def test_an_unload_waits_no_longer_than_it_may(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "UNLOAD_PATIENCE_S", 0.05)
    (batcher,) = app.service._batchers.values()
    submit = batcher._submit

    async def unload() -> None:
        free = asyncio.Event()

        async def late(*given: Any) -> Served:
            await free.wait()
            return await submit(*given)

        monkeypatch.setattr(batcher, "_submit", late)
        waiting = asyncio.ensure_future(asked(app, "POST", INFER, body(1)))
        await asyncio.sleep(0.05)
        found = await asyncio.wait_for(asked(app, "POST", "/v2/repository/models/slow/unload"), 20)
        assert (found.code, "not answered in 0.05 s" in found.error) == (500, True)
        assert app.service.index(ready=True)
        free.set()
        assert value(await waiting) == right(1)

    asyncio.run(unload())


def test_a_request_waits_for_others_as_long_as_it_may(opened: Coordinator) -> None:
    service = Service()
    service.begin(opened, max_delay_s=0.3)
    app = App(service, access=Access(), most_bytes=100_000)
    before = sizes(opened)

    async def one_after_the_other() -> list[Response]:
        tasks = []
        for number in range(4):
            tasks.append(asyncio.ensure_future(asked(app, "POST", INFER, body(number))))
            await asyncio.sleep(0.01)
        return await asyncio.gather(*tasks)

    found = asyncio.run(one_after_the_other())
    assert [value(each) for each in found] == [right(number) for number in range(4)]
    assert sizes(opened)["slow*4"] - before["slow*4"] == 1
    lonely = ask(app, "POST", INFER, body(5))
    assert value(lonely) == right(5)
    assert lonely.document["parameters"]["latency_us"] >= 300_000
    app.close()


def test_priorities_do_not_share_a_batch(app: App, opened: Coordinator) -> None:
    before = sizes(opened)
    found = together(app, body(0), *(body(number, priority=1 + number % 2) for number in range(1, 5)))
    assert [value(each) for each in found] == [right(number) for number in range(5)]
    assert sizes(opened)["slow*4"] == before["slow*4"]
    assert sizes(opened)["slow*2"] - before["slow*2"] == 2


def test_waiting_requests_are_bounded_and_may_leave(app: App, opened: Coordinator) -> None:
    found = together(app, *(body(number) for number in range(20)))
    assert sorted(each.code for each in found) == [200] * 16 + [429] * 4
    (batcher,) = app.service._batchers.values()

    async def leave() -> None:
        tasks = [asyncio.ensure_future(asked(app, "POST", INFER, body(number))) for number in range(6)]
        await asyncio.sleep(0.005)
        for task in tasks[1:]:
            task.cancel()
        await asyncio.wait(tasks)
        assert value(tasks[0].result()) == 0
        await batcher.drained()

    asyncio.run(leave())
    assert batcher._held == 0
    assert opened.statistics().waiting == 0


def test_one_limit_counts_all_that_waits() -> None:
    """Requests that gather for a batch, wait for a state, or run: together as many as `queue`."""
    recurrent = FILE.with_name("recurrent.py")
    with coordinator(*places("slow", 2, 4), f"net={recurrent}:NET", queue=8) as own:
        service = Service()
        service.begin(own, {"net": {"h": "h_out"}}, max_delay_s=0.0)
        app = App(service, access=Access(), most_bytes=100_000)
        waiting = list[int]()

        def sequence(**wishes: Any) -> bytes:
            tensor = {"name": "x", "shape": [4], "datatype": "FP32", "data": [1] * 4}
            return json.dumps({"inputs": [tensor], "parameters": {"sequence_id": 1, **wishes}}).encode()

        async def both() -> list[Response]:
            tasks = []
            for number in range(7):
                sent = sequence(sequence_start=True) if not number else sequence()
                for path, data in ((INFER, body(number)), ("/v2/models/net/infer", sent)):
                    tasks.append(asyncio.ensure_future(asked(app, "POST", path, data)))
                    await asyncio.sleep(0)
                    waiting.append(own.statistics().waiting)
            return await asyncio.gather(*tasks)

        found = asyncio.run(both())
        assert max(waiting) == 8
        refused = [each for each in found if each.code == 429]
        assert [each.code for each in found].count(200) == len(found) - len(refused)
        assert 4 <= len(refused) <= 6  # two may have been answered meanwhile
        assert {each.error[:32] for each in refused} >= {
            "a request of 'slow' is not taken",
            "a request of 'net' is not taken:",
        }
        assert own.statistics().waiting == 0
        assert service.counted().total(Fate.REFUSED) == len(refused)
        assert {each.code for each in together(app, *(body(number) for number in range(8)))} == {200}
        app.close()


def test_batches_are_loaded_and_unloaded_with_their_model(app: App, opened: Coordinator) -> None:
    async def unload_meanwhile() -> list[Response]:
        tasks = [asyncio.ensure_future(asked(app, "POST", INFER, body(number))) for number in range(8)]
        await asyncio.sleep(0.005)
        leaving = asyncio.ensure_future(asked(app, "POST", "/v2/repository/models/slow/unload"))
        await asyncio.sleep(0)
        assert (await asked(app, "POST", INFER, body(1))).code == 503  # it takes no more while it leaves
        assert (await leaving).code == 200
        assert all(task.done() for task in tasks)
        return await asyncio.gather(*tasks)

    assert [value(each) for each in asyncio.run(unload_meanwhile())] == [right(n) for n in range(8)]
    assert not opened.registered
    assert ask(app, "POST", INFER, body(1)).code == 503
    assert ask(app, "POST", "/v2/repository/models/slow/load").code == 200
    assert len(opened.registered) == 3
    assert value(ask(app, "POST", INFER, body(1))) == right(1)


def test_nothing_is_lost_when_workers_are_killed() -> None:
    units = gapless.this_device(units=["core0", "core1"])
    models = places("slow", 2, 4)
    with (
        gapless.coordination.open_coordinator(models, platform=units, check=False, restarts=1000) as own,
        gapless.serve(own, port=0, max_delay_us=1000) as server,
    ):
        port = int(server.url.rpartition(":")[2])

        def client(number: int) -> float:
            return value(over_socket(port, "POST", INFER, body(number)))

        with killing(own, "core0"), ThreadPoolExecutor(8) as pool:
            found = list(pool.map(client, range(80)))
        assert found == [right(number) for number in range(80)]
        assert own.statistics().units[0].losses > 0


def test_what_the_command_line_says_of_batches(tmp_path: Path) -> None:
    assert _delay_us(Said(max_batch=4, max_delay_s=0.002)) == 2000
    assert _delay_us(Said(max_batch=4)) == 0
    assert _delay_us(Said()) is None
    with pytest.raises(InvalidInputError, match="--max-delay is for batches"):
        _delay_us(Said(max_delay_s=0.002))
    assert split_locator("ocr:2*4=a.onnx") == ("ocr:2*4", "a.onnx")
    (tmp_path / "plan.json").touch()
    with pytest.raises(InvalidInputError, match="is a plan, which is served as it is"):
        subject([str(tmp_path / "plan.json")], Opening(), None, 4)


def test_a_network_with_a_free_batch_from_the_command_line(tmp_path: Path) -> None:
    """Convolutions that MNN runs: in batches they have the numbers that ONNX Runtime has alone."""
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("MNN")
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4, 8, 8])],
        [numpy_helper.from_array(weights, "w")],
    )
    path = tmp_path / "conv.onnx"
    opset = [helper.make_opsetid("", 14)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    session = runtime.InferenceSession(str(path))
    asked_for = subject([str(path)], Opening(shape={"x": (1, 3, 8, 8)}), None, 3)
    assert [model.network.name for model in asked_for.models] == ["conv", "conv*2", "conv*3"]
    with gapless.coordination.open_coordinator(asked_for.models) as own:
        found = worthwhile(own, "conv", {2: "conv*2", 3: "conv*3"})
        assert (found.used[1], set(found.each_us)) == ("conv", {1, 2, 3})
        x = rng.normal(size=(3, 3, 8, 8)).astype(np.float32)
        made = own.run("conv*3", {"x": x}).outputs["y"]
        for index in range(3):
            wanted = session.run(None, {"x": x[index : index + 1]})[0]
            assert np.allclose(made[index : index + 1], wanted, rtol=1e-3, atol=1e-4)
