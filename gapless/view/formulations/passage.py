"""How plans of one network are shown whose units may have several chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from ...answers.blocks import Block, Column, Sentence, Unit, table
from ...answers.words import millis, share
from ...formulations.operation import operation_of
from ...formulations.plan import Plan, comes_back
from ...formulations.problem import Problem
from ...formulations.scores import Score
from .chunking import ChunkingPresenter


class PassagePresenter(ChunkingPresenter):
    """One network as an endless stream whose requests come back to units."""

    busy_span: ClassVar[str] = "of all chunks of each unit in one period"

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most."""
        return ("period", "hops", "latency", "bubbles")

    def legend(self, problem: Problem) -> str:
        """Return what they mean."""
        return (
            "period: time between two outputs = busy time of the busiest unit with all its chunks; hops: how "
            "often a request goes from one unit to another; unqueued latency: one request from entry to exit "
            "without waiting; bubbles: idle time of the units in use"
        )

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the chunks, and where a unit has several what that makes of each unit."""
        parts = super().plan_parts(problem, plan, judged)
        if not comes_back(plan.chunks, problem.platform):
            return parts
        busy = dict(zip(problem.platform.unit_names, judged.busy_us, strict=True))
        period = judged.period_us
        columns: list[Column[str]] = [
            Column("unit", Unit.NAME, lambda unit: unit),
            Column("chunks", Unit.COUNT, lambda unit: sum(chunk.unit == unit for chunk in plan.chunks)),
            Column("busy time", Unit.MICROSECONDS, busy.get),
            Column("of the period", Unit.COUNT, lambda unit: share(busy[unit] or 0, period)),
        ]
        together = [
            Sentence(f"{names}, in turns: {millis(load)}, {share(load, period)} of the period")
            for names, load in self._loads(problem, judged).items()
            if names not in busy
        ]
        used = [unit for unit, busy_us in busy.items() if busy_us is not None]
        return [*parts, table("Units", columns, used), *together]

    def best_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the chunks, the plan at work, and what the stream needs."""
        return [*super().best_parts(problem, plan, judged), *_stream_parts(problem, plan)]

    def file_parts(self, problem: Problem, plan: Plan, *, layers: range | None) -> Iterable[Block]:
        """Return the plan at work, where its chunks lie, and what the stream needs."""
        return [*super().file_parts(problem, plan, layers=layers), *_stream_parts(problem, plan)]

    def _loads(self, problem: Problem, judged: Score) -> dict[str, int]:
        """Return the busy time of each unit in use; of units that take turns together."""
        busy = super()._loads(problem, judged)
        turns = dict(zip(busy, problem.platform.turns(busy), strict=True))
        own = {first: [unit for unit in busy if turns[unit] == first] for first in turns.values()}
        return {" with ".join(units): sum(busy[unit] for unit in units) for units in own.values()}


def _stream_parts(problem: Problem, plan: Plan) -> list[Sentence]:
    """Return how many requests the period needs, and how long each one is on its way."""
    (stream,) = operation_of(problem).deploy(problem, plan).streams
    if stream.cycle is None:
        return []
    words = (
        f"The period needs {stream.cycle.in_flight} requests on their way at once, each for "
        f"{millis(stream.cycle.latency_us)} with its waits; `--task-slots` of `run` and `simulate` "
        "allows fewer."
    )
    return [Sentence(words)]


PRESENTER = PassagePresenter()
