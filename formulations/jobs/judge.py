"""What a plan of single requests is by index, and what it breaks, in exact integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..errors import MalformedPlanError
from ..plan import Chunk, Plan
from ..scores import Violation
from .play import Part
from .quantities import JobValues
from .tables import JobPlan, JobTables


def well_formed(tables: JobTables, plan: Plan) -> JobPlan:
    """Return a plan by index."""
    names = tables.jobs.names
    index = {name: number for number, name in enumerate(names)}
    own: list[list[Chunk]] = [[] for _ in names]
    wrong: list[Violation] = []
    for chunk in plan.chunks:
        if chunk.request in index:
            own[index[chunk.request]].append(chunk)
        else:
            wrong.append(Violation(rule="names", message=f"{chunk.request!r} is no request; see the problem"))
    parts = []
    for request, chunks in enumerate(own):
        found: list[Violation] = []
        parts.append(_parts(tables, request, chunks, found))
        wrong += found
    wrong += _disorder(tables, plan)
    if wrong:
        raise MalformedPlanError(plan, wrong)
    return tables.ordered(tuple(index[name] for name in plan.order), tuple(parts))


def _parts(tables: JobTables, request: int, chunks: list[Chunk], wrong: list[Violation]) -> tuple[Part, ...]:
    """Return the chunks of a request by index; what is wrong with them is added to `wrong`."""
    chain, name = tables.chain(request), tables.jobs.names[request]
    sections = tables.sections[tables.chain_of[request]]
    starts = {section.start: number for number, section in enumerate(sections)}
    stops = {section.stop: number + 1 for number, section in enumerate(sections)}
    parts, at = [], 0
    for chunk in chunks:
        where = f"request {name!r}, chunk [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"

        def note(rule: str, text: str, where: str = where) -> None:
            wrong.append(Violation(rule=rule, message=f"{where}: {text}"))

        if chunk.network != chain.network:
            note("names", f"it is of network {chunk.network!r}, not {chain.network!r}")
        elif chunk.unit not in tables.units:
            note("names", f"no such unit; the platform has {', '.join(tables.units)}")
        elif chunk.stop not in stops:
            note("sections", f"it ends inside a section; sections end at {', '.join(map(str, stops))}")
        elif chunk.start in starts:
            part = (starts[chunk.start], stops[chunk.stop], tables.units.index(chunk.unit))
            if not chain.runs(chunk.start, chunk.stop, part[2]):
                note("support", "the unit cannot run all of it")
            parts.append(part)
        if chunk.start != at:
            note("coverage", f"it does not start at layer {at}, where the one before ends")
        at = chunk.stop
    if at != chain.layer_count:
        text = f"request {name!r}: its chunks end at layer {at}, the network has {chain.layer_count}"
        wrong.append(Violation(rule="coverage", message=text))
    return tuple(parts)


def _disorder(tables: JobTables, plan: Plan) -> Iterator[Violation]:
    named = Counter(plan.order)
    for name in sorted({*named, *(chunk.request for chunk in plan.chunks)}):
        count = len(plan.of(name))
        if named[name] != count:
            text = f"the order names {name!r} {named[name]} times, it has {count} chunks"
            yield Violation(rule="order", message=text)
    last = {name: place for place, name in enumerate(plan.order)}
    first = {name: place for place, name in reversed(list(enumerate(plan.order)))}
    for request in tables.jobs.requests:
        for other in request.after:
            if first.get(request.name, len(plan.order)) < last.get(other, 0):
                text = f"the order has {request.name!r} before the last chunk of {other!r}"
                yield Violation(rule="order", message=f"{text}, which it waits for")


def broken(values: JobValues) -> Iterator[Violation]:
    """Yield which facts of the device a well-formed plan breaks."""
    tables = values.tables
    first = tables.chains[0]
    used = set(values.busy_us)
    for unit in sorted(used):
        for other in sorted(first.exclusive[unit] & used):
            if other > unit:
                names = f"{tables.units[unit]!r} and {tables.units[other]!r}"
                yield Violation(rule="conflict", message=f"units {names} share cores")
    for request, parts in enumerate(values.code.parts):
        if not tables.visits.allows(part[2] for part in parts):
            units = ", ".join(tables.units[part[2]] for part in parts)
            text = f"request {tables.jobs.names[request]!r} is on {units}; passage {tables.jobs.passage}"
            yield Violation(rule="passage", message=f"{text} forbids that")
        for part in parts:
            if not tables.fits(request, part):
                start, stop = tables.layers(request, part)
                where = f"request {tables.jobs.names[request]!r}, chunk [{start}, {stop})"
                needs, has = tables.memory_bytes(request, part), first.unit_memory[part[2]]
                text = f"{where} on {tables.units[part[2]]!r} needs {needs} bytes, has {has}"
                yield Violation(rule="unit_memory", message=text)
    if first.device_memory is not None and values.loaded_bytes > first.device_memory:
        text = f"the chunks in use need {values.loaded_bytes} bytes, the device has {first.device_memory}"
        yield Violation(rule="device_memory", message=text)
