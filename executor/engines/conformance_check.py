"""All tests of `EngineConformance` one after the other, without pytest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...formulations.errors import EngineUnavailableError, GaplessError
from ...formulations.hardware import ProcessingUnit
from ..model import Model
from .conformance import EngineConformance
from .registry import get_engine


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceCheck:
    """What came of one test."""

    name: str  # what was tested, in words
    problem: str | None  # what is wrong; None: it passed
    tried: str  # what was exercised


def check_engine(
    engine: str,
    *,
    units: tuple[ProcessingUnit, ...] = (),
    model: Model | None = None,
    report: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> tuple[ConformanceCheck, ...]:
    """Put an engine to all tests of `EngineConformance`.

    `engine`: registry name, or "module:Class" or "file.py:Class". `units`: where; empty: as
    `EngineConformance.units` says. `model`: to be run, too; None: only the samples. `report`: told the name
    of each test before it begins, how many are done, and how many there are.
    """
    found = get_engine(engine)
    here = found.availability()
    if not here.ok:
        raise EngineUnavailableError(here.reason)

    def prepared() -> EngineConformance:
        tests = EngineConformance()
        tests.make_engine, tests.units = lambda: get_engine(engine), units  # type: ignore[method-assign]
        return tests

    names = [name for name in vars(EngineConformance) if name.startswith("test_")]
    parts: dict[str, Callable[[EngineConformance], None]] = {
        name.removeprefix("test_").replace("_", " "): getattr(EngineConformance, name) for name in names
    }
    if model is not None:
        parts[f"the model {model.network.name}"] = lambda tests: tests.check_model(model)
    checks = []
    for done, (name, part) in enumerate(parts.items()):
        report(name, done, len(parts))
        checks.append(_checked(name, part, prepared()))
    return tuple(checks)


def _checked(
    name: str, part: Callable[[EngineConformance], None], tests: EngineConformance
) -> ConformanceCheck:
    problem = None
    try:
        part(tests)
    except (AssertionError, GaplessError) as error:
        problem = str(error)
    return ConformanceCheck(name=name, problem=problem, tried=tests.tried)
