"""One plan whose requests come back to units, which serve them in orders of their own, with every command."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

import gapless
from gapless.api.models import open_model
from gapless.cli.tasks.serving import subject
from gapless.executor.pipeline.trace_file import read_trace
from gapless.formulations.files import dump_plan, dump_problem
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.question.subjects import Opening
from tests.executor.export.exports import ran, units
from tests.executor.graph.models import residual

from ..conftest import Cli
from .test_export import problem_of

ORDER = {"left": ["one", "two", "one"], "right": ["two", "one", "two"]}
"""Whose chunks each unit serves, one after the other."""


def chunks(name: str, *parts: tuple[int, str]) -> tuple[Chunk, ...]:
    """Return the chunks of a request from (stop, unit)."""
    starts = [0, *(stop for stop, _ in parts)]
    return tuple(
        Chunk(request=name, network=name, start=start, stop=stop, unit=unit)
        for start, (stop, unit) in zip(starts, parts, strict=False)
    )


PLAN = Plan(
    chunks=(
        *chunks("one", (2, "left"), (3, "right"), (7, "left")),
        *chunks("two", (2, "right"), (3, "left"), (5, "right")),
    ),
    order=("two", "one", "two", "one", "two", "one"),
)


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Problem, Path]:
    """Return two networks on two units with a millisecond for each layer, and a file of the plan."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("plans with two units need two cores")
    onnx.save(residual(), str(tmp_path / "one.onnx"))
    onnx.save(residual(blocks=2), str(tmp_path / "two.onnx"))
    models = [open_model(tmp_path / f"{name}.onnx") for name in ("one", "two")]
    board, path = problem_of(*models, platform=units("left", "right")), tmp_path / "board.json"
    path.write_text(dump_problem(board))
    problem = gapless.with_passage(gapless.with_workload(board, "one,two"))
    asked = {"problem": str(path), "workload": "one,two", "passage": "any"}
    (tmp_path / "plan.json").write_text(dump_plan(PLAN, problem, asked))
    return problem, tmp_path / "plan.json"


@pytest.mark.slow
def test_every_command_takes_such_a_plan(cli: Cli, planned: tuple[Problem, Path], tmp_path: Path) -> None:
    _, plan = planned
    for words in (["tools check"], ["show"], ["simulate"], ["explain", "--time-limit", "1s"]):
        said = cli(*words[:1], plan, *words[1:])
        assert (words, said.code, "7.000 ms" in said.out) == (words, 0, True)
    assert cli("run", plan, "--seconds", "200ms").code == 0
    page = tmp_path / "page.html"
    assert cli("report", plan, "--out", page, "--backends", "none").code == 0
    assert PLAN.plan_id in page.read_text()
    for more in (["--simulated"], ["--requests", "3"]):
        trace = tmp_path / "trace.json"
        assert cli("tools", "trace", plan, *more, "--out", trace).code == 0
        assert cli("show", trace).code == 0
        history = read_trace(trace)
        events = sorted(history.events, key=lambda event: event.start_ns)
        for unit, order in ORDER.items():
            served = [history.streams[event.stream].name for event in events if event.unit == unit]
            assert served == order * (len(served) // len(order))
            assert served
    done = cli("export", plan, "--to", "onnxruntime", "--out", tmp_path / "out")
    assert done.code == 0
    found = ran(tmp_path / "out", "--requests", "4", "--warm-up", "0")
    assert (found["compared"], found["agree"]) == (8, True)


@pytest.mark.slow
def test_requests_that_are_served_take_the_chunks_of_their_networks(planned: tuple[Problem, Path]) -> None:
    asked = subject([str(planned[1])], Opening(), None)
    assert asked.problem is not None
    models = [open_model(planned[1].with_name(f"{name}.onnx")) for name in ("one", "two")]
    with gapless.coordination.open_coordinator(
        models, problem=asked.problem, plan=asked.plan, engine="onnxruntime"
    ) as coordinator:
        for model in models:
            name, given = model.network.name, model.sample_inputs(1)
            served = coordinator.run(name, given)
            assert [(c.start, c.stop, c.unit) for c in served.chunks] == [
                (chunk.start, chunk.stop, chunk.unit) for chunk in PLAN.of(name)
            ]
            for output, right in model.reference(given).items():
                assert abs(served.outputs[output] - right).max() < 1e-4
