"""Requests whose chunks the planner places freely: the data of the formulation of single requests.

A frame or a recorded stretch of a scenario, with everything known beforehand: what an all-knowing planner
would do with it bounds what policies reach (coordination, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from .errors import InvalidProblemError
from .validation import STRICT, Defects

MOST_JOB_REQUESTS = 10_000
"""Most requests of one problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One inference of one network.

    Attributes
    ----------
    name
        Unique among the requests.
    network
        Name of the network.
    release_us
        Nothing of it starts before; its latency and its deadline count from here.
    deadline_us
        By when after its release it has to be done, or it is late; None: it never is.
    weight
        How much it counts where requests are added up.
    after
        Names of requests before it in the list that have to be done before it can start. Its latency and
        its deadline count from its own release all the same.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    network: str
    release_us: int = 0
    deadline_us: int | None = None
    weight: int = 1
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects(f"request {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_name("network", self.network)
        defects.check_count("release_us", self.release_us)
        if self.deadline_us is not None:
            defects.check_count("deadline_us", self.deadline_us, least=1)
        defects.check_count("weight", self.weight)
        defects.check_unique("after", self.after)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionBorders:
    """Cuts of a network at which a section ends although the same units can run both sides.

    Attributes
    ----------
    network
        Name of the network.
    cuts
        Legal cuts of it.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    network: str
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        defects = Defects(f"borders of {self.network!r}")
        defects.check_name("network", self.network)
        defects.check_counts("cuts", self.cuts)
        defects.check_unique("cuts", self.cuts)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Requests, each in one chunk or several, on whatever units and in whatever order suit them.

    Attributes
    ----------
    requests
        The requests; those that wait for others stand behind them.
    borders
        Further borders between sections, at most one entry for each network.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    data_key: ClassVar[str] = "jobs"

    requests: tuple[JobRequest, ...]
    borders: tuple[SectionBorders, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects("jobs")
        defects.check_size("requests", len(self.requests), most=MOST_JOB_REQUESTS)
        defects.check_unique("request names", self.names)
        defects.check_unique("networks with borders", [each.network for each in self.borders])
        for text in self._strange_waits():
            defects.add(text)
        defects.raise_as(InvalidProblemError)

    def _strange_waits(self) -> Iterator[str]:
        before: set[str] = set()
        for request in self.requests:
            for name in request.after:
                if name not in before:
                    yield f"request {request.name!r} waits for {name!r}, which no request before it is called"
            before.add(request.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the requests."""
        return tuple(request.name for request in self.requests)
