"""What `gapless doctor --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..formulations.registry import formulation_names
from .documents import Document, header

if TYPE_CHECKING:
    from ..api.diagnosis import BackendReport, Diagnosis


def diagnosis_document(diagnosis: Diagnosis) -> Document:
    """Return what works here."""
    return {
        **header("diagnosis"),
        "python": diagnosis.python,
        "system": diagnosis.system,
        "device": diagnosis.device,
        "cores": diagnosis.cores,
        "engines": [
            {
                "name": report.name,
                "ok": report.found.ok,
                "reason": report.found.reason,
                "version": report.found.version or None,
                "backends": list(report.backends),
            }
            for report in diagnosis.engines
        ],
        "permissions": [
            {"name": name, "ok": found.ok, "reason": found.reason} for name, found in diagnosis.permissions
        ],
        "backends": [
            {
                "name": report.name,
                "ok": report.ok,
                "reason": report.reason,
                "version": report.version or None,
                "guarantee": _guarantee(report),
                "formulations": _guarantees(report),
                "unsupported": list(report.unsupported),
            }
            for report in diagnosis.backends
        ],
    }


def _guarantees(report: BackendReport) -> dict[str, str]:
    """Return what a backend promises, by formulation."""
    if report.capabilities is None:
        return {}
    can = report.capabilities
    supports = {name: can.formulations.get(name, can.others) for name in formulation_names()}
    return {name: str(support.guarantee) for name, support in supports.items() if support is not None}


def _guarantee(report: BackendReport) -> str | None:
    """Return the first promise of a backend: of most, the only one."""
    return next(iter(_guarantees(report).values()), None)
