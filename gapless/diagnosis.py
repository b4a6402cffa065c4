"""What works here: Python, the machine, and every backend."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from . import __version__
from .formulations.objective import Term
from .formulations.problem import Feature
from .solvers.protocol import Capabilities
from .solvers.registry import backend_names, get_backend


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendReport:
    """Whether one backend can be used here.

    Attributes
    ----------
    name
        Its name.
    ok
        Whether it is ready.
    reason
        Why not, and what to install.
    version
        Version of its solver, if it has one.
    capabilities
        What it can do; None when even that cannot be found out.
    """

    name: str
    ok: bool
    reason: str = ""
    version: str = ""
    capabilities: Capabilities | None = None

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Features and objective terms that it does not handle."""
        if self.capabilities is None:
            return ()
        features = (feature for feature in Feature if feature not in self.capabilities.features)
        terms = (f"objective {term}" for term in Term if term not in self.capabilities.terms)
        return (*features, *terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What works here.

    Attributes
    ----------
    gapless, python, system
        Versions and kind of the machine.
    cores
        Processor cores that this process may use.
    backends
        One report for each known backend.
    """

    gapless: str
    python: str
    system: str
    cores: int
    backends: tuple[BackendReport, ...]


def diagnose() -> Diagnosis:
    """Look at everything without changing anything; a broken backend is a report, not an error."""
    return Diagnosis(
        gapless=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        backends=tuple(map(_report, backend_names())),
    )


def _report(name: str) -> BackendReport:
    try:
        backend = get_backend(name)
        available = backend.availability()
    except Exception as error:
        return BackendReport(name=name, ok=False, reason=f"broken: {type(error).__name__}: {error}")
    return BackendReport(
        name=name,
        ok=available.ok,
        reason=available.reason,
        version=available.version,
        capabilities=backend.capabilities,
    )
