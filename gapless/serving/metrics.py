"""What a server counts, as Prometheus reads it: by names of its own, by Triton's, and of its process."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
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
    "REJECTED": (Fate.REFUSED, Fate.DROPPED),
    "CANCELED": (Fate.LEFT,),
    "BACKEND": (Fate.FAILED,),
}
"""Why a request has no outputs, in Triton's words."""

Batches = Mapping[str, tuple[str, int]]
"""By name of a model that is a batch of another one, the name of that, and how large it is."""


def prometheus_text(statistics: Statistics, batches: Batches | None = None) -> str:
    """Return what a coordinator counts, as Prometheus reads it."""
    triton = _triton(statistics, batches or {})
    families = (*_requests(statistics), *_units(statistics), *triton, *_process())
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


def _triton(statistics: Statistics, batches: Batches) -> tuple[Family, ...]:
    """Return what dashboards for Triton read: the same counts, by its names, labels and units.

    A batch counts for each of its requests.
    """

    def rows(of: Callable[[ModelCounts], float], *, once: bool = False) -> Rows:
        found: dict[str, float] = {}
        for model in statistics.models:
            name, size = batches.get(model.name, (model.name, 1))
            found[name] = found.get(name, 0.0) + of(model) * (1 if once else size)
        return [("", _labels(name), value) for name, value in found.items()]

    failures = [
        (suffix, {**labels, "reason": reason}, value)
        for reason, fates in _REASONS.items()
        for suffix, labels, value in rows(partial(_count, fates))
    ]
    answers = rows(lambda model: model.spent.answers)
    runs = rows(lambda model: model.spent.answers, once=True)
    return (
        ("nv_inference_request_success", "counter", "Requests that were answered.", answers),
        ("nv_inference_request_failure", "counter", "Requests that have no outputs, by reason.", failures),
        ("nv_inference_count", "counter", "Inferences.", answers),
        ("nv_inference_exec_count", "counter", "Runs of a model, whole.", runs),
        (
            "nv_inference_request_duration_us",
            "counter",
            "Time of answered requests.",
            rows(lambda model: model.total_us),
        ),
        (
            "nv_inference_queue_duration_us",
            "counter",
            "Time in which they waited for units.",
            rows(lambda model: model.spent.waited_ns / 1000),
        ),
        (
            "nv_inference_compute_input_duration_us",
            "counter",
            "Copies into engines.",
            rows(lambda model: model.spent.copied_in_ns / 1000),
        ),
        (
            "nv_inference_compute_infer_duration_us",
            "counter",
            "Time in engines.",
            rows(lambda model: model.spent.ran_ns / 1000),
        ),
        (
            "nv_inference_compute_output_duration_us",
            "counter",
            "Copies out of engines.",
            rows(lambda model: model.spent.copied_out_ns / 1000),
        ),
    )


def _count(fates: tuple[Fate, ...], model: ModelCounts) -> int:
    return sum(model.fates[fate] for fate in fates)


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
