"""What is here: version, doctor, platforms, one problem."""

from __future__ import annotations

import json as json_module

from rich.text import Text

from .. import __version__, documents
from ..diagnosis import diagnose
from ..formulations.files import dump_problem
from ..formulations.problem import Problem
from ..options import JsonOption, OutOption, asking
from ..profiler.platforms.catalog import methods_of, shipped_names
from ..report import describe
from ..solvers.native.exhaustive import count_plans
from .answer import Answer, command, write_out


@command
def version(*, json: JsonOption = False) -> Answer:
    """Print the version."""
    return Answer(
        document=lambda: documents.header("version"),
        view=lambda: Text(f"gapless {__version__}"),
    )


@command
def doctor(*, json: JsonOption = False) -> Answer:
    """Say what works here: Python, the machine, and every backend with what it can do."""
    diagnosis = diagnose()
    return Answer(
        document=lambda: {**documents.header("diagnosis"), **documents.diagnosis_data(diagnosis)},
        view=lambda: describe.doctor_view(diagnosis),
    )


@command
def platforms(*, json: JsonOption = False) -> Answer:
    """List the shipped problems: measured platforms and networks."""
    return Answer(
        document=lambda: {
            **documents.header("platforms"),
            "problems": [{"name": name, "costs": list(methods_of(name))} for name in shipped_names()],
        },
        view=describe.platforms_view,
    )


@command
@asking
def show(problem: Problem, *, out: OutOption = None, json: JsonOption = False) -> Answer:
    """Show a problem: units, layers, times, objective, limits, rules. --out writes it as a file to edit."""
    notes = write_out(out, lambda: dump_problem(problem))
    plans = count_plans(problem.chain)
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
