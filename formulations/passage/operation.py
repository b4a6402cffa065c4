"""How plans whose units have several chunks run: as one stream, in the order of a cycle."""

from __future__ import annotations

from collections.abc import Iterator

from ..chunking.operation import ChunkingOperation
from ..errors import InvalidInputError
from ..operation import Line
from ..plan import Plan, comes_back
from ..problem import Problem


class PassageOperation(ChunkingOperation):
    """One endless stream whose requests come back to units."""

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with one chunk per unit, and that with pipelines side by side."""
        yield problem.with_data(None)
        yield from self.several(problem)

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the chunks of the plan, in order; refuse one whose items come back to a server."""
        if comes_back(plan.chunks, problem.platform):
            raise InvalidInputError(
                f"the plan [{plan}] cannot be a task of a stream, because its items come back to a unit: a "
                "device goes on to the next task when it has had its last item once; plan with --passage once"
            )
        return super().lines(problem, plan)
