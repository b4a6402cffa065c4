"""What a plan of one network breaks, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator

from ..chain import Chain, Part
from ..errors import MalformedPlanError
from ..plan import Plan
from ..scores import Violation, shared_cores
from .quantities import PlanValues


def well_formed(chain: Chain, plan: Plan, *, once: bool = True) -> tuple[Part, ...]:
    """Return the chunks of a plan by index, in order of their layers; `once`: at most one chunk per unit."""
    parts = chain.parts(plan)
    wrong = tuple(_malformations(chain, parts, once=once))
    if wrong:
        raise MalformedPlanError(plan, wrong)
    return parts


def _malformations(chain: Chain, parts: tuple[Part, ...], *, once: bool) -> Iterator[Violation]:
    """Yield what keeps a plan from having a score at all."""
    at = 0
    seen: set[int] = set()
    before = -1
    for start, stop, unit in parts:
        if start != at:
            kind = "are covered twice" if start < at else "are not covered"
            low, high = min(start, at), max(start, at)
            yield Violation(rule="coverage", message=f"layers {low} to {high - 1} {kind}")
        if unit in seen and once:
            message = f"{_where(chain, start, stop, unit)} is a second chunk on that unit"
            yield Violation(rule="contiguity", message=message)
        elif unit == before:
            message = f"{_where(chain, start, stop, unit)} goes on where the chunk before it ends"
            yield Violation(rule="contiguity", message=message)
        if not chain.runs(start, stop, unit):
            stuck = [i for i in range(start, stop) if chain.layer_us[i][unit] is None]
            message = f"{_where(chain, start, stop, unit)}: cannot run layers {stuck}"
            yield Violation(rule="support", message=message)
        seen.add(unit)
        before = unit
        at = max(at, stop)
    if at != chain.layer_count:
        message = f"layers {at} to {chain.layer_count - 1} are not covered"
        yield Violation(rule="coverage", message=message)


def _where(chain: Chain, start: int, stop: int, unit: int) -> str:
    return f"chunk [{start}, {stop}) on {chain.units[unit]!r}"


def broken(values: PlanValues) -> Iterator[Violation]:
    """Yield which facts of the device a well-formed plan breaks."""
    chain, parts = values.chain, values.parts
    yield from shared_cores(values.busy_us, chain.exclusive, chain.units)
    for start, stop, unit in parts:
        if stop not in chain.cuts:
            where = _where(chain, start, stop, unit)
            yield Violation(rule="cut", message=f"{where} ends where no cut is allowed")
        own = values.chunks_of[unit]
        if (start, stop, unit) != own[0]:
            continue
        needs, capacity = values.memory_bytes[unit], chain.unit_memory[unit]
        if capacity is not None and needs > capacity:
            where = " and ".join(_where(chain, *part) for part in own)
            message = f"{where} needs {needs} bytes, has {capacity}"
            yield Violation(rule="unit_memory", message=message)
    if chain.device_memory is not None and values.peak_bytes > chain.device_memory:
        message = f"the plan needs {values.peak_bytes} bytes, the device has {chain.device_memory}"
        yield Violation(rule="device_memory", message=message)
