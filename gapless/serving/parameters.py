"""Parameters of requests and tensors: what each asks for; what is not supported is refused by its name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ..formulations.errors import InvalidInputError
from ..formulations.validation import meant, shown
from .tensors import written

PRIORITIES, DEFAULT_PRIORITY = 9, 5
"""Priorities are 1, the first, to 9; requests that name none, or 0, have the one in the middle."""

_OF_REQUESTS = (
    "binary_data_output",
    "deadline_ms",
    "priority",
    "sequence_end",
    "sequence_id",
    "sequence_start",
    "timeout",
    "triton_enable_empty_final_response",
)
_MOST_DEADLINE_US = 86_400_000_000
_LONGEST_ID = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the parameters of a request ask for."""

    deadline_us: int | None = None  # by when it has to be done; None: as the model says
    expires: bool = False  # whether it is dropped when that cannot be met
    priority: int = DEFAULT_PRIORITY
    sequence: str | None = None  # of which sequence it is; None: of none
    starts: bool = False  # whether its sequence begins with it
    ends: bool = False  # whether its sequence ends with it
    # when its first byte came, nanoseconds of the monotonic clock; None: when it is submitted
    arrival_ns: int | None = None


def read_wishes(model: str, parameters: Mapping[str, Any], *, recurrent: bool) -> Wishes:
    """Return what the parameters of a request ask for.

    `recurrent`: whether the model keeps a state for each sequence of requests.
    """
    check_known(parameters, _OF_REQUESTS, "parameter")
    if flag(parameters, "triton_enable_empty_final_response", "parameter", usual=False):
        raise InvalidInputError(
            "parameter triton_enable_empty_final_response is for models with several answers a request; "
            "leave it out"
        )
    deadline_us = _microseconds(parameters, "deadline_ms", 1000)
    timeout_us = _microseconds(parameters, "timeout", 1) or None  # Triton's clients say 0 for none
    if deadline_us is not None and timeout_us is not None:
        raise InvalidInputError(
            "parameters deadline_ms and timeout are both given: timeout drops a request that cannot meet it, "
            "deadline_ms does as --late says; give one of them"
        )
    sequence = _sequence(parameters)
    starts = flag(parameters, "sequence_start", "parameter", usual=False)
    ends = flag(parameters, "sequence_end", "parameter", usual=False)
    if sequence is None and (starts or ends):
        raise InvalidInputError("parameters sequence_start and sequence_end need a sequence_id")
    if sequence is not None and not recurrent:
        raise InvalidInputError(
            f"parameter sequence_id is {shown(sequence)}, but {model!r} keeps no state between requests; "
            "leave it out, or serve the model with --state INPUT=OUTPUT"
        )
    return Wishes(
        deadline_us=deadline_us if timeout_us is None else timeout_us,
        expires=timeout_us is not None,
        priority=_priority(parameters),
        sequence=sequence,
        starts=starts,
        ends=ends,
    )


def check_known(given: Collection[str], known: Collection[str], where: str) -> None:
    """Refuse parameters that nothing here reads."""
    for name in given:
        if name not in known:
            raise InvalidInputError(f"{where} {shown(name)} is not known here; {meant(name, known)}")


def flag(given: Mapping[str, Any], key: str, where: str, *, usual: bool) -> bool:
    """Return a parameter that is true or false."""
    value = given.get(key)
    if value is None:
        return usual
    if not isinstance(value, bool):
        raise InvalidInputError(f"{where} {key} is {written(value)}, must be true or false")
    return value


def _microseconds(parameters: Mapping[str, Any], key: str, scale: int) -> int | None:
    value = parameters.get(key)
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if key == "timeout" and number and value == 0:
        return 0
    if not number or not 1 <= value * scale <= _MOST_DEADLINE_US:
        raise InvalidInputError(
            f"parameter {key} is {written(value)}, must be a number of at least {1 / scale:g}, at most a day"
        )
    return int(value * scale)


def _priority(parameters: Mapping[str, Any]) -> int:
    value = parameters.get("priority")
    if value is None:
        return DEFAULT_PRIORITY
    if type(value) is not int or not 0 <= value <= PRIORITIES:
        raise InvalidInputError(
            f"parameter priority is {written(value)}, must be a whole number from 1, the first, to "
            f"{PRIORITIES}, or 0 for the usual one, {DEFAULT_PRIORITY}"
        )
    return value or DEFAULT_PRIORITY


def _sequence(parameters: Mapping[str, Any]) -> str | None:
    value = parameters.get("sequence_id")
    if value in (None, "") or (value == 0 and type(value) is int):
        return None
    if type(value) is int and 0 < value < 2**64:
        return str(value)
    if isinstance(value, str) and len(value) <= _LONGEST_ID:
        return value
    raise InvalidInputError(
        f"parameter sequence_id is {written(value)}, must be a whole number above 0, or a string of at most "
        f"{_LONGEST_ID} characters"
    )
