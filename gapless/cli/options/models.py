"""Options of the commands that work with models and with this device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...executor.graph.choices import Granularity, Simplification
from ...formulations.coordination.sessions import SessionChoice
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Precision
from ..base.general_options import heading, output_option

if TYPE_CHECKING:
    from ...executor.samples import Samples

model_option = heading("The model")
_device_option = heading("The device")
measuring_option = heading("How to measure")

SIMULATED = "simulated"
"""The engine of `tune`, `run` and `trace` that plays a cost table (`executor.engine.SIMULATED`)."""

SessionMemoryOption = Annotated[
    int | None,
    heading("How requests are served")(
        "--session-memory",
        metavar="MEGABYTES",
        min=1,
        help="What the loaded chunks of a network may need together; the least useful ones are left out.",
    ),
]
SessionsOption = Annotated[
    SessionChoice | None,
    heading("How requests are served")(
        help="Which chunks are loaded: those that its shortest ways have (useful: on a device, and with "
        "--session-memory), or all."
    ),
]

_LOCATOR_HELP = (
    "An ONNX file, a built-in network or application (see `gapless list networks`), or path.py:NAME of a "
    "CallableModel; "
    "NAME=... before it gives it a name of your own."
)
_SEVERAL_HELP = (
    "Several models share the units, each with requests of its own; --chain makes one network of them."
)

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=_LOCATOR_HELP, show_default=False)]
OptionalModelArgument = Annotated[
    str | None, typer.Argument(metavar="MODEL", help=_LOCATOR_HELP, show_default=False)
]
ModelsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...",
        help=f"{_LOCATOR_HELP} {_SEVERAL_HELP}",
        show_default=False,
    ),
]
ShapeOption = Annotated[
    list[str] | None,
    model_option(
        metavar="INPUT=N,C,H,W",
        help="Fixed shape of an input with dynamic dimensions, e.g. x=1,3,480,640; can be repeated. "
        "MODEL/INPUT=... where several models have inputs of that name.",
    ),
]
GranularityOption = Annotated[
    Granularity,
    model_option(
        help="How operators are grouped into layers; auto: layer, or block for very many tiny layers.",
        show_default=True,
    ),
]
MaterializeOption = Annotated[
    bool,
    model_option("--materialize", help="Copy weights that are links to other files before reading them."),
]
SimplifyOption = Annotated[
    Simplification,
    model_option(
        help="Simplify ONNX files as far as their numbers stay, or not at all.",
        show_default=True,
    ),
]
InputOption = Annotated[
    Path | None,
    model_option(
        "--input",
        metavar="FILE|FOLDER",
        help="Real inputs instead of random numbers: an .npz file with one array for each input, or a folder "
        "of them, used in turn. One more dimension in front counts requests. MODEL/INPUT where several "
        "models have inputs of that name.",
    ),
]
InputRangeOption = Annotated[
    list[str] | None,
    model_option(
        metavar="INPUT=LOW:HIGH",
        help="Random numbers of an input lie in this range, without HIGH, e.g. ids=0:30000; can be repeated.",
    ),
]
SubjectsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...|PROBLEM",
        help=f"{_LOCATOR_HELP} {_SEVERAL_HELP} Or a problem file that `gapless profile` wrote.",
        show_default=False,
    ),
]
CheckOption = Annotated[
    bool,
    model_option(
        "--check/--unchecked",
        help="First compare the numbers with those of the uncut model; wrong ones are refused (exit code 6).",
    ),
]
EngineOption = Annotated[
    str | None,
    _device_option(
        help="Who runs the layers: a name (`gapless doctor` lists the engines), or module:Class or "
        "file.py:Class of your own; in `profile`, `tune` and `device bench` several that compete, with "
        "commas between. Otherwise mnn for ONNX files, there beside onnxruntime, and callable for Python "
        "functions; in `run` and `trace` those of the profile. `tune`, `run` and `trace` also take "
        "simulated: no device, a cost table is played.",
    ),
]
UnitsOption = Annotated[
    str | None,
    _device_option(
        metavar="NAME,NAME", help="Units to use (`gapless device detect` shows them); otherwise all."
    ),
]
DeviceOption = Annotated[
    Path | None,
    _device_option(
        metavar="FILE",
        help="The units of this device as a platform file describes them: `gapless device detect --out "
        "FILE` writes one to edit (clusters, threads, memory, quotas).",
    ),
]
EmulateOption = Annotated[
    list[str] | None,
    _device_option(
        metavar="UNIT=PERCENT",
        help="Emulate a slower unit by a quota of processor time, e.g. core1=50%; can be repeated.",
    ),
]
PrecisionOption = Annotated[
    Precision, _device_option(help="How exact the engine computes.", show_default=True)
]
OutDirOption = Annotated[
    Path, output_option("--out", "-o", help="Folder for everything that is written.", show_default=True)
]
OverwriteOption = Annotated[
    bool,
    output_option(
        "--overwrite", help="Remove the run that is in the folder first: its files, and none of yours."
    ),
]
SecondsOption = Annotated[
    float, measuring_option(min=0.001, max=60.0, help="Least seconds of each measurement.", show_default=True)
]
RoundsOption = Annotated[
    int,
    measuring_option(
        min=1, max=1000, help="How often all of it is repeated; more even noise out.", show_default=True
    ),
]

_EMULATED = re.compile(r"([^=]+)=(\d{1,3})(?:\.(\d))?\s?%", re.ASCII)

SideBySideOption = Annotated[
    bool,
    model_option(
        "--side-by-side",
        help="Measure for sharing the units (`--workload` of plan and tune), as several models always are "
        "without --chain; of one model, to be requested several times.",
    ),
]
ChainOption = Annotated[
    bool,
    model_option(
        "--chain",
        help="Several models run one after the other for each request, in the given order, as one network.",
    ),
]
BatchSizesOption = Annotated[
    str | None,
    model_option(
        metavar="SIZES",
        help="Sizes of batches, e.g. 1,2,4: each is measured as a network of its own (net*4), of which "
        "`plan --workload net*4x2` and `plan --batches 1,2,4` speak. Implies --side-by-side; the model "
        "leaves the first dimension open, and --shape says 1.",
    ),
]


MOST_DIGITS = 4
"""Of a number of inferences that are served together."""


def is_chain(models: Sequence[str], *, chain: bool, shared: str) -> bool:
    """Return whether models are one network; `shared` names the option that says that they share the units.

    Raises InvalidInputError: both are asked for.
    """
    if chain and shared:
        raise InvalidInputError(
            f"--chain makes one network of the models, {shared} has them share the units: leave one out"
        )
    return not shared and (chain or len(models) == 1)


def parse_samples(feed: Path | None, ranges: Sequence[str] | None) -> Samples | None:
    """Return what models are tried with, from --input and --input-range; None: neither is given."""
    if feed is None and not ranges:
        return None
    from ...executor.samples import parse_ranges, read_samples

    return read_samples(feed, parse_ranges(ranges or ()))


def parse_names(text: str | None) -> tuple[str, ...]:
    """Return the names of a comma-separated list; empty without one."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) if text else ()


def parse_sizes(option: str, text: str) -> list[int]:
    """Return whole numbers from a text such as "1,2,4"; `option` is who is told."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) <= MOST_DIGITS for part in parts):
        raise InvalidInputError(f"{option} is {text!r}, must be whole numbers with commas, e.g. 1,2,4")
    return [int(part) for part in parts]


def parse_emulation(texts: Sequence[str] | None) -> dict[str, int]:
    """Return {unit: permille} from texts such as "core1=50%"."""
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
