"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from ..executor.coordination.tally import BUCKETS_US, Statistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Rows = Iterable[tuple[str, Mapping[str, str], float]]
"""Suffix of the name, labels, value."""


def prometheus_text(statistics: Statistics) -> str:
    """Return what a coordinator counts, as Prometheus reads it."""
    models, units = statistics.models, statistics.units
    families: tuple[tuple[str, str, str, Rows], ...] = (
        (
            "gapless_requests_total",
            "counter",
            "Requests by what became of them.",
            [
                ("", {"model": model.name, "result": fate}, count)
                for model in models
                for fate, count in model.fates.items()
            ],
        ),
        (
            "gapless_request_seconds",
            "histogram",
            "From arrival to the end of the last chunk.",
            _latencies(statistics),
        ),
        ("gapless_requests_waiting", "gauge", "Accepted and not answered.", [("", {}, statistics.waiting)]),
        ("gapless_decisions_total", "counter", "Chunks that were started.", [("", {}, statistics.decisions)]),
        (
            "gapless_unit_busy_seconds_total",
            "counter",
            "Time that a unit has worked.",
            [("", {"unit": unit.name}, unit.busy_us / 1e6) for unit in units],
        ),
        (
            "gapless_unit_chunks_total",
            "counter",
            "Chunks that a unit has run.",
            [("", {"unit": unit.name}, unit.chunks) for unit in units],
        ),
        (
            "gapless_unit_available",
            "gauge",
            "1 while a unit may be used.",
            [("", {"unit": unit.name}, unit.available) for unit in units],
        ),
        (
            "gapless_unit_losses_total",
            "counter",
            "Workers that were lost, or could not be started.",
            [("", {"unit": unit.name}, unit.losses) for unit in units],
        ),
        (
            "gapless_unit_restarts_total",
            "counter",
            "Workers that were started again.",
            [("", {"unit": unit.name}, unit.restarts) for unit in units],
        ),
        (
            "gapless_unit_memory_bytes",
            "gauge",
            "Most memory of a worker when it last opened models.",
            [("", {"unit": unit.name}, unit.rss_bytes) for unit in units],
        ),
        ("gapless_uptime_seconds", "gauge", "Since the start.", [("", {}, statistics.seconds)]),
    )
    return "".join(f"{line}\n" for family in families for line in _lines(*family))


def _latencies(statistics: Statistics) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for model in statistics.models:
        counts = tuple(accumulate(model.buckets))
        for end_us, count in zip((*BUCKETS_US, None), counts, strict=True):
            end = "+Inf" if end_us is None else f"{end_us / 1e6:g}"
            yield "_bucket", {"model": model.name, "le": end}, count
        yield "_sum", {"model": model.name}, model.total_us / 1e6
        yield "_count", {"model": model.name}, counts[-1]


def _lines(name: str, kind: str, about: str, rows: Rows) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for suffix, labels, value in rows:
        said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{suffix}{f'{{{said}}}' if said else ''} {float(value):.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
