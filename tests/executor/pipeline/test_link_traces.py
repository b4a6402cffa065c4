"""Traces with messages: rows of links survive files, and what was changed is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.executor.pipeline.trace_file import MESSAGE, check_trace, read_trace, trace_parts
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.history import History
from gapless.formulations.operation import operation_of
from gapless.formulations.simulate import simulate
from tests.pipeline_boards import TWO, six_devices


def traces() -> list[History]:
    """Return simulated traces, and one as a device has it, with and without overlap."""
    found = []
    for problem in (six_devices(host="pi-3"), six_devices(overlap=False)):
        deployment = operation_of(problem).deploy(problem, TWO)
        found += [
            simulate(problem, TWO, requests=6),
            SimulatedRunner(problem).trace(deployment, requests=4),
        ]
    return found


@pytest.mark.parametrize("trace", traces(), ids=["overlap", "overlap run", "alone", "alone run"])
def test_traces_with_messages_survive_files(trace: History, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("".join(trace_parts(trace)))
    document = json.loads(path.read_text())
    assert check_trace(document) == []
    assert read_trace(path) == trace
    tracks = [e["args"]["name"] for e in document["traceEvents"] if e.get("name") == "thread_name"]
    assert tuple(tracks) == trace.used_units
    assert "nano-2 -> pi-2" in tracks
    messages = [e for e in document["traceEvents"] if e.get("cat") == MESSAGE]
    assert {e["args"]["link"] for e in messages} == {name for name in tracks if " -> " in name}


def test_a_message_on_another_link_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    document = json.loads("".join(trace_parts(traces()[0])))
    message = next(e for e in document["traceEvents"] if e.get("cat") == MESSAGE)
    message["args"]["link"] = "xavier -> pi-2"
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInputError, match="not as gapless wrote it"):
        read_trace(path)


def test_a_simulated_device_measures_chunks_and_not_messages() -> None:
    problem = six_devices(host="pi-3")
    deployment = operation_of(problem).deploy(problem, TWO)
    found = SimulatedRunner(problem).measure(deployment, Budget(requests=20))
    assert [(c.stream, c.chunk, c.unit) for c in found.chunks] == [
        (chunk.request, index, chunk.unit)
        for stream in deployment.streams
        for index, chunk in enumerate(stream.chunks)
    ]
    assert [use.unit for use in found.units] == list(deployment.units)
    assert len(found.receipts) == 5
    assert found.latency_us.median >= 63_200 + 2 * 1_300
