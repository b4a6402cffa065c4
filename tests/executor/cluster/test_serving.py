"""Requests as they come over the devices of a cluster: asked through HTTP, lost in the middle, refused."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from gapless.api.coordinators import open_coordinator
from gapless.executor.cluster import endpoint
from gapless.executor.cluster.actors import RayMembers, local_cluster
from gapless.executor.cluster.cluster import Cluster
from gapless.executor.cluster.device import Device
from gapless.executor.cluster.endpoint import Frame, LinkRate, _hang_up
from gapless.executor.cluster.serving import ClusterWorkers, _RemoteWorker
from gapless.executor.cluster.unit import ServedUnit
from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.held import TaskSlots, chain_of, hold, offer_of
from gapless.executor.coordination.requests import Served
from gapless.executor.coordination.tally import Fate
from gapless.formulations.errors import ExecutionError, InvalidInputError, UnitLostError
from gapless.serving.server import Server
from gapless.solvers.coordination.dynamic import LeastSlack
from tests.executor.cluster.devices import OwnActor, own_cluster
from tests.executor.pipeline.fakes import FakeEngine, chain, cores, platform
from tests.gapless.serving.clients import binary_body, over_socket
from tests.processes import soon

MODEL = chain(("add", 1.0), ("sleep", 0.004), ("scale", 2.0), name="net")
BORDERS = (1, 2)


@contextmanager
def coordinator(cluster: Cluster, **options: Any) -> Iterator[Coordinator]:
    """Return a coordinator of all devices that has the model, whose layers may run on different ones."""
    workers = ClusterWorkers(cluster)
    with Coordinator(workers.platform, FakeEngine(), LeastSlack(), workers=workers, **options) as opened:
        opened.register(MODEL, "net", borders=BORDERS)
        yield opened


def check(served: Served, seed: int) -> None:
    """Look at an answer: its numbers, and that each layer ran once."""
    assert np.array_equal(served.outputs["t2"], MODEL.reference(MODEL.sample_inputs(seed))["t2"])
    ends = [0, *(chunk.stop for chunk in served.chunks)]
    assert [(chunk.start, chunk.stop) for chunk in served.chunks] == list(pairwise(ends))
    assert ends[-1] == 3
    for chunk in served.chunks:
        assert list(chunk.times_ns) == sorted(chunk.times_ns)


def all_answered(opened: Coordinator, count: int, disturb: dict[int, Any]) -> None:
    """Submit requests; `disturb`: what happens before which answer. All are answered, with right numbers."""
    answered, waiting = [], [(seed, opened.submit("net", MODEL.sample_inputs(seed))) for seed in range(count)]
    for seed, future in waiting:
        if seed in disturb:
            disturb[seed]()
        check(future.result(timeout=60), seed)
        answered.append(seed)
    statistics = opened.statistics()
    assert (statistics.total(Fate.ANSWERED), statistics.waiting) == (count, 0)
    assert sum(statistics.total(fate) for fate in Fate) == count


def test_devices_are_units_and_http_clients_get_the_right_numbers() -> None:
    with own_cluster("a", "b") as (cluster, _), coordinator(cluster) as opened:
        assert opened.platform.unit_names == ("a", "b")
        assert opened.registered["net"].compared
        assert {receipt.unit for receipt in opened.receipts} == {"a", "b"}
        with Server(opened, port=0) as server:
            port, inputs = (
                int(server.url.rpartition(":")[2]),
                [MODEL.sample_inputs(seed) for seed in range(24)],
            )
            found: dict[int, bytes] = {}

            def ask(seed: int) -> None:
                body, headers = binary_body(inputs[seed]["x"], parameters={"binary_data_output": True})
                found[seed] = over_socket(port, "POST", "/v2/models/net/infer", body, headers).blobs

            threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(24)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for seed, blob in found.items():
                assert np.array_equal(np.frombuffer(blob, np.float32), MODEL.reference(inputs[seed])["t2"])
            assert len(found) == 24
            text = over_socket(port, "GET", "/metrics").body.decode()
            assert 'unit="a"' in text
            assert 'unit="b"' in text
            statistics = opened.statistics()
            assert all(unit.chunks and unit.rss_bytes for unit in statistics.units)


def test_a_lost_actor_is_replaced_and_no_request_is_lost_or_answered_twice() -> None:
    with own_cluster("a", "b") as (cluster, members), coordinator(cluster) as opened:
        lost = members.actors["a"]
        all_answered(opened, 60, {10: lambda: lost.lose("its power was cut")})
        assert soon(lambda: opened.statistics().units[0].available)
        assert members.actors["a"] is not lost
        before = opened.statistics().units[0]
        assert (before.losses, before.restarts) == (1, 1)
        opened.withdraw("b")
        check(opened.run("net", MODEL.sample_inputs(3)), 3)
        assert opened.statistics().units[0].chunks > before.chunks


def test_a_killed_worker_of_a_device_is_replaced_while_its_actor_stays() -> None:
    with own_cluster("a", "b") as (cluster, members), coordinator(cluster) as opened:
        actor = members.actors["b"]
        all_answered(opened, 40, {5: lambda: os.kill(opened.pids["b"], signal.SIGKILL)})
        assert soon(lambda: opened.statistics().units[1].available)
        assert opened.statistics().units[1].restarts == 1
        assert members.actors["b"] is actor
        assert soon(lambda: len(actor.device._stations) == 1)  # the device has let go of the lost one
        opened.close()
        assert soon(lambda: not any(each.device._stations for each in members.actors.values()))
        assert soon(lambda: not cluster._takers)
        assert soon(lambda: len(cluster._endpoint._open) <= 2)  # of the devices: those of workers have ended


@pytest.mark.parametrize("busy", [True, False])
@pytest.mark.parametrize("way", ["there", "back"])
def test_a_link_that_breaks_while_its_actor_lives_is_made_again(way: str, busy: bool) -> None:
    """Not only when the worker counts as one that hangs, after a minute."""
    with own_cluster("a", "b") as (cluster, members), coordinator(cluster) as opened:
        actor = members.actors["a"]

        def cut() -> None:
            (unit,) = actor.device._stations.values()
            assert isinstance(unit, ServedUnit)
            _hang_up((cluster._outlets["a"] if way == "there" else unit._outlet)._connection)

        if not busy:
            check(opened.run("net", MODEL.sample_inputs(0)), 0)
            cut()
        opened.withdraw("b")
        futures = [opened.submit("net", MODEL.sample_inputs(seed)) for seed in range(20)]
        if busy:
            check(futures[3].result(timeout=30), 3)
            cut()
            futures.append(opened.submit("net", MODEL.sample_inputs(20)))  # all may have been answered by now
        for seed, future in enumerate(futures):
            check(future.result(timeout=30), seed)
        statistics = opened.statistics()
        assert (statistics.units[0].losses, statistics.units[0].restarts) == (1, 1)
        assert statistics.total(Fate.ANSWERED) == 21
        assert members.actors["a"] is actor
        assert soon(lambda: len(actor.device._stations) == 1)


def test_a_request_that_is_lost_with_its_link_runs_again_at_once() -> None:
    """Nothing is sent after it that could fail."""
    losing, lost = threading.Event(), threading.Event()
    with own_cluster("a", "b") as (cluster, members):
        there = members.actors["a"].device._endpoint
        handler = there._handler

        def take(frame: Frame) -> None:
            if not losing.is_set() or lost.is_set():
                return handler(frame)
            lost.set()
            for connection in list(there._open):
                _hang_up(connection)

        there._handler = take
        with coordinator(cluster) as opened:
            opened.withdraw("b")
            check(opened.run("net", MODEL.sample_inputs(0)), 0)
            losing.set()
            check(opened.submit("net", MODEL.sample_inputs(1)).result(timeout=30), 1)
            assert lost.is_set()
            assert opened.statistics().units[0].losses == 1


def test_a_device_whose_links_end_before_its_death_is_known_is_lost_once() -> None:
    with own_cluster("a", "b") as (cluster, members), coordinator(cluster) as opened:
        actor, call = members.actors["a"], members.actors["a"].call

        def dead(method: str, *arguments: Any, **named: Any) -> Any:
            if method != "close":
                actor._loss = "its process has died"
            return call(method, *arguments, **named)

        opened.withdraw("b")
        futures = [opened.submit("net", MODEL.sample_inputs(seed)) for seed in range(20)]
        check(futures[3].result(timeout=60), 3)
        actor.call = dead  # type: ignore[method-assign]
        actor.device._endpoint.close()
        for unit in list(actor.device._stations.values()):
            assert isinstance(unit, ServedUnit)
            unit._outlet.close()
        futures.append(opened.submit("net", MODEL.sample_inputs(20)))  # all may have been answered by now
        for seed, future in enumerate(futures):
            check(future.result(timeout=60), seed)
        assert opened.statistics().units[0].losses == 1
        assert members.actors["a"] is not actor
        actor.device.shut_down()


def test_a_device_that_cannot_be_reached_holds_up_no_requests_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, goes_on, connect = threading.Event(), threading.Event(), endpoint._connect

    def slow(sender: str, target: str, *arguments: Any) -> Any:
        connection = connect(sender, target, *arguments)
        if target == "a":
            begun.set()
            goes_on.wait(60)
        return connection

    with own_cluster("a", "b") as (cluster, _), ThreadPoolExecutor() as pool:
        for name in ("a", "b"):
            cluster._link_failed(name, "it was cut")
        monkeypatch.setattr(endpoint, "_connect", slow)
        asking = [pool.submit(cluster._outlet, "a") for _ in range(2)]
        assert begun.wait(30)
        pool.submit(cluster._outlet, "b").result(30)
        assert list(cluster._outlets) == ["b"]
        goes_on.set()
        assert asking[0].result(30) is asking[1].result(30)
        cluster._link_failed("a", "it was cut")
        begun.clear()
        goes_on.clear()
        late = pool.submit(cluster._outlet, "a")
        assert begun.wait(30)
        cluster.drop("a")
        goes_on.set()
        with pytest.raises(UnitLostError, match="'a' was lost while it was connected to"):
            late.result(30)


def test_a_device_that_does_not_come_back_is_lost_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    with own_cluster("a", "b") as (cluster, members), coordinator(cluster) as opened:
        gone = True

        def start(name: str, settings: str, key: bytes) -> OwnActor:
            if gone:
                raise ExecutionError(f"device {name!r} is not in the cluster now")
            members.actors[name] = OwnActor(name, settings, key)
            return members.actors[name]

        monkeypatch.setattr(members, "start", start)
        all_answered(opened, 40, {5: lambda: members.actors["a"].lose("its power was cut")})
        assert soon(lambda: opened.statistics().units[0].losses > 1)
        assert not opened.statistics().units[0].available
        gone = False
        assert soon(lambda: opened.statistics().units[0].available)


def test_a_device_that_cannot_be_told_of_the_others_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, errors = Device.connect, [RuntimeError("not now")]

    def sometimes(device: Device, addresses: str) -> None:
        if errors:
            raise errors.pop()
        connect(device, addresses)

    with own_cluster("a", "b") as (cluster, members), coordinator(cluster) as opened:
        monkeypatch.setattr(Device, "connect", sometimes)
        all_answered(opened, 20, {5: lambda: members.actors["a"].lose("its power was cut")})
        assert soon(lambda: opened.statistics().units[0].available)


def test_requests_fail_when_the_only_device_is_gone_for_good() -> None:
    with own_cluster("a") as (cluster, members), coordinator(cluster, restarts=0) as opened:
        futures = [opened.submit("net", MODEL.sample_inputs(seed)) for seed in range(3)]
        members.actors["a"].lose("its power was cut")
        for future in futures:
            if (error := future.exception(timeout=60)) is not None:
                assert isinstance(error, UnitLostError)
                assert "device 'a' is gone: its power was cut" in str(error)
        assert futures[-1].exception() is not None
        assert opened.outage is not None


def test_what_a_withdrawn_device_runs_is_put_back_and_its_answer_does_not_count() -> None:
    with own_cluster("a", "b") as (cluster, _), coordinator(cluster) as opened:

        def away(unit: str) -> None:
            opened.withdraw(unit)
            time.sleep(0.005)
            opened.restore(unit)

        all_answered(opened, 60, {at: partial(away, "ab"[at % 2]) for at in range(3, 50, 5)})


def test_models_are_unloaded_and_loaded_again_and_a_device_may_have_several_workers() -> None:
    with own_cluster("a") as (cluster, _):
        workers = ClusterWorkers(cluster)
        devices = workers.platform
        units = replace(devices, units=tuple(replace(unit, workers=2) for unit in devices.units))
        with Coordinator(units, FakeEngine(), LeastSlack(), workers=workers) as opened:
            opened.register(MODEL, "net")
            opened.unload("net")
            opened.load("net")
            all_answered(opened, 20, {})
            assert [unit.name for unit in opened.statistics().units] == ["a", "a.2"]
            assert all(unit.chunks for unit in opened.statistics().units)


def test_devices_exclude_each_other_never_and_a_worker_that_is_ended_writes_nothing_more() -> None:
    model = chain(("sleep", 0.2), name="slow")
    with own_cluster("a", "b", "c") as (cluster, _):
        workers = ClusterWorkers(cluster)
        assert workers.platform.conflicts == ()  # though two of them have the same core here
        held = hold(model, [FakeEngine()] * 3, offer_of(model, chain_of(model, workers.platform, None, {})))
        slots = TaskSlots(held.layout, 2, certain=2)
        worker = workers.start(workers.platform.units[0], [])
        assert isinstance(worker, _RemoteWorker)
        worker.send(workers.opening(held, 0, 0, slots))
        assert soon(lambda: len(worker._said) == 2)  # both are told, though nobody has listened
        run = {"kind": "run", "network": 0, "start": 0, "stop": 1}
        for slot in (0, 1):
            slots.fill(slot, model.sample_inputs(slot))
            worker.send({**run, "slot": slot})
        said = [message["kind"] for message in (worker.receive(20.0) for _ in range(3)) if message]
        assert said == ["ready", "opened", "done"]
        worker.close()
        time.sleep(0.4)
        assert slots.tensors(0)["t0"].any()
        assert not slots.tensors(1)["t0"].any()
        slots.close()


def test_an_answer_that_comes_while_its_worker_is_ended_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, after = chain("add", name="small"), _RemoteWorker._next

    def ended(worker: _RemoteWorker, queue: SimpleQueue[Any], look_s: float) -> Any:
        found = after(worker, queue, look_s)
        if isinstance(found, Frame):
            closing = threading.Thread(target=worker.close)  # as the thread of a coordinator does
            closing.start()
            closing.join()
        return found

    with own_cluster("a") as (cluster, _):
        workers = ClusterWorkers(cluster)
        held = hold(model, [FakeEngine()], offer_of(model, chain_of(model, workers.platform, None, {})))
        slots = TaskSlots(held.layout, 1, certain=1)
        monkeypatch.setattr(_RemoteWorker, "_next", ended)
        worker = _RemoteWorker(cluster, workers.platform.units[0], [])
        worker.send(workers.opening(held, 0, 0, slots))
        slots.fill(0, model.sample_inputs(0))
        worker.send({"kind": "run", "network": 0, "start": 0, "stop": 1, "slot": 0})
        worker._thread.join(60.0)
        assert not worker._thread.is_alive()
        assert not slots.tensors(0)["t0"].any()
        slots.close()


@pytest.mark.parametrize("compared", [True, False])
def test_what_an_engine_says_comes_back_by_name(compared: bool) -> None:
    model = chain("add", "fail", name="bad")
    with own_cluster("a") as (cluster, _), coordinator(cluster, check=compared) as opened:
        with pytest.raises(ExecutionError, match="the fake engine cannot do that"):
            opened.register(model, "bad")
        check(opened.run("net", MODEL.sample_inputs(0)), 0)


def test_a_worker_of_a_device_that_ends_with_an_error_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    run, errors = ServedUnit._run, [KeyError("no such thing"), ExecutionError("out of memory")]

    def sometimes(unit: ServedUnit, frame: Frame) -> None:
        if errors:
            raise errors.pop()
        run(unit, frame)

    with own_cluster("a") as (cluster, _), coordinator(cluster) as opened:
        monkeypatch.setattr(ServedUnit, "_run", sometimes)
        for seed in range(3):
            check(opened.submit("net", MODEL.sample_inputs(seed)).result(timeout=60), seed)
        assert opened.statistics().units[0].losses == 2


def test_a_slow_link_counts_and_the_policy_prefers_the_near_device() -> None:
    with own_cluster("far", "near") as (cluster, _):
        cluster._outlet("far").rate = LinkRate(latency_us=40_000)
        with coordinator(cluster) as opened:
            for seed in range(6):
                served = opened.run("net", MODEL.sample_inputs(seed))
                assert {chunk.unit for chunk in served.chunks} == {"near"}
            opened.withdraw("near")
            (chunk,) = opened.run("net", MODEL.sample_inputs(0)).chunks
            begin, ran, done, end = chunk.times_ns
            assert end - begin > 40e6 > done - ran


def test_what_does_not_fit_a_cluster_is_refused() -> None:
    with own_cluster("a", "b") as (cluster, _):
        with pytest.raises(
            InvalidInputError, match="there is no device 'c' in the cluster; choose one of a, b"
        ):
            open_coordinator([MODEL], engine=FakeEngine(), cluster=cluster, devices=["c"])
        with pytest.raises(InvalidInputError, match="leave out platform, and choose among them by devices"):
            open_coordinator([MODEL], engine=FakeEngine(), cluster=cluster, platform=platform("a"))
        with open_coordinator([MODEL], engine=FakeEngine(), cluster=cluster, devices=["b"]) as opened:
            check(opened.run("net", MODEL.sample_inputs(1)), 1)
            assert opened.platform.unit_names == ("b",)


@pytest.mark.slow
@pytest.mark.measures
def test_actors_of_ray_and_nodes_are_lost_and_a_node_comes_back() -> None:
    pytest.importorskip("ray", reason="needs the extra cluster")
    usable = cores()
    nodes = ",".join(f"{name}=core{usable[index % len(usable)]}" for index, name in enumerate("ab"))
    with local_cluster(nodes) as cluster, coordinator(cluster, queue=200) as opened:
        members = cluster.members
        assert isinstance(members, RayMembers)
        membership = members.membership

        def kill_actor() -> None:
            os.kill(cluster.status("a")["processes"][0], signal.SIGKILL)

        all_answered(opened, 120, {20: kill_actor, 70: lambda: membership.kill_node("b")})
        assert soon(lambda: opened.statistics().units[0].available)
        assert opened.statistics().units[0].restarts == 1
        assert not opened.statistics().units[1].available
        local = membership.device("b").local
        assert local is not None
        assert membership._cluster is not None
        membership._cluster.start(local)
        assert soon(lambda: opened.statistics().units[1].available)
        opened.withdraw("a")
        check(opened.run("net", MODEL.sample_inputs(5)), 5)
