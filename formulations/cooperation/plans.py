"""Plans of groups by index, and what a request takes of each chunk of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..plan import Chunk, Plan
from .service import Part, Service
from .tables import Groups

Parts = tuple[Part, ...]
"""A plan: its chunks in order of their layers, each with its group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A chunk of a plan with its group.

    `receive_us`, `send_us`: how long the input from the host takes, and what its leader sends: to the next
    one, or to the host.
    """

    service: Service  # what a request takes of the group itself
    receive_us: int
    send_us: int
    stage_us: int  # how long a request takes of it

    @property
    def latency_us(self) -> int:
        """How long a request alone takes to pass."""
        return self.service.time_us + self.service.message_us + self.receive_us + self.send_us


def services_of(groups: Groups, parts: Parts) -> tuple[Service, ...]:
    """Return what a request takes of the group of each chunk of a well-formed plan."""
    services = tuple(service for part in parts if (service := groups.service(part)) is not None)
    assert len(services) == len(parts)
    return services


def stages_of(groups: Groups, services: Sequence[Service]) -> tuple[Stage, ...]:
    """Return what a request takes of each chunk of a plan, with all messages.

    A message over a link that is not there takes no time here; the judge reports it.
    """
    found = []
    for place, service in enumerate(services):
        start, stop, _ = service.part
        receives = (groups.enter_us[service.leader] or 0) if start == 0 else 0
        if place + 1 < len(services):
            sends = groups.between_us(service.leader, services[place + 1].leader, stop) or 0
        else:
            sends = groups.leave_us[service.leader] or 0
        stage_us = groups.stage_us(service, receives, sends)
        found.append(Stage(service=service, receive_us=receives, send_us=sends, stage_us=stage_us))
    return tuple(found)


def plan_of(groups: Groups, parts: Parts) -> Plan:
    """Return a plan by name: one chunk for each device of a group, in each of its steps."""
    return Plan(
        chunks=tuple(
            Chunk(network=groups.chain.network, start=start, stop=stop, unit=groups.devices[device])
            for service in services_of(groups, parts)
            for start, stop, group in (step.part for step in service.steps)
            for device in group
        )
    )
