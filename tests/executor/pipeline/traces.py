"""Random measured traces, as a pipeline could leave them."""

from __future__ import annotations

from hypothesis import strategies as st

from gapless.formulations.deployment import Deployment, Mode, Rounds
from gapless.formulations.history import History, Interval, executed
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream

NAMES = ("net", "vision", 'a"</script>\u2028é', "gapless run")
UNITS = ("big", "gpu", "npu é")


@st.composite
def measured_traces(draw: st.DrawFn, *, most_requests: int = 6, longest_ns: int = 10**6) -> History:
    """Draw streams that share units, and when their chunks ran: one at a time, in order."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    streams = tuple(Stream(name=name, chunks=draw(_chunks())) for name in names)
    rounds = None
    if draw(st.booleans()):
        mode = draw(st.sampled_from(Mode))
        rounds = Rounds(
            mode=mode, arrivals_us=(0,) * len(streams), task_slots=draw(st.none() | st.integers(1, 3))
        )
    deployment = Deployment(streams=streams, rounds=rounds)
    requests = draw(st.integers(1, most_requests))
    return executed(deployment, _played(draw, deployment, requests, longest_ns))


@st.composite
def _chunks(draw: st.DrawFn) -> tuple[Chunk, ...]:
    network = draw(st.sampled_from(NAMES))
    units = draw(st.lists(st.sampled_from(UNITS), min_size=1, max_size=4))
    lengths = [draw(st.integers(1, 3)) for _ in units]
    return tuple(
        Chunk(network=network, start=sum(lengths[:k]), stop=sum(lengths[: k + 1]), unit=unit)
        for k, unit in enumerate(units)
    )


def _played(draw: st.DrawFn, deployment: Deployment, requests: int, longest_ns: int) -> list[Interval]:
    free = dict.fromkeys(UNITS, 0)
    events = []
    for request in range(requests):
        for index, stream in enumerate(deployment.streams):
            ready = 0
            for number, chunk in enumerate(stream.chunks):
                wait, copy_in, run, copy_out = (draw(st.integers(0, longest_ns)) for _ in range(4))
                start = max(ready, free[chunk.unit]) + wait
                copied = start + copy_in + run + 1  # an engine needs some time
                ready = free[chunk.unit] = copied + copy_out
                events.append(
                    Interval(
                        start_ns=start,
                        engine_ns=(start + copy_in, copied),
                        end_ns=ready,
                        stream=index,
                        request=request,
                        chunk=number,
                        unit=chunk.unit,
                    )
                )
    return events
