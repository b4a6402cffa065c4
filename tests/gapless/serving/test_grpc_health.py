"""Health over gRPC: a client of its own protocol, what it says of models and units, and those that watch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any

import pytest

import gapless
from gapless.executor.coordination.coordinator import Coordinator
from gapless.serving import grpc_server
from gapless.serving.server import Server
from gapless.serving.wire import HEALTH, wire
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.processes import soon

grpc = pytest.importorskip("grpc")
pytest.importorskip("httptools")
published = pytest.importorskip("grpc_health.v1.health_pb2")
clients = pytest.importorskip("grpc_health.v1.health_pb2_grpc")


@pytest.fixture
def opened() -> Iterator[Coordinator]:
    with coordinator("a", "b") as found:
        found.register(chain(("add", 1.0), name="net"))
        found.register(chain(("add", 2.0), name="two"), "net:2")
        found.register(chain(("add", 3.0), name="other"))
        yield found


@pytest.fixture
def server(opened: Coordinator) -> Iterator[Server]:
    with gapless.serve(opened, port=0, grpc_port=0) as found:
        yield found


@pytest.fixture
def health(server: Server) -> Iterator[Any]:
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        yield clients.HealthStub(channel)


def asked(whom: str = "") -> Any:
    return published.HealthCheckRequest(service=whom)


def said(answer: Any) -> str:
    return str(published.HealthCheckResponse.ServingStatus.Name(answer.status))


def check(health: Any, whom: str = "") -> str:
    return said(health.Check(asked(whom), timeout=10))


def watch(health: Any, whom: str = "") -> tuple[Any, Queue[str]]:
    """Return a call that watches, and what it is told, then how it ended."""
    call, heard = health.Watch(asked(whom), timeout=60), Queue[str]()

    def listen() -> None:
        try:
            for answer in call:
                heard.put(said(answer))
        except grpc.RpcError:
            pass
        heard.put(call.code().name)

    threading.Thread(target=listen, daemon=True).start()
    return call, heard


def test_names_and_numbers_are_those_of_the_published_protocol() -> None:
    service = published.DESCRIPTOR.services_by_name["Health"]
    assert wire(HEALTH).service == service.full_name
    for method in wire(HEALTH).methods:
        other = service.methods_by_name[method.name]
        assert method.request.DESCRIPTOR.full_name == other.input_type.full_name
        assert method.response.DESCRIPTOR.full_name == other.output_type.full_name
        for own, found in ((method.request, other.input_type), (method.response, other.output_type)):
            fields = {field.name: (field.number, field.type) for field in own.DESCRIPTOR.fields}
            assert fields == {field.name: (field.number, field.type) for field in found.fields}
    (field,) = wire(HEALTH).messages["HealthCheckResponse"].DESCRIPTOR.fields
    own_values = {value.name: value.number for value in field.enum_type.values}
    assert own_values == dict(published.HealthCheckResponse.ServingStatus.items())


def test_a_published_client_is_told_of_the_server_and_its_models(health: Any, opened: Coordinator) -> None:
    for whom in ("", "inference.GRPCInferenceService", "net", "net:1", "net:2", "other"):
        assert check(health, whom) == "SERVING"
    for whom in ("nett", "net:3", "other:2"):
        with pytest.raises(grpc.RpcError) as raised:
            check(health, whom)
        assert raised.value.code().name == "NOT_FOUND"
        assert f"no model {whom!r}" in raised.value.details()
    opened.unload("net:2")
    assert [check(health, whom) for whom in ("net:2", "net", "")] == ["NOT_SERVING", "SERVING", "SERVING"]
    for unit in ("a", "b"):
        opened.withdraw(unit)
    assert [check(health, whom) for whom in ("net", "")] == ["NOT_SERVING", "NOT_SERVING"]


def test_who_watches_is_told_of_each_change_and_of_the_end(
    health: Any, opened: Coordinator, server: Server
) -> None:
    watched = {whom: watch(health, whom)[1] for whom in ("", "other", "nett")}
    first = {whom: heard.get(timeout=10) for whom, heard in watched.items()}
    assert first == {"": "SERVING", "other": "SERVING", "nett": "SERVICE_UNKNOWN"}
    opened.unload("other")
    assert watched["other"].get(timeout=10) == "NOT_SERVING"
    opened.load("other")
    assert watched["other"].get(timeout=10) == "SERVING"
    for unit in ("a", "b"):
        opened.withdraw(unit)
    assert watched[""].get(timeout=10) == "NOT_SERVING"
    opened.restore("a")
    assert watched[""].get(timeout=10) == "SERVING"
    assert watched["nett"].empty()  # nothing changed
    server.close()  # they hold it up no longer than they need to be told, and are not cut off
    assert [watched[""].get(timeout=10) for _ in range(2)] == ["NOT_SERVING", "OK"]
    assert watched["nett"].get(timeout=10) == "OK"


def test_watchers_are_few_and_leave_when_their_client_does(
    health: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_server, "_MOST_WATCHING", 2)
    calls = [watch(health) for _ in range(2)]
    assert [heard.get(timeout=10) for _, heard in calls] == ["SERVING"] * 2
    further, heard = watch(health)
    assert heard.get(timeout=10) == "RESOURCE_EXHAUSTED"
    assert further.details() == "2 calls watch already, and no more may; ask with Check"
    assert check(health) == "SERVING"
    calls[0][0].cancel()
    assert calls[0][1].get(timeout=10) == "CANCELLED"
    assert soon(lambda: watch(health)[1].get(timeout=10) == "SERVING")


def test_health_needs_no_token() -> None:
    mine = coordinator("a")
    mine.register(chain(("add", 2.0), name="net"))
    with (
        gapless.serve(mine, port=0, grpc_port=0, token="a token of many letters") as own,
        grpc.insecure_channel(f"127.0.0.1:{own.grpc_port}") as channel,
    ):
        stub = clients.HealthStub(channel)
        assert check(stub, "net") == "SERVING"
        assert watch(stub, "net")[1].get(timeout=10) == "SERVING"
