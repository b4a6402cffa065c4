"""Groups of the units of a board, which may compute their chunk in steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.cooperation.plans import plan_of, services_of
from gapless.formulations.cooperation.service import Devices, together
from gapless.formulations.cooperation.tables import Groups, groups_of
from gapless.formulations.errors import InvalidProblemError, MalformedPlanError
from gapless.formulations.judge import check, score
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate
from tests.cooperation_instances import stepping_problem
from tests.formulations.cooperation.test_judge import plan, two_convolutions

DRAWN = [stepping_problem(seed, layers=4, devices=3).with_objective("period") for seed in range(12)]


def ways(groups: Groups, start: int, stop: int, group: Devices) -> Iterator[tuple[int, bool]]:
    """Yield the time of every way to serve a chunk in steps, and whether one of them is in tiles."""
    if start == stop:
        yield 0, False
        return
    for cut in range(start + 1, stop + 1):
        if cut not in groups.chain.cuts:
            continue
        for rest, tiled in ways(groups, cut, stop, group):
            own = [(groups.at_once((start, cut, (device,))), False) for device in group]
            for step, whole in (*own, (groups.at_once((start, cut, group)), True)):
                if step is not None:
                    yield max(step.compute_us) + rest, tiled or whole


@pytest.mark.parametrize("problem", DRAWN)
def test_steps_are_the_fastest_of_all(problem: Problem) -> None:
    groups = groups_of(problem)
    for start, stop, group in groups.possible():
        found = groups.service((start, stop, group))
        assert found is not None
        if len(group) > 1:
            assert found.time_us == min(time for time, tiled in ways(groups, start, stop, group) if tiled)
            assert found.steps[0].part[0] == start
            assert {device for step in found.steps for device in step.part[2]} == set(group)
            assert max(found.compute_us) <= found.time_us
        code = ((start, stop, group),)
        if (start, stop) == (0, 4):
            written = plan_of(groups, code)
            assert problem.formulation.code(problem, written) == code
            deployment = operation_of(problem).deploy(problem, written)
            assert deployment.plan == written
            if not check(problem, written):
                period_us = score(problem, written).value("period")
                assert SimulatedRunner(problem).measure(deployment, Budget(requests=5)).period_us == period_us
                trace = simulate(problem, written, requests=2)
                assert trace.makespan_us == 2 * period_us
                assert trace.plan == written


def test_what_does_not_split_is_done_by_one_of_the_group() -> None:
    problem = two_convolutions()
    data = problem.data
    nodes = (*data.spatial.nodes[:-1], replace(data.spatial.nodes[-1], splits=(False, False)))
    board = replace(
        problem,
        data=replace(
            data,
            spatial=replace(data.spatial, nodes=nodes),
            devices=replace(data.devices, links=(), host=""),
            steps=True,
        ),
    )
    found = plan((0, 1, "a+b"), (1, 2, "a"))
    assert problem.formulation.code(board, found) == ((0, 2, (0, 1)),)
    (service,) = services_of(groups_of(board), ((0, 2, (0, 1)),))
    fastest = min((0, 1), key=lambda d: groups_of(board).chain.busy_us(1, 2, d))
    assert [step.part for step in service.steps] == [(0, 1, (0, 1)), (1, 2, (fastest,))]
    (stream,) = operation_of(board).deploy(board, plan((0, 2, "a+b"))).streams
    assert str(stream) == f"0-0 a {stream.tile(0)} + b {stream.tile(1)} | 1-1 {'ab'[fastest]}"
    with pytest.raises(MalformedPlanError, match="no step of it can be split"):
        score(board, plan((0, 1, "c"), (1, 2, "a+b")))
    with pytest.raises(MalformedPlanError, match="layers 1 to 1 are not covered"):
        score(board, plan((0, 1, "a+b")))
    with pytest.raises(InvalidProblemError, match="not for devices that links join"):
        replace(data, steps=True)


def test_chunks_with_common_devices_are_one() -> None:
    parts = ((0, 1, (0, 1)), (1, 2, (2,)), (2, 3, (1,)), (3, 4, (3,)), (4, 6, (3,)))
    assert together(parts) == ((0, 3, (0, 1, 2)), (3, 6, (3,)))
