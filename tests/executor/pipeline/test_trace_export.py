"""Trace documents: what they hold, and that the check finds what is wrong with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gapless.api.problems import table_problem
from gapless.executor.pipeline.trace_file import ON_THEIR_WAY, check_trace, trace_parts
from gapless.formulations.deployment import Deployment
from gapless.formulations.history import History, Interval, executed
from gapless.formulations.plan import Plan
from gapless.formulations.simulate import simulate
from tests.executor.pipeline.fakes import chain
from tests.executor.pipeline.test_pipeline import opened, stream

HOSTILE = 'a"</script>\u2028é'


def document(trace: History) -> dict[str, Any]:
    read: dict[str, Any] = json.loads("".join(trace_parts(trace)))
    return read


def measured() -> History:
    """Return three requests through two chunks, back to back on the second unit."""
    deployment = Deployment(streams=(stream(HOSTILE, (2, "a"), (3, "b"), network="net"),))
    times = [(0, 0, 0), (0, 1, 10), (1, 0, 5), (1, 1, 20), (2, 0, 10), (2, 1, 30)]
    return executed(
        deployment,
        (
            Interval(
                start_ns=start * 1001,
                engine_ns=(start * 1001 + 1, start * 1001 + 4000),
                end_ns=start * 1001 + (5005 if chunk == 0 else 10010),
                stream=0,
                request=request,
                chunk=chunk,
                unit="ab"[chunk],
            )
            for request, chunk, start in times
        ),
    )


def test_a_measured_trace_nests() -> None:
    found = document(measured())
    assert check_trace(found) == []
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    chunks = [event for event in slices if event["cat"] == "chunk"]
    assert len(chunks) == 6
    assert len(slices) == 4 * 6
    assert chunks[0]["name"] == f"{HOSTILE} 0-1"
    assert chunks[0]["args"] == {
        "request": 0,
        "stream": HOSTILE,
        "network": "net",
        "chunk": 0,
        "layers": "0-1",
    }
    assert chunks[1]["ts"] == pytest.approx(5.005)
    assert chunks[-1]["dur"] == pytest.approx(10.01)
    names = [event["args"]["name"] for event in found["traceEvents"] if event["name"] == "thread_name"]
    assert names == ["a", "b"]
    assert [event["ph"] for event in found["traceEvents"] if event.get("id") == 1] == ["s", "f"]
    assert "<" not in "".join(trace_parts(measured()))


def test_a_real_trace_nests() -> None:
    models = [chain("add", "add", "add", name="one"), chain("add", name="two")]
    streams = stream("one", (1, "a"), (2, "b"), (3, "a")), stream("two", (1, "b"))
    with opened(models, *streams) as pipeline:
        trace = pipeline.trace(requests=20)
    found = document(trace)
    assert check_trace(found) == []
    arrows = [event["ph"] for event in found["traceEvents"] if event["ph"] in "stf"]
    assert arrows.count("s") == arrows.count("t") == arrows.count("f") == 20


def test_a_simulated_trace_nests() -> None:
    problem = table_problem([[3, 5, 9], [4, 2, 9], [6, 6, 9]], ["a", "b", "idle"], network="net")
    plan = Plan(chunks=stream("net", (1, "b"), (3, "a")).chunks)
    trace = simulate(problem, plan, requests=4)
    found = document(trace)
    assert check_trace(found) == []
    names = [event["args"]["name"] for event in found["traceEvents"] if event["name"] == "thread_name"]
    assert names == ["b", "a"], "in the order of the chunks"
    busy = sum(event["dur"] for event in found["traceEvents"] if event["ph"] == "X")
    assert busy == 4 * (5 + 4 + 6) * 1000


def test_requests_on_their_way_are_counted() -> None:
    counts = [
        (event["ts"], event["args"]["requests"])
        for event in document(measured())["traceEvents"]
        if event["name"] == ON_THEIR_WAY
    ]
    assert counts == [(0.0, 1), (5.005, 2), (10.01, 3), (20.02, 2), (30.03, 1), (40.04, 0)]


def _inside(events: list[dict[str, Any]]) -> None:
    own = [event for event in events if event.get("cat") == "chunk" and event["tid"] == 1]
    own[1]["ts"], own[1]["dur"] = own[0]["ts"] + 1, 1.0


def _double_count(events: list[dict[str, Any]]) -> None:
    events.append(events[-1])


def _negative_count(events: list[dict[str, Any]]) -> None:
    events[-1]["args"] = {"requests": -1}


def _empty_count(events: list[dict[str, Any]]) -> None:
    events[-1]["args"] = {}


def _overlap(events: list[dict[str, Any]]) -> None:
    next(event for event in events if event["ph"] == "X")["dur"] += 1


def _negative(events: list[dict[str, Any]]) -> None:
    events[-2]["ts"] = -1.0


def _nameless(events: list[dict[str, Any]]) -> None:
    events[:] = [event for event in events if event["name"] != "thread_name"]


def _backwards(events: list[dict[str, Any]]) -> None:
    next(event for event in events if event["ph"] == "s")["ts"] = 35.0


def _endless(events: list[dict[str, Any]]) -> None:
    events[:] = [event for event in events if event["ph"] != "f"]


def _strange(events: list[dict[str, Any]]) -> None:
    events.append({"ph": "?", "name": "x"})
    events.append({"ph": "X", "name": 3, "pid": 1, "tid": 1, "ts": 0, "dur": 1})
    events.append("no object")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (_overlap, "overlaps the end of"),
        (_negative, "ts is -1.0"),
        (_nameless, "has no name"),
        (_backwards, "in order of time"),
        (_endless, "must begin with 's' and end with 'f'"),
        (_strange, "its kind (ph) is '?'"),
        (_inside, "lies inside of"),
        (_double_count, "has a value at"),
        (_negative_count, "requests is -1"),
        (_empty_count, "the counter has no value"),
    ],
)
def test_the_check_finds_what_is_wrong(spoil: Callable[[list[dict[str, Any]]], None], text: str) -> None:
    found = document(measured())
    spoil(found["traceEvents"])
    assert any(text in defect for defect in check_trace(found))


@pytest.mark.parametrize("strange", [None, [], {}, {"traceEvents": 3}, "text"])
def test_what_is_no_trace_is_no_trace(strange: object) -> None:
    assert len(check_trace(strange)) == 1
