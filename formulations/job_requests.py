"""Requests whose chunks the planner places freely: the data of the formulation of single requests.

A frame or a recorded stretch of a scenario, with everything known beforehand: what an all-knowing planner
would do with it bounds what policies reach (coordination, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from .errors import InvalidProblemError
from .nearness import meant, shown
from .validation import Defects, FileContent

MOST_JOB_REQUESTS = 10_000
"""Most requests of one problem."""


ORDERED = "ordered"
PASSAGES = ("any", "once", ORDERED)
"""How requests may pass the units; `ordered` can name the units: "ordered:gpu,npu"."""


class Cuts(StrEnum):
    """Where requests may be cut.

    SECTIONS
        Where other units can run the layers, and at the given borders.
    ALL
        At every legal cut. Two chunks in a row may be on one unit: a break at which others may go first.
    """

    SECTIONS = "sections"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest(FileContent):
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
class SectionBorders(FileContent):
    """Cuts of a network at which a section ends although the same units can run both sides.

    Attributes
    ----------
    network
        Name of the network.
    cuts
        Legal cuts of it.
    """

    network: str
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        defects = Defects(f"borders of {self.network!r}")
        defects.check_name("network", self.network)
        defects.check_counts("cuts", self.cuts)
        defects.check_unique("cuts", self.cuts)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs(FileContent):
    """Requests, each in one chunk or several, on whatever units and in whatever order suit them.

    Attributes
    ----------
    requests
        The requests; those that wait for others stand behind them.
    borders
        Further borders between sections, at most one entry for each network.
    cuts
        Where requests may be cut.
    passage
        "any": a request may come back to a unit. "once": each unit has at most one chunk of it. "ordered":
        the same, and the units come in the order of the platform; "ordered:UNIT,UNIT,...": in this order.
    """

    data_key: ClassVar[str] = "jobs"

    requests: tuple[JobRequest, ...]
    borders: tuple[SectionBorders, ...] = ()
    cuts: Cuts = Cuts.SECTIONS
    passage: str = "any"

    def __post_init__(self) -> None:
        defects = Defects("jobs")
        defects.check_size("requests", len(self.requests), most=MOST_JOB_REQUESTS)
        defects.check_unique("request names", self.names)
        defects.check_unique("networks with borders", [each.network for each in self.borders])
        for text in (*self._strange_waits(), *passage_defects(self.passage)):
            defects.add(text)
        if self.cuts is Cuts.ALL and self.borders:
            defects.add('borders add nothing where cuts are "all"; leave one of them out')
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

    @property
    def entered_us(self) -> tuple[int, ...]:
        """When each request is released."""
        return tuple(request.release_us for request in self.requests)

    def unit_order(self, units: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the order in which requests pass the units of a platform; None: any."""
        kind, _, named = self.passage.partition(":")
        if kind != ORDERED:
            return None
        return tuple(named.split(",")) if named else units


def passage_defects(passage: str) -> Iterator[str]:
    """Yield what is wrong with the text of a passage."""
    kind, colon, named = passage.partition(":")
    if kind not in PASSAGES or (colon and kind != ORDERED):
        yield f"passage is {shown(passage)}; {meant(kind, (*PASSAGES, 'ordered:UNIT,UNIT,...'))}"
        return
    units = named.split(",") if colon else []
    if "" in units:
        yield f"passage {shown(passage)} names no units; write them between commas"
    elif len(set(units)) != len(units):
        yield f"passage {shown(passage)} names a unit twice"
