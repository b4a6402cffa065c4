"""What happened to requests and units: the result of a simulation, or of a coordinator at work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Something that ran on a unit.

    `start_us`, `end_us`: from when to when. `first`, `last`: its sections [first, last).
    """

    unit: int  # index of the unit
    start_us: float
    end_us: float
    request: int  # number of the request
    first: int
    last: int
    silent: bool = False
    """Whether nobody was told: it fell back from the unit that its request had been given."""
    cut_off: bool = False  # whether its unit was lost before it was done: it ran again elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request, from its arrival to its answer."""

    number: int  # its own; those that came later have larger ones
    application: int  # index of the application or workflow that asked
    network: int  # index of its network
    arrival_us: float  # when it came, or when those were done that it waits for
    deadline_us: float | None  # when it had to be done, or None
    end_us: float | None  # when it was done; None: it was dropped, or not done when the record ended
    dropped: bool = False  # whether it was given up because it would have been late
    frame: int = -1  # number of its frame among those of its workflow; -1: it is of no frame
    after: tuple[int, ...] = ()  # numbers of the requests that it waited for
    weight: int = 1  # how much it counts when it is late

    @property
    def in_time(self) -> bool:
        """Whether it was done, and not late."""
        return self.end_us is not None and (self.deadline_us is None or self.end_us <= self.deadline_us)

    @property
    def latency_us(self) -> float | None:
        """From arrival to answer."""
        return None if self.end_us is None else self.end_us - self.arrival_us


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSpan:
    """One frame of a workflow.

    `start_us`, `end_us`: from its arrival to the end of its last request; None: it did not end.
    """

    application: int  # index of the workflow among all who ask
    frame: int  # its number
    start_us: float
    end_us: float | None
    deadline_us: float | None = None  # when it had to be done, or None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSpan:
    """A unit that could not be used.

    `start_us`, `end_us`: from when to when; None: to the end.
    """

    unit: int  # index of the unit
    start_us: float
    end_us: float | None
    cause: str  # "event", "heat", "rest", or what a coordinator says


@dataclass(frozen=True, kw_only=True)
class Record:
    """Everything that happened.

    Attributes
    ----------
    policy
        Name of the policy.
    units, networks, applications
        Names, by index.
    duration_us
        How long requests came in.
    end_us
        When the last of them was done.
    requests
        All requests, by number.
    ran
        What ran, in the order of its end.
    frames
        The frames of all workflows, in order of their arrival.
    away
        When units could not be used.
    decisions_ns
        How long the policy took for each decision.
    energy_mj
        Energy of the whole device in millijoule; None: powers are not known.
    """

    policy: str
    units: tuple[str, ...]
    networks: tuple[str, ...]
    applications: tuple[str, ...]
    duration_us: int
    end_us: float
    requests: tuple[Answered, ...]
    ran: tuple[Ran, ...]
    frames: tuple[FrameSpan, ...] = ()
    away: tuple[UnitSpan, ...] = ()
    decisions_ns: tuple[int, ...] = ()
    energy_mj: float | None = None

    @cached_property
    def busy_us(self) -> tuple[float, ...]:
        """How long something ran on each unit; what ran side by side counts once."""
        return tuple(covered_us(self.ran, {unit}) for unit in range(len(self.units)))

    @property
    def utilisation(self) -> tuple[float, ...]:
        """The same, as a share of the whole time."""
        return tuple(busy / self.end_us if self.end_us else 0.0 for busy in self.busy_us)

    @cached_property
    def done_frames(self) -> tuple[FrameSpan, ...]:
        """The frames that ended."""
        return tuple(frame for frame in self.frames if frame.end_us is not None)

    @property
    def frames_per_s(self) -> float | None:
        """Frames that ended, a second; None: there are none."""
        ends = [frame.end_us for frame in self.done_frames if frame.end_us is not None]
        return len(ends) * 1e6 / max(ends) if ends else None

    @property
    def energy_per_frame_mj(self) -> float | None:
        """Energy for each frame, or for each answered request where there are no frames."""
        count = len(self.done_frames) or sum(request.end_us is not None for request in self.requests)
        return None if self.energy_mj is None or not count else self.energy_mj / count

    def of(self, application: int) -> tuple[Answered, ...]:
        """Return the requests of an application or workflow."""
        return tuple(request for request in self.requests if request.application == application)

    def share_in_time(self, application: int | None = None) -> float | None:
        """Return the share of requests that were done in time; None: none has a deadline.

        Frames with a deadline count as one, and their requests not. Requests that were dropped, or not
        done at the end, are late.

        Parameters
        ----------
        application
            Of one of those who ask; None: of all.
        """
        marks = [
            request.in_time
            for request in self.requests
            if request.deadline_us is not None and application in (None, request.application)
        ]
        marks += [
            frame.end_us is not None and frame.end_us <= frame.deadline_us
            for frame in self.frames
            if frame.deadline_us is not None and application in (None, frame.application)
        ]
        return sum(marks) / len(marks) if marks else None

    def latencies_us(self, application: int | None = None) -> list[float]:
        """Return the latencies of the requests that were answered, ascending."""
        return sorted(
            request.latency_us
            for request in self.requests
            if request.latency_us is not None and application in (None, request.application)
        )

    def dropped(self, application: int | None = None) -> int:
        """Return how many requests were given up."""
        return sum(request.dropped for request in self.requests if application in (None, request.application))


def percentile(ascending: Sequence[float], permille: int) -> float | None:
    """Return the smallest value that so many of a thousand do not exceed; None: there are none."""
    if not ascending:
        return None
    return ascending[max(0, -(-len(ascending) * permille // 1000) - 1)]


def covered_us(ran: Iterable[Ran], units: Collection[int]) -> float:
    """Return how long something ran on any of some units; what ran side by side counts once."""
    total, until = 0.0, 0.0
    for start, end in sorted((each.start_us, each.end_us) for each in ran if each.unit in units):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
