"""What works here: Python, the machine, every backend and every engine; and what can be named."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..executor.engines.registry import engine_names, get_engine
from ..executor.machine.cores import pinning
from ..executor.machine.counters import counters_availability
from ..executor.machine.quota import quota_availability
from ..executor.machine.state import fingerprint
from ..formulations.availability import Availability
from ..formulations.problem import FEATURES
from ..formulations.registry import formulation_named, formulation_names
from ..profiler.platforms.catalog import shipped_names
from ..profiler.zoo.catalog import zoo_names
from ..solvers.protocol import Capabilities
from ..solvers.registry import backend_names, get_backend
from ..version import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendReport:
    """Whether one backend can be used here."""

    name: str
    ok: bool  # whether it is ready
    reason: str = ""  # why not, and what to install
    version: str = ""  # version of its solver, if it has one
    capabilities: Capabilities | None = None  # what it can do; None when even that cannot be found out

    @property
    def unsupported(self) -> tuple[str, ...]:
        """Features and objective terms that it does not handle."""
        return () if self.capabilities is None else tuple(_unsupported(self.capabilities))


def _unsupported(can: Capabilities) -> Iterator[str]:
    """Yield what a backend does not handle: whole formulations, or features and terms of one."""
    for name in formulation_names():
        formulation = formulation_named(name)
        support = can.formulations.get(name, can.others)
        if support is None:
            yield formulation.label
            continue
        if support.features is not None:
            yield from sorted((FEATURES | formulation.features) - support.features)
        if support.terms is not None:
            yield from (f"objective {term}" for term in formulation.terms if term not in support.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """Whether one engine can be used here."""

    name: str
    found: Availability  # whether it is ready, why not, its version
    backends: tuple[str, ...] = ()  # its backends that really work on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What works here.

    Attributes
    ----------
    gapless, python, system
        Versions, and the kind of the machine.
    device
        The machine as measurements name it.
    cores
        Processor cores that this process may use.
    backends, engines
        A report for each known backend and engine.
    permissions
        What the system lets this process do, by what it is for.
    """

    gapless: str
    python: str
    system: str
    device: str
    cores: int
    backends: tuple[BackendReport, ...]
    engines: tuple[EngineReport, ...]
    permissions: tuple[tuple[str, Availability], ...]


def problems() -> tuple[str, ...]:
    """Return the names of the shipped problems, which `load_problem` takes.

    Examples
    --------
    >>> import gapless
    >>> [name for name in gapless.problems() if name.startswith("oneplus11/")]
    ['oneplus11/alexnet-dense', 'oneplus11/alexnet-sparse', 'oneplus11/octree']
    """
    return shipped_names()


def networks() -> tuple[str, ...]:
    """Return the names of the built-in networks, which `open_model` takes.

    Examples
    --------
    >>> import gapless
    >>> "mobilenetv2" in gapless.networks()
    True
    """
    return zoo_names()


def backends() -> tuple[str, ...]:
    """Return the names of all known backends, which `plan` and `compare` take.

    Examples
    --------
    >>> import gapless
    >>> gapless.backends()[:3]
    ('native', 'exhaustive', 'cpsat')
    """
    return backend_names()


_PERMISSIONS: dict[str, Callable[[], Availability]] = {
    "pin workers to cores": pinning,
    "emulate slower units (quotas)": quota_availability,
    "hardware counters": counters_availability,
}


def doctor() -> Diagnosis:
    """Return what works here, as `gapless doctor` says; a broken backend is a report, not an error.

    Examples
    --------
    >>> import gapless
    >>> [report.name for report in gapless.doctor().backends if report.ok][:2]
    ['native', 'exhaustive']
    """
    device = fingerprint()
    names = engine_names()
    # Engines are tried in child processes, so all at once; each backend is asked here, by itself.
    with ThreadPoolExecutor(max_workers=len(names)) as pool:
        engines = pool.map(_engine_report, names)
        backends = tuple(map(_report, backend_names()))
    return Diagnosis(
        gapless=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        device=str(device),
        cores=len(device.cores),
        backends=backends,
        engines=tuple(engines),
        permissions=tuple((what, look()) for what, look in _PERMISSIONS.items()),
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


def _engine_report(name: str) -> EngineReport:
    try:
        engine = get_engine(name)
        found = engine.availability()
        return EngineReport(name=name, found=found, backends=engine.backends() if found.ok else ())
    except Exception as error:
        reason = f"broken: {type(error).__name__}: {error}"
        return EngineReport(name=name, found=Availability(ok=False, reason=reason))
