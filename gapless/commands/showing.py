"""Looking at what a file holds."""

from __future__ import annotations

import json as json_module

from .. import documents
from ..formulations.files import dump_problem
from ..options import Asked, JsonOption, OutOption, asking
from ..report import describe
from ..solvers.native.exhaustive import count_plans
from .answer import Answer, command, write_out


@command
@asking
def show(asked: Asked, *, out: OutOption = None, json: JsonOption = False) -> Answer:
    """Show a problem: units, layers, times, objective, limits, rules. --out writes it as a file to edit."""
    problem = asked.problem
    notes = write_out(out, lambda: dump_problem(problem))
    plans = count_plans(problem)
    return Answer(
        document=lambda: {
            **documents.header("description"),
            "problem": documents.problem_data(problem),
            "most_plans": plans,
            "document": None if problem.opaque_rules else json_module.loads(dump_problem(problem)),
        },
        view=lambda: describe.problem_view(problem, plans),
        notes=notes,
    )
