"""Where everything in a report comes from: the problem, its tables, the execution, the files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...formulations.costs import Provenance
from ...formulations.hardware import ProcessingUnit
from ...formulations.limits import LIMIT_NAMES
from ...formulations.reordering import order_words
from ..presenter import presenter_of
from ..words import objective_words, percent, size
from .subject import Subject
from .table import Table, TableCell, columns, table
from .texts import clipped

_MOST_LETTERS = 2000

Fact = tuple[str, str]
"""Name and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginSection:
    """Where everything comes from: facts, tables of costs, units, rules."""

    facts: tuple[Fact, ...]
    tables: Table
    units: Table
    rules: Table


def origin(subject: Subject) -> OriginSection:
    """Return where a subject comes from."""
    problem = subject.problem
    rules = (
        (TableCell(text=rule.name, kind="name"), TableCell(text=rule.text or "(no words)", kind="text"))
        for rule in problem.rules
    )
    return OriginSection(
        facts=tuple((name, text) for name, text in _facts(subject) if text),
        tables=_tables(subject),
        units=_units(subject),
        rules=table("Rules", columns("rule", "what it asks"), rules),
    )


def _facts(subject: Subject) -> Iterator[Fact]:
    problem = subject.problem
    yield "problem", f"fingerprint {problem.fingerprint}"
    yield "objective", objective_words(problem.formulation.terms, problem.objective)
    limits = ((name, getattr(problem.limits, name)) for name in LIMIT_NAMES)
    yield "limits", ", ".join(f"{name} {value}" for name, value in limits if value is not None) or "none"
    for network in problem.networks:
        models = ", ".join(f"{model.locator} (digest {model.digest[:12]})" for model in network.models)
        moved = f"in the order {clipped(order_words(network.order), _MOST_LETTERS)}" if network.order else ""
        words = [f"{len(network.layers)} layers", moved, models or network.source]
        yield f"network {network.name}", "; ".join(filter(None, words))
    memory = problem.platform.memory_bytes
    capacity = "memory not known" if memory is None else f"memory {size(memory)}"
    words = [f"{len(problem.platform.units)} units", capacity, problem.platform.source]
    yield f"platform {problem.platform.name}", "; ".join(filter(None, words))
    yield from presenter_of(problem).facts(problem)
    plan = subject.plan
    yield "plan", "replicas, no plan" if plan is None else f"plan_id {plan.plan_id}"
    yield "deployment", f"deployment_id {subject.deployment.deployment_id}"
    yield "runs", clipped(str(subject.deployment), _MOST_LETTERS)
    yield from _execution_facts(subject)
    yield "files", ", ".join(subject.sources)


def _execution_facts(subject: Subject) -> Iterator[Fact]:
    found, result = subject.measurement, subject.tuning
    if found is not None:
        times = f"{found.requests:,} requests in {found.seconds:.1f} s"
        yield subject.observed, "; ".join(filter(None, (found.device, found.taken_at, times)))
    if result is not None:
        session = f"run {result.run}, {result.measured_s:.1f} s {subject.observed}"
        yield "race", "; ".join(filter(None, (result.device, session)))


def _tables(subject: Subject) -> Table:
    problem = subject.problem
    known = [("costs", problem.costs.provenance)]
    beside = problem.co_run_costs or ()
    if problem.by_set:  # all of one kind
        known.append((f"costs on {len(beside)} sets of units", beside[0].provenance))
    else:
        known += [(f"costs on {used} units", costs.provenance) for used, costs in enumerate(beside, start=2)]
    if problem.interference is not None:
        known.append(("interference", problem.interference.provenance))
    titles = columns("table", "method", "device, engine, when", "source, notes")
    return table("Tables of costs", titles, (_provenance(name, entry) for name, entry in known))


def _provenance(name: str, entry: Provenance) -> list[TableCell | str]:
    taken = "; ".join(filter(None, (entry.device, entry.engine, entry.taken_at)))
    return [
        name,
        TableCell(text="estimated", kind="warn", note=entry.method)
        if entry.estimated
        else TableCell(text=entry.method or "-"),
        TableCell(text=taken or "-", kind="text"),
        TableCell(text=entry.source or "-", kind="long", note=entry.notes),
    ]


def _units(subject: Subject) -> Table:
    units = (_unit(unit) for unit in subject.problem.platform.units)
    return table("Units", columns("unit", "kind", "cores", "threads", "engine", "speed"), units)


def _unit(unit: ProcessingUnit) -> list[TableCell | str]:
    engine = unit.engine
    return [
        TableCell(text=unit.name, kind="name"),
        str(unit.kind),
        ", ".join(map(str, unit.cores)) or "-",
        "-" if unit.threads is None else str(unit.threads),
        f"{engine.name} {engine.backend}, precision {engine.precision}, memory {engine.memory}".strip(),
        "as it is" if unit.quota_permille is None else f"emulated: {percent(unit.quota_permille)}",
    ]
