"""What coming back to a unit is worth: planners, Band's policies and a search, by class of plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from gapless.formulations.problem import Problem
from gapless.formulations.schedules import as_schedules

from ..passage import dearer
from ..printing import Part, titled
from .playing import KIRIN, OURS, PAPERS, POLICIES, Study, ask, problems, requests_of

ORDERED, ANY, ONLINE = "ordered", "any", "any, cut at sections, decided online"
"""Classes of plans: units once and in the platform's order, or any unit at any time."""

CLASS_OF = {
    "serial": f"{ORDERED}, whole requests",
    "band": f"{ORDERED}, cut at sections",
    PAPERS: ORDERED,
    "native ordered": ORDERED,
    **dict.fromkeys(POLICIES, ONLINE),
    "native any": ANY,
}
"""What each row chooses among. The two rows of the native search differ in nothing else."""

HOPS_MS = (0.0, 0.5, 1.0, 2.0, 5.0)
"""What each border between two chunks takes more than the tables say, also where both run on one unit."""

HOP_PLATFORMS = (KIRIN, "snapdragon870")
"""One phone whose NPU lacks operators in the midst of networks, one on which every unit runs every layer."""

FEWER = 6
"""Combinations for each time of a hop where every unit runs every layer: they differ little."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One combination: makespan by row in microseconds, and the bound of either class of plans.

    Attributes
    ----------
    spans
        By the names of `CLASS_OF`; what was not asked for is not there.
    ordered_bound_us, any_bound_us
        No plan of the class is faster; 0 if there is no bound.
    chunks
        Chunks a request of the plan that may come back.
    """

    spans: dict[str, int]
    ordered_bound_us: int
    any_bound_us: int
    chunks: float

    @property
    def gain(self) -> float:
        """How many times as fast the search is where a request may come back."""
        return self.spans["native ordered"] / self.spans["native any"]


@cache
def compared(study: Study, platform: str, hop_ms: float, count: int | None) -> list[Compared]:
    """Return what the native search makes of the combinations, once in order and once with free passage."""
    chosen = problems(study, platform)[:count]
    return [_both(dearer(problem, round(1000 * hop_ms)), study.limit_s) for problem in chosen]


def _both(problem: Problem, limit_s: float) -> Compared:
    ordered, free = ask(problem, OURS, limit_s), ask(as_schedules(problem), OURS, limit_s)
    assert ordered.makespan_us is not None
    assert free.makespan_us is not None
    assert free.plan is not None
    return Compared(
        {"native ordered": ordered.makespan_us, "native any": free.makespan_us},
        ordered.bound_us or 0,
        free.bound_us or 0,
        len(free.plan.chunks) / requests_of(problem),
    )


@cache
def all_rows(study: Study, platform: str) -> list[Compared]:
    """Return the same with the other planners, and the policies as list schedules of the same instance."""
    found = []
    searched = compared(study, platform, 0.0, None)
    for problem, both in zip(problems(study, platform), searched, strict=True):
        asked = {name: ask(problem, name) for name in ("serial", "band", PAPERS)}
        asked |= {name: ask(as_schedules(problem), name) for name in POLICIES}
        spans = {name: answer.makespan_us for name, answer in asked.items()}
        own = {name: span for name, span in spans.items() if span is not None}
        found.append(Compared(own | both.spans, both.ordered_bound_us, both.any_bound_us, both.chunks))
    return found


def returning(study: Study) -> Iterator[Part]:
    """Yield all planners by their class of plans on each phone, and what coming back gains."""
    for platform in study.platforms:
        found = all_rows(study, platform)
        table = titled(
            f"Coming back to a unit, {platform}: {len(found)} combinations, each plan played by the same "
            f"simulation; native {study.limit_s:g} s of the processor for each class",
            "planner", "chooses among plans", "latency, ms", "times as fast as serial",
            f"as {PAPERS}: mean", "most", "above the bound of ordered", "above the bound of any",
        )  # fmt: skip
        for name, plans in CLASS_OF.items():
            spans = [entry.spans[name] for entry in found]
            over = {
                other: [entry.spans[other] / entry.spans[name] for entry in found]
                for other in ("serial", PAPERS)
            }
            above = [
                100 * (fmean(span / bound for span, bound in zip(spans, bounds, strict=True)) - 1)
                for bounds in (
                    [entry.ordered_bound_us for entry in found],
                    [entry.any_bound_us for entry in found],
                )
            ]
            table.add_row(
                name,
                plans,
                f"{fmean(spans) / 1000:.0f}",
                f"{fmean(over['serial']):.2f}",
                f"{fmean(over[PAPERS]):.2f}",
                f"{max(over[PAPERS]):.2f}",
                *(f"{each:.1f} %" for each in above),
            )
        yield table
    yield (
        '"Ordered": every request passes each unit once at most, in the order in which the platform lists '
        'them. "Any": any unit at any time. A bound of ordered holds for ordered plans only, so plans of '
        "the other class may be below it."
    )
    for platform in study.platforms:
        yield _worth(study, platform)


def _worth(study: Study, platform: str) -> str:
    found = all_rows(study, platform)
    gains = [entry.gain for entry in found]
    below = sum(entry.spans["native any"] < entry.ordered_bound_us for entry in found)
    beaten = sum(entry.spans["sel"] < entry.ordered_bound_us for entry in found)
    return (
        f"{platform}, native ordered over native any: {min(gains):.2f} to {max(gains):.2f}, "
        f"{fmean(gains):.2f} in the mean. In {below} of {len(found)} combinations native any is faster than "
        f"the bound of ordered, in {beaten} the policy sel is."
    )


def hops(study: Study) -> Iterator[Part]:
    """Yield how the gain depends on what a hop to another unit costs."""
    table = titled(
        "What coming back gains where each hop takes longer than the tables say: ordered over any",
        "platform", "ms more a hop", "combinations", "mean", "least", "most", "chunks a request",
    )  # fmt: skip
    for platform in HOP_PLATFORMS:
        for hop_ms in HOPS_MS:
            found = dearer_hops(study, platform, hop_ms)
            gains = [entry.gain for entry in found]
            table.add_row(
                platform,
                f"{hop_ms:g}",
                f"{len(found)}",
                *(f"{value(gains):.2f}" for value in (fmean, min, max)),
                f"{fmean(entry.chunks for entry in found):.1f}",
            )
    yield table


def dearer_hops(study: Study, platform: str, hop_ms: float) -> list[Compared]:
    """Return the combinations with hops that take longer; few where every unit runs every layer."""
    return compared(study, platform, hop_ms, None if platform == KIRIN else FEWER)
