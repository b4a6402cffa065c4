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

    def stuck(start: int, stop: int, unit: int) -> str:
        missing = [i for i in range(start, stop) if chain.layer_us[i][unit] is None]
        return f"cannot run layers {missing}" if missing else ""

    wrong = tuple(chain.malformed(parts, set(), stuck, once=once))
    if wrong:
        raise MalformedPlanError(plan, wrong)
    return parts


def broken(values: PlanValues) -> Iterator[Violation]:
    """Yield which facts of the device a well-formed plan breaks."""
    chain, parts = values.chain, values.parts
    yield from shared_cores(values.busy_us, chain.exclusive, chain.units)
    for start, stop, unit in parts:
        yield from chain.uncut(start, stop, unit)
        own = values.chunks_of[unit]
        if (start, stop, unit) != own[0]:
            continue
        needs, capacity = values.memory_bytes[unit], chain.unit_memory[unit]
        if capacity is not None and needs > capacity:
            where = " and ".join(chain.where(*part) for part in own)
            message = f"{where} needs {needs} bytes, has {capacity}"
            yield Violation(rule="unit_memory", message=message)
    if chain.device_memory is not None and values.peak_bytes > chain.device_memory:
        message = f"the plan needs {values.peak_bytes} bytes, the device has {chain.device_memory}"
        yield Violation(rule="device_memory", message=message)
