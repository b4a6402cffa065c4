"""Trace files: what is read is what was written, to the nanosecond; anything else is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.api.problems import load_problem, table_problem
from gapless.executor.pipeline.trace_file import (
    MAX_DEFECTS,
    TRACE_FORMAT,
    check_trace,
    load_trace,
    read_trace,
    trace_parts,
)
from gapless.formulations.errors import InvalidInputError, SchemaVersionError
from gapless.formulations.files import format_of
from gapless.formulations.flow_shop.tables import Schedule, shop_of
from gapless.formulations.history import History
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate, simulate_workload
from tests.executor.pipeline.fakes import chain
from tests.executor.pipeline.test_pipeline import opened, stream
from tests.executor.pipeline.test_trace_export import measured
from tests.executor.pipeline.traces import measured_traces
from tests.workload_instances import workload_problem, workload_problems

Tree = dict[str, Any]

ANY_FILE = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def written(trace: History, folder: Path) -> Path:
    path = folder / "trace.json"
    path.write_text("".join(trace_parts(trace)))
    return path


@pytest.mark.slow
@given(trace=measured_traces())
@ANY_FILE
def test_a_measured_trace_comes_back(trace: History, tmp_path: Path) -> None:
    path = written(trace, tmp_path)
    assert check_trace(json.loads(path.read_text())) == []
    assert load_trace(path) == trace


@given(trace=measured_traces(most_requests=2, longest_ns=2**45))
@ANY_FILE
def test_every_nanosecond_of_days_comes_back(trace: History, tmp_path: Path) -> None:
    assert load_trace(written(trace, tmp_path)) == trace


@pytest.mark.slow
def test_a_real_trace_comes_back(tmp_path: Path) -> None:
    models = [chain("add", "add", "add", name="one"), chain("add", name="two")]
    streams = stream("one", (1, "a"), (2, "b"), (3, "a")), stream("two", (1, "b"))
    with opened(models, *streams) as pipeline:
        trace = pipeline.trace(requests=300)
    path = written(trace, tmp_path)
    assert len(trace.events) == 4 * 300
    assert load_trace(path) == trace
    assert check_trace(json.loads(path.read_text())) == []


@pytest.mark.parametrize("requests", [1, 300])
def test_a_simulated_stream_comes_back(requests: int, tmp_path: Path) -> None:
    problem = load_problem("pixel7a/alexnet-sparse")
    plan = Plan(chunks=stream("alexnet-sparse", (1, "GPU"), (8, "Big"), (9, "Medium")).chunks)
    trace = simulate(problem, plan, requests=requests)
    path = written(trace, tmp_path)
    assert read_trace(path) == trace
    assert check_trace(json.loads(path.read_text())) == []
    with pytest.raises(InvalidInputError, match="simulated trace, a measured one is needed"):
        load_trace(path)


@pytest.mark.slow
@given(problem=workload_problems(), data=st.data())
@ANY_FILE
def test_a_simulated_workload_comes_back(problem: Problem, data: st.DataObject, tmp_path: Path) -> None:
    shop = shop_of(problem)
    order = tuple(data.draw(st.permutations(range(shop.request_count))))
    inner = shop.unit_count - 1
    cuts = tuple(
        (0, *sorted(data.draw(st.lists(st.integers(0, n), min_size=inner, max_size=inner))), n)
        for n in (shop.chain(request).layer_count for request in range(shop.request_count))
    )
    plan = shop.plan(Schedule(order, cuts))
    try:
        trace = simulate_workload(problem, plan)
    except InvalidInputError:  # a layer cannot run where it was drawn to
        return
    path = written(trace, tmp_path)
    assert read_trace(path) == trace
    assert check_trace(json.loads(path.read_text())) == []


def test_slowdown_is_told_and_comes_back(tmp_path: Path) -> None:
    problem = workload_problem(
        {"x": [[4000, 6000], [2000, 2000]], "y": [[3000, 1000], [3000, 3000]]},
        ["x", "y"],
        slowdown=[[0, 500], [500, 0]],
    )
    trace = simulate_workload(problem, shop_of(problem).plan(Schedule((0, 1), ((0, 1, 2), (0, 1, 2)))))
    path = written(trace, tmp_path)
    told = [event["args"].get("slowdown_us", 0) for event in slices(json.loads(path.read_text()))]
    assert sum(told) == sum(event.slowdown_us for event in trace.events) > 0
    assert read_trace(path) == trace


def slices(tree: Tree) -> list[Tree]:
    return [event for event in tree["traceEvents"] if event.get("cat") == "chunk"]


def _move(tree: Tree) -> None:
    parts = [event for event in tree["traceEvents"] if event.get("cat") == "part"]
    parts[2]["ts"] += 0.001
    parts[2]["dur"] -= 0.001


def _rename(tree: Tree) -> None:
    slices(tree)[0]["name"] = "mine"


def _renumber(tree: Tree) -> None:
    slices(tree)[0]["args"]["request"] = 7


def _unknown(tree: Tree) -> None:
    slices(tree)[0]["args"]["stream"] = "nobody"


def _flag(tree: Tree) -> None:
    slices(tree)[0]["args"]["request"] = False


def _drop(tree: Tree) -> None:
    tree["traceEvents"].remove(slices(tree)[-1])


def _count(tree: Tree) -> None:
    next(event for event in tree["traceEvents"] if event["ph"] == "C")["args"]["requests"] = 5


def _overlap(tree: Tree) -> None:
    slices(tree)[1]["dur"] += 100


def _delay(tree: Tree) -> None:
    slices(tree)[0]["ts"] = 10**290


def _replan(tree: Tree) -> None:
    tree["measured"]["streams"][0]["chunks"][0]["unit"] = "b"


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (_move, "ts is"),
        (_rename, "name is 'mine', was"),
        (_renumber, "chunk 0 of request 7 of .* did not run"),
        (_unknown, "chunk 0 of request 0 of 'nobody' did not run"),
        (_flag, "request is False, must be a whole number"),
        (_drop, "was written with|was '"),
        (_count, r"args is \{'requests': 5\}"),
        (_overlap, "overlaps the end of|lies inside of"),
        (_delay, "ts is 1000"),
        (_replan, "tid is|was written with|was "),
    ],
)
def test_what_was_edited_is_refused(edit: Callable[[Tree], None], text: str, tmp_path: Path) -> None:
    path = written(measured(), tmp_path)
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))
    with pytest.raises(InvalidInputError, match="is not as gapless wrote it") as raised:
        load_trace(path)
    assert any(re.search(text, defect) for defect in raised.value.problems)
    assert len(raised.value.problems) <= MAX_DEFECTS + 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"traceEvents": []}, "its format is missing"),
        ({"format": TRACE_FORMAT, "version": 99, "traceEvents": []}, "this gapless reads up to version"),
    ],
)
def test_traces_of_others_are_no_traces_of_ours(content: Tree, text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(content))
    with pytest.raises(SchemaVersionError, match=text):
        load_trace(path)


def test_a_trace_says_either_what_ran_or_what_was_played(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"format": TRACE_FORMAT, "version": 1, "traceEvents": []}))
    with pytest.raises(InvalidInputError, match="either measured or simulated"):
        load_trace(path)


def test_the_file_keeps_to_its_version(tmp_path: Path) -> None:
    """Reading compares with what is written today: whoever changes this text raises the version."""
    problem = table_problem([[2, 9], [9, 3]], ["a", "b"], network="net")
    trace = simulate(problem, Plan(chunks=stream("net", (1, "a"), (2, "b")).chunks), requests=1)
    path = written(trace, tmp_path)
    assert format_of(path) == TRACE_FORMAT
    chunk = '"ph":"X","name":"net {0}","cat":"chunk","ts":{1},"dur":{2},"pid":1,"tid":{3},"args":'
    assert path.read_text().splitlines() == [
        '{"displayTimeUnit":"ms","otherData":{"title":"simulated: 0-0 a | 1-1 b"},"traceEvents":[',
        '{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"simulated: 0-0 a | 1-1 b"}}',
        ',{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"a"}}',
        ',{"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":1}}',
        ',{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"b"}}',
        ',{"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":2}}',
        ",{"
        + chunk.format("0-0", "0.0", "2000.0", 1)
        + '{"request":0,"stream":"net","network":"net","chunk":0,"layers":"0-0"}}',
        ',{"ph":"s","name":"request 0","cat":"request","id":0,"ts":1999.999,"bp":"e","pid":1,"tid":1}',
        ",{"
        + chunk.format("1-1", "2000.0", "3000.0", 2)
        + '{"request":0,"stream":"net","network":"net","chunk":1,"layers":"1-1"}}',
        ',{"ph":"f","name":"request 0","cat":"request","id":0,"ts":2000.0,"bp":"e","pid":1,"tid":2}',
        ',{"ph":"C","name":"requests on their way","pid":1,"ts":0.0,"args":{"requests":1}}',
        ',{"ph":"C","name":"requests on their way","pid":1,"ts":5000.0,"args":{"requests":0}}',
        '],"format":"gapless.chrome_trace","version":1,"simulated":{"plan":{"chunks":'
        '[{"network":"net","start":0,"stop":1,"unit":"a"},{"network":"net","start":1,"stop":2,"unit":"b"}]},'
        '"units":["a","b"],"arrivals_us":[0]}}',
    ]


def test_memory_is_a_counter_that_reading_passes_over(tmp_path: Path) -> None:
    trace = measured()
    path = tmp_path / "trace.json"
    path.write_text("".join(trace_parts(trace, memory_steps=[(0, 100), (7, 50)])))
    found = [event for event in json.loads(path.read_text())["traceEvents"] if event["name"] == "memory"]
    assert [(event["ts"], event["args"]) for event in found] == [(0.0, {"bytes": 100}), (7.0, {"bytes": 50})]
    assert check_trace(json.loads(path.read_text())) == []
    assert load_trace(path).events == tuple(sorted(trace.events))
