"""Text Gantt charts of simulated and measured traces: to scale, in any width, cut where they must be."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from gapless.answers.traces import steady, trace_chart, traced_chart, traced_words
from gapless.api.problems import table_problem
from gapless.formulations.deployment import Deployment, Mode, Rounds
from gapless.formulations.flow_shop.tables import Schedule, shop_of
from gapless.formulations.history import History, Interval, executed
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.simulate import simulate, simulate_workload
from gapless.formulations.streams import Stream
from gapless.view.terminal.blocks import GanttView, _covered
from tests.executor.pipeline.test_pipeline import stream
from tests.executor.pipeline.traces import measured_traces
from tests.workload_instances import workload_problem

MS = 1_000_000


def measured(requests: int, *streams: Stream, mode: Mode | None = None) -> History:
    """Return a trace in which each chunk takes a millisecond, one request of each stream after the other."""
    rounds = None if mode is None else Rounds(mode=mode, arrivals_us=(0,) * len(streams))
    events, now = [], 0
    for request in range(requests):
        for index, own in enumerate(streams):
            for number, chunk in enumerate(own.chunks):
                events.append(
                    Interval(
                        start_ns=now,
                        engine_ns=(now + 1, now + MS - 1),
                        end_ns=now + MS,
                        stream=index,
                        request=request,
                        chunk=number,
                        unit=chunk.unit,
                    )
                )
                now += MS
    return executed(Deployment(streams=streams, rounds=rounds), events)


def simulated(requests: int) -> History:
    problem = table_problem([[2, 9], [9, 3]], ["a", "b"], network="net")
    return simulate(problem, Plan(chunks=stream("net", (1, "a"), (2, "b")).chunks), requests=requests)


def shown(trace: History, width: int, *, wrapped: bool = True, **options: object) -> list[str]:
    """Return what a terminal shows; `wrapped`: with lines that are longer than it broken."""
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, highlight=False, **options)  # type: ignore[arg-type]
    console.print(GanttView(trace_chart(trace)), soft_wrap=not wrapped)
    return out.getvalue().splitlines()


def test_a_measured_chart_is_to_scale() -> None:
    trace = measured(2, stream("net", (1, "a"), (2, "b")))
    assert shown(trace, 44) == [
        " a 0=========..........1=========..........",
        " b ..........0=========..........1=========",
        "   0 ms            2.000 ms        4.000 ms",
    ]


def test_streams_have_letters_and_requests_have_digits() -> None:
    trace = measured(2, stream("one", (1, "a")), stream("two", (1, "b")))
    assert shown(trace, 24)[:2] == [
        " a A0===.....A1===.....",
        " b .....B0===.....B1===",
    ]
    assert traced_words(trace) == "2 requests of each of 2 streams, measured"


def test_one_round_has_letters_alone() -> None:
    one = measured(1, stream("x", (1, "a")), stream("y", (1, "a")), mode=Mode.BATCH)
    assert shown(one, 24)[0] == " a A=========B========="
    assert traced_words(one) == "1 round of 2 requests, measured"


def test_what_letters_mean_is_said() -> None:
    many = [stream(f"s{number}", (1, "a")) for number in range(14)]
    console = Console(file=io.StringIO(), width=200, markup=False)
    console.print(GanttView(traced_chart(measured(1, *many))))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "A s0, B s1, " in text
    assert "L s11, ... and 2 more" in text


@pytest.mark.parametrize("width", [1, 12, 24, 40, 80, 200])
@pytest.mark.parametrize("requests", [1, 20, 300])
@pytest.mark.parametrize("kind", ["measured", "simulated"])
def test_a_chart_is_cut_where_it_must_be_and_says_so(width: int, requests: int, kind: str) -> None:
    trace = (
        simulated(requests) if kind == "simulated" else measured(requests, stream("net", (1, "a"), (2, "b")))
    )
    lines = shown(trace, width)
    said = " ".join(" ".join(line.split()) for line in lines if not line.startswith((" a ", " b ")))
    cells = max(10, width - 4)
    is_cut = 3 * requests > cells
    assert ("cut to" in said) == is_cut or width == 1  # as narrow as that, words are broken
    blocks = [len(re.findall(r"\d", line)) for line in lines if line.startswith((" a ", " b "))]
    if width >= 24:
        assert max(map(len, lines)) <= width
        assert all(count >= min(requests, cells // 3) - 2 for count in blocks), lines
    if is_cut and width >= 60:
        found = re.search(r"requests (\d+) to (\d+) of 0 to (\d+)", said)
        assert found is not None
        first, last, end = map(int, found.groups())
        assert 0 < first < requests // 2 < last < end == requests - 1


def test_steady_state_has_no_bubbles_of_filling_and_draining() -> None:
    trace = simulated(100)
    part = steady(trace_chart(trace), 10)
    b = next(row.blocks for row in part.rows if row.unit == "b")
    assert part.end_ns - part.start_ns == 10 * 3 * MS
    assert sum(min(x.end_ns, part.end_ns) - max(x.start_ns, part.start_ns) for x in b) == 30 * MS


def test_what_began_before_the_chart_has_no_name_in_it() -> None:
    overlapping = simulated(100)  # unit a is ahead, and works when unit b puts something out
    first = shown(overlapping, 64)[0]
    assert re.match(r" a [=.]*\d", first)
    assert re.match(r" b \d", shown(overlapping, 64)[1])


def test_rounds_are_cut_as_a_whole() -> None:
    trace = measured(30, stream("x", (1, "a")), stream("y", (1, "a")), mode=Mode.BATCH)
    lines = shown(trace, 84)
    assert "cut to steady state: rounds 8 to 20 of 0 to 29; a wider terminal shows more" in lines
    assert lines[0].startswith(" a A8=B8=A9=B9=")


def test_a_workload_is_never_cut() -> None:
    problem = workload_problem({"x": [[4000, 6000], [2000, 2000]]}, ["x"] * 40)
    plan = shop_of(problem).plan(Schedule(tuple(range(40)), ((0, 2, 2),) * 40))
    lines = shown(simulate_workload(problem, plan), 60)
    assert not any("cut" in line for line in lines)
    assert any(line.endswith("240.000 ms") for line in lines)


def test_colours_are_an_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = shown(simulated(3), 60, force_terminal=True, color_system="truecolor")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured]
    assert coloured != plain == shown(simulated(3), 60)
    monkeypatch.setenv("NO_COLOR", "1")
    dull = shown(simulated(3), 60, force_terminal=True, color_system="truecolor")
    assert not any(re.search(r"\x1b\[[0-9;]*4[0-9]", line) for line in dull)
    assert all(line.isascii() for line in plain)


@pytest.mark.slow
@given(trace=measured_traces(), width=st.integers(1, 120))
@settings(max_examples=80)
def test_any_trace_can_be_drawn(trace: History, width: int) -> None:
    lines = shown(trace, width, wrapped=False)[: 1 + len(trace.units)]
    assert len(lines) == 1 + len(trace.units)
    assert len({len(line) for line in lines}) == 1
    whole = trace_chart(trace)
    for outputs in range(1, len(whole.outputs_ns) + 1):
        part = steady(whole, outputs)
        assert whole.start_ns <= part.start_ns < part.end_ns <= max(whole.end_ns, part.start_ns + 1)
        for some, every in zip(part.rows, whole.rows, strict=True):
            assert some.unit == every.unit
            assert set(some.blocks) <= set(every.blocks)


def test_blocks_that_are_not_seen_are_counted() -> None:
    problem = table_problem([[10.0, 1], [1, 10]], ["a", "b"], network="net")
    plan = Plan(
        chunks=(
            Chunk(network="net", start=0, stop=1, unit="b"),
            Chunk(network="net", start=1, stop=2, unit="a"),
        )
    )
    shown = trace_chart(simulate(problem, plan, requests=400))
    assert any("blocks not seen" in line.plain for line in _covered(shown, 20))
    assert _covered(shown, 1_000_000) == []
