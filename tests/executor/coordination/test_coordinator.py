"""Requests come, and are answered with the numbers of the uncut model, by who can and may run them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.requests import Served
from gapless.executor.coordination.tally import Fate
from gapless.executor.pipeline.trace_file import trace_parts
from gapless.formulations.coordination.policy import Conduct
from gapless.formulations.coordination.sessions import SessionChoice
from gapless.formulations.coordination.simulation import Late
from gapless.formulations.costs import NetworkCosts
from gapless.formulations.errors import (
    DroppedRequestError,
    ExecutionError,
    InvalidInputError,
    InvalidPlanError,
    LayerNotRunnableError,
    QueueFullError,
    RefusedRequestError,
)
from gapless.formulations.plan import Chunk
from gapless.solvers.coordination.dynamic import LeastSlack
from gapless.solvers.coordination.replan import Replan
from tests.executor.coordination.coordinators import coordinator, typed
from tests.executor.pipeline.fakes import FakeEngine, FakeModel, chain, platform
from tests.processes import soon


def right(model: FakeModel, served: Served, seed: int = 0) -> bool:
    expected = model.reference(model.sample_inputs(seed))
    return all(np.allclose(served.outputs[name], expected[name]) for name in expected)


@pytest.fixture
def shared() -> Iterator[tuple[Coordinator, FakeModel]]:
    model = typed(chain(("add", 1.0), ("scale", 2.0), ("add", 3.0), name="net"), "Conv", "Odd", "Conv")
    with coordinator("a", "b") as opened:
        opened.register(model, "net", cannot={"b": ["Odd"]})
        yield opened, model


def test_numbers_are_those_of_the_uncut_model(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared
    futures = [opened.submit("net", model.sample_inputs(seed)) for seed in range(40)]
    assert all(right(model, future.result(), seed) for seed, future in enumerate(futures))
    assert [future.result().number for future in futures] == sorted(f.result().number for f in futures)
    assert {chunk.unit for f in futures for chunk in f.result().chunks} <= {"a", "b"}
    statistics = opened.statistics()
    assert statistics.total(Fate.ANSWERED) == 40
    assert statistics.waiting == 0
    assert statistics.decisions == sum(unit.chunks for unit in statistics.units)


def test_requests_that_are_held_count_once_wherever_they_wait() -> None:
    model = chain(("sleep", 0.05), name="net")
    with coordinator("a", queue=3) as own:
        own.register(model)

        def waiting() -> int:
            return own.statistics().waiting

        with own.hold("net") as first, own.hold("net") as second:
            with own.hold("net") as third:
                for refused in (own.hold, lambda name: own.submit(name, model.sample_inputs(0))):
                    with pytest.raises(QueueFullError, match="3 requests wait for their answers"):
                        refused("net")
            assert waiting() == 2  # the third one has left
            together = own.submit("net", model.sample_inputs(0), places=[first, second])
            assert waiting() == 2  # it answers both
        assert waiting() == 2  # and they have not left it
        assert right(model, together.result())
        assert waiting() == 0
        with first:
            first.again()  # it failed, say
            first.again()
            assert waiting() == 1
            full = [own.hold("net"), own.hold("net")]
            again = own.submit("net", model.sample_inputs(0), places=[first])  # it was let in before
            late = own.submit("net", model.sample_inputs(0), places=[third])
            assert waiting() == 4
            assert [right(model, each.result()) for each in (again, late)] == [True, True]
        assert waiting() == len(full)
        assert own.statistics().total(Fate.REFUSED) == 2


def test_who_cannot_run_an_operator_never_does(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared
    found = opened.registered["net"].held
    assert [(section.start, section.stop) for section in found.sections] == [(0, 1), (1, 2), (2, 3)]
    assert (1, 2, 1) not in found.keys
    opened.withdraw("a")
    with pytest.raises(RefusedRequestError, match="without the units 'a' nothing can run it"):
        opened.submit("net", model.sample_inputs(0))
    opened.restore("a")
    assert right(model, opened.run("net", model.sample_inputs(0)))


def test_it_can_be_awaited(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared

    async def several() -> list[Served]:
        return await asyncio.gather(*(opened.infer("net", model.sample_inputs(seed)) for seed in range(5)))

    assert all(right(model, served, seed) for seed, served in enumerate(asyncio.run(several())))


def test_the_history_is_a_trace(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared
    assert opened.history() is None
    for seed in range(3):
        opened.run("net", model.sample_inputs(seed))
    history = opened.history()
    assert history is not None
    assert history.measured
    assert {chunk.network for stream in history.streams for chunk in stream.chunks} == {"net"}
    assert "".join(trace_parts(history)).startswith('{"displayTimeUnit"')


def test_the_record_is_that_of_a_simulation(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared
    for seed in range(3):
        opened.run("net", model.sample_inputs(seed), deadline_us=60_000_000)
    opened.withdraw("b")
    record = opened.record()
    assert (record.policy, record.networks, record.applications) == ("lst", ("net",), ("net",))
    assert [request.number for request in record.requests] == [1, 2, 3]
    assert record.share_in_time() == 1.0
    for number in (1, 2, 3):
        parts = [(ran.first, ran.last) for ran in record.ran if ran.request == number]
        assert (parts[0][0], parts[-1][1]) == (0, 3)
    assert [(span.unit, span.cause) for span in record.away if span.end_us is None] == [(1, "withdrawn")]
    assert len(record.decisions_ns) == len(record.ran)
    loop = opened._loop
    assert loop.dispatcher.decisions_ns.maxlen == loop.requests.log._ran.maxlen


def test_bad_requests_are_named(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared
    with pytest.raises(InvalidInputError, match=r"no model 'nett'; did you mean net"):
        opened.submit("nett", {})
    with pytest.raises(InvalidInputError, match="input 'x' is missing"):
        opened.submit("net", {})
    with pytest.raises(InvalidInputError, match=r"is float64 \(16,\), needs float32"):
        opened.submit("net", {"x": np.zeros(16)})
    with pytest.raises(InvalidInputError, match="deadline_us is 0"):
        opened.submit("net", model.sample_inputs(0), deadline_us=0)
    with pytest.raises(InvalidInputError, match="registered already"):
        opened.register(model, "net")
    with pytest.raises(InvalidInputError, match=r"no unit (is called )?'c'"):
        opened.withdraw("c")
    with pytest.raises(InvalidInputError, match=r"no unit (is called )?'c'"):
        opened.register(model, "other", cannot={"c": ["Conv"]})
    with pytest.raises(LayerNotRunnableError, match="no unit can run layer '1'"):
        opened.register(model, "other", cannot={"a": ["Odd"], "b": ["Odd"]})


def test_the_same_network_is_held_once(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared
    again = opened.register(model, "again", deadline_us=5_000_000, cannot={"b": ["Odd"]})
    assert again.network == opened.registered["net"].network
    served = opened.run("again", model.sample_inputs(1))
    assert right(model, served, 1)
    assert served.deadline_us == 5_000_000
    assert not served.late
    assert len(opened.receipts) == len({(r.unit, r.piece) for r in opened.receipts})


@pytest.mark.slow
def test_a_network_can_be_registered_while_others_are_served(shared: tuple[Coordinator, FakeModel]) -> None:
    opened, model = shared
    served: list[Future[Served]] = []
    enough = threading.Event()

    def ask() -> None:
        while not enough.is_set():
            served.append(opened.submit("net", model.sample_inputs(len(served))))
            served[-1].result()

    asking = threading.Thread(target=ask)
    asking.start()
    other = chain(("scale", 3.0), ("sleep", 0.01), name="other")
    opened.register(other, "other")
    assert right(other, opened.run("other", other.sample_inputs(0)))
    enough.set()
    asking.join()
    assert all(right(model, future.result(), seed) for seed, future in enumerate(served))


def test_costs_replace_measurements_and_a_route_is_followed() -> None:
    model = chain(("add", 1.0), ("scale", 2.0), ("add", 3.0), name="net")
    costs = NetworkCosts(network="net", layer_us=((10, 90), (20, 90), (None, 30)))
    with coordinator("a", "b") as opened:
        opened.register(model, "free", costs=costs)
        assert opened._loop.dispatcher.times.chunk_us(0, 0, 1, 0) == 30
        opened.register(model, "planned", routes=[[_chunk(0, 1, "b"), _chunk(1, 3, "a")]])
        for seed in range(4):
            served = opened.run("planned", model.sample_inputs(seed))
            assert [(c.start, c.stop, c.unit) for c in served.chunks] == [(0, 1, "b"), (1, 3, "a")]
            assert right(model, served, seed)
        for route in ([_chunk(0, 1, "b")], [_chunk(1, 3, "a")], [_chunk(0, 3, "c")]):
            with pytest.raises(InvalidPlanError, match="network 'net'"):
                opened.register(model, "wrong", routes=[route])


def _chunk(start: int, stop: int, unit: str) -> Chunk:
    return Chunk(network="net", start=start, stop=stop, unit=unit)


def test_a_full_queue_refuses_and_lateness_drops() -> None:
    model = chain(("sleep", 0.03), name="net")
    with coordinator("a", queue=2, late=Late.DROP) as opened:
        opened.register(model)
        accepted = [opened.submit("net", model.sample_inputs(seed)) for seed in range(2)]
        with pytest.raises(QueueFullError, match="2 requests wait"):
            opened.submit("net", model.sample_inputs(3))
        assert all(right(model, future.result(), seed) for seed, future in enumerate(accepted))
        with pytest.raises(DroppedRequestError, match="request 3 of 'net' cannot meet its deadline"):
            opened.run("net", model.sample_inputs(2), deadline_us=1000)
        statistics = opened.statistics()
    assert [statistics.total(fate) for fate in Fate] == [2, 0, 1, 0, 0, 1]


@pytest.mark.slow
def test_closing_answers_or_names_what_was_accepted() -> None:
    model = chain(("sleep", 0.01), name="net")
    with coordinator("a") as opened:
        opened.register(model)
        accepted = [opened.submit("net", model.sample_inputs(0)) for _ in range(3)]
        assert opened.close() == ()
        assert all(right(model, future.result()) for future in accepted)
        with pytest.raises(RefusedRequestError, match="closed"):
            opened.submit("net", model.sample_inputs(0))
    with coordinator("a") as opened:
        opened.register(model)
        accepted = [opened.submit("net", model.sample_inputs(0)) for _ in range(3)]
        assert opened.close(patience_s=0.0) == tuple(f"request {number} of 'net'" for number in (1, 2, 3))
        with pytest.raises(ExecutionError, match="request 3 of 'net' is not answered: the coordinator was"):
            accepted[2].result()


def test_policies_that_place_requests_whole_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"policy 'lst.*' places requests whole"):
        Coordinator(platform("a"), FakeEngine(), LeastSlack(conduct=Conduct.WHOLE))
    with pytest.raises(InvalidInputError, match="queue is 0"):
        coordinator("a", queue=0)


def test_a_policy_that_fails_is_named_to_everybody() -> None:
    class Broken(LeastSlack):
        def next(self, *seen: Any) -> None:
            raise ZeroDivisionError("by design")

    model = chain("add", name="net")
    with Coordinator(platform("a"), FakeEngine(), Broken()) as opened:
        opened.register(model)
        with pytest.raises(ExecutionError, match="request 1 of 'net' is not answered: ZeroDivisionError: by"):
            opened.run("net", model.sample_inputs(0))
        with pytest.raises(RefusedRequestError, match="closed"):
            opened.submit("net", model.sample_inputs(0))


SPLIT = NetworkCosts(network="net", layer_us=((50, 20), (50, 20), (50, None)))
"""What the last layer lacks makes two sections; "a" runs all, "b" is faster at the first."""


def test_only_sessions_that_shortest_ways_have_are_loaded() -> None:
    model = chain(("add", 1.0), ("scale", 2.0), ("add", 3.0), name="net")
    with coordinator("a", "b") as opened:
        found = opened.register(model, costs=SPLIT, borders=[1])
        assert set(found.held.offer.bytes) == {
            *((start, stop, 0) for start in range(3) for stop in range(start + 1, 4)),
            *((start, stop, 1) for start, stop in ((0, 1), (0, 2), (1, 2))),
        }
        assert found.held.keys == {(0, 3, 0), (0, 2, 1), (2, 3, 0)}  # nobody stops where nothing changes
        assert found.sessions.startswith("3 of 9 sessions are loaded")
        assert {key[:2] for key in found.held.sessions} == {(0, 3), (0, 2), (2, 3)}
        assert right(model, opened.run("net", model.sample_inputs(0)))
        opened.withdraw("b")
        assert right(model, opened.run("net", model.sample_inputs(1)), 1)
        again = opened.register(
            chain(("add", 1.0), ("scale", 2.0), ("add", 3.0), name="net"), "again", costs=SPLIT, borders=[1]
        )
        assert again.network == found.network
        assert set(opened.setting().sessions["net"]) == found.held.keys


def test_all_sessions_are_loaded_if_asked_for_or_needed_and_a_limit_holds() -> None:
    model = chain(("add", 1.0), ("scale", 2.0), ("add", 3.0), name="net")
    with coordinator("a", "b", sessions=SessionChoice.ALL) as opened:
        assert len(opened.register(model, costs=SPLIT, borders=[1]).held.keys) == 9
    with Coordinator(platform("a", "b"), FakeEngine(), Replan()) as opened:
        assert len(opened.register(model, costs=SPLIT, borders=[1]).held.keys) == 9
        assert right(model, opened.run("net", model.sample_inputs(0)))
    with pytest.raises(InvalidInputError, match="'replan' needs all"):
        Coordinator(platform("a", "b"), FakeEngine(), Replan(), session_bytes=1)
    with coordinator("a", "b") as opened:
        sizes = opened.register(model, costs=SPLIT, borders=[1]).held.offer.bytes
    with coordinator("a", "b", session_bytes=sizes[0, 3, 0]) as opened:
        found = opened.register(model, costs=SPLIT, borders=[1])
        assert found.held.keys == {(0, 3, 0)}
        assert "the shortest latency grows by" in found.sessions


def test_times_that_are_not_known_are_measured_before_sessions_are_chosen() -> None:
    model = typed(chain(("add", 1.0), ("scale", 2.0), ("add", 3.0), name="net"), "Conv", "Odd", "Conv")
    with coordinator("a", "b") as opened:
        found = opened.register(model, cannot={"b": ["Odd"]})
        assert found.held.loaded is not None
        assert len(found.held.keys) < len(found.held.offer.bytes) == 8
        assert right(model, opened.run("net", model.sample_inputs(0)))


def test_what_a_unit_has_no_memory_for_is_no_session() -> None:
    model = chain(("add", 1.0), ("scale", 2.0), ("add", 3.0), name="net")
    large = platform("a", "b")
    with Coordinator(large, FakeEngine(), LeastSlack(), sessions=SessionChoice.ALL) as opened:
        sizes = opened.register(model, costs=SPLIT).held.offer.bytes
    assert (0, 1, 1) in sizes
    small = replace(large, units=(large.units[0], replace(large.units[1], memory_bytes=sizes[0, 1, 1] - 1)))
    with Coordinator(small, FakeEngine(), LeastSlack(), sessions=SessionChoice.ALL) as opened:
        assert {key[2] for key in opened.register(model, costs=SPLIT).held.keys} == {0}


def test_a_unit_with_two_workers_runs_two_at_once_and_leaves_with_both() -> None:
    one = platform("a")
    two = replace(one, units=(replace(one.units[0], workers=2),))
    model = chain(("add", 1.0), ("scale", 2.0), name="net")
    with Coordinator(two, FakeEngine(), LeastSlack()) as opened:
        costs = NetworkCosts(network="net", layer_us=((50,), (50,)))
        opened.register(model, costs=costs)
        assert set(opened.pids) == {"a", "a.2"}
        futures = [opened.submit("net", model.sample_inputs(seed)) for seed in range(40)]
        assert all(right(model, future.result(), seed) for seed, future in enumerate(futures))
        assert {chunk.unit for f in futures for chunk in f.result().chunks} == {"a", "a.2"}
        opened.withdraw("a")
        assert [unit.available for unit in opened.statistics().units] == [False, False]
        opened.restore("a")
        assert right(model, opened.run("net", model.sample_inputs(0)))
        found = gapless.coordination.Setting.served_by(opened.setting(), LeastSlack())
        assert [behaviour.shared_permille(2) for behaviour in found.behaviours] == [1000, 1000]


def test_a_unit_that_leaves_does_not_start_its_requests_again_on_its_other_workers() -> None:
    model, here = chain(("sleep", 0.3), name="net"), platform("a", "b")
    two = replace(here, units=(replace(here.units[0], workers=2), here.units[1]))
    with Coordinator(two, FakeEngine(), LeastSlack()) as opened:
        opened.register(model)
        opened.withdraw("b")
        answers = [opened.submit("net", model.sample_inputs(seed)) for seed in range(2)]
        assert soon(lambda: [seat.task is not None for seat in opened._loop.seats] == [True, True, False])
        opened.withdraw("a")
        assert {answer.result(timeout=20).chunks[0].unit for answer in answers} == {"a", "a.2"}
        assert [run.cut_off for run in opened.record().ran] == [False, False]


def test_workers_of_a_unit_serve_what_a_plan_has_there() -> None:
    one = platform("a", "b")
    two = replace(one, units=(replace(one.units[0], workers=2), one.units[1]))
    model = chain(("add", 1.0), ("scale", 2.0), name="net")
    route = [Chunk(network="net", start=0, stop=1, unit="a"), Chunk(network="net", start=1, stop=2, unit="b")]
    with Coordinator(two, FakeEngine(), LeastSlack()) as opened:
        assert opened.register(model, routes=[route]).held.keys == {(0, 1, 0), (0, 1, 1), (1, 2, 2)}
        assert opened.registered["net"].sessions == "the plan's 3 sessions are loaded"
