"""A stream of tasks as a chart: which task each unit works on when."""

from __future__ import annotations

from ..api.streams import TaskStream
from ..formulations.task_stream import PlayedStream, SpanKind
from .charts import Axis, Bar, Bars, Colour, Part, Tone, Track

_WAITS: dict[SpanKind, Colour] = {SpanKind.PROFILE: Tone.LOST, SpanKind.IDLE: Tone.IDLE}


def stream_chart(stream: TaskStream, played: PlayedStream, how: str) -> Bars:
    """Return what each unit does; `how`: how networks were planned."""
    units = stream.tasks[0].problem.platform.unit_names
    parts: dict[str, list[Part]] = {unit: [] for unit in units}
    for span in played.spans:
        colour = span.task if span.kind is SpanKind.TASK else _WAITS[span.kind]
        length = (span.end_us - span.start_us) / 1e6
        parts[span.device].append(Part(start=span.start_us / 1e6, length=length, colour=colour))
    seen = {span.kind for span in played.spans}
    named = [(number, f"{number + 1}. {t.problem.network.name}") for number, t in enumerate(stream.tasks)]
    return Bars(
        title=f"{how}: done after {played.makespan_us / 1e6:,.1f} s",
        across=Axis(name="time", unit="s", low=0, high=played.makespan_us / 1e6),
        rows=tuple(Bar(name=unit, tracks=(Track(parts=tuple(found)),)) for unit, found in parts.items()),
        legend=(*named, *((colour, str(kind)) for kind, colour in _WAITS.items() if kind in seen)),
        ticked=True,
    )
