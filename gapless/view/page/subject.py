"""What a report is about: one deployment, and everything that is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from ...answers.comparing import SolverAnswer
from ...answers.words import observed
from ...executor.measurement import Measurement
from ...executor.tuning.result import TuningResult
from ...formulations.deployment import Deployment
from ...formulations.history import History, SteadyState, Usage
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ..explaining.explanation import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One deployment, and everything that is known of it; what is not known is None or empty."""

    title: str  # what it is called
    problem: Problem  # what was planned; its cost tables and their provenance
    deployment: Deployment  # what runs
    planned: Plan | None = None
    """The plan that it was made from; None: the one that it says itself, if it is one."""
    score: Score | None = None  # what the judge says of the plan; None for replicas, which are no plan
    predicted: History | None = None  # the plan, simulated
    steady: tuple[SteadyState, ...] = ()
    """What its streams do over and over, predicted; a batch: one round of it."""
    memory: Usage | None = None  # memory over time of `predicted`
    measured: History | None = None  # what really happened
    measurement: Measurement | None = None  # rates, latencies and receipts of an execution
    tuning: TuningResult | None = None  # the race that it took part in
    answers: tuple[SolverAnswer, ...] = ()  # what the backends answered to the problem
    explanation: Explanation | None = None  # why the plan is as it is
    sources: tuple[str, ...] = ()  # files that all of this was read from

    @property
    def plan(self) -> Plan | None:
        """The plan; None for replicas."""
        return self.planned or self.deployment.plan

    @property
    def runs(self) -> bool:
        """Whether such plans can be run; otherwise all that is known is what the judge says."""
        operation = self.problem.formulation.operation
        return operation is not None and operation.plays(self.problem)

    @property
    def observed(self) -> str:
        """What the numbers of its execution are: "measured", or "simulated" (`words.observed`)."""
        found = self.measurement or self.tuning
        return observed(simulated=found is not None and found.simulated)

    @property
    def is_endless_workload(self) -> bool:
        """Whether requests of several networks come over and over: a round of them is one of many."""
        return self.deployment.rounds is not None and not self.deployment.is_batch

    @property
    def pace(self) -> str:
        """The term that says how long it takes (`Deployment.pace`)."""
        return self.deployment.pace if self.runs else self.problem.objective.first
