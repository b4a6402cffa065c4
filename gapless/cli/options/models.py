"""Options of the commands that work with models and with this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ...formulations.errors import InvalidInputError
from ...question.fields import said
from ...question.subjects import CHECK, ENGINE, MEASURING
from ...question.values import count_form, span_form
from ..base.general_options import argument, heading

measuring_option = heading(MEASURING)

SIMULATED = "simulated"
"""The engine of `tune`, `run` and `trace` that plays a cost table (`executor.engine.SIMULATED`)."""

_LOCATOR_HELP = (
    "An ONNX file, a built-in network or application (see `gapless list networks`), or path.py:NAME of a "
    "CallableModel; "
    "NAME=... before it gives it a name of your own."
)
_SEVERAL_HELP = (
    "Several models share the units, each with requests of its own; --chain makes one network of them."
)

ModelArgument = Annotated[str, argument("MODEL", _LOCATOR_HELP)]
OptionalModelArgument = Annotated[str | None, argument("MODEL", _LOCATOR_HELP)]
ModelsArgument = Annotated[
    list[str],
    argument("MODEL...", f"{_LOCATOR_HELP} {_SEVERAL_HELP}"),
]
SubjectsArgument = Annotated[
    list[str],
    argument(
        "MODEL...|PROBLEM", f"{_LOCATOR_HELP} {_SEVERAL_HELP} Or a problem file that `gapless profile` wrote."
    ),
]
CheckOption = Annotated[bool, CHECK]
EngineOption = Annotated[str | None, ENGINE]
SecondsOption = Annotated[
    float,
    said("Least time of each measurement.", span_form("100ms", least="1ms", most="1min"), heading=MEASURING),
]
RoundsOption = Annotated[
    int,
    said("How often all of it is repeated; more even noise out.", count_form(1, 1000), heading=MEASURING),
]


def is_chain(models: Sequence[str], *, chain: bool, shared: str) -> bool:
    """Return whether models are one network; `shared` names the option that says that they share the units.

    Raises InvalidInputError: both are asked for.
    """
    if chain and shared:
        raise InvalidInputError(
            f"--chain makes one network of the models, {shared} has them share the units: leave one out"
        )
    return not shared and (chain or len(models) == 1)
