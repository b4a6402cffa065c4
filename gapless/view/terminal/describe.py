"""What there is, for people: backends, shipped platforms, and one problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, log10
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.words import percent, size
from ...api.diagnosis import BackendReport, Diagnosis, EngineReport
from ...executor.callable_layers import CallableModel
from ...executor.model import TensorSpec
from ...formulations.availability import Availability
from ...formulations.co_run import possible_models
from ...formulations.formulation import Formulation
from ...formulations.hardware import Platform
from ...formulations.limits import LIMIT_NAMES
from ...formulations.plan import Plan
from ...formulations.problem import FEATURES, Problem
from ...formulations.registry import formulation_named, formulation_names
from ...profiler.applications.catalog import Application
from ...profiler.coordination.catalog import coordinated_phone_names, setting_platform
from ...profiler.platforms.catalog import methods_of, network_names, platform_names, shipped_platform
from ...profiler.platforms.workloads import phone_names, phone_network_names
from ...profiler.zoo.entries import ZooEntry
from ...solvers.protocol import Support
from ..layout import indented, plain_table
from ..presenter import presenter_of
from .tables import title


def doctor_view(diagnosis: Diagnosis, *, matrix: bool = False) -> Group:
    """Return what `gapless doctor` shows; `matrix`: what each backend can do, instead of a line a kind."""
    parts: list[RenderableType] = [
        Text(f"gapless {diagnosis.gapless}, Python {diagnosis.python}, {diagnosis.system}"),
        Text(diagnosis.device),
        "",
        indented(_engine_table(diagnosis.engines)),
        *_other_processors(diagnosis.engines),
        "",
        *(_permission(name, found) for name, found in diagnosis.permissions),
        "",
    ]
    if matrix:
        parts += [indented(_backend_table(diagnosis.backends)), *_backend_notes(diagnosis.backends)]
    else:
        parts += [indented(_kinds_table(diagnosis.backends))]
        parts += [Text("  heuristics, and what each backend can do: gapless doctor --backends", style="dim")]
    missing = [(report.name, report.reason) for report in diagnosis.backends if not report.ok]
    missing += [(report.name, report.found.reason) for report in diagnosis.engines if not report.found.ok]
    if missing:
        parts += ["", *(Text(f"{name}: {reason}", style="yellow") for name, reason in missing)]
    else:
        parts += ["", Text("All backends and engines are ready.", style="green")]
    return Group(*parts)


def _kinds_table(reports: Sequence[BackendReport]) -> Table:
    """Return one line for each kind of problem: which of the backends that are ready prove something."""
    table = plain_table("problems", "proved by")
    found = {report.name: _supports(report) for report in reports if report.ok}
    for name in formulation_names():
        proving = [each for each, able in found.items() if name in able and able[name].proves]
        table.add_row(formulation_named(name).label.removeprefix("problems "), ", ".join(proving) or "-")
    return table


def _engine_table(reports: Sequence[EngineReport]) -> Table:
    table = plain_table("engine", "state", "version", "works with")
    for report in reports:
        table.add_row(
            report.name,
            _state(ok=report.found.ok),
            report.found.version or "-",
            ", ".join(report.backends) or "-",
        )
    return table


def _other_processors(reports: Sequence[EngineReport]) -> list[Text]:
    """Return where to read on, if no engine reaches anything but the processor."""
    reached = {backend for report in reports for backend in report.backends}
    if any(backend != "cpu" and not backend.endswith("-cpu") for backend in reached):
        return []
    return [
        Text(
            "  a GPU or an NPU needs another package or build of an engine: docs/how-to/use-a-gpu.md",
            style="dim",
        )
    ]


def _permission(name: str, found: Availability) -> Text:
    text = Text(f"  {name}: ").append("yes" if found.ok else "no", style="green" if found.ok else "yellow")
    return text.append(f"  {found.reason}" if found.reason else "", style="dim")


def _state(*, ok: bool) -> Text:
    return Text("ready", style="green") if ok else Text("missing", style="yellow")


def _backend_table(reports: Sequence[BackendReport]) -> Table:
    """Return what backends promise for which formulation; a star: not for all problems of it (`_lacking`)."""
    names = formulation_names()
    heads = (name.replace("_", " ") for name in names)
    table = plain_table("backend", "state", *heads, "early bound", "rules", "opaque rules")
    for report in reports:
        supports = _supports(report)
        table.add_row(
            report.name,
            _state(ok=report.ok),
            *(_promise(name, supports[name]) if name in supports else "-" for name in names),
            _words("yes" if support.gives_bound else "no" for support in supports.values()),
            _words(str(support.rules or "no") for support in supports.values()),
            _words(str(support.opaque_rules or "no") for support in supports.values()),
        )
    return table


def _backend_notes(reports: Sequence[BackendReport]) -> Iterator[Text]:
    """Yield what the columns are, what the stars stand for, and the versions of what backends run on."""
    for name in formulation_names():
        yield Text(f"  {name.replace('_', ' ')}: {formulation_named(name).label}", style="dim")
    for report in reports:
        for name, support in _supports(report).items():
            if words := "; ".join(_lacking(formulation_named(name), support)):
                told = f"  * {report.name} does not handle, of {name.replace('_', ' ')}: {words}"
                yield Text(told, style="dim")
    first = {report.version: report.name for report in reversed(reports) if report.version}
    versions = "; ".join(f"{first[version]} {version}" for version in reversed(first))
    yield Text(f"  versions: {versions or '-'}", style="dim")


def _supports(report: BackendReport) -> dict[str, Support]:
    """Return what a backend can do, by formulation; nothing where that is not known."""
    can = report.capabilities
    if can is None:
        return {}
    known = {name: can.formulations.get(name, can.others) for name in formulation_names()}
    return {name: support for name, support in known.items() if support is not None}


def _promise(name: str, support: Support) -> str:
    star = "*" if any(_lacking(formulation_named(name), support)) else ""
    return f"{support.guarantee}{star}"


def _words(found: Iterable[str]) -> str:
    """Return different words once each, in order: one a formulation, or one for all."""
    return "/".join(dict.fromkeys(found)) or "-"


def _lacking(formulation: Formulation[Any, Any], support: Support) -> Iterator[str]:
    if support.features is not None:
        asked = FEATURES | formulation.features
        missing = [feature for feature in sorted(asked) if feature not in support.features]
        if len(support.features) < len(missing):
            kept = " and ".join(feature.replace("_", " ") for feature in sorted(support.features))
            yield f"anything but {kept}"
        else:
            yield from (feature.replace("_", " ") for feature in missing)
    if support.terms is not None:
        terms = [term for term in formulation.terms if term not in support.terms]
        if terms:
            yield f"objectives {', '.join(terms)}"


def platforms_view() -> Group:
    """Return what `gapless list problems` shows."""
    table = plain_table("problem", "units", "--costs")
    for platform in platform_names():
        units = ", ".join(shipped_platform(platform).unit_names)
        for network in network_names(platform):
            name = f"{platform}/{network}"
            table.add_row(Text(name, style="bold"), units, ", ".join(possible_models(methods_of(name))))
    phones = plain_table("--platform", "units", "networks for --workload; times computed, estimated")
    for phone in phone_names():
        units = ", ".join(shipped_platform(phone).unit_names)
        phones.add_row(Text(phone, style="bold"), units, ", ".join(phone_network_names()))
    asked = plain_table("--platform of coordinate", "units", "operators that units lack (inspect --support)")
    for phone in coordinated_phone_names():
        device = setting_platform(phone)
        lacks = dict.fromkeys(rule for unit in device.units for rule in unit.unsupported)
        asked.add_row(Text(phone, style="bold"), ", ".join(device.unit_names), ", ".join(lacks))
    shipped = [shipped_platform(name) for name in (*platform_names(), *phone_names())]
    shipped += map(setting_platform, coordinated_phone_names())
    sources = [Text(f"{device.name}: {device.source}", style="dim") for device in shipped]
    return Group(table, "", phones, "", asked, "", *sources)


def networks_view(
    entries: Sequence[ZooEntry], applications: Sequence[tuple[Application, CallableModel]]
) -> Group:
    """Return what `gapless list networks` shows."""
    numbers = ("parameters", "MACs", "convolutions", "matrix products")
    table = plain_table("network", "inputs", *numbers, numbers=numbers)
    for entry in entries:
        table.add_row(
            Text(entry.name, style="bold"),
            _inputs(entry.inputs),
            f"{entry.parameters / 1e6:.2f} M",
            f"{entry.macs / 1e6:,.0f} M",
            str(entry.convolutions),
            str(entry.products),
        )
    note = "Random weights of the true shapes; numbers of the literature (--json says which)."
    functions = plain_table("application", "inputs", "layers", "what it does", numbers=("layers",))
    for application, model in applications:
        name = Text(application.name, style="bold")
        functions.add_row(name, _inputs(model.inputs), str(len(model.layers)), application.about)
    what = "Pipelines of numpy functions, run on CPU cores; with --engine opencl also on OpenCL devices."
    return Group(table, "", Text(note, style="dim"), "", functions, "", Text(what, style="dim"))


def _inputs(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {'x'.join(map(str, spec.shape))}" for spec in specs)


def platform_view(platform: Platform) -> Group:
    """Return what `gapless device detect` shows."""
    head = Text(platform.name, style="bold")
    head.append(f": {len(platform.units)} units, {size(platform.memory_bytes)} of memory", style="not bold")
    return Group(head, Text(platform.source, style="dim"), "", indented(_units(platform)))


def problem_view(
    problem: Problem, plans: int, *, layers: range | None = None, plan: Plan | None = None
) -> Group:
    """Return what `gapless show` shows of a problem.

    `layers`: which layers of one network; None: all.
    """
    provenance = problem.costs.provenance
    parts: list[RenderableType] = [title(problem), "", indented(_units(problem.platform)), ""]
    parts += [*presenter_of(problem).problem_parts(problem, layers=layers, plan=plan), ""]
    facts = [
        ("objective", str(problem.objective)),
        ("limits", _limits(problem) or "none"),
        ("rules", "; ".join(rule.text or rule.name for rule in problem.rules) or "none"),
        ("features", ", ".join(sorted(problem.features)) or "none"),
        ("plans", "at most " + (f"{plans:,}" if plans < 10**15 else f"10^{ceil(log10(plans))}")),
        ("batch", f"{problem.costs.batch}"),
        ("fingerprint", problem.fingerprint),
        ("source", " ".join(filter(None, (provenance.source, provenance.notes))) or "not given"),
    ]
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in facts:
        table.add_row(Text(name, style="bold"), Text(value))
    return Group(*parts, table)


def _limits(problem: Problem) -> str:
    asked = ((name, getattr(problem.limits, name)) for name in LIMIT_NAMES)
    return ", ".join(f"{name} {value}" for name, value in asked if value is not None)


def _units(platform: Platform) -> Table:
    named = any(unit.engine.name for unit in platform.units)
    engine = ("engine",) if named else ()
    table = plain_table("unit", "kind", *engine, "cores", "threads", "memory", "speed", "excludes")
    names = platform.unit_names
    excluded: dict[str, list[str]] = {name: [] for name in names}
    for u, v in platform.conflicts:
        excluded[names[u]].append(names[v])
        excluded[names[v]].append(names[u])
    for unit in platform.units:
        table.add_row(
            unit.name,
            str(unit.kind),
            *([unit.engine.name or "-"] if named else ()),
            ", ".join(map(str, unit.cores)) or "-",
            "-" if unit.threads is None else str(unit.threads),
            "-" if unit.memory_bytes is None else size(unit.memory_bytes),
            "full" if unit.quota_permille is None else f"emulated, {percent(unit.quota_permille)}",
            ", ".join(excluded[unit.name]) or "-",
        )
    return table
