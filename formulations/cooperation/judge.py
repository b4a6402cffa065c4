"""What a plan of groups breaks, in exact integers; independent of every encoding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise

from ..chain import gap
from ..errors import MalformedPlanError
from ..plan import Chunk, Plan
from ..scores import Violation, shared_cores
from .plans import Parts
from .quantities import GroupValues
from .service import Part, together
from .tables import Groups


def well_formed(groups: Groups, plan: Plan) -> Parts:
    """Return the chunks of a plan by index, those of a group as one.

    Where groups may take steps, chunks that share devices are steps of one. How many there are, and how they
    share rows, is no part of a plan: it is worked out anew (`Groups.service`).
    """
    unknown = tuple(_unknown(groups, plan))
    if unknown:
        raise MalformedPlanError(plan, unknown)
    place = {name: index for index, name in enumerate(groups.devices)}

    def interval(chunk: Chunk) -> tuple[int, int]:
        return chunk.start, chunk.stop

    parts = tuple(
        (start, stop, tuple(sorted(place[chunk.unit] for chunk in chunks)))
        for (start, stop), chunks in groupby(sorted(plan.chunks, key=interval), key=interval)
    )
    wrong = tuple(_not_covered(groups, parts))
    parts = together(parts) if groups.data.steps else parts
    wrong += tuple(_malformations(groups, parts))
    if wrong:
        raise MalformedPlanError(plan, wrong)
    return parts


def _unknown(groups: Groups, plan: Plan) -> Iterator[Violation]:
    yield from groups.chain.unknown(plan, noun="device")
    for chunk in plan.chunks:
        if chunk.request:
            where = f"chunk [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"
            yield Violation(rule="names", message=f"{where}: groups serve one stream without a name")
    if plan.order:
        yield Violation(rule="names", message=f"groups serve one stream, the plan lists {plan.order}")


def _not_covered(groups: Groups, parts: Parts) -> Iterator[Violation]:
    """Yield layers that nobody computes, or more than one group."""
    at = 0
    for start, stop, _ in (*parts, (groups.chain.layer_count,) * 2 + ((),)):
        yield from gap(at, start)
        at = max(at, stop)


def _malformations(groups: Groups, parts: Parts) -> Iterator[Violation]:
    """Yield what else keeps a plan from having a score at all."""
    seen = set[int]()
    for start, stop, group in parts:
        where = _where(groups, (start, stop, group))
        for device in group:
            if not groups.chain.runs(start, stop, device):
                name = groups.devices[device]
                yield Violation(rule="support", message=f"{where}: {name!r} cannot run all these layers")
            if device in seen:
                text = f"{where}: {groups.devices[device]!r} is in a group already"
                yield Violation(rule="contiguity", message=text)
            seen.add(device)
        if len(set(group)) == len(group) and groups.service((start, stop, group)) is None:
            yield Violation(rule="group", message=f"{where}: {_why_not(groups, (start, stop, group))}")


def _why_not(groups: Groups, part: Part) -> str:
    start, stop, group = part
    rows = groups.segments.of(start, stop).rows
    if len(group) > groups.most_group:
        return f"at most {groups.most_group} devices may be in a group"
    if groups.data.steps:
        return "no step of it can be split among all of them"
    if len(group) > rows:
        return f"its result has {rows} rows to share" if rows > 1 else "these layers cannot be split"
    return "no device of the group is linked with all others, both ways"


def _where(groups: Groups, part: Part) -> str:
    start, stop, group = part
    return f"chunk [{start}, {stop}) on {'+'.join(groups.devices[device] for device in group)}"


def broken(values: GroupValues) -> Iterator[Violation]:
    """Yield which facts of the devices a well-formed plan breaks."""
    groups, chain = values.groups, values.groups.chain
    yield from shared_cores(values.place, chain.exclusive, groups.devices)
    for device in sorted(values.place):
        capacity, needed = chain.unit_memory[device], values.memory_bytes[device]
        if capacity is not None and needed > capacity:
            text = f"{groups.devices[device]!r} needs {needed} bytes, has {capacity}"
            yield Violation(rule="unit_memory", message=text)
    if chain.device_memory is not None and values.peak_bytes > chain.device_memory:
        text = f"the plan needs {values.peak_bytes} bytes, the platform has {chain.device_memory}"
        yield Violation(rule="device_memory", message=text)
    for part in values.parts:
        if part[1] not in chain.cuts:
            yield Violation(rule="cut", message=f"{_where(groups, part)} ends where no cut is allowed")
    leaders = [stage.service.leader for stage in values.stages]
    for (one, other), part in zip(pairwise(leaders), values.parts, strict=False):
        if groups.between_us(one, other, part[1]) is None:
            text = f"there is no link from {groups.devices[one]!r} to {groups.devices[other]!r}"
            yield Violation(rule="link", message=text)
    first, last = leaders[0], leaders[-1]
    if groups.enter_us[first] is None or groups.leave_us[last] is None:
        device = first if groups.enter_us[first] is None else last
        text = f"there is no link between the host and {groups.devices[device]!r}"
        yield Violation(rule="link", message=text)
