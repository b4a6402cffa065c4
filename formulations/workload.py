"""Workloads: the requests that share the units of one device, and how they are served."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from typing import ClassVar

from .deployment import Mode
from .errors import InvalidInputError, InvalidProblemError
from .validation import Defects, FileContent, meant

MOST_REQUESTS = 10_000
"""Most requests of one workload."""

MOST_BATCH = 1_000
"""Most inferences that one request stands for."""


class RequestOrder(StrEnum):
    """Who decides in which order the units serve the requests.

    FREE
        The planner.
    FIXED
        The workload: the order in which its requests are listed.
    """

    FREE = "free"
    FIXED = "fixed"


class Execution(StrEnum):
    """How the units keep step (formulations, section 4).

    ASYNCHRONOUS
        A chunk starts as soon as its request and its unit are ready.
    COLUMNS
        Hetero2Pipe's synchronous model (Definition 3): the chunks with the same position + unit index
        start together, and the next column waits for the last of them.
    """

    ASYNCHRONOUS = "asynchronous"
    COLUMNS = "columns"


class LoadPolicy(StrEnum):
    """Which weights are in memory: those of all chunks (RESIDENT), or of running chunks only (RUNNING)."""

    RESIDENT = "resident"
    RUNNING = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(FileContent):
    """One inference of one network.

    Attributes
    ----------
    name
        Unique in its workload.
    network
        Name of the network.
    arrival_us
        When it comes in; nothing of it starts before.
    deadline_us
        Most time from arrival to exit, or None for no deadline.
    """

    name: str
    network: str
    arrival_us: int = 0
    deadline_us: int | None = None

    def __post_init__(self) -> None:
        defects = Defects(f"request {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_name("network", self.network)
        defects.check_count("arrival_us", self.arrival_us)
        if self.deadline_us is not None:
            defects.check_count("deadline_us", self.deadline_us, least=1)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(FileContent):
    """Requests that share the units of one platform.

    Every request passes the units in the order of the platform, in at most one chunk on each; every
    unit serves the requests in one common order.

    Attributes
    ----------
    requests
        The requests. Their order is the order of arrival, which displacement is measured from.
    order
        Whether the planner may change it.
    mode
        A finite batch, or a stream that repeats the requests.
    execution
        How the units keep step.
    load_policy
        Which weights are in memory.
    task_slots
        Most requests on their way at once: the next one enters when an earlier one has left. None: no
        limit.
    """

    data_key: ClassVar[str] = "workload"

    requests: tuple[Request, ...]
    order: RequestOrder = RequestOrder.FREE
    mode: Mode = Mode.BATCH
    execution: Execution = Execution.ASYNCHRONOUS
    load_policy: LoadPolicy = LoadPolicy.RESIDENT
    task_slots: int | None = None

    def __post_init__(self) -> None:
        defects = Defects("workload")
        defects.check_size("requests", len(self.requests), most=MOST_REQUESTS)
        defects.check_unique("request names", self.names)
        if self.task_slots is not None:
            defects.check_count("task_slots", self.task_slots, least=1)
        if self.execution is Execution.COLUMNS:
            if any(request.arrival_us for request in self.requests):
                defects.add("columns start together: no request can arrive later; use asynchronous")
            if self.task_slots is not None:
                defects.add("columns have no task slots; use asynchronous")
        if self.mode is Mode.STREAM and any(r.arrival_us or r.deadline_us for r in self.requests):
            defects.add("a stream has no arrivals and deadlines; use a batch")
        defects.raise_as(InvalidProblemError)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the requests."""
        return tuple(request.name for request in self.requests)

    @property
    def entered_us(self) -> tuple[int, ...]:
        """When each request comes."""
        return tuple(request.arrival_us for request in self.requests)


def with_windows(workload: Workload, windows: Mapping[str, tuple[int, int | None]]) -> Workload:
    """Return a workload whose requests come and have to be done at given times.

    `windows`: from the name of a request, or of a network for all its requests and batches, to (when it
    comes, when it has to be done), microseconds from the start; None: no deadline.
    """
    networks = {split_batch(request.network)[0] for request in workload.requests}
    named = {*workload.names, *networks}
    for name, (begin, end) in windows.items():
        if name not in named:
            raise InvalidInputError(f"no request {name!r} has a window; {meant(name, sorted(named))}")
        if end is not None and end <= begin:
            raise InvalidInputError(f"the window of {name!r} ends at {end} us, not after {begin} us")

    def within(request: Request) -> Request:
        window = windows.get(request.name, windows.get(split_batch(request.network)[0]))
        if window is None:
            return request
        begin, end = window
        return replace(request, arrival_us=begin, deadline_us=None if end is None else end - begin)

    return replace(workload, requests=tuple(map(within, workload.requests)))


def requests_of(text: str, known: Collection[str], *, batches: bool = False) -> tuple[Request, ...]:
    """Read requests as a user writes them: "yolov4,bert,mobilenetv2x3".

    The entries stand between commas. Each is the name of a network; `xN` behind it makes N requests of it,
    `*B` makes each of them a batch of B inferences: "mobilenetv2*4x3". A network whose name ends like that
    is taken by its name. A network that is asked for once gives its request its name; otherwise the
    requests are numbered, "mobilenetv2#1" first. A batch is a network of its own, "mobilenetv2*4".

    Raises InvalidInputError: an entry is empty, names no known network, or asks for none or too many; every
    one is named.
    """
    defects = Defects(f"workload {text[:100]!r}")
    networks: list[str] = []
    for place, entry in enumerate(text.split(","), start=1):
        try:
            network, many = _entry(entry.strip(), known, batches=batches)
        except InvalidInputError as error:
            defects.add(f"entry {place}: {error}")
        else:
            networks += [network] * (many if len(networks) <= MOST_REQUESTS else 0)
    if len(networks) > MOST_REQUESTS:
        defects.add(f"it asks for more than {MOST_REQUESTS} requests")
    defects.raise_as(InvalidInputError)
    total, number = Counter(networks), {network: count(1) for network in networks}
    names = [f"{name}#{next(number[name])}" if total[name] > 1 else name for name in networks]
    return tuple(Request(name=name, network=of) for name, of in zip(names, networks, strict=True))


def split_batch(network: str) -> tuple[str, int]:
    """Return the network and the size of a batch that `requests_of` named: ("mobilenetv2", 4)."""
    name, star, size = network.rpartition("*")
    return (name, int(size)) if star and size.isdecimal() else (network, 1)


def _entry(text: str, known: Collection[str], *, batches: bool) -> tuple[str, int]:
    """Return the network of an entry, and how many requests of it are asked for."""
    for name, many in _readings(text, "x"):
        for single, size in _readings(name, "*"):
            if single in known:
                if single != name and not batches:
                    raise InvalidInputError(
                        f"{name[:100]!r} is a batch, and its costs are not known; profile a model with that "
                        "batch size, and ask for it by its own name"
                    )
                requests = _number(many, "a number of requests of", most=MOST_REQUESTS)
                batch = _number(size, "a batch of", most=MOST_BATCH)
                return (f"{single}*{batch}" if batch > 1 else single), requests
    raise InvalidInputError(_unknown(text, known))


def _readings(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the text as it stands, and split at its last mark if a whole number follows."""
    yield text, "1"
    name, _, number = text.rpartition(mark)
    if name and number.isdecimal() and number.isascii():
        yield name, number


def _number(digits: str, what: str, *, most: int) -> int:
    if len(digits) > len(str(most)) or not 1 <= int(digits) <= most:
        raise InvalidInputError(f"{what} {digits[:20]} is asked for; from 1 to {most} is possible")
    return int(digits)


def _unknown(text: str, known: Collection[str]) -> str:
    if not text:
        return "it is empty; write networks between commas"
    *_, (shown, _) = _readings(text[:100], "x")
    *_, (shown, _) = _readings(shown, "*")
    return f"no network is called {shown!r}; {meant(shown, sorted(known))}"
