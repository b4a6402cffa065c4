"""What coming back to a unit is worth: planners, Band's policies and a search, by class of plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from gapless.formulations.problem import Problem
from gapless.formulations.schedules import as_schedules

from ..passage import dearer
from ..printing import Part, titled
from .playing import KIRIN, OURS, PAPERS, POLICIES, Study, ask, known, problems, requests_of

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
        By the names of `CLASS_OF`; what was not asked for, or has found no plan, is not there.
    ordered_bound_us, any_bound_us
        No plan of the class is faster; None: there is no bound.
    chunks
        Chunks a request of the plan that may come back; None: there is no plan.
    """

    spans: dict[str, int]
    ordered_bound_us: int | None
    any_bound_us: int | None
    chunks: float | None

    @property
    def gain(self) -> float | None:
        """How many times as fast the search is where a request may come back; None: a plan is missing."""
        return self.over("native ordered", "native any")

    def over(self, of: str, to: str) -> float | None:
        """Return the makespan of one row over that of another one; None: either has no plan."""
        one, other = self.spans.get(of), self.spans.get(to)
        return one / other if one is not None and other is not None else None


@cache
def compared(study: Study, platform: str, hop_ms: float, count: int | None) -> list[Compared]:
    """Return what the native search makes of the combinations, once in order and once with free passage."""
    chosen = problems(study, platform)[:count]
    return [_both(dearer(problem, round(1000 * hop_ms)), study.limit_s) for problem in chosen]


def _both(problem: Problem, limit_s: float) -> Compared:
    ordered, free = ask(problem, OURS, limit_s), ask(as_schedules(problem), OURS, limit_s)
    spans = {"native ordered": ordered.makespan_us, "native any": free.makespan_us}
    return Compared(
        _there(spans),
        ordered.bound_us,
        free.bound_us,
        None if free.plan is None else len(free.plan.chunks) / requests_of(problem),
    )


def _there(spans: dict[str, int | None]) -> dict[str, int]:
    return {name: span for name, span in spans.items() if span is not None}


@cache
def all_rows(study: Study, platform: str) -> list[Compared]:
    """Return the same with the other planners, and the policies as list schedules of the same instance."""
    found = []
    searched = compared(study, platform, 0.0, None)
    for problem, both in zip(problems(study, platform), searched, strict=True):
        asked = {name: ask(problem, name) for name in ("serial", "band", PAPERS)}
        asked |= {name: ask(as_schedules(problem), name) for name in POLICIES}
        own = _there({name: answer.makespan_us for name, answer in asked.items()})
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
            spans = [entry.spans[name] for entry in found if name in entry.spans]
            serial, papers = (
                [*known([entry.over(other, name) for entry in found])] for other in ("serial", PAPERS)
            )
            ordered = [entry.ordered_bound_us for entry in found]
            table.add_row(
                name,
                plans,
                f"{fmean(spans) / 1000:.0f}" if spans else "-",
                _mean(serial),
                _mean(papers),
                f"{max(papers):.2f}" if papers else "-",
                _above(found, name, ordered),
                _above(found, name, [entry.any_bound_us for entry in found]),
            )
        yield table
    yield (
        '"Ordered": every request passes each unit once at most, in the order in which the platform lists '
        'them. "Any": any unit at any time. A bound of ordered holds for ordered plans only, so plans of '
        "the other class may be below it."
    )
    for platform in study.platforms:
        yield _worth(study, platform)


def _mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f}" if values else "-"


def _above(found: Sequence[Compared], name: str, bounds: Sequence[int | None]) -> str:
    """Return how far a row is above a bound in the mean, where it has a plan and there is a bound."""
    shares = [
        entry.spans[name] / bound
        for entry, bound in zip(found, bounds, strict=True)
        if name in entry.spans and bound
    ]
    return f"{100 * (fmean(shares) - 1):.1f} %" if shares else "-"


def _worth(study: Study, platform: str) -> str:
    found = all_rows(study, platform)
    gains = [*known([entry.gain for entry in found])]
    below, beaten = (
        sum(name in entry.spans and entry.spans[name] < (entry.ordered_bound_us or 0) for entry in found)
        for name in ("native any", "sel")
    )
    reach = f"{min(gains):.2f} to {max(gains):.2f}" if gains else "-"
    return (
        f"{platform}, native ordered over native any: {reach}, {_mean(gains)} in the mean. In {below} of "
        f"{len(found)} combinations native any is faster than the bound of ordered, in {beaten} the policy "
        "sel is."
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
            gains = [*known([entry.gain for entry in found])]
            chunks = [*known([entry.chunks for entry in found])]
            table.add_row(
                platform,
                f"{hop_ms:g}",
                f"{len(found)}",
                *(f"{value(gains):.2f}" if gains else "-" for value in (fmean, min, max)),
                f"{fmean(chunks):.1f}" if chunks else "-",
            )
    yield table


def dearer_hops(study: Study, platform: str, hop_ms: float) -> list[Compared]:
    """Return the combinations with hops that take longer; few where every unit runs every layer."""
    return compared(study, platform, hop_ms, None if platform == KIRIN else FEWER)
