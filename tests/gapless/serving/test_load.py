"""One request does not stop the others: limits by the model, JSON elsewhere, memory, clients that leave."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import time
from collections.abc import Iterator, MutableMapping
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.tally import Fate
from gapless.executor.model import TensorSpec
from gapless.formulations.errors import ExecutionError, InvalidInputError
from gapless.serving import codec as codecs
from gapless.serving import messages
from gapless.serving.access import Access
from gapless.serving.app import App
from gapless.serving.codec import Codec
from gapless.serving.parameters import Wishes
from gapless.serving.protocol import Interface, document_bytes, read_request, write_document
from gapless.serving.service import Service
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import ask, asked, json_body, vector

INFER = "/v2/models/net/infer"

WIDE = Interface(model="wide", inputs=(TensorSpec(name="x", shape=(4, 1024)),), outputs=("y",))


@pytest.fixture(scope="module")
def opened() -> Iterator[Coordinator]:
    with coordinator("a", queue=8) as found:
        found.register(chain(("add", 1.0), name="net"))
        found.register(chain(("sleep", 0.3), name="slow"))
        yield found


@pytest.fixture
def app(opened: Coordinator) -> Iterator[App]:
    found = App(Service(opened), access=Access(), most_bytes=1 << 20)
    yield found
    found.close()


@pytest.fixture
def codec() -> Iterator[Codec]:
    found = Codec()
    yield found
    found.close()


def document(value: float = 0.5, **changes: Any) -> bytes:
    tensor = {"name": "x", "shape": [4, 1024], "datatype": "FP32", "data": [[value] * 1024] * 4, **changes}
    return json.dumps({"inputs": [tensor]}, indent=4).encode()


def read(codec: Codec, text: bytes, binary_bytes: int = 0) -> Any:
    return asyncio.run(codec.read(WIDE, memoryview(text), binary_bytes))


@pytest.mark.slow
def test_bodies_are_as_long_as_requests_of_the_model_can_be(app: App) -> None:
    for parts in ([b"x" * 70_000] * 2, [b"x"] * 2):
        found = ask(app, "POST", INFER, parts, headers={"Content-Length": "140000"})
        assert (found.code, found.headers["connection"]) == (413, "close")
        assert "no request of 'net' needs more" in found.error
    found = ask(app, "POST", INFER, json_body(vector(1.0)).ljust(68_650))
    assert (found.code, "the inputs of 'net' need at most 68,608" in found.error) == (400, True)
    with pytest.raises(InvalidInputError, match="the JSON document has 400,000 bytes"):
        document_bytes(WIDE, "400000", 500_000)


def test_indented_numbers_of_all_digits_fit() -> None:
    text = document(-1.2345678901234567e-300)
    assert document_bytes(WIDE, None, len(text)) == len(text) > 30 * 4096
    assert read_request(WIDE, text, 0).inputs.arrays["x"].shape == (4, 1024)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"inputs": [' + b"[]," * 6_000 + b"[]]}", "more than 6,000 values; the inputs of 'wide' have"),
        (b'{"inputs": [' + b"{}," * 6_000 + b"{}]}", "more than 6,000 values"),
        (json.dumps({"inputs": [{"name": "x"}] * 500}).encode(), "500 inputs are given; 'wide' takes 1: 'x'"),
    ],
)
def test_more_than_a_model_takes_is_refused_before_it_is_read(text: bytes, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        read_request(WIDE, text, 0)


def test_large_documents_are_read_and_written_elsewhere(
    codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, array = document(), np.full((2, 600), 1 / 3, np.float32)
    expected = read_request(WIDE, text, 0)
    answer: Any = {"outputs": [{"name": "a", "datatype": "FP32"}, {"name": "b"}]}
    written = write_document(json.loads(json.dumps(answer)), {0: array, 1: array[:1] * np.nan})
    monkeypatch.setattr(codecs, "read_request", None)  # in this process; a child has its own
    monkeypatch.setattr(codecs, "write_document", None)
    found = read(codec, text)
    assert np.array_equal(found.inputs.arrays["x"], expected.inputs.arrays["x"])
    assert (found.outputs, found.id, found.wishes) == ({"y": False}, None, Wishes())
    assert bytes(asyncio.run(codec.write(answer, {0: array, 1: array[:1] * np.nan}))) == written
    both = (
        json.dumps(
            {
                "inputs": [
                    {
                        "name": "x",
                        "shape": [4, 1024],
                        "datatype": "FP32",
                        "parameters": {"binary_data_size": 16384},
                    }
                ],
                "id": "seven",
                "parameters": {"deadline_ms": 5},
            }
        )
        .encode()
        .ljust(20_000)
    )
    found = read(codec, both, 16384)
    assert (found.inputs.spans, found.id, found.wishes.deadline_us) == ({"x": (0, 16384)}, "seven", 5000)


def test_mistakes_in_large_documents_are_told_as_in_small_ones(codec: Codec) -> None:
    for text in (
        document(1e300),
        document(name="y"),
        document(data=[[1] * 4096]),
        document()[:-1],
        b"[" * 20_000,
    ):
        with pytest.raises(InvalidInputError) as here:
            read_request(WIDE, text, 0)
        with pytest.raises(InvalidInputError) as there:
            read(codec, text.ljust(20_000))
        assert str(there.value).split(": line")[0] == str(here.value).split(": line")[0]
    assert len(codec._idle) == 1  # it was not lost


@pytest.mark.slow
def test_a_process_that_is_lost_is_started_again(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(codec, document()).outputs == {"y": False}
    (process,) = codec._idle
    os.kill(process._worker.pid, signal.SIGKILL)
    assert read(codec, document()).outputs == {"y": False}  # it was idle: nobody is to blame
    assert codec._idle[0] is not process
    monkeypatch.setattr(codecs, "send", _broken)
    with pytest.raises(ExecutionError, match="was not read or written"):
        read(codec, document())
    monkeypatch.undo()
    assert read(codec, document()).outputs == {"y": False}


def _broken(*_: object) -> None:
    raise BrokenPipeError


def test_no_document_ends_or_holds_the_loop(codec: Codec) -> None:
    """While a large one is read, what else there is to do is done."""

    async def both() -> int:
        reading = asyncio.ensure_future(codec.read(WIDE, memoryview(document()), 0))
        turns = 0
        while not reading.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(both()) > 10


class Stalled:
    """Clients that send a part of a body, and wait."""

    def __init__(self, app: App, size: int, count: int) -> None:
        self._app, self._size = app, size
        self.tasks = [asyncio.ensure_future(self._send()) for _ in range(count)]
        self.codes = list[int]()

    async def _send(self) -> None:
        sent = False

        async def receive() -> MutableMapping[str, Any]:
            nonlocal sent
            if sent:
                await asyncio.Event().wait()
            sent = True
            return {"type": "http.request", "body": bytes(self._size), "more_body": True}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.codes.append(message["status"])

        scope = {"type": "http", "method": "POST", "path": INFER, "raw_path": INFER.encode()}
        await self._app({**scope, "headers": [(b"host", b"localhost")]}, receive, send)


@pytest.mark.parametrize("told", [True, False])
def test_a_body_in_parts_is_read_as_one(app: App, told: bool) -> None:
    sent = json_body(vector(1.5)).ljust(300)
    parts = [sent[:1], b"", sent[1:40], sent[40:]]
    headers = {"Content-Length": str(len(sent))} if told else {}
    found = asyncio.run(asked(app, "POST", INFER, parts, headers))
    assert (found.code, found.document["outputs"][0]["data"][0]) == (200, 2.5)


def test_the_bodies_in_memory_are_bounded(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "_UNCOUNTED_BYTES", 1_000)
    app.bodies = messages.Bodies(100_000)

    async def stall() -> None:
        stalled = Stalled(app, 30_000, 5)
        await asyncio.sleep(0.05)
        assert stalled.codes == [429, 429]  # three of them are held
        small = await asked(app, "POST", INFER, json_body(vector(1.0)))
        assert small.code == 200
        large = await asked(app, "POST", INFER, json_body(vector(1.0)).ljust(30_000))
        assert (large.code, large.headers["retry-after"], large.headers["connection"]) == (429, "1", "close")
        assert "messages of 100,000 bytes are in memory" in large.error
        for task in stalled.tasks:
            task.cancel()
        await asyncio.gather(*stalled.tasks, return_exceptions=True)
        assert app.bodies._held_bytes == 0
        large = await asked(app, "POST", INFER, json_body(vector(1.0)).ljust(30_000))
        assert (large.code, app.bodies._held_bytes) == (200, 0)

    asyncio.run(stall())


def test_a_body_is_not_held_while_its_request_waits(opened: Coordinator, app: App) -> None:
    async def ask_slowly() -> None:
        body = json_body(vector(1.0)).ljust(68_000)
        waiting = asyncio.ensure_future(asked(app, "POST", "/v2/models/slow/infer", body))
        while not opened.statistics().waiting:
            assert not waiting.done()
            await asyncio.sleep(0.001)
        assert app.bodies._held_bytes == 0
        assert (await waiting).code == 200

    asyncio.run(ask_slowly())


def test_inputs_are_let_go_when_they_are_copied(opened: Coordinator) -> None:
    inputs, seen = {"x": vector(1.0)}, list[bool]()
    model = opened.registered["net"]
    asyncio.run(Service(opened).served(model, inputs, Wishes(), lambda: seen.append(not inputs)))
    assert seen == [True]


@pytest.mark.slow
def test_requests_of_clients_that_have_left_are_dropped_unless_they_run() -> None:
    with coordinator("a", queue=20) as own:
        own.register(chain(("sleep", 0.3), name="slow"))
        with gapless.serve(own, port=0) as server:
            port = int(server.url.rpartition(":")[2])
            clients = []
            for _ in range(6):
                client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                client.request("POST", "/v2/models/slow/infer", json_body(vector(1.0)))
                clients.append(client)
            while own.statistics().waiting < 6:
                time.sleep(0.005)
            for client in clients[:-1]:
                client.close()
            assert clients[-1].getresponse().status == 200
            clients[-1].close()
            (counts,) = own.statistics().models
            assert counts.fates[Fate.LEFT] >= 4
            assert counts.fates[Fate.LEFT] + counts.fates[Fate.ANSWERED] == 6
            assert own.statistics().waiting == 0
            assert 'result="left"} ' in _metrics(port)


def _metrics(port: int) -> str:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", "/metrics")
    text = client.getresponse().read().decode()
    client.close()
    return text


def test_a_request_that_is_abandoned_is_dropped_once(opened: Coordinator) -> None:
    before = opened.statistics().decisions
    answers = [opened.submit("slow", {"x": vector(1.0)}) for _ in range(3)]
    while opened.statistics().decisions == before:
        time.sleep(0.001)
    for answer in (answers[2], answers[2], answers[0]):
        opened.abandon(answer)
    assert answers[1].result().outputs
    assert answers[0].result().outputs  # it ran already
    with pytest.raises(gapless.GaplessError, match="its client has left"):
        answers[2].result()
    opened.abandon(answers[1])  # answered
    assert opened.statistics().waiting == 0
