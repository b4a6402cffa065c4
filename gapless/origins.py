"""How a problem is named: by a file or a shipped name, or by requests on a platform, and what is asked of it.

A plan file keeps the origin of its problem, so that `gapless simulate PLAN` finds it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .formulations.errors import InvalidInputError
from .formulations.problem import Problem
from .formulations.validation import MAX_NAME_LENGTH
from .formulations.workload import Execution, Mode, RequestOrder
from .problems import load_problem, load_workload

_NAMES = (
    "problem",
    "workload",
    "platform",
    "order",
    "execution",
    "mode",
    "task_slots",
    "contention",
    "costs",
    "objective",
    "max_period_us",
    "min_units",
    "max_units",
    "min_balance",
    "max_gapness_us",
    "min_utilisation",
)
_COUNTS = ("task_slots", "max_period_us", "min_units", "max_units", "max_gapness_us")
"""Whole numbers."""

_PERCENTAGES = ("min_balance", "min_utilisation")

_PERCENT = re.compile(r"(\d{1,3})(?:\.(\d))?\s?%", re.ASCII)
_SERVICE = ("platform", "order", "execution", "mode", "contention")
"""What only a workload has."""


def origin_of(**given: object) -> dict[str, str]:
    """Return what was given of an origin, as texts."""
    return {name: str(given[name]) for name in _NAMES if given.get(name) is not None}


def ask_parameters(origin: Mapping[str, str]) -> dict[str, Any]:
    """Return an origin as parameters of `options.ask`.

    Raises
    ------
    InvalidInputError
        It was not written by gapless.
    """
    unknown = sorted(set(origin) - set(_NAMES))
    if unknown:
        name = unknown[0][:MAX_NAME_LENGTH]
        raise InvalidInputError(
            f"the plan file names its problem by {name!r}, which this gapless does not know"
        )
    parameters: dict[str, Any] = {name: text for name, text in origin.items() if name != "mode"}
    parameters |= {name: _count(name, origin[name]) for name in _COUNTS if name in origin}
    return {**parameters, "stream": origin.get("mode") == Mode.STREAM}


def on_problem(origin: Mapping[str, str], problem: str) -> dict[str, str]:
    """Return an origin with another problem: the workload that was asked for, on other costs and units."""
    service = {name: text for name, text in origin.items() if name != "platform"}
    return {**service, "problem": problem}


def problem_of(origin: Mapping[str, str]) -> Problem:
    """Return the problem that an origin names, with its objective and limits.

    Raises
    ------
    InvalidInputError
        It names nothing, or something that is not there; an objective or a limit is not valid.
    """
    problem = _named(origin)
    if "objective" in origin:
        problem = problem.with_objective(origin["objective"])
    limits = {name: _count(name, origin[name]) for name in _COUNTS[1:] if name in origin}
    limits |= {
        f"{name}_permille": parse_permille(f"--{name.replace('_', '-')}", origin[name])
        for name in _PERCENTAGES
        if name in origin
    }
    return problem.with_limits(**limits) if limits else problem


def _named(origin: Mapping[str, str]) -> Problem:
    if "workload" in origin:
        return load_workload(
            origin["workload"],
            problem=origin.get("problem"),
            platform=origin.get("platform"),
            costs=origin.get("costs"),
            order=_choice("order", RequestOrder, origin, RequestOrder.FREE),
            execution=_choice("execution", Execution, origin, Execution.ASYNCHRONOUS),
            mode=_choice("mode", Mode, origin, Mode.BATCH),
            task_slots=_count("task_slots", origin.get("task_slots")),
            contention=origin.get("contention"),
        )
    stray = [name for name in _SERVICE if name in origin]
    if stray:
        option = stray[0].replace("mode", "stream")
        raise InvalidInputError(
            f"--{option} is about a workload: give --workload too, e.g. "
            '--workload "yolov4,bert,mobilenetv2x3"'
        )
    if "problem" not in origin:
        raise InvalidInputError(
            "no problem is named: give a problem file or a shipped name (`gapless platforms` lists them), "
            "or --workload with --platform"
        )
    return load_problem(origin["problem"], costs=origin.get("costs"))


def _choice(name: str, kind: Any, origin: Mapping[str, str], default: Any) -> Any:
    text = origin.get(name, default)
    try:
        return kind(text)
    except ValueError:
        raise InvalidInputError(f"{name} is {text!r}, must be {' or '.join(kind)}") from None


def _count(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 15:
        raise InvalidInputError(f"{name} is {text!r}, must be a whole number")
    return int(text)


def parse_permille(option: str, text: str) -> int:
    """Return a percentage of the command line in permille.

    Raises
    ------
    InvalidInputError
        It is no percentage.
    """
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise InvalidInputError(
            f"{option} is {text!r}, must be a percentage with at most one decimal, e.g. 80% or 62.5%"
        )
    return 10 * int(found[1]) + int(found[2] or 0)
