"""Traces for people: what was at work when, in the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from ...formulations.history import History
from .gantt import gantt_view, legend_view


def written_view(trace: History, out: Path) -> Group:
    """Return what `gapless trace` shows."""
    file = Text(f"wrote {out}: open it at ui.perfetto.dev; `gapless show {out}` shows it here again")
    return Group(*traced_view(trace), "", file)


def traced_view(trace: History) -> list[RenderableType]:
    """Return what was traced in one line, and its chart."""
    block = "one request on one unit"
    if trace.measured:
        block += ", from copying its inputs to copying its outputs"
    text = Text(traced_words(trace), style="bold")
    text.append(f": each block is {block}; dots are idle time", style="not bold")
    return [text, gantt_view(trace), *legend_view(trace)]


def traced_words(trace: History) -> str:
    """Return what was traced, e.g. "20 rounds of 3 requests, measured"."""
    if not trace.measured:
        return f"{_counted(len(trace.arrivals_us), 'request')}, simulated"
    streams, count = len(trace.streams), 1 + max(event.request for event in trace.events)
    if trace.in_rounds:
        return f"{_counted(count, 'round')} of {_counted(streams, 'request')}, measured"
    each = f" of each of {streams} streams" if streams > 1 else ""
    return f"{_counted(count, 'request')}{each}, measured"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
