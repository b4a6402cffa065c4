"""Workers of units, wherever they are: what a coordinator needs of them, and those on this machine."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
from typing import Protocol

from ...formulations.hardware import ProcessingUnit
from ..workers import Message, Worker
from .held import HeldNetwork, TaskSlots
from .worker import serve


class UnitWorker(Protocol):
    """The coordinator's end of a worker, which answers one message after the other (`worker.serve`)."""

    @property
    def pid(self) -> int:
        """Its process number, on the machine where it is."""

    @property
    def descriptor(self) -> int:
        """Readable when a message waits, or when it is lost."""

    def send(self, message: Message) -> None:
        """Send a message; returns at once. Raises UnitLostError: it is gone."""

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """Return the next message, or None when none came in time; raises what it met, or UnitLostError."""

    def close(self, *, patience_s: float = 0.0) -> None:
        """End it: from now on it touches no task slot. Can be called twice."""


class Workers(Protocol):
    """Where the workers of a coordinator are."""

    def start(self, unit: ProcessingUnit, engines: Collection[str] | None) -> UnitWorker:
        """Start a worker, which says "ready" first. `engines`: that it will load; None: not known."""

    def opening(self, held: HeldNetwork, index: int, unit: int, slots: TaskSlots) -> Message:
        """Return what has a worker open a network; `unit`: index of its unit."""


class OwnWorkers:
    """Workers on this machine: they share the memory of task slots."""

    def start(self, unit: ProcessingUnit, engines: Collection[str] | None) -> UnitWorker:
        """See `Workers`."""
        return Worker(unit, serve, {}, engines=engines)

    def opening(self, held: HeldNetwork, index: int, unit: int, slots: TaskSlots) -> Message:
        """See `Workers`."""
        return {"kind": "open", "settings": asdict(held.settings(index, unit, slots.memory))}
