"""Interference: how much longer layers take while other units are busy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...formulations.errors import InvalidInputError
from ...question.fields import Only
from ...question.subjects import Machine, Opening
from ...question.values import LIST, Place
from ..base.answer import Answer, command
from ..base.general_options import argument
from ..options.models import RoundsOption, SecondsOption, measuring_option
from ..options.problem import OutOption, result_option

_NO_MAP = "--svg draws heat maps, and plans have none; leave it out, or show their network without --plan"

InterferenceSubjectsArgument = Annotated[
    list[str],
    argument(
        "NETWORK...|PLATFORM|FILE",
        "Networks to measure here: ONNX files, built-in networks (see `gapless list networks`), or "
        "path.py:NAME of CallableModels, with NAME=... before one to give it a name of your own. Or without "
        "measuring: a shipped platform or problem such as pixel7a, the profile.json of `gapless profile`, or "
        "a file of --out. With --plan: a problem file, or the profile.json that it was made from.",
    ),
]
BesideOption = Annotated[
    list[str] | None,
    measuring_option(
        metavar="UNIT,UNIT",
        help="Units that make load together; can be repeated. Otherwise each other unit, and all others.",
    ),
]
PlansOption = Annotated[
    list[Path] | None,
    measuring_option(
        "--plan",
        metavar="FILE",
        help="Measure each chunk of this plan while its other chunks run in a loop; can be repeated.",
    ),
]
MeasuredOption = Annotated[
    list[Path] | None,
    measuring_option(
        "--measured",
        metavar="FILE",
        help="What `gapless run --out` measured of one of the plans, to compare with; can be repeated.",
    ),
]
StoreOption = Annotated[Path | None, measuring_option(help="Keep each finished measurement in this file.")]
ResumeOption = Annotated[bool, measuring_option("--resume", help="Go on with what --store holds.")]
SvgOption = Annotated[Path | None, result_option("Also draw the heat map into this file.")]


@command(
    "gapless costs interference pixel7a --svg map.svg",
    "gapless costs interference squeezenet --beside core1",
)
def costs_interference(
    subjects: InterferenceSubjectsArgument,
    *,
    opening: Annotated[Opening, Only.of("shape")],
    machine: Annotated[Machine, Only.of("engine", "units", "emulate", "precision")],
    beside: BesideOption = None,
    plan: PlansOption = None,
    measured: MeasuredOption = None,
    seconds: SecondsOption = 0.1,
    rounds: RoundsOption = 3,
    store: StoreOption = None,
    resume: ResumeOption = False,
    svg: SvgOption = None,
    out: OutOption = None,
) -> Answer:
    """Show how much longer, or less, layers take while other units are busy: a heat map of ratios."""
    from ...answers.interference import interference_blocks, picture_notes, ratio_map
    from ...formulations.files import dump
    from ...profiler.slowdown.interference.ratios import INTERFERENCE, heat_maps
    from ...profiler.slowdown.turns import CoRunOptions
    from ...view.terminal.heat_map import grid_svg
    from ..tasks.interference import InterferenceChoice

    if resume and store is None:
        raise InvalidInputError("--resume goes on with what a file holds; name it with --store")
    if svg is not None and plan:
        raise InvalidInputError(_NO_MAP)
    choice = InterferenceChoice(
        subjects=subjects,
        machine=machine,
        opening=opening,
        beside=[LIST.read(Place("--beside"), text) for text in beside or ()],
        plans=plan or [],
        measured=measured or [],
        options=CoRunOptions(rounds=rounds, seconds_per_item=seconds),
        store=store,
        resume=resume,
    )
    found, notes = choice.found()
    maps = heat_maps(found)
    if svg is not None and not maps:
        raise InvalidInputError(_NO_MAP)
    return Answer.of(
        "interference",
        found,
        lambda: interference_blocks(found),
        notes=notes,
        files={
            "svg": lambda: grid_svg([*map(ratio_map, maps)], picture_notes(found)),
            "out": lambda: dump(found, INTERFERENCE),
        },
        maps=maps,
    )
