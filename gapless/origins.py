"""How a problem is named: by a file or a shipped name, or by requests on a platform.

A plan file keeps the origin of its problem, so that `gapless simulate PLAN` finds it again.
"""

from __future__ import annotations

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
)
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
    if "task_slots" in origin:
        parameters["task_slots"] = _count(origin["task_slots"])
    return {**parameters, "stream": origin.get("mode") == Mode.STREAM}


def problem_of(origin: Mapping[str, str]) -> Problem:
    """Return the problem that an origin names.

    Raises
    ------
    InvalidInputError
        It names nothing, or something that is not there.
    """
    if "workload" in origin:
        return load_workload(
            origin["workload"],
            problem=origin.get("problem"),
            platform=origin.get("platform"),
            costs=origin.get("costs"),
            order=_choice("order", RequestOrder, origin, RequestOrder.FREE),
            execution=_choice("execution", Execution, origin, Execution.ASYNCHRONOUS),
            mode=_choice("mode", Mode, origin, Mode.BATCH),
            task_slots=_count(origin.get("task_slots")),
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


def _count(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 9:
        raise InvalidInputError(f"task_slots is {text!r}, must be a whole number")
    return int(text)
