"""Messages between devices: numbers as they were, only for those who know the key, never waiting."""

from __future__ import annotations

import errno
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from gapless.executor.cluster import endpoint as endpoint_module
from gapless.executor.cluster.endpoint import Endpoint, Frame, LinkRate, Outlet
from gapless.executor.model import ITEM_BYTES
from gapless.formulations.errors import ExecutionError
from tests.processes import soon

KEY = b"k" * 32


def nothing(target: str, words: str) -> None:
    """Take the news of a link that is gone."""


@pytest.fixture
def came() -> SimpleQueue[Frame]:
    return SimpleQueue()


@pytest.fixture
def endpoint(came: SimpleQueue[Frame]) -> Endpoint:
    return Endpoint("b", "127.0.0.1", KEY, came.put)


def test_all_types_and_shapes_arrive_as_they_were(endpoint: Endpoint, came: SimpleQueue[Frame]) -> None:
    random = np.random.default_rng(0)
    tensors = {
        f"{dtype}{shape}": (100 * random.random(shape)).astype(dtype)
        for dtype in ITEM_BYTES
        for shape in ((), (0, 3), (5,), (2, 3, 4))
    }
    outlet = Outlet("a", "b", endpoint.address, KEY, failed=nothing)
    outlet.post({"kind": "request", "number": 7}, tensors)
    outlet.post({"kind": "end"})
    frame, end = came.get(timeout=10), came.get(timeout=10)
    assert (frame.sender, frame.head["number"], end.head["kind"]) == ("a", 7, "end")
    assert frame.tensors.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(frame.tensors[name], array, strict=True)
    assert frame.size == sum(array.nbytes for array in tensors.values())
    assert frame.sent_ns <= frame.arrived_ns
    outlet.close()
    endpoint.close()


def test_another_key_is_refused_on_both_sides(endpoint: Endpoint, came: SimpleQueue[Frame]) -> None:
    with pytest.raises(ExecutionError, match=r"device 'a' cannot connect to device 'b' at 127\.0\.0\.1:"):
        Outlet("a", "b", endpoint.address, b"other" * 8, failed=nothing)
    with socket.create_connection(endpoint.address) as raw:  # one that does not even try
        raw.sendall(b"\0\0\0\4{}{}" * 4)
        time.sleep(0.2)
    assert came.empty()
    endpoint.close()


@pytest.mark.slow
def test_it_outlives_the_time_without_files(
    endpoint: Endpoint, came: SimpleQueue[Frame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """EMFILE: all files of the process are open for a while."""
    left = [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED]
    accept = socket.socket.accept

    def failing(listening: socket.socket) -> Any:
        if left:
            raise OSError(left.pop(), "no file is left")
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", failing)
    assert soon(lambda: not left)
    outlet = Outlet("a", "b", endpoint.address, KEY, failed=nothing)
    outlet.post({"kind": "end"})
    assert came.get(timeout=60).head["kind"] == "end"
    outlet.close()
    endpoint.close()


def test_strangers_are_bounded_in_number_and_time(
    endpoint: Endpoint, came: SimpleQueue[Frame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "MOST_STRANGERS", 5)
    before = threading.active_count()
    strangers = [socket.create_connection(endpoint.address) for _ in range(50)]
    assert soon(lambda: threading.active_count() <= before + 6)
    outlet = Outlet("a", "b", endpoint.address, KEY, failed=nothing)
    outlet.post({"kind": "end"})
    assert came.get(timeout=60).head["kind"] == "end", "a member is let in, whoever else waits"
    monkeypatch.setattr(endpoint_module, "CONNECT_LIMIT_S", 0)
    for stranger in strangers:  # a byte now and then does not help
        with suppress(OSError):
            stranger.send(b"\0")
    assert soon(lambda: not endpoint._strangers)
    outlet.post({"kind": "end"})
    assert came.get(timeout=60).head["kind"] == "end", "who has proved it may stay"
    for stranger in strangers:
        stranger.close()
    outlet.close()
    endpoint.close()


def test_a_device_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = free.getsockname()
    with pytest.raises(ExecutionError, match=r"'a' cannot connect to device 'b'.*firewall"):
        Outlet("a", "b", address, KEY, failed=nothing)


def test_a_device_that_never_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "CONNECT_LIMIT_S", 1)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ExecutionError, match="'a' cannot connect to device 'b'"),
    ):
        Outlet("a", "b", silent.getsockname(), KEY, failed=nothing)


@pytest.mark.slow
def test_who_has_connected_may_be_silent_for_long(
    monkeypatch: pytest.MonkeyPatch, came: SimpleQueue[Frame]
) -> None:
    monkeypatch.setattr(endpoint_module, "CONNECT_LIMIT_S", 1)
    endpoint = Endpoint("b", "127.0.0.1", KEY, came.put)
    outlet = Outlet("a", "b", endpoint.address, KEY, failed=nothing)
    time.sleep(1.5)
    outlet.post({"kind": "request"})
    assert came.get(timeout=10).head["kind"] == "request"
    outlet.close()
    endpoint.close()


def test_who_comes_while_it_closes_is_turned_away(
    endpoint: Endpoint, came: SimpleQueue[Frame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that was accepted just before is not read after."""
    ready, go = threading.Event(), threading.Event()
    read = endpoint._read

    def late(connection: Connection) -> None:
        ready.set()
        assert go.wait(10)
        read(connection)

    monkeypatch.setattr(endpoint, "_read", late)
    monkeypatch.setattr(endpoint_module, "CONNECT_LIMIT_S", 10)
    with ThreadPoolExecutor() as pool:
        connecting = pool.submit(Outlet, "a", "b", endpoint.address, KEY, failed=nothing)
        assert ready.wait(10)
        endpoint.close()
        go.set()
        with pytest.raises(ExecutionError, match="'a' cannot connect"):
            connecting.result(timeout=5)


def test_an_emulated_link_takes_its_time_and_posting_none(
    endpoint: Endpoint, came: SimpleQueue[Frame]
) -> None:
    rate = LinkRate(bytes_per_second=1_000_000, latency_us=20_000)
    outlet = Outlet("a", "b", endpoint.address, KEY, rate=rate, failed=nothing)
    for _ in range(3):
        outlet.post({"kind": "request"}, {"x": np.zeros(25_000, dtype=np.float32)})
    posted_ns = time.monotonic_ns()
    frames = [came.get(timeout=10) for _ in range(3)]
    assert all(frame.arrived_ns - frame.sent_ns >= 120e6 for frame in frames)
    assert frames[2].sent_ns >= frames[1].arrived_ns - 1e6 * 120  # one after the other
    assert frames[2].arrived_ns - frames[0].sent_ns >= 360e6
    assert posted_ns < frames[2].arrived_ns  # nobody waited for the last one
    outlet.close()
    endpoint.close()


def test_who_cannot_be_reached_any_more_is_told_of(endpoint: Endpoint) -> None:
    told: SimpleQueue[tuple[str, str]] = SimpleQueue()
    outlet = Outlet("a", "b", endpoint.address, KEY, failed=lambda target, words: told.put((target, words)))
    outlet.post({"kind": "request"})
    time.sleep(0.1)
    endpoint.close()
    for _ in range(50):
        outlet.post({"kind": "request"}, {"x": np.zeros(100_000)})
    assert told.get(timeout=10)[0] == "b"
