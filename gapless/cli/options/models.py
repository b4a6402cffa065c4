"""Options of the commands that work with models and with this device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...executor.graph.grouping import Granularity
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Precision

_MODEL = "The model"
_DEVICE = "The device"
MEASURING = "How to measure"
"""Heading of the options that say how long something is measured."""

_LOCATOR_HELP = (
    "An ONNX file, a built-in network or application (see `gapless networks`), or path.py:NAME of a "
    "CallableModel; "
    "NAME=... before it gives it a name of your own."
)

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=_LOCATOR_HELP, show_default=False)]
ModelsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...",
        help=f"{_LOCATOR_HELP} Several models run one after the other for each request.",
        show_default=False,
    ),
]
ShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="INPUT=N,C,H,W",
        help="Fixed shape of an input with dynamic dimensions, e.g. x=1,3,480,640; can be repeated. "
        "MODEL/INPUT=... where several models have inputs of that name.",
        rich_help_panel=_MODEL,
        show_default=False,
    ),
]
GranularityOption = Annotated[
    Granularity,
    typer.Option(help="How operators are grouped into layers.", rich_help_panel=_MODEL),
]
MaterializeOption = Annotated[
    bool,
    typer.Option(
        "--materialize",
        help="Copy weights that are links to other files before reading them.",
        rich_help_panel=_MODEL,
    ),
]
SubjectsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...|PROBLEM",
        help=f"{_LOCATOR_HELP} Several models run one after the other for each request. Or a problem file "
        "that `gapless profile` wrote.",
        show_default=False,
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        help="Who runs the layers: a name (`gapless doctor` lists the engines), or module:Class or "
        "file.py:Class of your own; otherwise mnn for ONNX files, callable for Python functions. `tune` also "
        "takes simulated.",
        rich_help_panel=_DEVICE,
        show_default=False,
    ),
]
UnitsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help="Units to use (`gapless platforms --detect` shows them); otherwise all.",
        rich_help_panel=_DEVICE,
        show_default=False,
    ),
]
DeviceOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The units of this device as a platform file describes them: `gapless platforms --detect --out "
        "FILE` writes one to edit (clusters, threads, memory, quotas).",
        rich_help_panel=_DEVICE,
        show_default=False,
    ),
]
EmulateOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="UNIT=PERCENT",
        help="Emulate a slower unit by a quota of processor time, e.g. core1=50%; can be repeated.",
        rich_help_panel=_DEVICE,
        show_default=False,
    ),
]
PrecisionOption = Annotated[
    Precision, typer.Option(help="How exact the engine computes.", rich_help_panel=_DEVICE)
]
OutDirOption = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for everything that is written.", rich_help_panel="Output")
]
SecondsOption = Annotated[
    float,
    typer.Option(min=0.001, max=60.0, help="Least seconds of each measurement.", rich_help_panel=MEASURING),
]
RoundsOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=1000,
        help="How often all of it is repeated; more even noise out.",
        rich_help_panel=MEASURING,
    ),
]

_EMULATED = re.compile(r"([^=]+)=(\d{1,3})(?:\.(\d))?\s?%", re.ASCII)


def parse_names(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list; empty without one."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def parse_emulation(texts: Sequence[str] | None) -> dict[str, int]:
    """Return {unit: permille} from texts such as "core1=50%".

    Raises
    ------
    InvalidInputError
        A text is malformed, or a share is not above 0 % and at most 100 %.
    """
    shares, defects = {}, []
    for text in texts or ():
        found = _EMULATED.fullmatch(text.strip())
        share = 10 * int(found[2]) + int(found[3] or 0) if found else 0
        if found is None or not 1 <= share <= 1000:
            defects.append(f"--emulate {text!r}: expected a unit and a percentage, e.g. core1=50%")
        else:
            shares[found[1].strip()] = share
    if defects:
        raise InvalidInputError("emulated units cannot be read:", defects)
    return shares
