"""The measuring itself: who runs beside whom, round after round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from statistics import median

from ....executor.model import Model
from ....formulations.errors import ExecutionError, InvalidInputError, ProfilingError, UnitLostError
from ....formulations.hardware import Platform
from ...measuring import NOTHING, PreparedPiece
from ...preparing import Preparer
from ...records import MeasuringProgress, effort_on
from ...sampling import Effort, TimeBase
from .bench import CountingBench
from .observations import CoRun, label_of
from .parts import choose_parts
from .probe import PROBE, can_probe, probe_piece
from .result import ContentionOptions, CountedFeatures, Part

COUNTED_RUNS = 20
"""Runs of a network of which counters are read: together they take longer than the kernel's turns."""

LEAST_SHARE = 0.1
"""Smallest part of the time for which an aggressor ran that is extrapolated from."""

STOLEN = 0.9
"""Share of its cores that an aggressor usually gets below which a warning is due."""

_TRIAL = Effort(min_repetitions=1, min_seconds=0.0, warm_up_repetitions=1)


def unit_pairs(platform: Platform) -> list[tuple[str, str]]:
    """Return the pairs of units that can run at once: the one that suffers, and the other one."""
    names, conflicts = platform.unit_names, set(platform.conflicts)
    return [
        (names[u], names[v])
        for u in range(len(names))
        for v in range(len(names))
        if u != v and (min(u, v), max(u, v)) not in conflicts
    ]


@dataclass(slots=True, kw_only=True)
class _Job:
    """A co-run in the making."""

    victim: str
    victim_unit: str
    aggressor: str
    aggressor_unit: str
    alone_us: list[float] = field(default_factory=list)
    beside_us: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)

    @property
    def load(self) -> tuple[str, str]:
        return self.aggressor, self.aggressor_unit

    @property
    def label(self) -> str:
        return label_of(self.victim, self.victim_unit, self.aggressor, self.aggressor_unit)

    def corun(self, most: float) -> CoRun:
        """Return what was observed; `most` is the largest share that the aggressor ever had."""
        return CoRun(
            victim=self.victim,
            victim_unit=self.victim_unit,
            aggressor=self.aggressor,
            aggressor_unit=self.aggressor_unit,
            alone_us=tuple(self.alone_us),
            beside_us=tuple(self.beside_us),
            shares=tuple(max(share / most, LEAST_SHARE) for share in self.shares) if most > 0 else (),
        )


@dataclass(slots=True, kw_only=True)
class ContentionSurvey:
    """Contention in the making.

    `platform`, `options`, `bench`, `progress`: where, how, and by whom it is measured.
    """

    platform: Platform
    options: ContentionOptions
    bench: CountingBench
    progress: MeasuringProgress
    pieces: dict[str, PreparedPiece] = field(default_factory=dict)
    """Everything that runs, by name: networks, parts, the probe."""
    networks: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    estimated: tuple[str, ...] = ()  # networks that run alone only, to be counted
    able: dict[str, list[str]] = field(default_factory=dict)  # units that can run a piece, by its name
    warnings: list[str] = field(default_factory=list)  # what a reader should know; grows

    def prepare(self, models: Sequence[Model], preparer: Preparer) -> None:
        """Have everything converted that will run; `preparer` cuts the joined models.

        Raises ConversionError: the engine cannot convert a network or a part.
        """
        spans: dict[str, tuple[int, int]] = {}
        offset = 0
        for model in models:
            network = model.network
            count = 0 if network.name in self.estimated else self.options.parts
            parts = choose_parts(network, count=count)
            spans[network.name] = (offset, offset + len(network.layers))
            spans |= {part.label: (offset + part.start, offset + part.stop) for part in parts}
            offset += len(network.layers)
            self.parts += parts
        names = (model.network.name for model in models)
        self.networks = tuple(name for name in names if name not in self.estimated)
        preparer.prepare(spans.values())
        for name, span in spans.items():
            probes = preparer.probes(span)
            if len(probes) != 1:
                raise InvalidInputError(f"{name!r} joins several models; name each of them by itself")
            self.pieces[name] = probes[0].prepared
        self.pieces[PROBE] = probe_piece()

    def try_out(self) -> None:
        """Find out which unit can run what.

        Raises PlacementError: this machine does not grant what a unit stands for.
        """
        used = set(chain.from_iterable(unit_pairs(self.platform)))
        units = [unit for unit in self.platform.units if unit.name in used]
        for unit in units:
            self.bench.start(unit.name)
        for name, piece in self.pieces.items():
            self.able[name] = [
                unit.name
                for unit in units
                if (name != PROBE or can_probe(unit)) and self._runs(name, piece, unit.name)
            ]
        if not any(True for _ in self._jobs()):
            raise ProfilingError("; ".join(self.warnings) or "no two units can run anything at once")

    def coruns(self) -> tuple[CoRun, ...]:
        """Measure all co-runs, in rounds."""
        jobs = list(self._jobs())
        self.progress.total = self.progress.done + self.options.rounds * len(jobs)
        for _ in range(self.options.rounds):
            for job in jobs:
                for beside in (False, True, True, False):  # what drifts steadily cancels
                    self._time(job, beside=beside)
                self.progress.advance(job.label)
        most: dict[tuple[str, str], float] = {}
        for job in jobs:
            most[job.load] = max([most.get(job.load, 0.0), *job.shares])
        found = tuple(job.corun(most[job.load]) for job in jobs)
        self._warn_of_thieves(found)
        return found

    def _warn_of_thieves(self, coruns: Sequence[CoRun]) -> None:
        shares = [share for one in coruns for share in one.shares]
        if shares and median(shares) < STOLEN:
            self.warnings.append(
                f"other programs took {1 - median(shares):.0%} of the cores of the networks that ran in a "
                "loop; slowdowns are extrapolated: end what else runs, and measure again"
            )

    def counted(self) -> tuple[CountedFeatures, ...]:
        """Read the counters of each network on each unit; none where there are no counters."""
        found: list[CountedFeatures] = []
        refused: dict[str, list[str]] = {}
        for unit in [unit.name for unit in self.platform.units if unit.cores]:
            names = [name for name in (*self.networks, *self.estimated) if unit in self.able[name]]
            try:
                for name in names:
                    features = self.bench.features(unit, self.pieces[name], runs=COUNTED_RUNS)
                    found.append(CountedFeatures(network=name, unit=unit, features=features))
            except ProfilingError as error:
                refused.setdefault(str(error), []).append(unit)
        self.warnings += [
            f"performance counters are not used on {', '.join(units)}: {reason}"
            for reason, units in refused.items()
        ]
        return tuple(found)

    def _jobs(self) -> Iterator[_Job]:
        """Yield what is measured; each victim stays open while its aggressors change."""
        for victim_unit, aggressor_unit in unit_pairs(self.platform):
            for victim, aggressor in self._combinations():
                if victim_unit in self.able[victim] and aggressor_unit in self.able[aggressor]:
                    yield _Job(
                        victim=victim,
                        victim_unit=victim_unit,
                        aggressor=aggressor,
                        aggressor_unit=aggressor_unit,
                    )

    def _combinations(self) -> Iterator[tuple[str, str]]:
        networks = self.networks
        yield from product(networks, networks) if self.options.pairs else zip(networks, networks, strict=True)
        parts = tuple(part.label for part in self.parts)
        yield from product((*networks, *parts), [PROBE])
        yield from product([PROBE], (*networks, PROBE, *parts))

    def _runs(self, name: str, piece: PreparedPiece, unit: str) -> bool:
        try:
            self.bench.timing(unit, piece, effort=_TRIAL)
        except UnitLostError:
            raise
        except ExecutionError as error:
            self.warnings.append(f"unit {unit!r} cannot run {name!r}: {error}")
            return False
        return True

    def _time(self, job: _Job, *, beside: bool) -> None:
        unit = next(unit for unit in self.platform.units if unit.name == job.victim_unit)
        load = {job.aggressor_unit: self.pieces[job.aggressor]} if beside else NOTHING
        effort = replace(
            effort_on(unit, self.options.effort), time_base=TimeBase.BUSY if unit.cores else TimeBase.WALL
        )
        timing = self.bench.timing(unit.name, self.pieces[job.victim], effort=effort, beside=load)
        (job.beside_us if beside else job.alone_us).append(timing.busy.typical_us)
        job.shares += timing.load_shares
