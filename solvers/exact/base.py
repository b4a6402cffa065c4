"""What all exact third-party solvers share: a model of the problem, a plan to start from, and one search."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from ...formulations.availability import Availability
from ...formulations.model import Encoded, Model, Structure
from ...formulations.problem import Problem
from ..families import Start, family_of, starts_for
from ..protocol import (
    Capabilities,
    Claim,
    Deadline,
    SolveOptions,
    SolveStatus,
    StopReason,
    handling_of,
)
from ..sources import Source
from .lowering import Lowering
from .search import LargeNumbersError, Port, Query, Search, Space, add_model, too_large

_RELAXED_SHARE, _RELAXED_S = 0.2, 10.0
"""Share of the time limit that smaller models may take for a bound; seconds where there is no limit."""


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

    def warm_up(self, formulation: str) -> None:
        """Load the solver, and what finds plans for it to start from."""
        self.port(SolveOptions(), Structure.CHOICE)
        search = family_of(formulation).search
        if search is not None:
            search()

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Enumerate the best plans with one model that grows by a cut a plan.

        What is known before is published at once: it is the answer if the time is up before there is more.
        """
        began, deadline, start = time.monotonic(), Deadline(options.time_limit_s), Start()
        for start in starts_for(problem, options):
            start_s = time.monotonic() - began
            options.publish(replace(self._known(problem, start), start_s=start_s))
        start_s = 0.0 if start == Start() else time.monotonic() - began
        encoded = self.encode(problem, options, start)
        port, lowering = self.port(options, encoded.structure), Lowering(encoded.model)
        space = Space(problem, encoded, lowering, self.largest_number)
        known = [bound for bound in (start.at_least, options.at_least) if bound is not None]
        at_least = self.bound_below(encoded, max(known, default=None), options, deadline)
        add_model(encoded.model, lowering, port, deadline)
        search = Search(
            problem=problem,
            options=replace(options, publish=lambda claim: options.publish(replace(claim, start_s=start_s))),
            capabilities=self.capabilities,
            space=space,
            lowering=lowering,
            port=port,
            deadline=deadline,
            seed=None if start.code is None else encoded.settle(start.code),
            given=start.at_least,
            at_least=at_least,
        )
        try:
            return replace(search.run(), start_s=start_s)
        except LargeNumbersError as error:
            raise too_large(f"the objective {problem.objective}", error) from None

    def bound_below(
        self, encoded: Encoded[Any], known: int | None, options: SolveOptions, deadline: Deadline
    ) -> int | None:
        """Return a lower bound on the first term: that of a smaller model, if there is one and it is better.

        A better bound can make the model a better one, so it is solved again as long as that helps.

        `encoded`: the model, and the smaller one; `known`: a lower bound that is known already, or None; no
        term is less than nothing; `options`, `deadline`: how long that may take.
        """
        if encoded.relaxed is None:
            return known
        known = known or 0
        limit_s = _RELAXED_S if options.time_limit_s is None else _RELAXED_SHARE * options.time_limit_s
        left_s = deadline.left_s
        until = Deadline(limit_s if left_s is None else min(limit_s, left_s))
        while not until.passed:
            smaller = encoded.relaxed(known)
            lowering = Lowering(Model(constraints=(), definitions={}))
            port = self.port(options, Structure.CHOICE)
            query = Query(
                objective=lowering.number(smaller.objective),
                conditions=(),
                at_least=known,
                deadline=until,
                progress=lambda values, bound: None,
            )
            bound = None
            with suppress(LargeNumbersError):  # of the whole model it is said by name
                for condition in smaller.constraints:
                    port.add(lowering.truth(condition))
                bound = port.minimise(query).bound
            if bound is None or bound <= known:
                break
            known = bound
        return known

    def _known(self, problem: Problem, start: Start) -> Claim:
        """Return what is known before the search as a claim that proves a bound at most."""
        found = start.code is not None
        terms = problem.objective.terms
        return Claim(
            status=SolveStatus.FEASIBLE if found else SolveStatus.NO_SOLUTION,
            stop=StopReason.TIME_LIMIT,
            plans=(problem.formulation.plan(problem, start.code),) if found else (),
            values=problem.formulation.numbers(problem, start.code).values(terms) if found else None,
            bound=start.at_least,
            plan_source=Source.START,
            bound_source=Source.START,
            handling=handling_of(problem, self.capabilities),
        )
