"""Measurements: profiles, executed plans, how widely they spread, and what engines granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..executor.engine import SIMULATED, PlacementReceipt
from ..executor.machine.state import MachineState
from ..executor.measurement import ChunkTimes, LinkTimes, Measurement, StreamTimes, UnitUse
from ..executor.tuning.result import LIMITS_PERCENT, Ground
from ..formulations.history import link_name
from ..profiler.hops import hop_us
from ..profiler.profile import ChunkCheck, MeasuredChunk, Profile
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Tone, Unit, grid, notes, table
from .layers import layer_map
from .words import WELL_PREDICTED, counted, microseconds, percent, simulated_words, size


def receipts_table(found: Sequence[PlacementReceipt]) -> Table:
    """Return one row for each session."""
    columns: list[Column[PlacementReceipt]] = [
        Column("unit", Unit.NAME, lambda one: one.unit),
        Column("chunk", Unit.NAME, lambda one: one.piece),
        Column("engine", Unit.NAME, lambda one: one.engine),
        Column("backend", Unit.TEXT, lambda one: _pair(one.asked_backend, one.granted_backend)),
        Column(
            "threads", Unit.TEXT, lambda one: _pair(_number(one.asked_threads), _number(one.granted_threads))
        ),
        Column("cores", Unit.TEXT, lambda one: _pair(_cores(one.asked_cores), _cores(one.granted_cores))),
        Column("precision, memory", Unit.TEXT, lambda one: f"{one.precision}, {one.memory}", Shown.PAGES),
        Column("granted", Unit.TEXT, _granted),
    ]
    return table("Asked and granted", columns, found)


def _granted(one: PlacementReceipt) -> Cell:
    if one.engine == SIMULATED:
        return Cell("nothing: simulated", Tone.WARN)
    wrong = one.mismatches
    more = [] if one.quota_permille is None else [f"emulated at {one.quota_permille / 10:g} %"]
    more += ["numbers not compared"] if one.compared is False else []
    note = f"({', '.join(more)})" if more else ""
    return Cell("; ".join(wrong) or "as asked", Tone.BAD if wrong else Tone.GOOD, note)


def _pair(asked: str, granted: str) -> Cell:
    """Return what was asked, and what was granted where that is something else."""
    if granted in ("", asked):
        return Cell(asked or None)
    return Cell(f"asked {asked}, got {granted}", Tone.BAD) if asked else Cell(granted)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _cores(cores: tuple[int, ...] | None) -> str:
    return "" if cores is None else ",".join(map(str, cores))


_MOST_UNSTEADY = 5

_UNSTEADY = 0.1
"""Quartile range over median from which on a measurement is listed as unsteady."""


def profile_blocks(profile: Profile) -> Iterator[Block]:
    """Yield what `gapless profile` answers; the times themselves are for `gapless show`."""
    units = profile.platform.unit_names
    yield Sentence(
        f": {len(profile.network.layers)} layers on {', '.join(units)}, measured in {profile.seconds:.1f} s "
        f"by {profile.tables[0].provenance.engine}",
        lead=profile.network.name,
    )
    heads = [("whole network", Unit.NAME), *((unit, Unit.MICROSECONDS) for unit in units)]
    rows = []
    for costs in profile.tables:
        columns = zip(*costs.networks[0].layer_us, strict=True)
        sums = (None if None in times else sum(time or 0 for time in times) for times in columns)
        rows.append((costs.provenance.method, *sums))
    yield grid("Whole network", heads, rows)
    checks: list[Column[ChunkCheck]] = [
        Column("chunk", Unit.TEXT, lambda check: f"{check.chunk.start}-{check.chunk.stop - 1}"),
        Column("unit", Unit.NAME, lambda check: check.chunk.unit),
        Column("predicted", Unit.MEASURED, lambda check: check.predicted_us),
        Column("measured", Unit.MEASURED, lambda check: check.measured_us),
        Column("error", Unit.CHANGE, lambda check: check.error),
    ]
    title = "sums of layers against chunks measured as such:"
    yield Section(title, (table("Checks", checks, profile.checks),))
    if len(units) > 1:
        yield Sentence(_hop_words(profile))
    if profile.shared:
        yield Section("workers of a unit at the same time:", (_shared(profile),))
    yield Sentence(_profile_verdict(profile), Tone.STRONG)
    yield from notes(profile.warnings)


_PAYS, _UNKNOWN = "this many pay", "not known"
"""What is written next to the number of workers in the problem, and where there is none."""


def _shared(profile: Profile) -> Table:
    """Return what each unit does with one worker and with several, and how many of them pay."""
    pays = {unit.name: unit.workers for unit in profile.platform.units}
    rows: list[tuple[str, int, float, float | None, str]] = []
    for one in profile.shared:
        first = one.workers == min(other.workers for other in profile.shared if other.unit == one.unit)
        paying = {pays[one.unit]: _PAYS} if one.is_told else {one.workers: _UNKNOWN}
        rows += [(one.unit, 1, one.alone_us, None, paying.get(1, ""))] if first else []
        gain = one.gain - 1 if one.is_told else None
        rows.append((one.unit, one.workers, one.beside_us, gain, paying.get(one.workers, "")))
    columns: list[Column[tuple[str, int, float, float | None, str]]] = [
        Column("unit", Unit.NAME, lambda row: row[0]),
        Column("workers", Unit.COUNT, lambda row: row[1]),
        Column("latency", Unit.MEASURED, lambda row: row[2]),
        Column("results/s", Unit.FACTOR, lambda row: row[1] * 1e6 / row[2], digits=1),
        Column("over one", Unit.CHANGE, lambda row: row[3]),
        Column("", Unit.TEXT, lambda row: row[4]),
    ]
    return table("Workers", columns, rows, most=len(rows))


def _hop_words(profile: Profile) -> str:
    """Return what it costs to come to each unit from another one."""
    if not profile.hops:
        return "Hops between units were not measured: they are predicted by their copies only."
    targets = [unit for unit in profile.platform.unit_names if any(h.target == unit for h in profile.hops)]
    costs = ", ".join(f"to {unit} {microseconds(hop_us(profile.hops, unit))}" for unit in targets)
    borders = sum(hop.borders for hop in profile.hops)
    return f"a hop from another unit costs, besides copies: {costs} (mean of {borders} borders)"


def _profile_verdict(profile: Profile) -> str:
    """Return whether plans can be made from a profile, and how."""
    error = profile.check_error
    if error is None:
        return "No chunk was measured as such, so it is not known how well sums of layers predict chunks."
    words = f"Sums of layers are {100 * error:.1f} % off those of chunks, on average"
    if 100 * error > LIMITS_PERCENT[Ground.SUMS]:
        return f"{words}: plans made from them are guesses; `gapless tune` measures the best ones."
    return f"{words}: `gapless plan` on the problem that was written finds plans that hold."


def taken_profile_blocks(taken: Profile, *, layers: range | None = None) -> Iterator[Block]:
    """Yield a profile: sums, a heat map for each table, what was unsteady, receipts."""
    yield from profile_blocks(taken)
    for costs in taken.tables:
        title = f"{costs.provenance.method}: layers by unit"
        yield Section(title, (layer_map(taken.network, costs, layers=layers),))
    yield from _noise(taken.measured)
    yield Section("granted by the engine:", (receipts_table(taken.receipts),))


def _noise(measured: Sequence[MeasuredChunk]) -> Iterator[Block]:
    """Yield how widely measurements spread, and the worst of them."""
    if not measured:
        yield Sentence("no single measurements are kept")
        return
    spreads = sorted(one.busy.spread for one in measured)
    typical, worst = (percent(round(1000 * spread)) for spread in (spreads[len(spreads) // 2], spreads[-1]))
    yield Sentence(
        f"noise of {len(measured)} measurements: quartiles {typical} of the median apart in a typical one, "
        f"{worst} in the worst"
    )
    columns: list[Column[MeasuredChunk]] = [
        Column("unsteady", Unit.TEXT, lambda one: f"{one.chunk.start}-{one.chunk.stop - 1}"),
        Column("unit", Unit.NAME, lambda one: one.chunk.unit),
        Column("beside", Unit.NAME, lambda one: ", ".join(one.beside) or "alone"),
        Column("median", Unit.MEASURED, lambda one: one.busy.typical_us),
        Column("quartiles", Unit.MEASURED, lambda one: (one.busy.q1_us, one.busy.q3_us)),
        Column("p95", Unit.MEASURED, lambda one: one.busy.p95_us),
        Column("drift", Unit.CHANGE, lambda one: one.busy.drift),
        Column("runs", Unit.COUNT, lambda one: one.busy.count),
    ]
    noisy = sorted((one for one in measured if one.busy.spread > _UNSTEADY), key=lambda one: -one.busy.spread)
    yield table("Unsteady", columns, noisy, most=_MOST_UNSTEADY)


def measurement_blocks(found: Measurement, predicted: Measurement | None = None) -> Iterator[Block]:
    """Yield what `gapless run` answers.

    `predicted`: what the table says of the same deployment; None: that is not known, and not shown.
    """
    if found.simulated:
        yield Sentence("", Tone.WARN, lead=simulated_words(found.device))
    yield from _workload(found) if found.deployment.rounds else (_head(found),)
    yield Sentence(str(found.deployment))
    if predicted is not None:
        slower = 100 * (found.period_us / predicted.period_us - 1)
        words = f"predicted {microseconds(predicted.period_us)}: measured {slower:+.1f} % against that"
        yield Sentence(words, Tone.WARN if abs(slower) > WELL_PREDICTED else Tone.PLAIN)
    if found.machine is not None:
        yield from _machine(found, found.machine)
    yield _chunks(found, predicted)
    granted = {unit.unit: [one for one in found.receipts if one.unit == unit.unit] for unit in found.units}
    units: list[Column[UnitUse]] = [
        Column("unit", Unit.NAME, lambda unit: unit.unit),
        Column(
            "granted",
            Unit.TEXT,
            lambda unit: "; ".join(dict.fromkeys(map(_words, granted[unit.unit]))) or None,
        ),
        Column("busy", Unit.MEASURED, lambda unit: unit.busy_us),
        Column("bubble", Unit.MEASURED, lambda unit: unit.bubble_us),
        Column("memory", Unit.BYTES, lambda unit: None if found.simulated else unit.rss_bytes),
    ]
    yield table("Units", units, found.units)
    yield links_table(found.links, {})


def _chunks(found: Measurement, predicted: Measurement | None) -> Table:
    streams = {stream.name: stream for stream in found.deployment.streams}
    chunks = () if predicted is None else predicted.chunks
    said = {(one.stream, one.chunk): one.busy_us.median for one in chunks}
    columns: list[Column[ChunkTimes]] = [
        Column("stream", Unit.NAME, lambda one: one.stream),
        Column("chunk", Unit.TEXT, lambda one: streams[one.stream].layers(one.chunk)),
        Column("unit", Unit.NAME, lambda one: one.unit),
        Column("predicted", Unit.MEASURED, lambda one: said.get((one.stream, one.chunk)), optional=True),
        Column("busy", Unit.MEASURED, lambda one: one.busy_us.median),
        Column("p95", Unit.MEASURED, lambda one: one.busy_us.p95),
        Column("copy in", Unit.MEASURED, lambda one: one.copy_in_us.median),
        Column("run", Unit.MEASURED, lambda one: one.run_us.median),
        Column("copy out", Unit.MEASURED, lambda one: one.copy_out_us.median),
    ]
    return table("Chunks", columns, found.chunks, most=len(found.chunks))


_FAR = 0.2
"""Error of a prediction, as a share, from which on it is marked."""


def links_table(links: Sequence[LinkTimes], predicted_us: Mapping[str, float]) -> Table:
    """Return the messages of an execution by link; `predicted_us`: of each link, as far as it is known."""

    def name(link: LinkTimes) -> str:
        return link_name(link.source, link.target)

    def error(link: LinkTimes) -> Cell:
        expected = predicted_us.get(name(link))
        off = None if expected is None else expected / link.time_us.median - 1
        return Cell(off, Tone.WARN if off is not None and abs(off) > _FAR else Tone.PLAIN)

    columns: list[Column[LinkTimes]] = [
        Column("pipeline", Unit.NAME, lambda link: link.stream),
        Column("link", Unit.NAME, name),
        Column("bytes", Unit.BYTES, lambda link: link.size),
        Column("predicted", Unit.MEASURED, lambda link: predicted_us.get(name(link)), optional=True),
        Column("took", Unit.MEASURED, lambda link: link.time_us.median),
        Column("p95", Unit.MEASURED, lambda link: link.time_us.p95),
        Column("error", Unit.CHANGE, error, digits=0, optional=True),
        Column("waited before", Unit.MEASURED, lambda link: link.queued_us.median),
        Column("rate", Unit.COUNT, _rate),
    ]
    return table("Messages between devices (median)", columns, links, most=len(links))


def _rate(link: LinkTimes) -> str:
    return f"{size(round(link.size / max(link.time_us.median, 1e-3) * 1e6))}/s"


def _machine(found: Measurement, state: MachineState) -> Iterator[Sentence]:
    """Yield what the machine was like meanwhile, as far as it says."""
    words = [
        "" if state.others is None else f"other programs kept {100 * state.others:.0f} % of the cores busy",
        "" if state.mhz is None else f"clock {state.mhz:.0f} MHz",
        "" if state.celsius is None else f"{state.celsius:.0f} C",
        "" if state.watts is None else _power_words(found, state),
    ]
    if told := "; ".join(filter(None, words)):
        yield Sentence(f"meanwhile {told}", Tone.SOFT)


def _power_words(found: Measurement, state: MachineState) -> str:
    """Return the measured power, and the energy of one result (of a batch: of one round)."""
    watts = state.watts or 0.0
    return f"{watts:.2f} W, {watts * found.period_us / 1000:,.2f} mJ a result (measured: {state.watts_by})"


def _head(found: Measurement) -> Sentence:
    latency = found.latency_us
    return Sentence(
        f" ({1e6 / found.period_us:,.1f} requests/s), {found.requests:,} requests in {found.seconds:.1f} s; "
        f"{found.deployment.latency_name} p50 {microseconds(latency.median)}, "
        f"p95 {microseconds(latency.p95)}, p99 {microseconds(latency.p99)}",
        lead=f"{found.deployment.pace_name} {microseconds(found.period_us)}",
    )


def _workload(found: Measurement) -> Iterator[Block]:
    """Yield how long the rounds of a workload took, and the latency of each of its requests."""
    spread, count = found.makespan_us, len(found.streams)
    lead, between = f"period {microseconds(found.period_us)}", ""
    if spread is not None:
        lead = f"makespan {microseconds(spread.median)}"
        between = f" ({microseconds(spread.least)} to {microseconds(spread.most)})"
    rounds = f", {found.requests // count:,} rounds of {count} requests in {found.seconds:.1f} s"
    yield Sentence(f"{between}{rounds}", lead=lead)
    columns: list[Column[StreamTimes]] = [
        Column("request", Unit.NAME, lambda one: one.stream),
        Column(f"{found.deployment.latency_name} p50", Unit.MEASURED, lambda one: one.latency_us.median),
        Column("p95", Unit.MEASURED, lambda one: one.latency_us.p95),
        Column("most", Unit.MEASURED, lambda one: one.latency_us.most),
    ]
    yield table("Requests", columns, found.streams, most=count)


def _words(receipt: PlacementReceipt) -> str:
    """Return what an engine granted."""
    if receipt.engine == SIMULATED:
        return "nothing: simulated"
    words = [f"{receipt.engine} {receipt.granted_backend}"]
    if receipt.granted_threads:
        words.append(counted(receipt.granted_threads, "thread"))
    if receipt.granted_cores:
        words.append(f"cores {','.join(map(str, receipt.granted_cores))}")
    if receipt.quota_permille is not None:
        words.append(f"emulated at {receipt.quota_permille / 10:g} %")
    if receipt.compared is False:
        words.append("numbers not compared")
    return ", ".join(words)
