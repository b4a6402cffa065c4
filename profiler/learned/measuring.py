"""Measuring networks and random shards of them on the units of this device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ...executor.engine import Engine
from ...executor.model import Model
from ...executor.progress import Forgetful, Report, silent
from ...formulations.errors import ENDING, ConversionError, ExecutionError, LayerNotRunnableError
from ...formulations.hardware import Platform
from ...formulations.network import Network
from ..isolated import ProbeTiming, RawTimes, probe_timing, time_by_chunks, time_by_operators, unit_costs
from ..preparing import prepare_whole
from ..probes import Probe, Span, blocks, choose_checks
from ..profile import ProfileOptions
from ..records import setting_of
from ..summary import Summary
from ..survey import Survey, survey
from .device import DeviceDescription, NetworkTimes, SpanTime
from .features import features_of

YARDSTICKS = ("squeezenet", "mobilenetv2", "resnet18", "googlenet", "deit-tiny", "bert-small")
"""Built-in networks that a device is described by: small ones, with every kind of work."""

OPTIONS = ProfileOptions(
    min_repetitions=7,
    min_seconds_per_item=0.03,
    max_seconds_per_item=0.25,
    warm_up_repetitions=2,
    retries=0,
)
"""Many different shards, each for a short time, tell more than few of them measured exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """How much of a network is measured."""

    shards: int = 8  # random shards, on each unit
    shards_emulated: int = 8  # how many of them also on emulated units, where everything takes long
    layers: bool = False  # whether single layers are told apart, on units that are not emulated
    seed: int = 0  # of the shards


DESCRIBING = Scope()
LEARNING = Scope(shards=9, shards_emulated=4, layers=True)


def describe(
    models: Sequence[Model],
    platform: Platform,
    engine: Engine,
    *,
    scope: Scope = DESCRIBING,
    options: ProfileOptions = OPTIONS,
    report: Report = silent,
) -> DeviceDescription:
    """Measure networks on the units of a platform.

    `models`: ONNX models; what cannot be run here is noted and left out.
    Raises InvalidInputError: the operators of a model are not known; ExecutionError, ProfilingError: a unit
    is not what it stands for, or could run none of the models.
    """
    setting = setting_of(engine)
    notes = [
        f"{unit.name} is emulated: a quota of {unit.quota_permille} permille"
        for unit in platform.units
        if unit.emulated
    ]
    networks, times, refused = [], [], []
    for model in models:
        features = features_of(model)
        try:
            with survey(model, platform, engine, options=options, ledger=Forgetful(), report=report) as taken:
                found = _Measured(taken, scope)
                times += found.times()
                notes += found.notes
        except LayerNotRunnableError as error:
            refused.append(str(error))
            continue
        networks.append(features)
    if not times:
        raise LayerNotRunnableError("\n".join(refused or notes) or "there is no network to run")
    return DeviceDescription(
        platform=platform,
        engine=setting.engine,
        device=setting.device,
        taken_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        networks=tuple(networks),
        times=tuple(times),
        notes=(*notes, *refused),
    )


class _Measured:
    """One network, measured on all units; each shard on one unit after the other, so that drift hits all."""

    def __init__(self, taken: Survey, scope: Scope) -> None:
        self._taken = taken
        self._scope = scope
        self._network: Network = taken.model.network
        self._preparer = taken.preparers.each[0]
        self.notes: list[str] = []

    def times(self) -> list[NetworkTimes]:
        units = self._taken.platform.units
        self._taken.bench.progress.say(f"preparing {self._network.name}")
        wholes = prepare_whole(self._preparer, self._network)
        shards = self._shards()
        runs: dict[str, list[ProbeTiming]] = {unit.name: [] for unit in units}
        for place, probe in enumerate([*wholes, *shards]):
            for unit in units:
                most = self._scope.shards_emulated if unit.emulated else self._scope.shards
                if place < len(wholes) + most + self._shortest:
                    runs[unit.name] += self._timed(unit.name, probe)
        return [
            NetworkTimes(
                unit=unit.name,
                network=self._network.name,
                spans=tuple(_span_time(run, emulated=unit.emulated) for run in runs[unit.name]),
                layer_us=self._layers(unit.name, wholes, runs[unit.name])
                if self._scope.layers and not unit.emulated
                else (),
            )
            for unit in units
            if runs[unit.name]
        ]

    def _shards(self) -> list[Probe]:
        """Return the chunk with least to do, whose time is mostly that of a session, and random chunks."""
        flops = [layer.flops or 0 for layer in self._network.layers]
        shortest = sorted(blocks(self._network), key=lambda span: sum(flops[slice(*span)]))[:3]
        chosen = choose_checks(
            self._network,
            count=max(self._scope.shards, self._scope.shards_emulated),
            seed=self._scope.seed,
            wanted=lambda span: span not in shortest,
        )
        spans = self._convertible([*shortest, *chosen])
        kept = [span for span in spans if span in shortest][:1]
        self._shortest = len(kept)
        spans = [*kept, *(span for span in spans if span not in shortest)]
        return [probe for span in spans for probe in self._preparer.probes(span)]

    def _convertible(self, spans: Sequence[Span]) -> Sequence[Span]:
        """Convert spans, all in one go where that succeeds; return those that can be converted."""
        try:
            self._preparer.prepare(spans)
        except ConversionError as error:
            if len(spans) > 1:
                return [span for one in spans for span in self._convertible([one])]
            (start, stop) = spans[0]
            self.notes.append(f"layers {start} to {stop - 1} of {self._network.name}: {error}")
            return []
        return spans

    def _timed(self, unit: str, probe: Probe) -> list[ProbeTiming]:
        try:
            return [probe_timing(probe, self._taken.bench.timing(unit, probe))]
        except ENDING:
            raise
        except ExecutionError as error:
            self._taken.bench.start(unit)  # fails where it is the unit that is wrong, not the model
            self.notes.append(f"{probe.prepared.piece.name} on {unit}: {error}")
            return []

    def _layers(self, unit: str, wholes: Sequence[Probe], runs: Sequence[ProbeTiming]) -> tuple[float, ...]:
        """Return the time of each layer as a part of the whole; nothing where one of them is not known."""
        bench, count = self._taken.bench, len(wholes)
        if [run.span for run in runs[:count]] != [whole.span for whole in wholes]:
            return ()
        found = time_by_operators(bench, unit, wholes, runs[:count], self._taken.model.layer_of)
        if found is None:
            found, notes = time_by_chunks(bench, unit, self._network, self._preparer, runs[:count])
            self.notes += notes
        raw = RawTimes(layer_us=found, wholes=tuple(runs[:count]))
        fitted = unit_costs(unit, raw, runs[:count], runs[count : count + self._shortest]).layer_us
        whole = runs[0].timing.run
        share = _undisturbed_us(whole, emulated=False) / whole.typical_us
        known = tuple(share * time for time in fitted if time is not None)
        return known if len(known) == len(fitted) else ()


def _span_time(run: ProbeTiming, *, emulated: bool) -> SpanTime:
    return SpanTime(
        start=run.span[0],
        stop=run.span[1],
        run_us=_undisturbed_us(run.timing.run, emulated=emulated),
        copy_in_us=run.timing.copy_in.typical_us,
        copy_out_us=run.timing.copy_out.typical_us,
        load_in=(run.load_in.tensors, run.load_in.bytes),
        load_out=(run.load_out.tensors, run.load_out.bytes),
    )


def _undisturbed_us(run: Summary, *, emulated: bool) -> float:
    """Return the first quartile: other programs only ever add. With a quota, means count (`Summary`)."""
    return run.typical_us if emulated else run.q1_us
