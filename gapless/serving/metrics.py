"""What a server counts, as Prometheus reads it: by names of its own, by Triton's, and of its process."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from time import time

from ..executor.coordination.tally import BUCKETS_US, Fate, ModelCounts, Statistics
from .catalogue import split_version

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Rows = Iterable[tuple[str, Mapping[str, str], float]]
"""Suffix of the name, labels, value."""

Family = tuple[str, str, str, Rows]
"""Name, type, help, rows."""

_REASONS = {
    Fate.REFUSED: "REJECTED",
    Fate.DROPPED: "REJECTED",
    Fate.LEFT: "CANCELED",
    Fate.FAILED: "BACKEND",
}
"""Why a request has no outputs, in Triton's words."""


def prometheus_text(statistics: Statistics) -> str:
    """Return what a coordinator counts, as Prometheus reads it."""
    families = (*_requests(statistics), *_units(statistics), *_triton(statistics), *_process())
    return "".join(f"{line}\n" for family in families for line in _lines(*family))


def _requests(statistics: Statistics) -> tuple[Family, ...]:
    models = statistics.models
    fates = [
        ("", {"model": model.name, "result": fate}, count)
        for model in models
        for fate, count in model.fates.items()
    ]
    return (
        ("gapless_requests_total", "counter", "Requests by what became of them.", fates),
        (
            "gapless_request_seconds",
            "histogram",
            "From arrival to the end of the last chunk.",
            _latencies(statistics),
        ),
        ("gapless_requests_waiting", "gauge", "Accepted and not answered.", [("", {}, statistics.waiting)]),
        ("gapless_decisions_total", "counter", "Chunks that were started.", [("", {}, statistics.decisions)]),
    )


def _units(statistics: Statistics) -> tuple[Family, ...]:
    def rows(of: str, scale: float = 1.0) -> Rows:
        return [("", {"unit": unit.name}, getattr(unit, of) * scale) for unit in statistics.units]

    return (
        ("gapless_unit_busy_seconds_total", "counter", "Time that a unit has worked.", rows("busy_us", 1e-6)),
        ("gapless_unit_chunks_total", "counter", "Chunks that a unit has run.", rows("chunks")),
        ("gapless_unit_available", "gauge", "1 while a unit may be used.", rows("available")),
        (
            "gapless_unit_losses_total",
            "counter",
            "Workers that were lost, or could not be started.",
            rows("losses"),
        ),
        ("gapless_unit_restarts_total", "counter", "Workers that were started again.", rows("restarts")),
        (
            "gapless_unit_memory_bytes",
            "gauge",
            "Most memory of a worker when it last opened models.",
            rows("rss_bytes"),
        ),
        ("gapless_uptime_seconds", "gauge", "Since the start.", [("", {}, statistics.seconds)]),
    )


def _triton(statistics: Statistics) -> tuple[Family, ...]:
    """Return what dashboards for Triton read: the same counts, by its names, labels and units."""
    models = statistics.models

    def rows(of: Mapping[str, float]) -> Rows:
        return [("", _labels(name), value) for name, value in of.items()]

    def spent(part: str) -> Rows:
        return rows({model.name: getattr(model.spent, f"{part}_ns") / 1000 for model in models})

    answers = {model.name: model.spent.answers for model in models}
    failures = [
        ("", {**_labels(model.name), "reason": reason}, count)
        for model in models
        for reason, count in _failures(model).items()
    ]
    times = {model.name: model.total_us for model in models}
    return (
        ("nv_inference_request_success", "counter", "Requests that were answered.", rows(answers)),
        ("nv_inference_request_failure", "counter", "Requests that have no outputs, by reason.", failures),
        ("nv_inference_count", "counter", "Inferences.", rows(answers)),
        ("nv_inference_exec_count", "counter", "Runs of a model, whole.", rows(answers)),
        ("nv_inference_request_duration_us", "counter", "Time of answered requests.", rows(times)),
        ("nv_inference_queue_duration_us", "counter", "Time in which they waited.", spent("waited")),
        ("nv_inference_compute_input_duration_us", "counter", "Copies into engines.", spent("copied_in")),
        ("nv_inference_compute_infer_duration_us", "counter", "Time in engines.", spent("ran")),
        ("nv_inference_compute_output_duration_us", "counter", "Copies out of engines.", spent("copied_out")),
    )


def _failures(model: ModelCounts) -> dict[str, int]:
    found = dict.fromkeys(_REASONS.values(), 0)
    for fate, reason in _REASONS.items():
        found[reason] += model.fates[fate]
    return found


def _labels(key: str) -> dict[str, str]:
    name, version = split_version(key)
    return {"model": name, "version": version}


def _process() -> tuple[Family, ...]:
    """Return what every program of Prometheus tells of its process (without its children), where it can."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = [("process_cpu_seconds_total", "counter", "Processor time.", used.ru_utime + used.ru_stime)]
    with suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        booted_s = time() - float(Path("/proc/uptime").read_text().split()[0])
        start_s = booted_s + int(fields[19]) / os.sysconf("SC_CLK_TCK")
        page = os.sysconf("SC_PAGE_SIZE")
        found += [
            ("process_start_time_seconds", "gauge", "When it began, since 1970.", start_s),
            ("process_virtual_memory_bytes", "gauge", "Virtual memory.", int(fields[20])),
            ("process_resident_memory_bytes", "gauge", "Memory.", int(fields[21]) * page),
            ("process_open_fds", "gauge", "Open files.", len(os.listdir("/proc/self/fd"))),
        ]
    return tuple((name, kind, about, [("", {}, float(value))]) for name, kind, about, value in found)


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
        yield f"{name}{suffix}{f'{{{said}}}' if said else ''} {float(value):.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
