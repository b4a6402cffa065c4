"""A bench that measures again what is unsteady, keeps every result, and never measures one twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from ..executor.engine import Engine, OperatorTime
from ..executor.engines.registry import engine_words
from ..executor.machine.state import fingerprint
from ..executor.progress import Ledger, Report, Step
from ..executor.workers import unit_data
from ..formulations.files import Document, Schema, dump, parse
from ..formulations.hardware import Platform, ProcessingUnit
from .measuring import Bench
from .probes import Probe
from .sampling import Effort, TimeBase
from .summary import BLOCK_NS, Timing, defects, steadiest

KIND = "measurement"
"""Kind of the entries in the ledger."""

EMULATED_BLOCKS = 6
"""Least blocks of runs on an emulated unit: as many means, of which the median counts."""

OPERATOR_REPETITIONS = 20
"""Runs with a callback after each operator, of which the engine takes medians."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operators:
    """The times of the operators of one piece.

    Attributes
    ----------
    times
        In the order in which they ran; None: the engine cannot tell.
    """

    times: tuple[OperatorTime, ...] | None


ALONE: Mapping[str, Probe] = {}
"""No load."""

TIMING = Schema(format="gapless.timing", version=1, content=Timing)
OPERATORS = Schema(format="gapless.operators", version=1, content=_Operators)


@dataclass(slots=True, kw_only=True)
class MeasuringProgress:
    """How many measurements are done, out of how many that are known to be needed."""

    report: Report
    done: int = 0
    total: int | None = None

    def advance(self, text: str) -> None:
        """Count one more."""
        self.done += 1
        self.say(text)

    def say(self, text: str) -> None:
        """Report what is being done."""
        self.report(Step(text=text, done=self.done, total=self.total))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringSetting:
    """What decides the numbers besides model and unit: the engines with their versions, and the device.

    `engine`, `device`: for people.
    """

    engine: str
    device: str
    digest: str  # of the device, as far as it matters


def setting_of(*engines: Engine) -> MeasuringSetting:
    """Return the setting of measurements that some engines take on this machine."""
    device = fingerprint()
    return MeasuringSetting(
        engine=engine_words(engines),
        device=str(device),
        digest=device.digest,
    )


@dataclass(slots=True, kw_only=True)
class RecordedBench:
    """Times probes on a bench.

    `effort`, `retries`: how long to measure one thing, and how often again while it is unsteady.
    """

    bench: Bench  # who measures
    platform: Platform  # the units
    setting: MeasuringSetting  # what else decides the numbers
    ledger: Ledger  # where results are kept, under a key of everything that decides them
    effort: Effort
    retries: int
    progress: MeasuringProgress  # told of each result
    engines: Mapping[str, str] = field(default_factory=dict)
    """Which of the engines with its version a unit has, where there are several."""
    warnings: list[str] = field(default_factory=list)  # what stayed unsteady; grows
    reused: int = 0  # how many results an earlier profile had left in the ledger; grows
    _known: set[str] = field(default_factory=set)
    _references: dict[str, set[str]] = field(default_factory=dict)

    def start(self, unit: str) -> None:
        """Have a unit ready for work; errors as for `Bench.start`."""
        self.bench.start(unit)

    def timing(
        self, unit: str, probe: Probe, *, beside: Mapping[str, Probe] = ALONE, occasion: str = ""
    ) -> Timing:
        """Time a probe on a unit while other units run something in a loop.

        `beside`: what the units that make load run: the same, or something else; `occasion`: tells apart
        measurements that are meant to be taken more than once.
        """
        effort = effort_on(self._unit(unit), self.effort)
        what = {"occasion": occasion, "effort": asdict(effort), "retries": self.retries}
        load = {other: one.prepared for other, one in beside.items()}
        if any(one is not probe for one in beside.values()):
            what["load"] = [prepared.artifact.digest for prepared in load.values()]
        name = probe.prepared.piece.name
        text = f"{name} on {unit}" + (f" beside {', '.join(beside)}" if beside else "")

        def measure() -> Timing:
            return self.bench.timing(unit, probe.prepared, effort=effort, beside=load)

        key = self._key(probe, [unit, *beside], what)
        is_new = key not in self._known
        kept = self._find(key, TIMING)
        if occasion:
            same = self._key(probe, [unit, *beside], {**what, "occasion": ""})
            self._references.setdefault(unit, set()).update((key, same))
        if kept is None or (is_new and defects(kept.busy)):
            kept = steadiest(measure, retries=self.retries, known=kept)
            self.ledger.keep(KIND, key, dump(kept, TIMING))
        self.warnings += [f"{text}: {defect}" for defect in defects(kept.busy)]
        self.progress.advance(text)
        return kept

    @property
    def kept_words(self) -> str:
        """How many results an earlier profile had left, in words; empty: none."""
        return f"{self.reused} measurements kept from earlier" if self.reused else ""

    def forget_references(self, unit: str) -> None:
        """Have what was measured of a unit more than once measured again when the profile is resumed."""
        for key in self._references.get(unit, ()):
            self.ledger.keep(KIND, key, "")

    def operators(self, unit: str, probe: Probe) -> tuple[OperatorTime, ...] | None:
        """Return the times of the operators inside a probe; None: the engine cannot tell."""
        key = self._key(probe, [unit], {"operators": OPERATOR_REPETITIONS})
        kept = self._find(key, OPERATORS)
        if kept is None:
            times = self.bench.operators(unit, probe.prepared, repetitions=OPERATOR_REPETITIONS)
            kept = _Operators(times=times)
            self.ledger.keep(KIND, key, dump(kept, OPERATORS))
        self.progress.advance(f"operators of {probe.prepared.piece.name} on {unit}")
        return kept.times

    def _find(self, key: str, schema: Schema[Document]) -> Document | None:
        text = self.ledger.find(KIND, key)
        self.reused += bool(text) and key not in self._known
        self._known.add(key)
        return None if not text else parse(text.encode(), schema, name=f"ledger entry {key[:12]}")

    def _key(self, probe: Probe, units: Sequence[str], what: dict[str, object]) -> str:
        engines = dict.fromkeys(self.engines.get(unit, self.setting.engine) for unit in units)
        everything = {
            "digest": probe.prepared.artifact.digest,
            "engine": ", ".join(engines),
            "device": self.setting.digest,
            "units": [unit_data(self._unit(unit)) for unit in units],
            **what,
        }
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()

    def _unit(self, name: str) -> ProcessingUnit:
        return next(unit for unit in self.platform.units if unit.name == name)


def effort_on(unit: ProcessingUnit, effort: Effort) -> Effort:
    """Return how long to measure on a unit: on an emulated one, or one of several workers, as blocks need.

    How long cores worked is known of units that have some; others go by the time that passes.
    """
    if not unit.cores:
        effort = replace(effort, time_base=TimeBase.WALL)
    if not unit.emulated and not unit.worker_of:
        return effort
    least = EMULATED_BLOCKS * BLOCK_NS / 1e9
    return replace(
        effort,
        min_seconds=max(effort.min_seconds, least),
        max_seconds=max(effort.max_seconds, least),
    )
