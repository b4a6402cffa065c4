"""How plans whose units have several chunks run: as one stream, in the order of a cycle."""

from __future__ import annotations

from collections.abc import Iterator

from ..chunking.operation import ChunkingOperation
from ..operation import Line, Operation
from ..plan import Plan
from ..problem import Problem


class PassageOperation(ChunkingOperation):
    """One endless stream whose requests come back to units."""

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with one chunk per unit, and that with pipelines side by side."""
        yield problem.with_data(None)
        yield from self.several(problem)

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Refuse: items that come back to a server are no line."""
        return Operation.lines(self, problem, plan)
