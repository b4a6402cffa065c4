"""Triton's Python clients as they are: every call is answered, or refused with the name of what it lacks."""

from __future__ import annotations

import inspect
import queue
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.serving.server import Server
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain

pytest.importorskip("httptools")
pytest.importorskip("grpc")
over_http = pytest.importorskip("tritonclient.http")
over_grpc = pytest.importorskip("tritonclient.grpc")

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "serve-my-models.md"
SHARED, TRACED, LOGGED = "shared memory with clients is not offered", "not traced on demand", "--log-level"

REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "update_trace_settings": (("net", {}), TRACED),
    "get_trace_settings": (("net",), TRACED),
    "update_log_settings": (({},), LOGGED),
    "get_log_settings": ((), LOGGED),
    "get_system_shared_memory_status": ((), SHARED),
    "register_system_shared_memory": (("region", "key", 64), SHARED),
    "unregister_system_shared_memory": (("region",), SHARED),
    "get_cuda_shared_memory_status": ((), SHARED),
    "register_cuda_shared_memory": (("region", b"aGFuZGxl", 0, 64), SHARED),
    "unregister_cuda_shared_memory": (("region",), SHARED),
}
"""Calls that get no answer, with arguments, and words of the refusal."""

LOCAL = {"close", "stop_stream", "generate_request_body", "parse_response_body", "register_plugin", "plugin"}
LOCAL |= {"unregister_plugin"}
"""Calls that send nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with coordinator("a", "b", queue=32) as opened:
        opened.register(chain(("add", 1.0), name="net"))
        opened.register(chain(("add", 2.0), name="two"), "net:2")
        with gapless.serve(opened, port=0, grpc_port=0) as found:
            yield found


@pytest.fixture(scope="module", params=["http", "grpc"])
def library(request: pytest.FixtureRequest) -> Any:
    return {"http": over_http, "grpc": over_grpc}[request.param]


@pytest.fixture(scope="module")
def client(server: Server, library: Any) -> Iterator[Any]:
    place = server.url.removeprefix("http://") if library is over_http else f"127.0.0.1:{server.grpc_port}"
    found = library.InferenceServerClient(place)
    yield found
    found.close()


def tensors(library: Any, value: float = 1.0) -> list[Any]:
    found = library.InferInput("x", [16], "FP32")
    found.set_data_from_numpy(np.full(16, value, np.float32))
    return [found]


def plain(library: Any, told: Any) -> Any:
    """Return a message of gRPC in the form that REST has."""
    from google.protobuf.json_format import MessageToDict

    return told if library is over_http else MessageToDict(told, preserving_proto_field_name=True)


def state(client: Any, library: Any, version: str = "1") -> str:
    told = plain(library, client.get_model_repository_index())
    models = told["models"] if library is over_grpc else told
    return str(next(each["state"] for each in models if each["version"] == version))


def answers(client: Any, library: Any) -> dict[str, Callable[[], object]]:
    """Return what every call that is answered should give; each returns whether it did."""

    def infer() -> bool:
        how = {"request_id": "7", "priority": 2, "timeout": 5_000_000, "model_version": "1"}
        found = client.infer("net", tensors(library), outputs=[library.InferRequestedOutput("t0")], **how)
        said = plain(library, found.get_response())
        return bool((found.as_numpy("t0") == 2.0).all() and (said["id"], said["model_version"]) == ("7", "1"))

    def async_infer() -> bool:
        if library is over_http:
            found = client.async_infer("net", tensors(library, 2.0)).get_result()
        else:
            come: queue.Queue[Any] = queue.Queue()
            client.async_infer("net", tensors(library, 2.0), lambda result, error: come.put(error or result))
            found = come.get(timeout=30)
        return bool((found.as_numpy("t0") == 4.0).all())

    def repository() -> bool:
        client.unload_model("net")
        gone = (state(client, library), client.is_model_ready("net"))
        client.load_model("net")
        return (*gone, state(client, library)) == ("UNAVAILABLE", False, "READY")

    def counts() -> bool:
        stats = plain(library, client.get_inference_statistics("net", "1"))["model_stats"]
        return int(stats[0]["inference_count"]) >= 1

    def config() -> bool:
        found = plain(library, client.get_model_config("net"))
        return bool((found if library is over_http else found["config"])["input"][0]["name"] == "x")

    return {
        "infer": infer,
        "async_infer": async_infer,
        "is_server_live": client.is_server_live,
        "is_server_ready": client.is_server_ready,
        "is_model_ready": lambda: client.is_model_ready("net", "2") and not client.is_model_ready("net", "3"),
        "get_server_metadata": lambda: plain(library, client.get_server_metadata())["name"] == "gapless",
        "get_model_metadata": lambda: (
            plain(library, client.get_model_metadata("net"))["versions"] == ["1", "2"]
        ),
        "get_model_config": config,
        "get_model_repository_index": lambda: state(client, library, "2") == "READY",
        "load_model": repository,
        "unload_model": repository,
        "get_inference_statistics": counts,
    }


def calls(library: Any) -> set[str]:
    """Return the names of all calls of a client."""
    public = inspect.getmembers(library.InferenceServerClient, callable)
    return {name for name, _ in public if not name.startswith("_")} - LOCAL


@pytest.mark.slow
def test_every_call_is_answered_or_refused_by_name(client: Any, library: Any) -> None:
    answered = answers(client, library)
    streams = {"start_stream", "async_stream_infer"} if library is over_grpc else set()
    assert calls(library) == answered.keys() | REFUSED.keys() | streams
    for name, call in answered.items():
        assert call(), name
    for name, (words, why) in REFUSED.items():
        with pytest.raises(Exception, match=re.escape(why)) as raised:
            getattr(client, name)(*words)
        assert type(raised.value).__name__ == "InferenceServerException", name


def test_streams_are_refused_by_name(server: Server) -> None:
    with over_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        come: queue.Queue[Any] = queue.Queue()
        client.start_stream(lambda result, error: come.put((result, error)))
        with suppress(over_grpc.InferenceServerException):  # the refusal may have come already
            client.async_stream_infer("net", tensors(over_grpc))
        result, error = come.get(timeout=30)
        assert result is None
        assert "streams are not offered: send each request with ModelInfer" in str(error)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"sequence_id": 7, "sequence_start": True}, "keeps no state between requests"),
        ({"sequence_id": "seven"}, "keeps no state between requests"),
        ({"priority": 10}, "priority is 10"),
        ({"parameters": {"temperature": 1}}, "parameter 'temperature' is not known here"),
        ({"model_version": "3"}, "has the versions 1, 2 only"),
        ({"timeout": -1}, "timeout is -1"),
    ],
)
def test_what_a_request_may_not_ask_for_is_named(
    client: Any, library: Any, how: dict[str, Any], words: str
) -> None:
    with pytest.raises(Exception, match=re.escape(words)) as raised:
        client.infer("net", tensors(library), **how)
    assert type(raised.value).__name__ == "InferenceServerException"


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_requests_have_the_same_answers(server: Server, algorithm: str) -> None:
    with over_http.InferenceServerClient(server.url.removeprefix("http://")) as http:
        how = {"request_compression_algorithm": algorithm, "response_compression_algorithm": algorithm}
        assert (http.infer("net", tensors(over_http), **how).as_numpy("t0") == 3.0).all()
    with over_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as grpc:
        found = grpc.infer("net", tensors(over_grpc), compression_algorithm=algorithm)
        assert (found.as_numpy("t0") == 3.0).all()


def test_json_and_classification(server: Server) -> None:
    with over_http.InferenceServerClient(server.url.removeprefix("http://")) as http:
        tensor = over_http.InferInput("x", [16], "FP32")
        tensor.set_data_from_numpy(np.ones(16, np.float32), binary_data=False)
        wanted = over_http.InferRequestedOutput("t0", binary_data=False)
        assert (http.infer("net", [tensor], outputs=[wanted]).as_numpy("t0") == 3.0).all()
        top = over_http.InferRequestedOutput("t0", class_count=5)
        with pytest.raises(over_http.InferenceServerException, match="classification is 5"):
            http.infer("net", [tensor], outputs=[top])


def test_the_page_lists_every_call() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for library in (over_http, over_grpc):
        missing = {name for name in calls(library) if f"`{name}`" not in page}
        assert not missing
    count = sum(len(calls(library)) for library in (over_http, over_grpc))
    assert f"{count} calls" in page
