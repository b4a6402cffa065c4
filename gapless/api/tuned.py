"""What tuning found, and everything it was made from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..executor.tuning.result import TuningResult
from ..formulations.deployment import Deployment
from ..formulations.plan import Plan
from ..formulations.printing import shortened
from ..formulations.problem import Problem
from ..profiler.profile import Profile
from ..solvers.pareto import ParetoFront
from .comparison import Comparison
from .rounds import Loop, LoopStop


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What tuning found, and everything it was made from.

    Attributes
    ----------
    problem
        What was planned, with the table that the plans were made from.
    profile
        The measured tables; None where the problem was given.
    comparison
        What the backends answered.
    result
        What was measured; of several rounds, in the last one that came to its end. With the sustained run.
    loop
        All rounds, where more than one was asked for.
    front
        The trade-offs, with what was measured of them, where those were asked for.
    """

    problem: Problem
    profile: Profile | None
    comparison: Comparison
    result: TuningResult
    loop: Loop | None = None
    front: ParetoFront | None = None

    def _repr_html_(self) -> str:
        """Return what notebooks show: the verdict, and every candidate in brief."""
        from ..answers.tuning import candidates, verdict
        from ..view.text import notebook_html

        return notebook_html(self._words, (candidates(self.result), *verdict(self.result)))

    def __repr__(self) -> str:
        return f"<Tuned {self._words}>"

    @property
    def _words(self) -> str:
        """What won, of which network where, in a line."""
        winner, networks = self.result.winner, ", ".join(network.name for network in self.problem.networks)
        what = "nothing was measured" if winner is None else f"{winner.candidate.label} is the fastest"
        return f"{shortened(f'{networks} on {self.problem.platform.name}')}: {what}"

    @property
    def results(self) -> list[TuningResult]:
        """What was measured, round by round."""
        return [self.result] if self.loop is None else [one.result for one in self.loop.rounds]

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.result.interrupted or (self.loop is not None and self.loop.stop is LoopStop.INTERRUPTED)

    @property
    def deployment(self) -> Deployment | None:
        """What to run; None when nothing was measured."""
        winner = self.result.winner
        return None if winner is None else winner.candidate.deployment

    @property
    def problem_without_opaque_rules(self) -> Problem:
        """The problem as far as it has a written form."""
        return replace(self.problem, rules=self.problem.expression_rules)

    @property
    def plan(self) -> Plan | None:
        """What to run, as a plan; None for replicas, which are several streams of one network."""
        return None if self.deployment is None else self.deployment.plan
