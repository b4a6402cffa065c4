"""A unit for the OpenCL device of this machine, for the tests."""

from __future__ import annotations

import pytest

from gapless.executor.engines.opencl_engine import OpenClEngine
from gapless.formulations.hardware import EngineSettings, ProcessingUnit, UnitKind


def opencl_backend() -> str:
    """Return the backend of the first OpenCL device; the test is skipped where there is none."""
    engine = OpenClEngine()
    found = engine.backends()[1:]
    if not found:
        reason = engine.availability().reason
        pytest.skip(
            reason or "no OpenCL device compiles kernels here: install a driver, or pocl-binary-distribution"
        )
    return found[0]


def opencl_unit(backend: str = "") -> ProcessingUnit:
    """Return a unit that asks for a device; the test is skipped where there is none."""
    name = backend or opencl_backend()
    return ProcessingUnit(name="device", kind=UnitKind.OTHER, engine=EngineSettings(backend=name))
