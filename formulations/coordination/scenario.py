"""Scenarios: which applications ask for which networks, when, and by when they need the result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ..errors import InvalidProblemError
from ..validation import Defects, FileContent


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
