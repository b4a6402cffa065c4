"""What all exact third-party solvers share: a model of the problem, a plan to start from, and one search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from ...formulations.availability import Availability
from ...formulations.model import Encoded, Structure
from ...formulations.problem import Problem
from ..families import Start, start_for
from ..protocol import Capabilities, Claim, Deadline, SolveOptions
from .lowering import Lowering
from .port import Port
from .search import Search, add_model
from .space import Space


class ExactBackend(ABC):
    """A third-party solver as a backend: it adds a port, everything else is here.

    Every formulation that can be encoded is solved: models are written in expressions, and a relaxation is
    good enough, because every plan that a solver returns is judged. If the judge refuses it, or finds it
    worse than the model said, it is barred, and the search goes on until the bound of the solver reaches the
    best plan. So the result is exact in any case; `loose` in the statistics counts the plans that cost a
    further round.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    largest_number: ClassVar[int]
    """Largest number that digits of the canonical order are taken together for."""

    relaxation: ClassVar[bool] = False
    """Whether the solver lives from the linear relaxation of a model."""

    @abstractmethod
    def availability(self) -> Availability:
        """Say whether the solver is installed."""

    @abstractmethod
    def port(self, options: SolveOptions, structure: Structure) -> Port:
        """Return an empty solver for models of a structure."""

    def encode(self, problem: Problem, options: SolveOptions, start: Start) -> Encoded[Any]:
        """Return the model of a problem."""
        return problem.formulation.encode(
            problem, top=options.top, relaxation=self.relaxation, known=start.code
        )

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Enumerate the best plans with one model that grows by a cut a plan."""
        deadline = Deadline(options.time_limit_s)
        start = start_for(problem, options)
        encoded = self.encode(problem, options, start)
        port, lowering = self.port(options, encoded.structure), Lowering(encoded.model)
        space = Space(problem, encoded, lowering, self.largest_number)
        add_model(encoded.model, lowering, port, deadline)
        search = Search(
            problem=problem,
            options=options,
            capabilities=self.capabilities,
            space=space,
            lowering=lowering,
            port=port,
            deadline=deadline,
            seed=None if start.code is None else encoded.settle(start.code),
            at_least=start.at_least,
        )
        return search.run()
