"""A bench that obeys the rank-one model, and a survey on it: no process, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from gapless.executor.comparing import Allowed
from gapless.executor.engine import OperatorTime
from gapless.executor.joined import join
from gapless.executor.progress import Forgetful, Ledger, Step
from gapless.formulations.errors import PlacementError, ProfilingError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.profiler.measuring import NOTHING, PreparedPiece
from gapless.profiler.sampling import Effort, Samples
from gapless.profiler.slowdown.contention.features import Features
from gapless.profiler.slowdown.contention.measure import ContentionSurvey
from gapless.profiler.slowdown.contention.probe import PROBE
from gapless.profiler.slowdown.contention.result import Contention, ContentionOptions
from gapless.profiler.summary import Timing, timing
from tests.profiler.fakes import FakeModel, receipt_for, surveying

THREE = Platform(
    name="three",
    units=(
        ProcessingUnit(name="big", cores=(0,), threads=1),
        ProcessingUnit(name="little", cores=(1,), threads=1),
        ProcessingUnit(name="gpu"),
        ProcessingUnit(name="all", cores=(0, 1), threads=2),
    ),
)
UNIT_BASE = {"big": 1.0, "little": 0.6, "gpu": 0.8, "npu": 1.0, "all": 1.5}
SENSITIVITY = {"one": 2.0, "two": 0.5, "new": 1.0, PROBE: 1.0}
INTENSITY = {"one": 0.5, "two": 2.0, "new": 1.5, PROBE: 6.0}


def network(name: str, layers: int) -> FakeModel:
    """Return a model whose pieces are told apart by their length."""
    model = FakeModel([4] * (layers + 1))
    model.network = replace(model.network, name=name)
    return model


@dataclass
class WorldBench:
    """Times follow `base x unit x unit x sensitivity x intensity`; "two" has 3 layers, "one" 5."""

    base: float = 0.1
    unable: Mapping[str, Sequence[str]] = field(default_factory=dict)
    counting: bool = False
    shares: Sequence[float] = ()
    efforts: list[tuple[str, Effort]] = field(default_factory=list)
    asked: list[tuple[str, str, tuple[tuple[str, str], ...]]] = field(default_factory=list)

    def start(self, unit: str) -> None:
        """It is always ready."""

    def timing(
        self,
        unit: str,
        prepared: PreparedPiece,
        *,
        effort: Effort,
        beside: Mapping[str, PreparedPiece] = NOTHING,
    ) -> Timing:
        name = self.name(prepared)
        if name in self.unable.get(unit, ()):
            raise PlacementError(f"{name} is not for {unit}")
        self.efforts.append((unit, effort))
        load = tuple((where, self.name(piece)) for where, piece in beside.items())
        self.asked.append((unit, name, load))
        share = self.shares[len(self.asked) % len(self.shares)] if self.shares and load else 1.0
        slowdown = share * sum(
            self.base * UNIT_BASE[unit] * UNIT_BASE[where] * SENSITIVITY[name] * INTENSITY[other]
            for where, other in load
        )
        samples = Samples(
            copy_in_ns=(0,) * 3, run_ns=(round(1e6 * (1 + slowdown)),) * 3, copy_out_ns=(0,) * 3
        )
        found = timing(samples, receipt_for(prepared.artifact, ProcessingUnit(name=unit)))
        return replace(found, load_shares=(share,) if self.shares and load else ())

    def error(self, unit: str, prepared: PreparedPiece, *, allowed: Allowed) -> float:
        return 0.0

    def operators(
        self, unit: str, prepared: PreparedPiece, *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        return None

    def features(self, unit: str, prepared: PreparedPiece, *, runs: int) -> Features:
        if not self.counting:
            raise ProfilingError("cycles cannot be counted: there are none")
        causes = INTENSITY[self.name(prepared)] * UNIT_BASE[unit]
        return Features(instructions_per_cycle=4 - causes, miss_rate=causes / 10, stall_rate=0.5)

    @staticmethod
    def name(prepared: PreparedPiece) -> str:
        if prepared.piece.name == PROBE:
            return PROBE
        return next(name for name in SENSITIVITY if prepared.piece.prefix.startswith(name))


def measured(
    bench: WorldBench,
    options: ContentionOptions,
    *,
    platform: Platform = THREE,
    steps: list[Step] | None = None,
    estimated: Sequence[str] = (),
    ledger: Ledger = Forgetful(),
) -> Contention:
    """Return the contention of two networks on a bench."""
    models = [network("one", 5), network("two", 3), *(network(name, 4) for name in estimated)]
    with surveying(
        bench, join(models), options.profiling, platform=platform, ledger=ledger, steps=steps
    ) as profiling:
        survey = ContentionSurvey(profiling=profiling, options=options, estimated=tuple(estimated))
        return survey.take(models)
