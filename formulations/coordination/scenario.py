"""Scenarios: which applications ask for which networks, when, and by when they need the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import cycle, islice
from random import Random

from ..errors import InvalidProblemError
from ..json_files import Schema
from ..validation import Defects, FileContent
from .behaviour import Behaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals(FileContent):
    """When requests come: exactly one of the three is given.

    Attributes
    ----------
    period_us
        One each period, the first at `phase_us`.
    rate_per_s
        Requests a second on average, at independent times (Poisson).
    at_us
        At these times, ascending.
    phase_us
        When a period begins.
    """

    period_us: int | None = None
    rate_per_s: float | None = None
    at_us: tuple[int, ...] | None = None
    phase_us: int = 0

    def __post_init__(self) -> None:
        defects = Defects("arrivals")
        if sum(given is not None for given in (self.period_us, self.rate_per_s, self.at_us)) != 1:
            defects.add("exactly one of period_us, rate_per_s and at_us is needed")
        if self.period_us is not None:
            defects.check_count("period_us", self.period_us, least=1)
        if self.rate_per_s is not None and not 0 < self.rate_per_s <= MOST_RATE_PER_S:
            defects.add(f"rate_per_s is {self.rate_per_s}, must be above 0 and at most {MOST_RATE_PER_S:g}")
        if self.at_us is not None:
            defects.check_counts("at_us", self.at_us)
            if list(self.at_us) != sorted(self.at_us):
                defects.add("at_us must ascend")
        defects.check_count("phase_us", self.phase_us)
        defects.raise_as(InvalidProblemError)

    def a_second(self, duration_us: int) -> float:
        """Return how many requests come a second on average, of those that last so long."""
        if self.at_us is not None:
            return len(self.at_us) * 1e6 / duration_us
        return self.rate_per_s or 1e6 / (self.period_us or 1)


MOST_RATE_PER_S = 1e6
"""More requests a second are a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Application(FileContent):
    """Someone who asks for one inference of one network at a time, independently of others.

    Attributes
    ----------
    name
        Unique in its scenario.
    network
        Name of the network.
    arrivals
        When it asks.
    deadline_us
        By when after its arrival a request has to be done; None: see `deadline_permille`.
    deadline_permille
        The same, in permille of the 99th percentile of its time alone on the fastest unit (Band, 6.4).
        Neither: no deadline.
    weight
        How much a late request counts.
    """

    name: str
    network: str
    arrivals: Arrivals
    deadline_us: int | None = None
    deadline_permille: int | None = None
    weight: int = 1

    def __post_init__(self) -> None:
        defects = Defects(f"application {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_name("network", self.network)
        for field in ("deadline_us", "deadline_permille"):
            if (value := getattr(self, field)) is not None:
                defects.check_count(field, value, least=1)
        if self.deadline_us is not None and self.deadline_permille is not None:
            defects.add("it has two deadlines: give deadline_us or deadline_permille")
        defects.check_count("weight", self.weight)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameStep(FileContent):
    """Requests of one network in each frame of a workflow.

    Attributes
    ----------
    name
        Unique in its workflow.
    network
        Name of the network.
    mean
        How many a frame has on average (without `after`), or how many follow each request of that step.
        The counts of a frame are drawn (Poisson), or exactly this one where it is a whole number and `exact`.
    after
        The step whose requests each of these waits for: its results are what these work on. Empty: none.
    exact
        Whether each frame has exactly `mean`.
    """

    name: str
    network: str
    mean: float
    after: str = ""
    exact: bool = False

    def __post_init__(self) -> None:
        defects = Defects(f"step {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_name("network", self.network)
        if not 0 < self.mean <= MOST_MEAN:
            defects.add(f"mean is {self.mean}, must be above 0 and at most {MOST_MEAN}")
        elif self.exact and self.mean != int(self.mean):
            defects.add(f"mean is {self.mean}: exactly that many cannot be")
        defects.raise_as(InvalidProblemError)


MOST_MEAN = 1000
"""Most requests of one step on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow(FileContent):
    """An application whose frames are graphs of requests, one frame after the other (Band, 6.2).

    Attributes
    ----------
    name
        Unique in its scenario, among the applications, too.
    steps
        What a frame asks for; a step stands behind the one that it waits for.
    arrivals
        When frames come; None: each when the one before is done.
    deadline_us
        By when after its arrival a frame has to be done; None: no deadline.
    crowded_permille
        Only the frames with most requests are taken: this number of a thousand. 1000: all.
    crowd
        A count for each frame, of the faces in a video, say: the means of the steps that wait for none are
        multiplied by its count over the mean of all, frame after frame, and then from the beginning. Frames
        with a count of 0 ask for nothing, others for one request at least.
    crowding_permille
        The same with counts that are drawn: how much they deviate from their mean (standard deviation, of a
        gamma distribution). 0, and no `crowd`: the counts of all steps are drawn each on its own.
    """

    name: str
    steps: tuple[FrameStep, ...]
    arrivals: Arrivals | None = None
    deadline_us: int | None = None
    crowded_permille: int = 1000
    crowd: tuple[int, ...] = ()
    crowding_permille: int = 0

    def __post_init__(self) -> None:
        defects = Defects(f"workflow {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_size("steps", len(self.steps), most=100)
        defects.check_unique("steps", [step.name for step in self.steps])
        seen = {""}
        for step in self.steps:
            if step.after not in seen:
                defects.add(f"step {step.name!r} waits for {step.after!r}, which no step before it is called")
            seen.add(step.name)
        if self.deadline_us is not None:
            defects.check_count("deadline_us", self.deadline_us, least=1)
        defects.check_counts("crowd", self.crowd)
        if self.crowd and not any(self.crowd):
            defects.add("crowd has nothing but 0")
        if self.crowd and self.crowding_permille:
            defects.add("it has two crowds: give crowd or crowding_permille")
        if (self.crowd or self.crowding_permille) and all(step.after or step.exact for step in self.steps):
            defects.add(
                "a crowd changes nothing here: the counts of all steps that wait for none are exact; leave "
                "the crowd out, or exact of such a step"
            )
        if not 0 <= self.crowding_permille <= MOST_CROWDING:
            defects.add(f"crowding_permille is {self.crowding_permille}, must be from 0 to {MOST_CROWDING}")
        if not 1 <= self.crowded_permille <= 1000:
            defects.add(f"crowded_permille is {self.crowded_permille}, must be between 1 and 1000")
        defects.raise_as(InvalidProblemError)

    def asked(self) -> Iterator[tuple[str, float]]:
        """Yield the network of each step, and how many of its requests a frame has on average."""
        means = {"": 1.0}
        for step in self.steps:
            means[step.name] = means[step.after] * step.mean
            yield step.network, means[step.name]


MOST_CROWDING = 3000
"""Largest deviation of the counts of frames, permille of their mean."""


class UnitChange(StrEnum):
    """What happens to a unit."""

    LOST = "lost"
    BACK = "back"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitEvent(FileContent):
    """A unit leaves or returns.

    Attributes
    ----------
    at_us
        When.
    unit
        Its name.
    change
        Which of the two.
    """

    at_us: int
    unit: str
    change: UnitChange

    def __post_init__(self) -> None:
        defects = Defects(f"event of unit {self.unit!r}")
        defects.check_count("at_us", self.at_us)
        defects.check_name("unit", self.unit)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(FileContent):
    """Who asks for what, and which units come and go.

    Attributes
    ----------
    name
        Its name.
    duration_us
        How long requests come in; what has come by then is served to its end.
    applications, workflows
        Who asks: at least one of them.
    events
        Units that leave and return, in order of time.
    seed
        Of everything that is drawn.
    source
        Where it comes from.
    """

    name: str
    duration_us: int
    applications: tuple[Application, ...] = ()
    workflows: tuple[Workflow, ...] = ()
    events: tuple[UnitEvent, ...] = ()
    seed: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        defects = Defects(f"scenario {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_count("duration_us", self.duration_us, least=1)
        defects.check_size("applications and workflows", len(tuple(self.names)), most=1000)
        defects.check_unique("names of applications and workflows", tuple(self.names))
        if list(self.events) != sorted(self.events, key=lambda event: event.at_us):
            defects.add("events must stand in the order of their times")
        defects.check_count("seed", self.seed)
        defects.raise_as(InvalidProblemError)
        for name, asked in self._asked():
            if asked > MOST_REQUESTS:
                defects.add(
                    f"{name!r} asks for about {asked:.1e} requests in {self.duration_us / 1e6:g} s, at most "
                    f"{MOST_REQUESTS:.0e} are played: take a shorter duration, or let fewer come"
                )
        defects.raise_as(InvalidProblemError)

    def _asked(self) -> Iterator[tuple[str, float]]:
        """Yield by name how many requests are to be expected; of frames without times those of one."""
        seconds = self.duration_us / 1e6
        for application in self.applications:
            yield application.name, application.arrivals.a_second(self.duration_us) * seconds
        for workflow in self.workflows:
            own = workflow.arrivals
            frames = 1.0 if own is None else max(1.0, own.a_second(self.duration_us) * seconds)
            yield workflow.name, frames * sum(mean for _, mean in workflow.asked())

    @property
    def names(self) -> Iterator[str]:
        """Names of all applications, then of all workflows."""
        yield from (each.name for each in self.applications)
        yield from (each.name for each in self.workflows)

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of the networks that are asked for, each once."""
        asked = [each.network for each in self.applications]
        asked += [step.network for each in self.workflows for step in each.steps]
        return tuple(dict.fromkeys(asked))


SCENARIO = Schema(format="gapless.scenario", version=1, content=Scenario)
BEHAVIOUR = Schema(format="gapless.behaviour", version=1, content=Behaviour)


MOST_REQUESTS = 1e7
"""More requests of one application are not played: that would take hours."""

FRAME_POOL = 1000
"""So many frames are drawn where only the most crowded ones are taken."""


@dataclass(frozen=True, slots=True)
class FrameRequest:
    """One request of a frame."""

    network: str
    after: tuple[int, ...] = ()  # indices in the frame of the requests that it waits for


Frame = tuple[FrameRequest, ...]
"""The requests of one frame; those that one waits for stand before it."""


def times_of(arrivals: Arrivals, duration_us: int, random: Random) -> Iterator[int]:
    """Yield when requests come, in microseconds, ascending, before the end."""
    if arrivals.at_us is not None:
        yield from (at for at in arrivals.at_us if at < duration_us)
    elif arrivals.period_us is not None:
        yield from range(arrivals.phase_us, duration_us, arrivals.period_us)
    else:
        assert arrivals.rate_per_s is not None
        at = arrivals.phase_us + random.expovariate(arrivals.rate_per_s) * 1e6
        while at < duration_us:
            yield int(at)
            at += random.expovariate(arrivals.rate_per_s) * 1e6


def frames_of(workflow: Workflow, random: Random) -> Iterator[Frame]:
    """Yield the frames of a workflow, without end; none of them is empty."""
    drawn = _frames(workflow, random)
    if workflow.crowded_permille == 1000:
        yield from drawn
    pool = list(islice(drawn, FRAME_POOL))
    count = max(1, round(FRAME_POOL * workflow.crowded_permille / 1000))
    crowded = sorted(range(FRAME_POOL), key=lambda index: (-len(pool[index]), index))[:count]
    while True:
        yield from (pool[index] for index in sorted(crowded))


def at_pace(scenario: Scenario, pace: float) -> Scenario:
    """Return a scenario whose requests come faster or slower; deadlines and events stay as they are.

    `pace`: how many times as fast, e.g. 0.1: ten times as slowly, for a device that much slower. Frames that
    come when the one before is done still do so.
    """

    def paced(arrivals: Arrivals) -> Arrivals:
        period_us, rate_per_s, at_us = arrivals.period_us, arrivals.rate_per_s, arrivals.at_us
        return Arrivals(
            period_us=None if period_us is None else max(1, round(period_us / pace)),
            rate_per_s=None if rate_per_s is None else rate_per_s * pace,
            at_us=None if at_us is None else tuple(round(at / pace) for at in at_us),
            phase_us=round(arrivals.phase_us / pace),
        )

    return replace(
        scenario,
        applications=tuple(replace(each, arrivals=paced(each.arrivals)) for each in scenario.applications),
        workflows=tuple(
            each if each.arrivals is None else replace(each, arrivals=paced(each.arrivals))
            for each in scenario.workflows
        ),
    )


def demand_of(scenario: Scenario) -> dict[str, float]:
    """Return how many requests of each network come: a second from applications, a frame from workflows."""
    found = dict.fromkeys(scenario.networks, 0.0)
    for application in scenario.applications:
        found[application.network] += application.arrivals.a_second(scenario.duration_us)
    for workflow in scenario.workflows:
        for network, mean in workflow.asked():
            found[network] += mean
    return found


def _factors(workflow: Workflow, random: Random) -> Iterator[float]:
    """Yield how crowded frames are, over the mean."""
    if workflow.crowd:
        counts = [count for count in workflow.crowd if count]
        yield from cycle(count * len(counts) / sum(counts) for count in counts)
    spread = (workflow.crowding_permille / 1000) ** 2
    while True:
        yield random.gammavariate(1 / spread, spread) if spread else 1.0


def _frames(workflow: Workflow, random: Random) -> Iterator[Frame]:
    for factor in _factors(workflow, random):
        requests: list[FrameRequest] = []
        indices: dict[str, list[int]] = {}
        for step in workflow.steps:
            mine = indices[step.name] = []
            parents = [(index,) for index in indices[step.after]] if step.after else [()]
            mean = step.mean if step.after else step.mean * factor
            for after in parents:
                count = int(step.mean) if step.exact else poisson(mean, random)
                mine.extend(range(len(requests), len(requests) + count))
                requests.extend([FrameRequest(step.network, after)] * count)
        if not requests and workflow.crowd:  # each frame keeps its place in the video
            requests.append(FrameRequest(next(step.network for step in workflow.steps if not step.after)))
        if requests:
            yield tuple(requests)


def poisson(mean: float, random: Random) -> int:
    """Draw from the Poisson distribution: how many times of unit rate fall into `mean`."""
    count, left = 0, mean - random.expovariate(1.0)
    while left > 0:
        count += 1
        left -= random.expovariate(1.0)
    return count
