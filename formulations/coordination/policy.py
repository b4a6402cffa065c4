"""Policies: who decides, whenever something comes or ends, what runs next and where (Band, 4.3.1).

A policy sees the frozen values of this module and `Times`, never the runtime, so the same object decides in
the simulation and on a device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, NamedTuple

from ..errors import InvalidInputError
from .sections import Fallback
from .times import Times


class Waiting(NamedTuple):
    """A request, or what is left of it, that waits for a unit. Times are microseconds.

    Attributes
    ----------
    number
        Its own; requests that come later have larger ones.
    network
        Index of its network.
    application
        Index of who asked for it.
    arrival_us
        When it came.
    deadline_us
        When it has to be done, or None.
    done
        Number of its sections that are done: what is left begins there.
    weight
        How much it counts when it is late.
    priority
        Requests of smaller numbers are decided about first.
    expires
        Whether it is dropped once it cannot meet its deadline, whatever becomes of others.
    """

    number: int
    network: int
    application: int
    arrival_us: int
    deadline_us: int | None = None
    done: int = 0
    weight: int = 1
    priority: int = 0
    expires: bool = False


class UnitState(NamedTuple):
    """What a policy sees of a unit.

    Attributes
    ----------
    available
        Whether it can be used at all: it may be too hot, withdrawn, or busy with measurements.
    running
        Number of chunks that it runs.
    wait_us
        How long, as far as is known, until it is free.
    """

    available: bool = True
    running: int = 0
    wait_us: int = 0

    @property
    def idle(self) -> bool:
        """Whether it can start something now."""
        return self.available and not self.running


class Decision(NamedTuple):
    """Start a request, or go on with it.

    Attributes
    ----------
    request
        Its number.
    stop
        Number of its sections that are done afterwards: the chunk ends there.
    unit
        Index of the unit.
    """

    request: int
    stop: int
    unit: int


class Place(StrEnum):
    """Where the rest of a request waits when one of its chunks is done."""

    HEAD = "head"
    TAIL = "tail"


class Conduct(StrEnum):
    """How a policy uses the units.

    CHUNKS
        Each decision names a chunk that its unit can run all of; a unit runs one at a time.
    WHOLE
        Requests are placed whole. A unit stays reserved while layers that it cannot run go to the processor,
        which nobody is told of (Band, 3.2.2: the silent fallback).
    ALONE
        As WHOLE, by applications that know nothing of each other: a unit runs whatever is sent to it at the
        same time.
    """

    CHUNKS = "chunks"
    WHOLE = "whole"
    ALONE = "alone"


class Policy(ABC):
    """Decides which request runs next, how far, and on which unit."""

    name: str
    """As `--policy` and reports call it."""

    conduct: Conduct = Conduct.CHUNKS
    """How it uses the units."""

    any_chunk: bool = False
    """Whether it may start chunks that are on no shortest way: then a coordinator loads them all."""

    fallback: Fallback = Fallback.BACK_AND_FORTH
    """Where layers run that a unit cannot run, if it places networks whole."""

    @abstractmethod
    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return what to start now; it is asked again until it has nothing.

        Parameters
        ----------
        now_us
            The time.
        queue
            What waits, in the order in which it was put there; at least one.
        units
            The units of the platform, in its order.
        times
            What chunks are expected to take.
        """

    adapts: ClassVar[bool] = False
    """Whether it follows a plan that it is given (`follow`), and decides itself where that does not fit."""

    def follow(self, routes: Mapping[int, Sequence[tuple[tuple[int, int], ...]]], times: Times) -> None:
        """Follow a plan, if the policy adapts plans.

        Parameters
        ----------
        routes
            By index of the network, ways through it: chunks, as sections that are done behind one, and unit.
        times
            What chunks are expected to take.
        """
        raise InvalidInputError(
            f"policy {self.name!r} follows no plan; take `adaptive`, or serve the plan without a policy"
        )

    def live(self) -> None:  # noqa: B027 - most need no time
        """Take note that time passes while the policy thinks: it serves a device, not a simulation."""

    def begin(self, times: Times, demand: Sequence[float]) -> None:  # noqa: B027 - most keep nothing
        """Prepare for requests of these networks; called at the start, and when networks are added.

        Parameters
        ----------
        times
            What chunks are expected to take.
        demand
            By network, how many requests come, as far as that is known: relative to each other.
        """

    def requeue(self, request: Waiting) -> Place:
        """Return where the rest of a request waits; the paper's default policy says: at the head."""
        return Place.HEAD

    def changed(self, units: Sequence[UnitState]) -> None:  # noqa: B027 - most keep nothing
        """Take note that a unit has left or is back."""

    def took(  # noqa: B027 - most read what `Times` has learned
        self, request: Waiting, decision: Decision, took_us: float, expected_us: float
    ) -> None:
        """Take note of how long a chunk took, before `Times` does.

        Parameters
        ----------
        request
            As it was when the chunk was started.
        decision
            The chunk.
        took_us
            How long it took.
        expected_us
            How long it was expected to take when it was started.
        """

    def ended(self, request: Waiting) -> None:  # noqa: B027 - most keep nothing
        """Take note that a chunk of a request is done, or was given up because its unit was lost."""
