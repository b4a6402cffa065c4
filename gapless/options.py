"""Options that several commands share, and what they mean: a problem as the user asks for it."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from .formulations.errors import InvalidInputError
from .formulations.problem import Problem
from .problems import load_problem
from .rules_file import add_rules

_ASKED = "What is asked"
_SOLVING = "How to solve"
_OUTPUT = "Output"

ProblemArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A problem file, or a shipped name such as pixel7a/alexnet-sparse (see `gapless platforms`).",
        show_default=False,
    ),
]
PlanArgument = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A plan file, as written by `gapless plan --out`.")
]
CostsOption = Annotated[
    str | None,
    typer.Option(
        help="Which measured table of a shipped problem: heavy (each layer while all units run it; "
        "the default) or isolated (alone).",
        rich_help_panel=_ASKED,
        show_default=False,
    ),
]
ObjectiveOption = Annotated[
    str | None,
    typer.Option(
        help="What to minimise, most important first: period, gapness, paper_gapness, latency, bubbles, "
        'peak_memory, idle; or "paper", or "slack:50" (least idle share among plans whose period is '
        "within 50 permille of the least one).",
        rich_help_panel=_ASKED,
        show_default=False,
    ),
]
RulesOption = Annotated[
    Path | None,
    typer.Option(
        help="A Python file of rules: every public function in it with one parameter (the view). "
        "The file is run: use only files that you trust.",
        rich_help_panel=_ASKED,
        show_default=False,
    ),
]
MaxPeriodOption = Annotated[
    int | None, typer.Option(min=0, help="Largest period, microseconds.", rich_help_panel=_ASKED)
]
MinUnitsOption = Annotated[
    int | None, typer.Option(min=0, help="Fewest units in use.", rich_help_panel=_ASKED)
]
MinBalanceOption = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Least busy time of a unit in use over the largest one, e.g. 80%.",
        rich_help_panel=_ASKED,
        show_default=False,
    ),
]
MaxGapnessOption = Annotated[
    int | None, typer.Option(min=0, help="Largest gapness, microseconds.", rich_help_panel=_ASKED)
]
MinUtilisationOption = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Least share of the platform that is busy, e.g. 62.5%.",
        rich_help_panel=_ASKED,
        show_default=False,
    ),
]
TopOption = Annotated[
    int, typer.Option(min=1, max=100_000, help="How many of the best plans.", rich_help_panel=_SOLVING)
]
TimeLimitOption = Annotated[
    float | None,
    typer.Option(help="Seconds for each backend.", rich_help_panel=_SOLVING, show_default=False),
]
MemoryLimitOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=2**30,
        help="MiB that a backend may take; it then runs in a child process, as third-party solvers "
        "always do (with half of the machine's memory, unless given).",
        rich_help_panel=_SOLVING,
        show_default=False,
    ),
]
StrictRulesOption = Annotated[
    bool,
    typer.Option(
        "--strict-rules",
        help="Refuse backends that merely check plans against the rules.",
        rich_help_panel=_SOLVING,
    ),
]
SeedOption = Annotated[
    int, typer.Option(min=0, max=2**31 - 1, help="Seed of everything random.", rich_help_panel=_SOLVING)
]
ThreadsOption = Annotated[
    int, typer.Option(min=1, max=1024, help="Threads of a solver.", rich_help_panel=_SOLVING)
]
OutOption = Annotated[Path | None, typer.Option(help="Also write it to this file.", rich_help_panel=_OUTPUT)]
# `cli.main` looks for --json itself, because errors in the other options are to be JSON, too.
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=_OUTPUT),
]

_PERCENT = re.compile(r"(\d{1,3})(?:\.(\d))?\s?%", re.ASCII)


def ask(
    problem: ProblemArgument,
    *,
    costs: CostsOption = None,
    objective: ObjectiveOption = None,
    rules: RulesOption = None,
    max_period_us: MaxPeriodOption = None,
    min_units: MinUnitsOption = None,
    min_balance: MinBalanceOption = None,
    max_gapness_us: MaxGapnessOption = None,
    min_utilisation: MinUtilisationOption = None,
) -> Problem:
    """Return the problem with the objective, limits and rules of the command line.

    Raises
    ------
    InvalidInputError
        A file, a name or a number is not valid.
    """
    asked = load_problem(problem, costs=costs)
    if objective is not None:
        asked = asked.with_objective(objective)
    limits = {
        "max_period_us": max_period_us,
        "min_units": min_units,
        "min_balance_permille": parse_permille("--min-balance", min_balance),
        "max_gapness_us": max_gapness_us,
        "min_utilisation_permille": parse_permille("--min-utilisation", min_utilisation),
    }
    asked = asked.with_limits(**{name: value for name, value in limits.items() if value is not None})
    return asked if rules is None else add_rules(asked, rules)


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose first parameter `problem` becomes the parameters of `ask`."""
    shared, own = _parameters(ask), _parameters(command)
    own.pop("problem")
    required = [p for p in own.values() if p.default is inspect.Parameter.empty]
    optional = [p for p in own.values() if p.default is not inspect.Parameter.empty]
    argument, *options = shared.values()

    @wraps(command)
    def asked(**given: Any) -> Any:
        problem = ask(**{name: given.pop(name) for name in shared})
        return command(problem, **given)

    parameters = [argument, *required, *options, *optional]
    asked.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    asked.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return asked


def check_writable(path: Path | None) -> None:
    """Refuse a place for a result before the work is done, not after it.

    Raises
    ------
    InvalidInputError
        The folder is not there or cannot be written to.
    """
    if path is None:
        return
    if path.is_dir():
        raise InvalidInputError(f"cannot write {path}: it is a folder")
    if not os.access(path.parent, os.W_OK):
        reason = "may not be written to" if path.parent.is_dir() else "does not exist"
        raise InvalidInputError(f"cannot write {path}: the folder {path.parent} {reason}")


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    return {name: p.replace(annotation=hints[name]) for name, p in parameters.items()}


def parse_permille(option: str, text: str | None) -> int | None:
    """Return a percentage of the command line in permille; None without one.

    Raises
    ------
    InvalidInputError
        It is no percentage.
    """
    if text is None:
        return None
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(
            f"{option} is {text!r}, must be a percentage with at most one decimal, e.g. 80% or 62.5%"
        )
    return 10 * int(found[1]) + int(found[2] or 0)
