"""gRPC: the same fields as the published protocol, the same checks as REST, and clients that mean no good."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.tally import Fate
from gapless.executor.model import TensorSpec
from gapless.formulations.errors import EngineUnavailableError, ExecutionError, InvalidInputError
from gapless.serving import grpc_requests, grpc_server
from gapless.serving.grpc_requests import answer_message, is_small, read_message
from gapless.serving.messages import Refusal
from gapless.serving.protocol import Interface
from gapless.serving.server import Server
from gapless.serving.tensors import DATATYPES
from gapless.serving.wire import wire
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import json_body, killing, over_socket, vector
from tests.processes import soon

grpc = pytest.importorskip("grpc")
pytest.importorskip("httptools")
published = pytest.importorskip("tritonclient.grpc.service_pb2")
configured = pytest.importorskip("tritonclient.grpc.model_config_pb2")

TOKEN, ADMIN = "a token of many letters", "another one that steers"
OTHER_NAMES = {
    "InferInputTensor": "ModelInferRequest.InferInputTensor",
    "InferRequestedOutputTensor": "ModelInferRequest.InferRequestedOutputTensor",
    "InferOutputTensor": "ModelInferResponse.InferOutputTensor",
    "TensorMetadata": "ModelMetadataResponse.TensorMetadata",
    "ModelIndex": "RepositoryIndexResponse.ModelIndex",
    "AllVersions": "ModelVersionPolicy.All",
    "SequenceState": "ModelSequenceBatching.State",
}
"""Messages that the protocol declares inside others: on the wire that makes no difference."""


@pytest.fixture(scope="module")
def opened() -> Iterator[Coordinator]:
    with coordinator("a", "b", queue=8) as found:
        found.register(chain(("add", 1.0), name="net"))
        found.register(chain(("add", 2.0), name="two"), "net:2")
        found.register(chain(("sleep", 0.3), name="slow"))
        yield found


@pytest.fixture(scope="module")
def server(opened: Coordinator) -> Iterator[Server]:
    with gapless.serve(opened, port=0, grpc_port=0) as found:
        yield found


class Client:
    """Calls methods by name, with messages of the server's own file."""

    def __init__(self, server: Server, *metadata: tuple[str, str]) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}")
        self.metadata = metadata
        self.calls = {
            method.name: self.channel.unary_unary(
                f"/{wire().service}/{method.name}",
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            for method in wire().methods
        }

    def __call__(self, which: str, message: Any = None, /, timeout: float = 30.0, **fields: Any) -> Any:
        (method,) = [method for method in wire().methods if method.name == which]
        asked = method.request(**fields) if message is None else message
        return self.calls[which](asked, timeout=timeout, metadata=self.metadata)

    def refused(self, which: str, /, *words: Any, **fields: Any) -> tuple[str, str]:
        with pytest.raises(grpc.RpcError) as raised:
            self(which, *words, **fields)
        return raised.value.code().name, raised.value.details()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client(server) as found:
        yield found


def request(model: str = "net", **changes: Any) -> Any:
    found = wire().messages["ModelInferRequest"](model_name=model)
    tensor = {"name": "x", "datatype": "FP32", "shape": [16], **changes}
    found.inputs.add(**tensor)
    return found


def raw(model: str = "net", value: float = 1.0, **changes: Any) -> Any:
    found = request(model, **changes)
    found.raw_input_contents.append(vector(value).tobytes())
    return found


def numbers(answer: Any) -> list[float]:
    (data,) = answer.raw_output_contents
    return [float(value) for value in np.frombuffer(data, np.float32)]


def test_latency_counts_from_the_whole_message_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*words: Any) -> Any:
        time.sleep(0.2)
        return read_message(*words)

    monkeypatch.setattr(grpc_server, "read_message", slowly)
    assert client("ModelInfer", raw()).parameters["latency_us"].int64_param >= 200_000


def published_message(name: str) -> Any:
    for file in (published.DESCRIPTOR, configured.DESCRIPTOR):
        found = file.message_types_by_name.get(name.partition(".")[0])
        if found is not None:
            for part in name.split(".")[1:]:
                found = found.nested_types_by_name[part]
            return found
    raise AssertionError(f"no message {name}")


def kind_of(field: Any) -> tuple[Any, ...]:
    message = field.message_type
    entry = message is not None and message.GetOptions().map_entry
    value = kind_of(message.fields_by_name["value"]) if entry else ()
    own = "" if message is None or entry else message.name
    oneof = field.containing_oneof.name if field.containing_oneof is not None else ""
    return (
        field.number,
        field.type,
        field.is_repeated,
        OTHER_NAMES.get(own, own).rpartition(".")[2],
        oneof,
        value,
    )


def test_every_field_is_that_of_the_published_protocol() -> None:
    seen = 0
    for name, own in wire().messages.items():
        other = published_message(OTHER_NAMES.get(name, name))
        for field in own.DESCRIPTOR.fields:
            assert kind_of(field) == kind_of(other.fields_by_name[field.name]), (name, field.name)
            seen += 1
    assert seen > 130
    service = published.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    assert wire().service == service.full_name
    own_methods = {method.name for method in wire().methods}
    assert own_methods | grpc_server._REFUSED.keys() == {method.name for method in service.methods}
    assert not own_methods & grpc_server._REFUSED.keys()
    for method in wire().methods:
        other = service.methods_by_name[method.name]
        assert (method.request.DESCRIPTOR.name, method.response.DESCRIPTOR.name) == (
            other.input_type.name,
            other.output_type.name,
        )
    types = dict(configured.DataType.items())
    enum = wire().messages["ModelInput"].DESCRIPTOR.fields_by_name["data_type"].enum_type
    assert {value.name: value.number for value in enum.values}.items() <= types.items()
    kinds = dict(configured.ModelInstanceGroup.Kind.items())
    enum = wire().messages["ModelInstanceGroup"].DESCRIPTOR.fields_by_name["kind"].enum_type
    assert {value.name: value.number for value in enum.values}.items() <= kinds.items()


@pytest.mark.slow
def test_requests_are_answered_as_over_rest(client: Client, server: Server) -> None:
    message = raw(value=3.0)
    message.id = "seven"
    message.model_version = "1"
    message.parameters["priority"].uint64_param = 1
    answer = client("ModelInfer", message)
    assert numbers(answer) == [4.0] * 16
    assert (answer.id, answer.model_name, answer.model_version) == ("seven", "net", "1")
    (output,) = answer.outputs
    assert (output.name, output.datatype, list(output.shape)) == ("t0", "FP32", [16])
    assert answer.parameters["late"].bool_param is False
    typed = request()
    typed.inputs[0].contents.fp32_contents.extend([3.0] * 16)
    assert numbers(client("ModelInfer", typed)) == [5.0] * 16  # the newest version
    port = int(server.url.rpartition(":")[2])
    rest = over_socket(port, "POST", "/v2/models/net/infer", json_body(vector(3.0))).document
    assert rest["outputs"][0]["data"] == [5.0] * 16


def test_what_is_wrong_has_the_words_of_rest(client: Client, server: Server) -> None:
    port = int(server.url.rpartition(":")[2])
    for changes in ({"name": "y"}, {"datatype": "INT32"}, {"shape": [4, 4]}, {"datatype": "BYTES"}):
        data = b"" if changes.get("datatype") == "BYTES" else vector(1.0).tobytes()
        message = request(**changes)
        message.raw_input_contents.append(data)
        rest = over_socket(port, "POST", "/v2/models/net/infer", json_body(vector(1.0), **changes))
        assert client.refused("ModelInfer", message) == ("INVALID_ARGUMENT", rest.error)
    missing = over_socket(port, "GET", "/v2/models/nett").error
    assert client.refused("ModelInfer", raw("nett")) == ("NOT_FOUND", missing)


def test_what_only_grpc_can_say_wrongly_is_named(client: Client) -> None:
    def refused(message: Any) -> str:
        code, words = client.refused("ModelInfer", message)
        assert code == "INVALID_ARGUMENT", words
        return words

    message = raw()
    message.raw_input_contents.append(b"")
    assert "raw_input_contents has 2 entries for 1 inputs" in refused(message)
    message = raw()
    message.inputs[0].contents.fp32_contents.append(1.0)
    assert "contents (fp32_contents) and raw_input_contents; give one" in refused(message)
    message = request()
    message.inputs[0].contents.int_contents.extend([1] * 16)
    assert "is FP32 and has int_contents; its values belong in fp32_contents" in refused(message)
    message = request()
    message.inputs[0].contents.fp32_contents.extend([1.0] * 15)
    assert "has 15 values in fp32_contents, needs 16" in refused(message)
    assert "values in fp32_contents, needs 16" in refused(request())
    message = raw()
    message.inputs[0].parameters["binary_data_size"].int64_param = 64
    assert "binary_data_size is for REST" in refused(message)
    message = request()
    message.inputs[0].parameters["shared_memory_region"].string_param = "r"
    assert "is in shared memory, which is not offered" in refused(message)
    message = raw()
    message.parameters["deadline"].int64_param = 5
    assert "did you mean deadline_ms" in refused(message)
    message = raw()
    message.inputs.add(name="x", datatype="FP32", shape=[16])
    message.raw_input_contents.append(b"")
    assert "2 inputs are given; 'net' takes 1" in refused(message)
    message = raw()
    message.outputs.add(name="t7")
    assert "'t7' is no output of 'net'" in refused(message)
    message = raw()
    message.parameters["sequence_id"].string_param = "s"
    assert "keeps no state between requests" in refused(message)
    assert "'FP16', whose values come in raw_input_contents" in refused(request(datatype="FP16"))


@pytest.mark.parametrize("dtype", DATATYPES)
def test_all_types_are_read_from_both_forms(dtype: str) -> None:
    spec = TensorSpec(name="x", shape=(2, 3), dtype=dtype)
    interface = Interface(model="net", inputs=(spec,), outputs=("y",))
    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    message = request(datatype=DATATYPES[dtype], shape=[2, 3])
    if dtype != "float16":
        field, _ = grpc_requests._CONTENTS[DATATYPES[dtype]]
        getattr(message.inputs[0].contents, field).extend(array.ravel().tolist())
        found, binary = read_message(interface, message)
        assert np.array_equal(found.inputs.complete((spec,), memoryview(binary))["x"], array)
        message.inputs[0].ClearField("contents")
    message.raw_input_contents.append(array.tobytes())
    found, binary = read_message(interface, message)
    assert np.array_equal(found.inputs.complete((spec,), memoryview(binary))["x"], array)


def test_several_inputs_in_another_order_and_large_ones_are_put_together() -> None:
    specs = tuple(TensorSpec(name=name, shape=(5000,), dtype="int16") for name in "ab")
    interface = Interface(model="net", inputs=specs, outputs=("y",))
    arrays = {name: np.arange(5000, dtype=np.int16) + at for at, name in enumerate("ab")}
    for typed in (True, False):
        message = wire().messages["ModelInferRequest"]()
        for name in "ba":
            tensor = message.inputs.add(name=name, datatype="INT16", shape=[5000])
            if typed:
                tensor.contents.int_contents.extend(arrays[name].tolist())
            else:
                message.raw_input_contents.append(arrays[name].tobytes())
        assert is_small(message) is not typed
        found, binary = read_message(interface, message)
        made = found.inputs.complete(specs, memoryview(binary))
        assert all(np.array_equal(made[name], arrays[name]) for name in "ab")
    message.ClearField("raw_input_contents")
    message.inputs[0].contents.int_contents.extend([1] * 4999 + [40_000])
    with pytest.raises(InvalidInputError, match="input 'b' has 40000 at 4999, which INT16 does not have"):
        read_message(interface, message)


def test_health_models_and_repository(client: Client) -> None:
    assert client("ServerLive").live
    assert client("ServerReady").ready
    assert client("ModelReady", name="net", version="2").ready
    assert not client("ModelReady", name="net", version="3").ready
    assert "model_repository" in client("ServerMetadata").extensions
    assert list(client("ModelMetadata", name="net").versions) == ["1", "2"]
    config = client("ModelConfig", name="slow").config
    assert (config.input[0].name, list(config.input[0].dims)) == ("x", [16])
    (stats,) = client("ModelStatistics", name="net", version="1").model_stats
    assert stats.version == "1"
    assert client.refused("ModelStatistics", version="1")[0] == "INVALID_ARGUMENT"
    assert {model.state for model in client("RepositoryIndex", ready=True).models} == {"READY"}
    client("RepositoryModelUnload", model_name="slow")
    assert not client("ModelReady", name="slow").ready
    assert client.refused("ModelInfer", raw("slow"))[0] == "UNAVAILABLE"
    client("RepositoryModelLoad", model_name="slow")
    assert client("ModelReady", name="slow").ready
    words = client.refused("RepositoryIndex", repository_name="other")[1]
    assert "repository_name is 'other'; there is one repository" in words
    message = wire().messages["RepositoryModelLoadRequest"](model_name="net")
    message.parameters["config"].string_param = "{}"
    assert client.refused("RepositoryModelLoad", message)[0] == "UNIMPLEMENTED"


def test_tokens_are_those_of_rest() -> None:
    mine = coordinator("a")
    mine.register(chain(("add", 2.0), name="net"))
    with gapless.serve(mine, port=0, grpc_port=0, token=TOKEN, admin_token=ADMIN) as own:
        with Client(own) as nobody:
            assert nobody("ServerLive").live  # as health is over REST
            for name in ("ModelInfer", "ServerMetadata", "RepositoryIndex"):
                assert nobody.refused(name)[0] == "UNAUTHENTICATED"
        with Client(own, ("authorization", f"Bearer {TOKEN}")) as known:
            assert numbers(known("ModelInfer", raw())) == [3.0] * 16
            assert known.refused("RepositoryModelUnload", model_name="net")[0] == "UNAUTHENTICATED"
        with Client(own, ("authorization", f"Bearer {ADMIN}")) as admin:
            assert admin.refused("RepositoryModelUnload", model_name="nett")[0] == "NOT_FOUND"


def test_limits_of_sizes_and_bombs(server: Server) -> None:
    channel = grpc.insecure_channel(
        f"127.0.0.1:{server.grpc_port}", options=[("grpc.max_send_message_length", -1)]
    )
    call = channel.unary_unary(f"/{wire().service}/ModelInfer")
    big = request()
    big.raw_input_contents.append(bytes(30_000_000))
    for how in ({}, {"compression": grpc.Compression.Gzip}):
        with pytest.raises(grpc.RpcError) as raised:
            call(big.SerializeToString(), timeout=30, **how)
        assert raised.value.code().name == "RESOURCE_EXHAUSTED"
        assert "larger than max" in raised.value.details()
    answer = call(raw().SerializeToString(), timeout=30, compression=grpc.Compression.Gzip)
    found = wire().messages["ModelInferResponse"].FromString(answer)
    assert numbers(found) == [3.0] * 16
    for nonsense in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f"):
        with pytest.raises(grpc.RpcError):
            call(nonsense, timeout=30)
    assert (
        numbers(wire().messages["ModelInferResponse"].FromString(call(raw().SerializeToString())))
        == [3.0] * 16
    )
    channel.close()


def test_calls_without_a_message_and_connections_without_calls_stop_nobody(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_server, "_PATIENCE_S", 0.3)
    ended = threading.Event()

    def nothing() -> Iterator[bytes]:
        ended.wait(10)
        yield from ()

    stalled = [
        client.channel.stream_stream(f"/{wire().service}/ModelInfer")(nothing(), timeout=20)
        for _ in range(10)
    ]
    idle = [socket.create_connection(("127.0.0.1", server.grpc_port or 0)) for _ in range(300)]
    assert numbers(client("ModelInfer", raw())) == [3.0] * 16
    for each in stalled:
        with pytest.raises(grpc.RpcError) as raised:
            next(iter(each))
        assert (raised.value.code().name, raised.value.details()) == (
            "DEADLINE_EXCEEDED",
            "the request did not come in time",
        )
    ended.set()
    for silent in idle:
        silent.close()
    assert len(os.listdir("/proc/self/fd")) < 900


def test_a_full_queue_and_a_client_that_leaves(server: Server, client: Client, opened: Coordinator) -> None:
    before = opened.statistics().total(Fate.LEFT)
    with ThreadPoolExecutor(12) as pool:
        calls = [client.calls["ModelInfer"].future(raw("slow"), timeout=30) for _ in range(12)]
        codes = sorted(pool.map(lambda call: call.code().name, calls))
    assert codes == ["OK"] * 8 + ["RESOURCE_EXHAUSTED"] * 4
    calls = [client.calls["ModelInfer"].future(raw("slow"), timeout=30) for _ in range(6)]
    assert soon(lambda: opened.statistics().waiting == 6)
    for call in calls:
        call.cancel()
    assert soon(lambda: opened.statistics().waiting == 0)
    assert opened.statistics().total(Fate.LEFT) - before >= 4
    late = client.refused("ModelInfer", raw("slow"), timeout=0.05)
    assert late[0] == "DEADLINE_EXCEEDED"
    assert soon(lambda: opened.statistics().waiting == 0)


def test_nothing_is_lost_or_answered_twice_when_workers_are_killed() -> None:
    with coordinator("a", "b", queue=64, restarts=1000) as own:
        own.register(chain(("add", 1.0), ("sleep", 0.005), name="net"))
        with gapless.serve(own, port=0, grpc_port=0) as found, Client(found) as asks:
            with killing(own), ThreadPoolExecutor(8) as pool:
                answers = list(
                    pool.map(lambda value: numbers(asks("ModelInfer", raw(value=float(value)))), range(300))
                )
            assert [answer[0] for answer in answers] == [value + 1.0 for value in range(300)]
            counts = own.statistics().models[0].fates
            assert counts[Fate.ANSWERED] == 300
            assert sum(unit.losses for unit in own.statistics().units) > 0


def test_the_port_is_told_before_models_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> Coordinator:
        raise AssertionError("models are opened")

    words = r"cannot listen on 127\.0\.0\.1:\d+ for gRPC"
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ExecutionError, match=words):
        Server(never, port=0, grpc_port=other.getsockname()[1])
    monkeypatch.setattr(grpc_server, "find_spec", lambda _: None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'gapless\[grpc\]'"):
        Server(never, port=0, grpc_port=0)


def test_a_port_that_is_taken_while_models_open_ends_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = coordinator("a")
    taken: list[socket.socket] = []

    def opens() -> Coordinator:
        taken.append(socket.create_server(("127.0.0.1", port)))
        return own

    with pytest.raises(ExecutionError, match=f"cannot listen on 127.0.0.1:{port} for gRPC"):
        Server(opens, port=0, grpc_port=port)
    assert not own.is_open
    taken[0].close()


def test_a_server_that_closes_answers_what_it_has_accepted() -> None:
    with coordinator("a") as own:
        own.register(chain(("sleep", 0.3), name="slow"))
        found = gapless.serve(own, port=0, grpc_port=0)
        with Client(found) as asks:
            calls = [asks.calls["ModelInfer"].future(raw("slow"), timeout=30) for _ in range(3)]
            assert soon(lambda: own.statistics().waiting == 3)
            assert found.close() == ()
            assert [call.code().name for call in calls] == ["OK"] * 3
            assert asks.refused("ServerLive", timeout=2)[0] == "UNAVAILABLE"


def test_answers_that_are_there_are_not_refused_for_their_size(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*given: Any, **how: Any) -> tuple[Any, int]:
        return answer_message(*given, **how)[0], 1 << 40

    monkeypatch.setattr(grpc_server, "answer_message", large)
    assert numbers(client("ModelInfer", raw())) == [3.0] * 16
    bodies = server._app.bodies
    assert soon(lambda: bodies._held_bytes == 0)
    with bodies.held() as answer:
        answer.count(1 << 40, taken=True)
        with bodies.held() as other, pytest.raises(Refusal, match="are in memory; try again later"):
            other.count(1 << 20)
