"""What there is to work with, here and on a board: engines, backends, permissions; what is shipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.diagnosis import BackendReport, Diagnosis, EngineReport
from ..executor.callable_layers import CallableModel
from ..executor.model import TensorSpec
from ..formulations.co_run import possible_models
from ..formulations.formulation import Formulation
from ..formulations.problem import FEATURES
from ..formulations.registry import formulation_named, formulation_names
from ..profiler.applications.catalog import Application
from ..profiler.coordination.catalog import coordinated_phone_names, setting_platform
from ..profiler.platforms.catalog import methods_of, network_names, platform_names, shipped_platform
from ..profiler.platforms.workloads import phone_names, phone_network_names
from ..profiler.zoo.entries import ZooEntry
from ..solvers.protocol import Support
from .blocks import Block, Cell, Column, Section, Sentence, Table, Tone, Unit, Value, grid, table

if TYPE_CHECKING:
    from ..boards.checks import BoardDiagnosis, Check


def doctor_blocks(diagnosis: Diagnosis, *, matrix: bool = False) -> Iterator[Block]:
    """Yield what `gapless doctor` answers; `matrix`: what each backend can do, instead of a line a kind."""
    yield Sentence(f"gapless {diagnosis.gapless}, Python {diagnosis.python}, {diagnosis.system}")
    yield Sentence(diagnosis.device)
    engines: list[Column[EngineReport]] = [
        Column("engine", Unit.NAME, lambda report: report.name),
        Column("state", Unit.TEXT, lambda report: state(ok=report.found.ok)),
        Column("version", Unit.TEXT, lambda report: report.found.version or None),
        Column("works with", Unit.TEXT, lambda report: ", ".join(report.backends) or None),
    ]
    yield table("Engines", engines, diagnosis.engines)
    yield from _other_processors(diagnosis.engines)
    yield Sentence("")
    for name, found in diagnosis.permissions:
        tone, lead = (Tone.GOOD, "yes") if found.ok else (Tone.WARN, "no")
        yield Sentence(f"  {found.reason}" if found.reason else "", tone, lead=f"  {name}: {lead}")
    if matrix:
        yield _backends(diagnosis.backends)
        yield from (Sentence(f"  {words}", Tone.SOFT) for words in _backend_notes(diagnosis.backends))
    else:
        yield _kinds(diagnosis.backends)
        yield Sentence("  heuristics, and what each backend can do: gapless doctor --backends", Tone.SOFT)
    missing = [(report.name, report.reason) for report in diagnosis.backends if not report.ok]
    missing += [(report.name, report.found.reason) for report in diagnosis.engines if not report.found.ok]
    yield Sentence("")
    yield from (Sentence(f"{name}: {reason}", Tone.WARN) for name, reason in missing)
    if not missing:
        yield Sentence("All backends and engines are ready.", Tone.GOOD)


def _kinds(reports: Sequence[BackendReport]) -> Table:
    """Return one line for each kind of problem: which of the backends that are ready prove something."""
    found = {report.name: _supports(report) for report in reports if report.ok}

    def proving(name: str) -> str | None:
        return ", ".join(one for one, able in found.items() if name in able and able[name].proves) or None

    columns: list[Column[str]] = [
        Column("problems", Unit.TEXT, lambda name: formulation_named(name).label.removeprefix("problems ")),
        Column("proved by", Unit.TEXT, proving),
    ]
    return table("Kinds of problems", columns, formulation_names())


def _other_processors(reports: Sequence[EngineReport]) -> Iterator[Sentence]:
    """Yield where to read on, if no engine reaches anything but the processor."""
    reached = {backend for report in reports for backend in report.backends}
    if all(backend == "cpu" or backend.endswith("-cpu") for backend in reached):
        words = "  a GPU or an NPU needs another package or build of an engine: docs/how-to/use-a-gpu.md"
        yield Sentence(words, Tone.SOFT)


def state(*, ok: bool) -> Cell:
    """Return whether something is there."""
    return Cell("ready", Tone.GOOD) if ok else Cell("missing", Tone.WARN)


def _backends(reports: Sequence[BackendReport]) -> Table:
    """Return what backends promise for which formulation; a star: not for all problems of it (`_lacking`)."""
    names = formulation_names()

    def row(report: BackendReport) -> tuple[Cell | Value, ...]:
        known = _supports(report)
        return (
            report.name,
            state(ok=report.ok),
            *(_promise(name, known[name]) if name in known else None for name in names),
            _words("yes" if support.gives_bound else "no" for support in known.values()),
            _words(str(support.rules or "no") for support in known.values()),
            _words(str(support.opaque_rules or "no") for support in known.values()),
        )

    heads = ("backend", "state", *(name.replace("_", " ") for name in names), "early bound", "rules")
    titles = [(head, Unit.TEXT) for head in (*heads, "opaque rules")]
    return grid("Backends", titles, map(row, reports), most=len(reports))


def _backend_notes(reports: Sequence[BackendReport]) -> Iterator[str]:
    """Yield what the columns are, what the stars stand for, and the versions of what backends run on."""
    for name in formulation_names():
        yield f"{name.replace('_', ' ')}: {formulation_named(name).label}"
    for report in reports:
        for name, support in _supports(report).items():
            if words := "; ".join(_lacking(formulation_named(name), support)):
                yield f"* {report.name} does not handle, of {name.replace('_', ' ')}: {words}"
    first = {report.version: report.name for report in reversed(reports) if report.version}
    versions = "; ".join(f"{first[version]} {version}" for version in reversed(first))
    yield f"versions: {versions or '-'}"


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


def platforms_blocks() -> Iterator[Block]:
    """Yield what `gapless list problems` answers about platforms."""
    rows = [
        (f"{platform}/{network}", shipped_platform(platform).unit_names)
        for platform in platform_names()
        for network in network_names(platform)
    ]
    problems: list[Column[tuple[str, Sequence[str]]]] = [
        Column("problem", Unit.NAME, lambda row: row[0]),
        Column("units", Unit.TEXT, lambda row: ", ".join(row[1])),
        Column("--costs", Unit.TEXT, lambda row: ", ".join(possible_models(methods_of(row[0])))),
    ]
    yield table("Problems", problems, rows, most=len(rows))
    networks = ", ".join(phone_network_names())
    phones: list[Column[str]] = [
        Column("--platform", Unit.NAME, lambda phone: phone),
        Column("units", Unit.TEXT, lambda phone: ", ".join(shipped_platform(phone).unit_names)),
        Column("networks for --workload; times computed, estimated", Unit.TEXT, lambda phone: networks),
    ]
    yield table("Phones", phones, phone_names())

    def lacks(phone: str) -> str:
        rules = (rule for unit in setting_platform(phone).units for rule in unit.unsupported)
        return ", ".join(dict.fromkeys(rules))

    asked: list[Column[str]] = [
        Column("--platform of coordinate", Unit.NAME, lambda phone: phone),
        Column("units", Unit.TEXT, lambda phone: ", ".join(setting_platform(phone).unit_names)),
        Column("operators that units lack (inspect --support)", Unit.TEXT, lacks),
    ]
    yield table("Phones of scenarios", asked, coordinated_phone_names())
    yield Sentence("")
    shipped = [shipped_platform(name) for name in (*platform_names(), *phone_names())]
    shipped += map(setting_platform, coordinated_phone_names())
    yield from (Sentence(f"{device.name}: {device.source}", Tone.SOFT) for device in shipped)


def networks_blocks(
    entries: Sequence[ZooEntry], applications: Sequence[tuple[Application, CallableModel]]
) -> Iterator[Block]:
    """Yield what `gapless list networks` answers."""
    networks: list[Column[ZooEntry]] = [
        Column("network", Unit.NAME, lambda entry: entry.name),
        Column("inputs", Unit.TEXT, lambda entry: _inputs(entry.inputs)),
        Column("parameters", Unit.COUNT, lambda entry: f"{entry.parameters / 1e6:.2f} M"),
        Column("MACs", Unit.COUNT, lambda entry: f"{entry.macs / 1e6:,.0f} M"),
        Column("convolutions", Unit.COUNT, lambda entry: entry.convolutions),
        Column("matrix products", Unit.COUNT, lambda entry: entry.products),
    ]
    yield table("Networks", networks, entries, most=len(entries))
    words = "Random weights of the true shapes; numbers of the literature (--json says which)."
    yield Sentence(words, Tone.SOFT)
    functions: list[Column[tuple[Application, CallableModel]]] = [
        Column("application", Unit.NAME, lambda row: row[0].name),
        Column("inputs", Unit.TEXT, lambda row: _inputs(row[1].inputs)),
        Column("layers", Unit.COUNT, lambda row: len(row[1].layers)),
        Column("what it does", Unit.TEXT, lambda row: row[0].about),
    ]
    yield table("Applications", functions, applications)
    words = "Pipelines of numpy functions, run on CPU cores; with --engine opencl also on OpenCL devices."
    yield Sentence(words, Tone.SOFT)


def _inputs(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name} {'x'.join(map(str, spec.shape))}" for spec in specs)


def board_blocks(found: BoardDiagnosis) -> Iterator[Block]:
    """Yield what `gapless doctor --on` answers."""
    yield Sentence(f"board {found.board}")
    columns: list[Column[Check]] = [
        Column("needed", Unit.TEXT, lambda check: check.what),
        Column("state", Unit.TEXT, lambda check: state(ok=check.ok)),
        Column("found", Unit.TEXT, lambda check: check.found),
    ]
    yield table("Needed", columns, found.checks)
    if found.diagnosis is not None:
        yield from map(Sentence, _machine(found.diagnosis))
    for check in found.checks:
        if check.cure:
            cures = tuple(Sentence(f"  {line}") for line in check.cure)
            yield Section(f"what to do about {check.what}:", cures)
    if found.ok:
        yield Sentence("The board can profile, tune and run.", Tone.GOOD)


def _machine(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `gapless doctor` there says of the machine, its engines and its solvers."""
    reports = [*document.get("engines", []), *document.get("backends", [])]
    yield f"{document.get('device')}, Python {document.get('python')}"
    yield f"ready: {', '.join(str(report.get('name')) for report in reports if report.get('ok'))}"
    for report in reports:
        if not report.get("ok"):
            yield f"not there: {report.get('name')}: {report.get('reason')}"
    for each in document.get("permissions", []):
        yield f"{each.get('name')}: {'yes' if each.get('ok') else 'no'}  {each.get('reason') or ''}".rstrip()
