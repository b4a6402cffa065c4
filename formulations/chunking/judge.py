"""What a plan of one network breaks, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator

from ..chain import Chain, Part
from ..errors import InvalidPlanError
from ..plan import Plan
from ..scores import Violation
from .quantities import PlanValues


def malformed(chain: Chain, plan: Plan) -> tuple[Violation, ...]:
    """Return what keeps a plan from having a score at all."""
    try:
        return malformations(chain, chain.parts(plan))
    except InvalidPlanError as error:
        return tuple(Violation(rule="names", message=text) for text in error.problems)


def malformations(chain: Chain, parts: tuple[Part, ...]) -> tuple[Violation, ...]:
    """Return what keeps a plan from having a score at all."""
    found = []
    at = 0
    seen: set[int] = set()
    for start, stop, unit in parts:
        where = f"chunk [{start}, {stop}) on {chain.units[unit]!r}"
        if start != at:
            kind = "are covered twice" if start < at else "are not covered"
            low, high = min(start, at), max(start, at)
            found.append(Violation(rule="coverage", message=f"layers {low} to {high - 1} {kind}"))
        if unit in seen:
            found.append(Violation(rule="contiguity", message=f"{where} is a second chunk on that unit"))
        if not chain.runs(start, stop, unit):
            stuck = [i for i in range(start, stop) if chain.layer_us[i][unit] is None]
            found.append(Violation(rule="support", message=f"{where}: cannot run layers {stuck}"))
        seen.add(unit)
        at = max(at, stop)
    if at != chain.layer_count:
        message = f"layers {at} to {chain.layer_count - 1} are not covered"
        found.append(Violation(rule="coverage", message=message))
    return tuple(found)


def broken(values: PlanValues) -> Iterator[Violation]:
    """Yield which facts of the device a well-formed plan breaks."""
    chain, parts = values.chain, values.parts
    used = {unit for _, _, unit in parts}
    for start, stop, unit in parts:
        where = f"chunk [{start}, {stop}) on {chain.units[unit]!r}"
        if stop not in chain.cuts:
            yield Violation(rule="cut", message=f"{where} ends where no cut is allowed")
        for other in sorted(chain.exclusive[unit] & used):
            if other > unit:
                names = f"{chain.units[unit]!r} and {chain.units[other]!r}"
                yield Violation(rule="conflict", message=f"units {names} share cores")
        if not chain.fits(start, stop, unit):
            message = f"{where} needs {values.memory_bytes[unit]} bytes, has {chain.unit_memory[unit]}"
            yield Violation(rule="unit_memory", message=message)
    if chain.device_memory is not None and values.peak_bytes > chain.device_memory:
        message = f"the plan needs {values.peak_bytes} bytes, the device has {chain.device_memory}"
        yield Violation(rule="device_memory", message=message)
