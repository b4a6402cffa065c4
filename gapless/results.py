"""What is returned: answers, comparisons, trade-offs, explanations, numbers of plans, diagnoses."""

from __future__ import annotations

from .api.comparison import Comparison
from .api.diagnosis import Diagnosis
from .formulations.chunking.view import PlanView
from .formulations.scores import Violation
from .solvers.course import Pace
from .solvers.pareto import ParetoFront, ParetoPoint
from .solvers.result import Candidate, Milestone
from .view.explaining.explanation import Explanation

__all__ = [
    "Candidate",
    "Comparison",
    "Diagnosis",
    "Explanation",
    "Milestone",
    "Pace",
    "ParetoFront",
    "ParetoPoint",
    "PlanView",
    "Violation",
]
