"""Files for people: what `gapless show` makes of plans, profiles, traces and run folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.receipts import receipts_table
from ...answers.tuning import verdict
from ...answers.words import microseconds, millis, percent, size, term_name, term_value
from ...files.run_document import RunDocument
from ...files.run_folder import Folder, FolderEntry
from ...formulations.deployment import Deployment
from ...formulations.history import History
from ...formulations.judge import check, score
from ...formulations.network import Network
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...profiler.prediction.executions import Executions
from ...profiler.profile import MeasuredChunk, Profile
from ..layout import indented, plain_table
from ..presenter import presenter_of
from .blocks import blocks_view, table_view
from .gantt import traced_view
from .layer_times import layer_map
from .running import profile_view
from .tables import check_view

MAX_ROWS_SHOWN = 30
MAX_UNSTEADY_SHOWN = 5

UNSTEADY = 0.1
"""Quartile range over median from which on a measurement is listed as unsteady."""


def plan_view(plan: Plan, problem: Problem | None, *, layers: range | None = None) -> Group:
    """Return a plan: against its problem with all that follows, or its chunks alone."""
    if problem is None:
        return Group(_plan_head(plan), "", indented(_chunks((("", plan),))))
    violations = check(problem, plan)
    if violations:
        return check_view(problem, plan, None, violations)
    parts: list[RenderableType] = [check_view(problem, plan, score(problem, plan), ())]
    return Group(*parts, *presenter_of(problem).file_parts(problem, plan, layers=layers))


def plans_view(plans: Sequence[Plan], problem: Problem | None, *, layers: range | None = None) -> Group:
    """Return a list of plans, and the first of them in detail."""
    if len(plans) == 1:
        return plan_view(plans[0], problem, layers=layers)
    terms = () if problem is None else problem.objective.terms
    infos = {} if problem is None else problem.formulation.terms
    names = [term_name(infos, term) for term in terms]
    table = plain_table("#", *names, "plan", numbers=("#", *names))
    for number, plan in enumerate(plans[:MAX_ROWS_SHOWN], start=1):
        judged = None if problem is None or check(problem, plan) else score(problem, plan)
        values = ("-" if judged is None else term_value(infos, term, judged.value(term)) for term in terms)
        table.add_row(str(number), *values, str(plan))
    hidden = len(plans) - MAX_ROWS_SHOWN
    more = [Text(f"  ... and {hidden} more (--json shows all)")] if hidden > 0 else []
    return Group(indented(table), *more, "", plan_view(plans[0], problem, layers=layers))


def _plan_head(plan: Plan) -> Text:
    networks = ", ".join(dict.fromkeys(chunk.network for chunk in plan.chunks))
    return Text(networks, style="bold").append(f": {plan}  (plan_id {plan.plan_id})", style="not bold")


def deployment_view(found: Deployment) -> Group:
    """Return replicas, which are no plan: which network runs where."""
    head = Text(", ".join(found.networks), style="bold")
    head.append(f": {len(found.streams)} streams side by side", style="not bold")
    streams = ((stream.name, Plan(chunks=stream.placed)) for stream in found.streams)
    return Group(head, "", indented(_chunks(streams)))


def _chunks(streams: Iterable[tuple[str, Plan]]) -> Table:
    table = plain_table("stream", "network", "layers", "unit")
    for name, plan in streams:
        for chunk in plan.chunks:
            table.add_row(name or chunk.request, chunk.network, f"{chunk.start}-{chunk.stop - 1}", chunk.unit)
    return table


def taken_profile_view(taken: Profile, *, layers: range | None = None) -> Group:
    """Return a profile: sums, a heat map for each table, what was unsteady, receipts."""
    parts: list[RenderableType] = [profile_view(taken)]
    for table in taken.tables:
        what = f"{table.provenance.method}: layers by unit"
        parts += ["", Text(what, style="bold"), layer_map(taken.network, table, layers=layers)]
    parts += ["", *_noise(taken.measured)]
    if taken.receipts:
        parts += ["", Text("granted by the engine:"), *table_view(receipts_table(taken.receipts))]
    return Group(*parts)


def _noise(measured: Sequence[MeasuredChunk]) -> list[RenderableType]:
    """Return how widely measurements spread, and the worst of them."""
    if not measured:
        return [Text("no single measurements are kept")]
    spreads = sorted(one.busy.spread for one in measured)
    typical, worst = (percent(round(1000 * spread)) for spread in (spreads[len(spreads) // 2], spreads[-1]))
    words = (
        f"noise of {len(measured)} measurements: quartiles {typical} of the median apart in a typical one, "
    )
    words += f"{worst} in the worst"
    noisy = sorted((one for one in measured if one.busy.spread > UNSTEADY), key=lambda one: -one.busy.spread)
    if not noisy:
        return [Text(words)]
    numbers = ("median", "quartiles", "p95", "drift", "runs")
    table = plain_table("unsteady", "unit", "beside", *numbers, numbers=numbers)
    for one in noisy[:MAX_UNSTEADY_SHOWN]:
        busy = one.busy
        table.add_row(
            f"{one.chunk.start}-{one.chunk.stop - 1}",
            one.chunk.unit,
            ", ".join(one.beside) or "alone",
            microseconds(busy.typical_us),
            f"{microseconds(busy.q1_us)} to {microseconds(busy.q3_us)}",
            microseconds(busy.p95_us),
            f"{100 * busy.drift:+.1f} %",
            str(busy.count),
        )
    hidden = len(noisy) - MAX_UNSTEADY_SHOWN
    if hidden > 0:
        table.add_row(f"... and {hidden} more", style="dim")
    return [Text(words), indented(table)]


def trace_file_view(trace: History) -> Group:
    """Return a trace file that is as it was written."""
    checked = Text("checked: nothing overlaps, every arrow goes forward", style="dim")
    return Group(*traced_view(trace), "", checked)


def defects_view(path: str, events: int, defects: Sequence[str], *, ours: bool) -> Group:
    """Return what is wrong with a trace file that is not, or not any more, as gapless writes it."""
    whose = "a trace of gapless that was edited" if ours else "a Chrome trace of another program"
    head = Text(path, style="bold").append(f": {whose}, {events:,} events", style="not bold")
    if not defects:
        return Group(
            head, Text("no defects: slices nest, tracks have names, arrows go forward", style="green")
        )
    shown = [Text(f"  - {defect}") for defect in defects[:MAX_ROWS_SHOWN]]
    hidden = len(defects) - len(shown)
    more = [Text(f"  ... and {hidden} more (--json shows all)")] if hidden else []
    count = f"{len(defects)} defect{'' if len(defects) == 1 else 's'}:"
    return Group(head, Text(count, style="bold red"), *shown, *more)


def executions_view(found: Executions) -> Group:
    """Return executed plans, the fastest first."""
    head = Text(found.network.name, style="bold")
    head.append(
        f" on {found.platform.name}: {len(found.executed)} executed plans; {found.source}", style="not bold"
    )
    names = [table.provenance.method for table in found.tables]
    numbers = ("#", "measured", "runs", *(f"{name} says" for name in names))
    table = plain_table("#", "plan", *numbers[1:], numbers=numbers)
    problems = [found.problem(name) for name in names]
    ranked = sorted(found.executed, key=lambda one: one.period_us)
    for place, one in enumerate(ranked[:MAX_ROWS_SHOWN], start=1):
        says = (millis(score(problem, one.plan).period_us) for problem in problems)
        table.add_row(str(place), str(one.plan), microseconds(one.period_us), str(one.runs), *says)
    parts: list[RenderableType] = [head, "", indented(table)]
    hidden = len(ranked) - MAX_ROWS_SHOWN
    if hidden > 0:
        parts.append(Text(f"  ... and {hidden} more (--json shows all)"))
    return Group(*parts)


def network_view(found: Network) -> Group:
    """Return the layers of a network, and where it may be cut."""
    table = plain_table("#", "layer", "operators", "weights", "cut before it", numbers=("#", "weights"))
    for index, layer in enumerate(found.layers[:MAX_ROWS_SHOWN]):
        cut = "" if index == 0 else size(found.boundary_bytes[index]) if index in found.legal_cuts else "no"
        weights = size(layer.weight_bytes) if layer.weight_bytes else "-"
        table.add_row(str(index), layer.name, ", ".join(layer.op_types), weights, cut)
    hidden = len(found.layers) - MAX_ROWS_SHOWN
    more = [Text(f"  ... and {hidden} more (--json shows all)")] if hidden > 0 else []
    head = Text(found.name, style="bold").append(f": {len(found.layers)} layers", style="not bold")
    return Group(head, "", indented(table), *more)


def run_view(found: RunDocument) -> Group:
    """Return what a run is."""
    table = plain_table("", "")
    facts = (
        ("begun", found.started_at),
        ("ended", found.ended_at),
        ("results of", found.written_at),
        ("command", found.line),
        ("engine", found.engine),
        ("units", ", ".join(found.units)),
        ("device", found.device),
        ("board", "" if found.board is None else found.board.destination),
        ("gapless", found.gapless),
        ("files", ", ".join(found.files)),
    )
    for name, text in facts:
        table.add_row(name, Text(text or "-"))
    table.show_header = False
    return Group(Text(f"{found} ({found.standing})", style="bold"), "", indented(table))


def other_view(path: str, kind: str, what: str, document: dict[str, Any]) -> Group:
    """Return the keys of a file that has no view of its own."""
    head = Text(path, style="bold").append(f": {kind}{f', {what}' if what else ''}", style="not bold")
    table = plain_table("key", "value")
    for key, value in document.items():
        table.add_row(key, _short(value))
    return Group(head, "", indented(table), Text("--json prints all of it", style="dim"))


def _short(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} {'keys' if isinstance(value, dict) else 'entries'}"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def folder_view(found: Folder) -> Group:
    """Return what is in a run folder, its verdict, and what to do next."""
    table = plain_table("file", "size", "what it is", numbers=("size",))
    for entry in found.entries:
        table.add_row(Text(entry.name, style="bold"), size(entry.size_bytes), _entry_words(entry))
    head = Text(found.path, style="bold")
    if found.run is not None:
        head.append(f": {found.run} ({found.run.standing})", style="not bold")
    parts: list[RenderableType] = [head, "", indented(table), ""]
    if found.tuning is not None:
        parts += [blocks_view(verdict(found.tuning)), ""]
    parts += [Text(note, style="yellow") for note in found.notes]
    if found.following:
        parts.append(Text("next:", style="bold"))
    for line, purpose in found.following:
        # A line of its own, so that it can be copied from all but the narrowest terminals.
        parts += [Text(f"  {purpose}:", style="dim"), Text(f"    {line}", style="cyan", overflow="fold")]
    return Group(*parts)


def _entry_words(entry: FolderEntry) -> Text:
    return Text(entry.what, style="red" if entry.broken else "")
