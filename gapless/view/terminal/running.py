"""Measurements for people: profiles, executed plans."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import WELL_PREDICTED, microseconds, millis, simulated_words, size
from ...executor.engine import SIMULATED, PlacementReceipt
from ...executor.machine.state import MachineState
from ...executor.measurement import Measurement
from ...executor.tuning.trust import LIMITS_PERCENT, Ground
from ...formulations.history import link_name
from ...profiler.hops import hop_us
from ...profiler.profile import Profile
from ..layout import indented, notes_view, plain_table


def profiles_view(profiles: Sequence[Profile]) -> Group:
    """Return what `gapless profile --side-by-side` shows."""
    return Group(*(profile_view(profile) for profile in profiles))


def profile_view(profile: Profile) -> Group:
    """Return what `gapless profile` shows; the times themselves are for `gapless show`."""
    units = profile.platform.unit_names
    head = Text(profile.network.name, style="bold")
    head.append(
        f": {len(profile.network.layers)} layers on {', '.join(units)}, measured in {profile.seconds:.1f} s "
        f"by {profile.tables[0].provenance.engine}",
        style="not bold",
    )
    table = plain_table("whole network", *units, numbers=units)
    for costs in profile.tables:
        rows = costs.networks[0].layer_us
        sums = [
            None if any(row[u] is None for row in rows) else sum(row[u] or 0 for row in rows)
            for u in range(len(units))
        ]
        table.add_row(costs.provenance.method, *map(millis, sums))
    parts: list[RenderableType] = [head, "", indented(table)]
    if profile.checks:
        checks = plain_table(
            "chunk", "unit", "predicted", "measured", "error", numbers=("predicted", "measured", "error")
        )
        for check in profile.checks:
            checks.add_row(
                f"{check.chunk.start}-{check.chunk.stop - 1}",
                check.chunk.unit,
                microseconds(check.predicted_us),
                microseconds(check.measured_us),
                f"{100 * check.error:+.1f} %",
            )
        parts += ["", Text("sums of layers against chunks measured as such:"), indented(checks)]
    if len(units) > 1:
        parts += ["", Text(_hop_words(profile))]
    return Group(*parts, "", Text(_profile_verdict(profile), style="bold"), *notes_view(profile.warnings))


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
        return "No chunk was measured as such, so nobody knows how well sums of layers foretell chunks."
    words = f"Sums of layers are {100 * error:.1f} % off those of chunks, on average"
    if 100 * error > LIMITS_PERCENT[Ground.SUMS]:
        return f"{words}: plans made from them are guesses; `gapless tune` measures the best ones."
    return f"{words}: `gapless plan` on the problem that was written finds plans that hold."


def simulated_line(found: Measurement) -> list[Text]:
    """Return a line that says that no device ran; none where one did."""
    if not found.simulated:
        return []
    return [Text(simulated_words(found.device), style="bold yellow")]


def measurement_view(found: Measurement, predicted: Measurement | None = None) -> Group:
    """Return what `gapless run` shows.

    `predicted`: what the table says of the same deployment; None: that is not known, and not shown.
    """
    heads = _workload_heads(found) if found.deployment.rounds else [_head(found)]
    foretold = () if predicted is None else ("predicted",)
    numbers = (*foretold, "busy", "p95", "copy in", "run", "copy out")
    chunks = plain_table("stream", "chunk", "unit", *numbers, numbers=numbers)
    said = {} if predicted is None else {(c.stream, c.chunk): c.busy_us.median for c in predicted.chunks}
    for chunk in found.chunks:
        stream = next(s for s in found.deployment.streams if s.name == chunk.stream)
        chunks.add_row(
            chunk.stream,
            stream.layers(chunk.chunk),
            chunk.unit,
            *(microseconds(said.get((chunk.stream, chunk.chunk))) for _ in foretold),
            microseconds(chunk.busy_us.median),
            microseconds(chunk.busy_us.p95),
            microseconds(chunk.copy_in_us.median),
            microseconds(chunk.run_us.median),
            microseconds(chunk.copy_out_us.median),
        )
    units = plain_table("unit", "granted", "busy", "bubble", "memory", numbers=("busy", "bubble", "memory"))
    for unit in found.units:
        receipts = [receipt for receipt in found.receipts if receipt.unit == unit.unit]
        units.add_row(
            unit.unit,
            "; ".join(dict.fromkeys(map(receipt_words, receipts))) or "-",
            microseconds(unit.busy_us),
            microseconds(unit.bubble_us),
            "-" if found.simulated else size(unit.rss_bytes),
        )
    lines = [Text(str(found.deployment)), *_against(found, predicted), *_machine(found)]
    links: list[RenderableType] = ["", indented(_links(found))] if found.links else []
    return Group(*simulated_line(found), *heads, *lines, "", indented(chunks), "", indented(units), *links)


def _links(found: Measurement) -> RenderableType:
    """Return the messages between devices."""
    numbers = ("bytes", "time", "p95", "waited", "rate")
    table = plain_table("stream", "link", *numbers, numbers=numbers)
    for link in found.links:
        table.add_row(
            link.stream,
            link_name(link.source, link.target),
            size(link.size),
            microseconds(link.time_us.median),
            microseconds(link.time_us.p95),
            microseconds(link.queued_us.median),
            f"{size(round(link.size / max(link.time_us.median, 1e-3) * 1e6))}/s",
        )
    return table


def _against(found: Measurement, predicted: Measurement | None) -> list[Text]:
    """Return what was predicted, and by how much it was wrong."""
    if predicted is None:
        return []
    slower = 100 * (found.period_us / predicted.period_us - 1)
    words = f"predicted {microseconds(predicted.period_us)}: measured {slower:+.1f} % against that"
    return [Text(words, style="yellow" if abs(slower) > WELL_PREDICTED else "")]


def _machine(found: Measurement) -> list[Text]:
    """Return what the machine was like meanwhile, as far as it says."""
    state = found.machine
    if state is None:
        return []
    words = [
        "" if state.others is None else f"other programs kept {100 * state.others:.0f} % of the cores busy",
        "" if state.mhz is None else f"clock {state.mhz:.0f} MHz",
        "" if state.celsius is None else f"{state.celsius:.0f} C",
        "" if state.watts is None else _power_words(found, state),
    ]
    told = "; ".join(filter(None, words))
    return [Text(f"meanwhile {told}", style="dim")] if told else []


def _power_words(found: Measurement, state: MachineState) -> str:
    """Return the measured power, and the energy of one result (of a batch: of one round)."""
    watts = state.watts or 0.0
    return f"{watts:.2f} W, {watts * found.period_us / 1000:,.2f} mJ a result (measured: {state.watts_by})"


def _head(found: Measurement) -> Text:
    latency = found.latency_us
    head = Text(f"{found.deployment.pace_name} {microseconds(found.period_us)}", style="bold")
    head.append(
        f" ({1e6 / found.period_us:,.1f} requests/s), {found.requests:,} requests in {found.seconds:.1f} s; "
        f"{found.deployment.latency_name} p50 {microseconds(latency.median)}, "
        f"p95 {microseconds(latency.p95)}, p99 {microseconds(latency.p99)}",
        style="not bold",
    )
    return head


def _workload_heads(found: Measurement) -> list[RenderableType]:
    """Return how long the rounds of a workload took, and the latency of each of its requests."""
    spread, count = found.makespan_us, len(found.streams)
    what = f"period {microseconds(found.period_us)}"
    if spread is not None:
        what = f"makespan {microseconds(spread.median)}"
    head = Text(what, style="bold")
    if spread is not None:
        head.append(f" ({microseconds(spread.least)} to {microseconds(spread.most)})", style="not bold")
    head.append(
        f", {found.requests // count:,} rounds of {count} requests in {found.seconds:.1f} s", style="not bold"
    )
    numbers = (f"{found.deployment.latency_name} p50", "p95", "most")
    table = plain_table("request", *numbers, numbers=numbers)
    for stream in found.streams:
        latency = stream.latency_us
        table.add_row(stream.stream, *map(microseconds, (latency.median, latency.p95, latency.most)))
    return [head, "", indented(table), ""]


def receipt_words(receipt: PlacementReceipt) -> str:
    """Return what an engine granted."""
    if receipt.engine == SIMULATED:
        return "nothing: simulated"
    words = [f"{receipt.engine} {receipt.granted_backend}"]
    if receipt.granted_threads:
        words.append(f"{receipt.granted_threads} thread{'s' if receipt.granted_threads > 1 else ''}")
    if receipt.granted_cores:
        words.append(f"cores {','.join(map(str, receipt.granted_cores))}")
    if receipt.quota_permille is not None:
        words.append(f"emulated at {receipt.quota_permille / 10:g} %")
    if receipt.compared is False:
        words.append("numbers not compared")
    return ", ".join(words)
