"""What policies made of a scenario, as a machine-readable document."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.coordination import Coordination
from ..api.coordination_bound import CoordinationBound
from ..formulations.coordination.record import Record, percentile
from .documents import Document, header, plain_data


def coordination_document(runs: Sequence[Coordination], bound: CoordinationBound | None = None) -> Document:
    """Return what several policies made of a scenario, as `gapless coordinate --json` prints it."""
    return {
        **header("coordination"),
        "runs": [_coordination_data(found) for found in runs],
        "bound": None if bound is None else _bound_data(bound),
    }


def here_document(measured: Coordination, simulated: Coordination) -> Document:
    """Return what policies made of a scenario on this machine, and in its simulation."""
    return {
        **header("coordination_here"),
        "measured": _coordination_data(measured),
        "simulated": _coordination_data(simulated),
    }


def _bound_data(bound: CoordinationBound) -> Document:
    return {
        "term": bound.term,
        "best": bound.best,
        "bound": bound.bound,
        "policies": dict(zip(bound.policies, bound.reached, strict=True)),
        "parts": [
            {
                "name": part.name,
                "requests": len(part.problem.formulation.arrivals(part.problem)),
                "status": str(part.result.status),
                "backend": part.result.backend,
                "best": part.best,
                "bound": part.bound,
                "policies": dict(zip(bound.policies, part.reached, strict=True)),
            }
            for part in bound.parts
        ],
    }


def _coordination_data(found: Coordination) -> Document:
    return {
        "scenario": plain_data(found.scenario),
        "platform": found.setting.platform.name,
        "conditions": plain_data(found.conditions),
        "policies": [record_data(record) for record in found.records],
    }


def record_data(record: Record) -> Document:
    """Return what happened to the requests of a scenario, in numbers."""
    took = sorted(record.decisions_ns)
    return {
        "policy": record.policy,
        "end_us": round(record.end_us),
        "frames": len(record.done_frames),
        "frames_per_s": record.frames_per_s,
        **_served_data(record, None),
        "utilisation": dict(zip(record.units, record.utilisation, strict=True)),
        "energy_mj": record.energy_mj,
        "decisions": len(took),
        "decision_ns": percentile(took, 500),
        "away": [
            {
                "unit": record.units[span.unit],
                "start_us": round(span.start_us),
                "end_us": None if span.end_us is None else round(span.end_us),
                "cause": span.cause,
            }
            for span in record.away
        ],
        "applications": {name: _served_data(record, index) for index, name in enumerate(record.applications)},
    }


def _served_data(record: Record, application: int | None) -> Document:
    latencies = record.latencies_us(application)
    asked = record.requests if application is None else record.of(application)
    return {
        "requests": len(asked),
        "answered": len(latencies),
        "dropped": record.dropped(application),
        "in_time": record.share_in_time(application),
        "latency_us": {
            str(permille / 10): None if (value := percentile(latencies, permille)) is None else round(value)
            for permille in (500, 900, 990)
        },
    }
