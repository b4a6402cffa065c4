"""Whether something that may be missing (a solver, an engine) works here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a backend or an engine can run here, and if not, why and what to install."""

    ok: bool
    reason: str = ""
    version: str = ""
