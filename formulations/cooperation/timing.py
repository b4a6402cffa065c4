"""A line of groups as stations: where a request is for how long, on devices and on links."""

from __future__ import annotations

from collections.abc import Sequence

from ..history import link_name
from ..stations import Station, Work, later, message
from .plans import stages_of
from .service import Service
from .tables import Groups


def stations_of(groups: Groups, services: Sequence[Service]) -> tuple[Station, ...]:
    """Return the stations of a plan in order: the largest time of one is the period.

    The devices of a group are one station: they begin each step together, and the slowest sets its time.
    Without overlap its messages belong to it; with overlap they are stations of their own. Inputs and
    results of the other devices of a group are one message of its leader.
    """
    found: list[Station] = []
    stages = stages_of(groups, services)
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
        line = (*before, _computing(groups, stage.service, first), *behind)
        found += line if groups.data.devices.overlap else [_joined(line)]
        first += sum(len(step.part[2]) for step in stage.service.steps)
    return tuple(found)


def _computing(groups: Groups, service: Service, first: int) -> Station:
    """Return the station of a group that computes; `first`: the index of its first chunk."""
    works, at, copies = list[Work](), 0, groups.chain
    for step in service.steps:
        works += [
            Work(
                row=groups.devices[device],
                chunk=first + len(works) + place,
                start_us=at,
                end_us=at + time_us,
                engine_us=(
                    at + copies.transfer_in_us[step.part[0]][device],
                    at + time_us - copies.transfer_out_us[step.part[1]][device],
                ),
            )
            for place, (device, time_us) in enumerate(zip(step.part[2], step.compute_us, strict=True))
        ]
        at += max(step.compute_us)
    return Station(time_us=at, works=tuple(works))


def _joined(line: tuple[Station, ...]) -> Station:
    """Return stations as one, which does what they do one after the other."""
    at, works = 0, list[Work]()
    for station in line:
        works += later(station.works, at)
        at += station.time_us
    return Station(time_us=at, works=tuple(works))
