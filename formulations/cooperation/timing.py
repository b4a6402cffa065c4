"""A line of groups as stations: where a request is for how long, on devices and on links."""

from __future__ import annotations

from ..history import link_name
from ..stations import Station, Work, later, message
from .plans import Parts, Stage, stages_of
from .tables import Groups


def stations_of(groups: Groups, parts: Parts) -> tuple[Station, ...]:
    """Return the stations of a plan in order: the largest time of one is the period.

    The devices of a group are one station: they begin together, and the slowest sets its time. Without
    overlap its messages belong to it; with overlap they are stations of their own. Inputs and results of
    the other devices of a group are one message of its leader.
    """
    found: list[Station] = []
    stages = stages_of(groups, parts)
    leaders = [groups.devices[stage.service.leader] for stage in stages]
    host, first = groups.data.devices.host, 0
    for index, stage in enumerate(stages):
        group = stage.service.part[2]
        own = first + group.index(stage.service.leader)
        target = leaders[index + 1] if index + 1 < len(stages) else host
        others = "+".join(groups.devices[device] for device in group if device != stage.service.leader)
        before = (
            *message(link_name(host, leaders[index]), own, stage.receive_us),
            *message(link_name(leaders[index], others), own, stage.service.message_us),
        )
        behind = message(link_name(leaders[index], target), own, stage.send_us)
        line = (*before, _computing(groups, stage, first), *behind)
        found += line if groups.data.devices.overlap else [_joined(line)]
        first += len(group)
    return tuple(found)


def _computing(groups: Groups, stage: Stage, first: int) -> Station:
    """Return the station of a group that computes; `first`: the index of its first chunk."""
    service = stage.service
    works = tuple(
        Work(
            row=groups.devices[device],
            chunk=first + place,
            start_us=0,
            end_us=time_us,
            engine_us=(0, time_us),  # copies are part of it
        )
        for place, (device, time_us) in enumerate(zip(service.part[2], service.compute_us, strict=True))
    )
    return Station(time_us=max(service.compute_us), works=works)


def _joined(line: tuple[Station, ...]) -> Station:
    """Return stations as one, which does what they do one after the other."""
    at, works = 0, list[Work]()
    for station in line:
        works += later(station.works, at)
        at += station.time_us
    return Station(time_us=at, works=tuple(works))
