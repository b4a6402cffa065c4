"""Plans of groups at work: streams with tiles, and simulations that keep the period that the judge says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.cluster import Link
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.history import Usage, is_message
from gapless.formulations.judge import check, score
from gapless.formulations.operation import operation_of
from gapless.formulations.simulate import simulate
from gapless.solvers.session import solve
from tests.cooperation_instances import drawn_problem
from tests.formulations.cooperation.test_judge import plan, two_convolutions

PARTS = ((0, 1, "a+b"), (1, 2, "c"))


def test_a_stream_has_a_chunk_for_each_device_and_its_tile() -> None:
    deployment = operation_of(two_convolutions()).deploy(two_convolutions(), plan(*PARTS))
    (stream,) = deployment.streams
    assert str(stream) == "0-0 a rows 0-2 + b rows 3-9 | 1-1 c"
    assert stream.leaders == stream.led_by == (1, 2)
    assert stream.slots == 4
    whole = operation_of(two_convolutions()).deploy(two_convolutions(), plan((0, 2, "b")))
    assert not whole.is_divided
    assert (whole.streams[0].leaders, whole.streams[0].led_by) == ((), (0,))


def test_a_simulation_keeps_the_period_and_shows_messages_apart() -> None:
    problem, parts = two_convolutions(), plan(*PARTS)
    trace = simulate(problem, parts, requests=5)
    assert trace.makespan_us == 7100 + 4 * 4000
    first = [event for event in trace.events if event.request == 0]
    named = {(event.unit, *event.span_us) for event in first}
    assert named == {
        ("b -> a", 0, 700), ("a", 700, 1900), ("b", 700, 2100), ("b -> c", 2100, 3100), ("c", 3100, 7100)
    }  # fmt: skip
    assert {trace.streams[0].chunks[e.chunk].unit for e in first if not is_message(e, trace.streams)} == set(
        "abc"
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_simulated_device_has_the_period_of_the_judge(seed: int) -> None:
    problem = drawn_problem(seed).with_objective("period")
    best = solve(problem, "exhaustive", explain=False).best
    if best is None:
        return
    deployment = operation_of(problem).deploy(problem, best.plan)
    measured = SimulatedRunner(problem).measure(deployment, Budget(requests=20))
    assert measured.period_us == pytest.approx(score(problem, best.plan).value("period"), abs=1)


def test_memory_is_reserved_all_the_time() -> None:
    problem, parts = two_convolutions(), plan(*PARTS)
    found = operation_of(problem).usage(problem, simulate(problem, parts, requests=2))
    assert isinstance(found, Usage)
    assert found.peak_bytes == score(problem, parts).value("peak_memory")


def test_groups_over_links_are_not_run_here() -> None:
    with pytest.raises(InvalidInputError, match="`gapless run --address HOST:PORT` runs it on a cluster"):
        operation_of(two_convolutions()).check_executable(two_convolutions())
    data = two_convolutions().data
    board = replace(two_convolutions(), data=replace(data, devices=replace(data.devices, links=())))
    operation_of(board).check_executable(board)
    shared, *others = operation_of(board).rivals(board)
    assert [rule.name for rule in shared.rules] == ["some_group(2)"]
    found = solve(shared, "native").plan
    assert found is not None
    assert len({chunk.start for chunk in found.chunks}) < len(found.chunks)
    assert [(rival.formulation.name, rival.data.most) for rival in others] == [
        ("pipelines", None), ("pipelines", 1)
    ]  # fmt: skip
    names = [name for name, _ in operation_of(board).baselines(board, [("a",), ("a", "b")])]
    assert names == ["serial on a", "replicas on a+b"]


def test_groups_go_on_without_a_device_and_without_a_link() -> None:
    problem = two_convolutions(idle_mw=(1, 2, 3), fixed_us=((10, 20, 30), (40, 50, 60)))
    operation = operation_of(problem)
    left = operation.without_device(problem, "b")
    assert left.platform.unit_names == left.costs.units == ("a", "c")
    data = left.data
    assert (data.idle_mw, data.fixed_us, data.devices.power_mw) == ((1, 3), ((10, 30), (40, 60)), (3, 3))
    assert {(link.source, link.target) for link in data.devices.links} == {("a", "c"), ("c", "a")}
    assert solve(left, "exhaustive", explain=False).best is not None
    cut = operation.without_link(problem, "b", "a")
    assert [broken.rule for broken in check(cut, plan(*PARTS))][:1] == ["group"]
    slow = Link(source="a", target="b", bytes_per_second=7)
    links = operation.with_links(problem, [slow, Link(source="a", target="d", bytes_per_second=1)])
    assert [link for link in links.data.devices.links if link.target == "b"][-1] == slow
    assert len(links.data.devices.links) == 6
