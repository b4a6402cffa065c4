"""What operators of model servers expect: configuration, statistics, repository, versions, priorities."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
import pytest

from gapless.api.models import split_locator
from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.coordination.policy import Waiting
from gapless.formulations.coordination.simulation import Dispatcher, Late
from gapless.formulations.coordination.times import NetworkTimes, Times
from gapless.formulations.errors import ExecutionError, InvalidInputError, RefusedRequestError
from gapless.question.values import DEADLINES, Place
from gapless.serving import messages
from gapless.serving.access import Access
from gapless.serving.app import App
from gapless.serving.catalogue import Catalogue, split_version
from gapless.serving.messages import chosen
from gapless.serving.service import Service
from gapless.solvers.coordination.dynamic import LeastSlack
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import Response, ask, asked, binary_body, json_body, vector
from tests.processes import soon

INFER = "/v2/models/net/infer"


@pytest.fixture(scope="module")
def opened() -> Iterator[Coordinator]:
    with coordinator("a", queue=32) as found:
        found.register(chain(("add", 1.0), name="net"))
        found.register(chain(("add", 2.0), name="two"), "net:2")
        found.register(chain(("sleep", 0.05), name="slow"), deadline_us=10_000_000)
        yield found


@pytest.fixture
def app(opened: Coordinator) -> Iterator[App]:
    found = App(Service(opened), access=Access(), most_bytes=100_000)
    yield found
    found.close()


def first(found: Response) -> float:
    assert found.code == 200, found.body
    return float(found.document["outputs"][0]["data"][0])


def with_parameters(**parameters: Any) -> bytes:
    return json_body(vector(1.0))[:-1] + b', "parameters": ' + json.dumps(parameters).encode() + b"}"


def test_versions_are_told_apart_and_the_newest_is_taken(app: App) -> None:
    assert [split_version(key) for key in ("net", "net:2", "net:02", "a:b", "net:")] == [
        ("net", "1"),
        ("net", "2"),
        ("net:02", "1"),
        ("a:b", "1"),
        ("net:", "1"),
    ]
    body = json_body(vector(1.0))
    assert first(ask(app, "POST", "/v2/models/net/versions/1/infer", body)) == 2.0
    assert first(ask(app, "POST", "/v2/models/net/versions/2/infer", body)) == 3.0
    newest = ask(app, "POST", INFER, body)
    assert (first(newest), newest.document["model_version"], newest.document["model_name"]) == (
        3.0,
        "2",
        "net",
    )
    assert ask(app, "GET", "/v2/models/net").document["versions"] == ["1", "2"]
    assert ask(app, "GET", "/v2/models").document == {"models": ["net", "slow"]}
    missing = ask(app, "GET", "/v2/models/net/versions/3/ready")
    assert (missing.code, "has the versions 1, 2 only, not '3'" in missing.error) == (404, True)


def test_two_names_of_one_version_are_refused() -> None:
    with coordinator("a") as own:
        own.register(chain(("add", 1.0)), "net")
        own.register(chain(("add", 1.0)), "net:1")
        with pytest.raises(InvalidInputError, match="'net' and 'net:1' are both version 1"):
            Catalogue(own)


def test_configuration_in_the_words_of_triton(app: App) -> None:
    found = ask(app, "GET", "/v2/models/slow/config").document
    assert found["name"] == "slow"
    assert found["input"] == [{"name": "x", "data_type": "TYPE_FP32", "dims": [16]}]
    assert found["output"] == [{"name": "t0", "data_type": "TYPE_FP32", "dims": [16]}]
    assert found["instance_group"] == [{"name": "a", "kind": "KIND_CPU", "count": 1}]
    assert found["parameters"]["deadline_us"] == {"string_value": "10000000"}
    assert found["dynamic_batching"] == {"priority_levels": 9, "default_priority_level": 5}


def test_statistics_count_where_time_went(app: App) -> None:
    path = "/v2/models/slow/versions/1/stats"
    (before,) = ask(app, "GET", path).document["model_stats"]
    for _ in range(2):
        assert ask(app, "POST", "/v2/models/slow/infer", json_body(vector(1.0))).code == 200
    (after,) = ask(app, "GET", path).document["model_stats"]
    assert after["inference_count"] - before["inference_count"] == 2
    spent = {
        part: {key: value - before["inference_stats"][part][key] for key, value in counts.items()}
        for part, counts in after["inference_stats"].items()
    }
    assert spent["success"]["count"] == spent["queue"]["count"] == spent["compute_infer"]["count"] == 2
    assert spent["compute_infer"]["ns"] >= 2 * 50_000_000
    parts = sum(spent[part]["ns"] for part in ("queue", "compute_input", "compute_infer", "compute_output"))
    assert abs(parts - spent["success"]["ns"]) < 100  # nothing is counted twice, and nothing left out
    assert after["last_inference"] > 1_600_000_000_000
    assert {stat["version"] for stat in ask(app, "GET", "/v2/models/stats").document["model_stats"]} == {
        "1",
        "2",
    }


def test_statistics_of_a_name_are_those_of_all_its_versions(app: App) -> None:
    def versions(path: str) -> list[str]:
        return [each["version"] for each in ask(app, "GET", path).document["model_stats"]]

    assert versions("/v2/models/net/stats") == ["1", "2"]
    assert versions("/v2/models/net/versions/1/stats") == ["1"]
    assert ask(app, "GET", "/v2/models/nett/stats").code == 404


def test_metrics_have_the_names_of_triton_and_of_processes(app: App) -> None:
    ask(app, "POST", INFER, json_body(vector(1.0)))
    lines = ask(app, "GET", "/metrics").body.decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['nv_inference_request_success{model="net",version="2"}']) >= 1
    failure = 'nv_inference_request_failure{model="net",version="2",reason="REJECTED"}'
    assert float(values[failure]) == 0
    assert float(values["process_resident_memory_bytes"]) > 1e6
    assert float(values["process_start_time_seconds"]) > 1.6e9


def test_models_are_unloaded_and_loaded_again() -> None:
    with coordinator("a", "b", queue=8) as own:
        own.register(chain(("add", 1.0), name="net"))
        own.register(chain(("sleep", 0.2), name="slow"))
        own.register(chain(("sleep", 0.2), name="slow"), "same")  # held once
        app = App(Service(own), access=Access(), most_bytes=10_000)
        body = json_body(vector(1.0))

        def states() -> dict[str, str]:
            found = ask(app, "POST", "/v2/repository/index").document
            return {each["name"]: each["state"] for each in found}

        async def unload_meanwhile() -> list[Response]:
            waiting = [
                asyncio.ensure_future(asked(app, "POST", "/v2/models/slow/infer", body)) for _ in range(4)
            ]
            while own.statistics().waiting < 4:
                await asyncio.sleep(0.001)
            await asked(app, "POST", "/v2/repository/models/same/unload")
            assert (await asked(app, "POST", "/v2/models/slow/infer", body)).code == 200
            done = await asked(app, "POST", "/v2/repository/models/slow/unload")
            assert done.code == 200
            assert all(each.done() for each in waiting)  # it waits for what was accepted
            return await asyncio.gather(*waiting)

        for turn in range(3):
            assert states() == dict.fromkeys(["net", "slow", "same"], "READY")
            assert [found.code for found in asyncio.run(unload_meanwhile())] == [200] * 4
            assert states() == {"net": "READY", "slow": "UNAVAILABLE", "same": "UNAVAILABLE"}
            ready = ask(app, "POST", "/v2/repository/index", b'{"ready": true}').document
            assert [each["name"] for each in ready] == ["net"]
            gone = ask(app, "POST", "/v2/models/slow/infer", body)
            assert (gone.code, "repository/models/slow/load" in gone.error) == (503, True)
            assert ask(app, "GET", "/v2/models/slow/ready").code == 503
            assert ask(app, "GET", "/v2/health/ready").code == 200  # nobody wants it to be there
            assert ask(app, "POST", INFER, body).code == 200
            for name in ("slow", "same"):
                assert ask(app, "POST", f"/v2/repository/models/{name}/load").code == 200
            assert len(own._loop.networks) == 2, turn  # what it held is used again
            assert ask(app, "POST", "/v2/models/same/infer", body).code == 200
        assert own.statistics().waiting == 0
        assert own.history() is not None
        app.close()


def test_requests_race_with_unloading_and_none_is_lost() -> None:
    with coordinator("a", queue=64) as own:
        own.register(chain(("add", 1.0), name="net"))
        ended, codes = threading.Event(), list[int]()
        app = App(Service(own), access=Access(), most_bytes=10_000)

        def client() -> None:
            while not ended.is_set():
                codes.append(ask(app, "POST", INFER, json_body(vector(1.0))).code)

        def more_than(count: int) -> bool:
            return codes.count(200) > count

        clients = [threading.Thread(target=client) for _ in range(3)]
        for each in clients:
            each.start()
        for turn in range(5):
            own.unload("net")
            own.load("net")
            assert soon(partial(more_than, turn))
        ended.set()
        for each in clients:
            each.join()
        assert set(codes) <= {200, 503}
        counts = own.statistics().models[0].fates
        assert counts["answered"] == codes.count(200)
        assert own.statistics().waiting == 0
        app.close()


def test_a_request_that_comes_while_its_model_is_unloaded_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with coordinator("a") as own:
        own.register(chain(("add", 1.0), name="net"))

        def unload(*_: object) -> list[str]:
            own.unload("net")
            return []

        monkeypatch.setattr("gapless.executor.coordination.coordinator.check_inputs", unload)
        with pytest.raises(RefusedRequestError, match="the model is unloaded"):
            own.submit("net", {"x": vector(1.0)})


def test_a_model_whose_requests_take_too_long_stays() -> None:
    with coordinator("a") as own:
        own.register(chain(("sleep", 0.3), name="slow"))
        answer = own.submit("slow", {"x": vector(1.0)})
        with pytest.raises(ExecutionError, match=r"not answered in 0\.01 s; it takes requests again"):
            own.unload("slow", patience_s=0.01)
        assert own.can_serve("slow")
        assert answer.result().outputs
        own.unload("slow")
        own.unload("slow")  # it stays so
        with pytest.raises(RefusedRequestError, match="the model is unloaded"):
            own.submit("slow", {"x": vector(1.0)})
        with pytest.raises(InvalidInputError, match="no model 'slo'"):
            own.load("slo")
        assert own.load("slow") is own.load("slow")


def test_loading_is_steering(opened: Coordinator) -> None:
    token = "a token of many letters"
    admin = "another one that steers"
    app = App(Service(opened), access=Access(token=token, admin_token=admin), most_bytes=10_000)
    for name, code in ((token, 401), (admin, 404)):
        header = {"Authorization": f"Bearer {name}"}
        assert ask(app, "POST", "/v2/repository/models/no/load", headers=header).code == code
    header = {"Authorization": f"Bearer {token}"}
    assert ask(app, "POST", "/v2/repository/index", headers=header).code == 200
    app.close()


@pytest.mark.parametrize(
    ("place", "body", "code", "words"),
    [
        (
            "POST /v2/repository/models/net/load",
            b'{"parameters": {"config": "{}"}}',
            501,
            "parameter 'config'",
        ),
        ("POST /v2/repository/models/net/unload", b'{"parameters": {"x": 1}}', 400, "parameter 'x' is"),
        (
            "POST /v2/repository/models/net/unload",
            b'{"parameters": {"unload_dependents": 1}}',
            400,
            "dependents is 1, must",
        ),
        ("POST /v2/repository/models/nett/load", b"", 404, "no model 'nett'"),
        ("POST /v2/repository/index", b'{"ready": 1}', 400, "ready is 1"),
        ("POST /v2/repository/index", b"[]", 400, "must be a JSON object"),
        ("POST /v2/repository/index", b"{", 400, "no JSON document"),
        ("POST /v2/repository/index", b" " * 70_000, 413, "larger than 65,536 bytes"),
        ("POST /v2/repository/other", b"", 404, "repository/other"),
        ("GET /v2/systemsharedmemory/status", b"", 501, "shared memory with clients is not offered"),
        ("POST /v2/cudasharedmemory/region/r/register", b"", 501, "shared memory with clients"),
        ("GET /v2/trace/setting", b"", 501, "requests are not traced on demand"),
        ("POST /v2/models/net/trace/setting", b"", 501, "requests are not traced on demand"),
        ("POST /v2/logging", b"", 501, "--log-level"),
        ("POST /v2/models/net/generate_stream", b"", 501, "texts are not generated here"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(
    app: App, place: str, body: bytes, code: int, words: str
) -> None:
    found = ask(app, *place.split(), body)
    assert found.code == code
    assert words in found.error


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"sequence_id": 7}, "sequence_id is '7', but 'net' keeps no state between requests"),
        ({"sequence_id": -1}, "sequence_id is -1, must be a whole number above 0"),
        ({"sequence_start": True}, "need a sequence_id"),
        ({"priority": 10}, "priority is 10, must be a whole number from 1, the first, to 9"),
        ({"priority": True}, "priority is true"),
        ({"timeout": -1}, "timeout is -1"),
        ({"timeout": 5, "deadline_ms": 5}, "deadline_ms and timeout are both given"),
        ({"triton_enable_empty_final_response": True}, "triton_enable_empty_final_response is for models"),
        ({"deadline": 5}, "parameter 'deadline' is not known here; did you mean deadline_ms"),
    ],
)
def test_parameters_are_refused_by_name(app: App, parameters: dict[str, Any], words: str) -> None:
    found = ask(app, "POST", INFER, with_parameters(**parameters))
    assert (found.code, words in found.error) == (400, True), found.error


def test_parameters_of_tensors_are_refused_by_name(app: App) -> None:
    found = ask(app, "POST", INFER, json_body(vector(1.0), parameters={"content_type": "np"}))
    assert (found.code, "input 'x' has the parameter 'content_type', which is not known" in found.error) == (
        400,
        True,
    )
    outputs = b', "outputs": [{"name": "t0", "parameters": {"top": 5}}]}'
    found = ask(app, "POST", INFER, json_body(vector(1.0))[:-1] + outputs)
    assert (found.code, "output 't0': parameter 'top' is not known" in found.error) == (400, True)


def test_members_that_the_protocol_does_not_have_are_refused_by_name(app: App) -> None:
    document = json.loads(json_body(vector(1.0)))
    (tensor,) = document["inputs"]
    for changed, words in (
        ({**document, "timeout": 1}, "member 'timeout' is not known here"),
        ({"inputs": [{**tensor, "dtype": "FP32"}]}, "input 'x': member 'dtype' is not known here"),
        ({**document, "outputs": [{"name": "t0", "binary_data": True}]}, "output 't0': member 'binary_data'"),
        ({**document, "model_name": "other"}, "model_name is \"other\", but the address names 'net'"),
    ):
        found = ask(app, "POST", INFER, json.dumps(changed).encode())
        assert (found.code, words in found.error) == (400, True), found.error
    assert first(ask(app, "POST", INFER, json.dumps({**document, "model_name": "net"}).encode())) == 3.0
    for path, sent in (("index", {"redy": True}), ("models/net/load", {"config": "{}"})):
        found = ask(app, "POST", f"/v2/repository/{path}", json.dumps(sent).encode())
        (name,) = sent
        assert (found.code, f"member {name!r} is not known here" in found.error) == (400, True), found.error


def test_parameters_that_say_nothing_are_taken(app: App) -> None:
    said = {"sequence_id": 0, "sequence_start": False, "priority": 0, "timeout": 0}
    assert first(ask(app, "POST", INFER, with_parameters(**said))) == 3.0
    assert first(ask(app, "POST", INFER, with_parameters(sequence_id="", priority=9))) == 3.0


def test_a_timeout_drops_what_would_be_late_and_a_deadline_does_not(app: App) -> None:
    async def one_waits(**parameters: Any) -> Response:
        body = json_body(vector(1.0))
        first = asyncio.ensure_future(asked(app, "POST", "/v2/models/slow/infer", body))
        await asyncio.sleep(0.01)
        found = await asked(app, "POST", "/v2/models/slow/infer", with_parameters(**parameters))
        assert (await first).code == 200
        return found

    dropped = asyncio.run(one_waits(timeout=20_000))  # Triton's clients say microseconds
    assert (dropped.code, "cannot meet its deadline" in dropped.error) == (503, True)
    kept = asyncio.run(one_waits(deadline_ms=20))
    assert (kept.code, kept.document["parameters"]["late"]) == (200, True)
    assert asyncio.run(one_waits(timeout=0)).document["parameters"]["late"] is False


def test_latency_and_lateness_count_from_the_first_byte(app: App) -> None:
    for deadline_ms, late in ((50_000, True), (500_000, False)):
        sent = with_parameters(deadline_ms=deadline_ms)
        told = ask(app, "POST", INFER, sent, arrival_s=monotonic() - 100).document["parameters"]
        assert told["late"] is late
        assert 100e6 <= told["latency_us"] < 150e6
    dropped = ask(app, "POST", INFER, with_parameters(timeout=50_000_000), arrival_s=monotonic() - 100)
    assert (dropped.code, "cannot meet its deadline" in dropped.error) == (503, True)


def test_requests_of_a_smaller_priority_number_run_first(app: App) -> None:
    order = list[int]()

    async def one(number: int, priority: int) -> None:
        found = await asked(app, "POST", "/v2/models/slow/infer", with_parameters(priority=priority))
        assert found.code == 200
        order.append(number)

    async def several() -> None:
        tasks = [asyncio.ensure_future(one(0, 5))]
        await asyncio.sleep(0.02)
        for number, priority in enumerate((9, 0, 1, 5, 2), 1):
            tasks.append(asyncio.ensure_future(one(number, priority)))
            await asyncio.sleep(0.001)
        await asyncio.gather(*tasks)

    asyncio.run(several())
    assert order == [0, 3, 5, 2, 4, 1]


def test_a_policy_is_shown_later_priorities_only_when_it_starts_no_earlier_one() -> None:
    times = Times(["a", "b"], [NetworkTimes(sections=1, chunk_us={(0, 1, 0): 5.0}) for _ in range(2)])
    dispatcher = Dispatcher(LeastSlack(), times, late=Late.KEEP)
    dispatcher.submit(Waiting(1, 0, 0, 0, priority=7))
    dispatcher.submit(Waiting(2, 0, 0, 0, priority=3))
    (start,) = dispatcher.decide(0)  # unit b can run neither
    assert start.request.number == 2
    dispatcher.finished(start, 5.0)
    assert [each.request.number for each in dispatcher.decide(10)] == [1]


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_bodies_and_answers_are_compressed_if_that_is_asked_for(app: App, encoding: str) -> None:
    pack = gzip.compress if encoding == "gzip" else zlib.compress
    unpack = gzip.decompress if encoding == "gzip" else zlib.decompress
    body, headers = binary_body(vector(2.0))  # the length of the document is that of the unpacked one
    found = ask(app, "POST", INFER, pack(body), headers={**headers, "Content-Encoding": encoding})
    assert first(found) == 4.0
    assert "content-encoding" not in found.headers
    metrics = ask(app, "GET", "/metrics", headers={"Accept-Encoding": encoding})
    assert metrics.headers["content-encoding"] == encoding
    assert b"gapless_requests_total" in unpack(metrics.body)
    small = ask(app, "GET", "/v2", headers={"Accept-Encoding": encoding})
    assert "content-encoding" not in small.headers


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_of_a_bomb_no_more_is_unpacked_than_may_be(app: App, encoding: str) -> None:
    bomb = (gzip.compress if encoding == "gzip" else zlib.compress)(bytes(40_000_000))
    assert len(bomb) < 50_000
    tracemalloc.start()
    try:
        found = ask(app, "POST", INFER, bomb, headers={"Content-Encoding": encoding})
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found.code, found.headers["connection"]) == (413, "close")
    assert "when it is unpacked" in found.error
    assert peak_bytes < 4_000_000  # the limit of the model is 68,672


def test_archives_of_several_members_are_one_body(app: App) -> None:
    body = json_body(vector(1.0))
    packed = gzip.compress(body[:9]) + gzip.compress(b"") + gzip.compress(body[9:])
    for encoding in ("gzip", "x-gzip"):
        assert first(ask(app, "POST", INFER, packed, headers={"Content-Encoding": encoding})) == 3.0


def test_broken_archives_are_refused(app: App) -> None:
    good = gzip.compress(json_body(vector(1.0)))
    for broken, words in (
        (good[:-4], "it ends too early"),
        (b"", "it ends too early"),
        (good + b"more", "not in gzip"),
        (b"nothing", "not in gzip"),
    ):
        found = ask(app, "POST", INFER, broken, headers={"Content-Encoding": "gzip"})
        assert (found.code, words in found.error) == (400, True), found.error
    twice = zlib.compress(json_body(vector(1.0))) + b"more"
    found = ask(app, "POST", INFER, twice, headers={"Content-Encoding": "deflate"})
    assert (found.code, "4 bytes follow it" in found.error) == (400, True)
    assert app.bodies._held_bytes == 0


def test_what_is_unpacked_counts_as_memory(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_UNCOUNTED_BYTES", 1_000)
    app.bodies = messages.Bodies(30_000)
    packed = gzip.compress(json_body(vector(1.0)).ljust(40_000))
    found = ask(app, "POST", INFER, packed, headers={"Content-Encoding": "gzip"})
    assert (found.code, "messages of 30,000 bytes are in memory" in found.error) == (429, True)
    assert app.bodies._held_bytes == 0


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("", None),
        ("gzip", "gzip"),
        ("GZIP, deflate", "gzip"),
        ("x-gzip, deflate;q=0.5", "gzip"),
        ("deflate, gzip;q=0.5", "deflate"),
        ("gzip;q=0, deflate;q=0", None),
        ("br, identity;q=1, gzip;q=0.5", None),
        ("gzip;q=2", None),
        ("*", None),
        ("gzip;q=x", None),
    ],
)
def test_the_encoding_that_a_client_prefers(accepted: str, expected: str | None) -> None:
    assert chosen(accepted) == expected


def test_numbers_are_the_same_compressed_or_not(app: App) -> None:
    body, headers = binary_body(vector(0.1), parameters={"binary_data_output": True})
    plain = ask(app, "POST", INFER, body, headers=headers)
    packed = ask(app, "POST", INFER, zlib.compress(body), headers={**headers, "Content-Encoding": "deflate"})
    assert np.array_equal(np.frombuffer(plain.blobs, np.float32), np.frombuffer(packed.blobs, np.float32))


def test_locators_have_names_with_versions() -> None:
    assert split_locator("ocr:2=new.onnx") == ("ocr:2", "new.onnx")
    assert split_locator("ocr:02=new.onnx") == (None, "ocr:02=new.onnx")
    assert DEADLINES.read(Place("--deadline"), "ocr:2=50ms") == {"ocr:2": 50_000}
