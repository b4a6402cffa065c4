"""What a scenario asks for: every request of its applications, and frame after frame of its workflows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from random import Random

from .scenario import Arrivals, Scenario, Workflow

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
    """Return a scenario whose requests come so many times as fast; deadlines and events stay as they are.

    `scenario`: the scenario. Frames that come when the one before is done still do so. `pace`: E.g. 0.1: ten
    times as slowly, for a device that much slower.
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
        arrivals = application.arrivals
        if arrivals.at_us is not None:
            rate = len(arrivals.at_us) * 1e6 / scenario.duration_us
        else:
            rate = arrivals.rate_per_s or 1e6 / (arrivals.period_us or 1)
        found[application.network] += rate
    for workflow in scenario.workflows:
        means = {"": 1.0}
        for step in workflow.steps:
            means[step.name] = means[step.after] * step.mean
            found[step.network] += means[step.name]
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
