"""Plans near a given one, made without a search: what a search with little time may miss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem


def without_unit(problem: Problem, plan: Plan, unit: str) -> Iterator[Plan]:
    """Yield the plan with the chunks of a unit elsewhere; the judge has to say whether that is valid.

    A chunk joins the one before or behind it. Where neither unit can run it, or there is none, it goes to the
    unit that is done with it first.
    """
    for step in (-1, 1):
        chunks = _Elsewhere(problem, plan, unit).chunks(step)
        if chunks is not None:
            yield replace(plan, chunks=chunks)


class _Elsewhere:
    """Where the chunks of one unit may go."""

    def __init__(self, problem: Problem, plan: Plan, unit: str) -> None:
        self._problem, self._plan, self._unit = problem, plan, unit
        self._load_us: Counter[str] = Counter()

    def chunks(self, step: int) -> tuple[Chunk, ...] | None:
        """Return all chunks, those of the unit with the neighbour at a distance; None if one has no place."""
        found: list[Chunk] = []
        for _, group in groupby(self._plan.chunks, key=lambda chunk: (chunk.request, chunk.network)):
            own = list(group)
            for place, chunk in enumerate(own):
                near = [own[at].unit for at in (place + step, place - step) if 0 <= at < len(own)]
                unit = self._place(chunk, near) if chunk.unit == self._unit else chunk.unit
                if unit is None:
                    return None
                self._load_us[unit] += self._time_us(chunk, unit) or 0
                if place and found[-1].unit == unit:
                    found[-1] = replace(found[-1], stop=chunk.stop)
                else:
                    found.append(replace(chunk, unit=unit))
        return tuple(found)

    def _place(self, chunk: Chunk, near: list[str]) -> str | None:
        for unit in near:
            if unit != self._unit and self._time_us(chunk, unit) is not None:
                return unit
        others = [unit for unit in self._problem.platform.unit_names if unit != self._unit]
        times = {unit: self._time_us(chunk, unit) for unit in others}
        ends = [(self._load_us[unit] + time, unit) for unit, time in times.items() if time is not None]
        return min(ends)[1] if ends else None

    def _time_us(self, chunk: Chunk, unit: str) -> int | None:
        """Return the time of the layers, or None where the unit cannot run one of them."""
        column = self._problem.platform.unit_names.index(unit)
        rows = self._problem.costs.of(chunk.network).layer_us[chunk.start : chunk.stop]
        times = [row[column] for row in rows]
        return None if None in times else sum(time for time in times if time is not None)
