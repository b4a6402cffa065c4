"""The tests that every backend and every engine must pass: subclass one of them in a test of your own.

pytest collects their methods; they import no pytest, so that they can be called without it.
"""

from __future__ import annotations

from .executor.engines.conformance import EngineConformance
from .solvers.conformance import BackendConformance
from .solvers.samples import Samples

__all__ = ["BackendConformance", "EngineConformance", "Samples"]
