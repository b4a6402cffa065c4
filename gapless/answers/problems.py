"""Problems: their units, networks and costs, and what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log10

from ..formulations.hardware import Platform, ProcessingUnit
from ..formulations.limits import LIMIT_NAMES
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..view.presenter import presenter_of
from .blocks import Block, Column, Sentence, Shown, Table, Tone, Unit, grid, table
from .words import asked_words, counted, percent, size


def platform_blocks(platform: Platform) -> Iterator[Block]:
    """Yield what `gapless device detect` answers."""
    words = f": {counted(len(platform.units), 'unit')}, {size(platform.memory_bytes)} of memory"
    yield Sentence(words, lead=platform.name)
    yield Sentence(platform.source, Tone.SOFT)
    yield units(platform)


def title(problem: Problem) -> Sentence:
    """Return one line that says what is asked."""
    networks, asked = asked_words(problem)
    return Sentence(asked, lead=networks)


def problem_blocks(
    problem: Problem, plans: int, *, layers: range | None = None, plan: Plan | None = None
) -> Iterator[Block]:
    """Yield what `gapless show` answers about a problem.

    `layers`: which layers of one network; None: all.
    """
    provenance = problem.costs.provenance
    states = " ".join(str(state) for network in problem.networks for state in network.states)
    yield title(problem)
    yield units(problem.platform)
    yield from presenter_of(problem).problem_parts(problem, layers=layers, plan=plan)
    facts = [
        ("objective", str(problem.objective)),
        ("limits", limits_words(problem)),
        ("rules", "; ".join(rule.text or rule.name for rule in problem.rules) or "none"),
        *([("states", states)] if states else []),
        ("features", ", ".join(sorted(problem.features)) or "none"),
        ("plans", "at most " + (f"{plans:,}" if plans < 10**15 else f"10^{ceil(log10(plans))}")),
        ("batch", f"{problem.costs.batch}"),
        ("fingerprint", problem.fingerprint),
        ("source", " ".join(filter(None, (provenance.source, provenance.notes))) or "not given"),
    ]
    yield grid("What is asked", [("what", Unit.NAME), ("value", Unit.LONG)], facts)


def limits_words(problem: Problem) -> str:
    """Return the limits of a problem."""
    asked = ((name, getattr(problem.limits, name)) for name in LIMIT_NAMES)
    return ", ".join(f"{name} {value}" for name, value in asked if value is not None) or "none"


def units(platform: Platform) -> Table:
    """Return the units of a platform."""
    names = platform.unit_names
    excluded: dict[str, list[str]] = {name: [] for name in names}
    for u, v in platform.conflicts:
        excluded[names[u]].append(names[v])
        excluded[names[v]].append(names[u])

    def engine(unit: ProcessingUnit) -> str:
        asked = unit.engine
        return f"{asked.name} {asked.backend}, precision {asked.precision}, memory {asked.memory}".strip()

    def speed(unit: ProcessingUnit) -> str:
        return "full" if unit.quota_permille is None else f"emulated, {percent(unit.quota_permille)}"

    columns: list[Column[ProcessingUnit]] = [
        Column("unit", Unit.NAME, lambda unit: unit.name),
        Column("kind", Unit.TEXT, lambda unit: str(unit.kind)),
        Column("engine", Unit.TEXT, lambda unit: unit.engine.name or None, Shown.TERMINAL, optional=True),
        Column("engine", Unit.TEXT, engine, Shown.PAGES),
        Column("cores", Unit.TEXT, lambda unit: ", ".join(map(str, unit.cores)) or None),
        Column("threads", Unit.TEXT, lambda unit: None if unit.threads is None else str(unit.threads)),
        Column("memory", Unit.TEXT, lambda unit: unit.memory_bytes and size(unit.memory_bytes)),
        Column("speed", Unit.TEXT, speed),
        Column("excludes", Unit.TEXT, lambda unit: ", ".join(excluded[unit.name]) or None),
    ]
    return table("Units", columns, platform.units, most=len(platform.units))
