"""What layers and networks take while something else runs: `costs interference` and `costs contention`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from ...formulations.errors import InvalidInputError
from ...profiler.slowdown.contention.ridge import Form
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


NetworksArgument = Annotated[
    list[str] | None,
    argument(
        "NETWORK...",
        "ONNX files, built-in networks (see `gapless list networks`), or path.py:NAME of "
        "CallableModels; NAME=... before one gives it a name of your own. With --platform: none means all "
        "networks of the phone.",
    ),
]
PairsOption = Annotated[
    bool,
    measuring_option(
        "--pairs/--no-pairs",
        help="Measure every network beside every other one, or each beside the memory probe and itself only: "
        "much faster for many networks.",
        show_default=True,
    ),
]
PartsOption = Annotated[
    int,
    measuring_option(
        min=0,
        max=64,
        help="Also look at each network in this many parts, against the probe: plans go by slice.",
        show_default=True,
    ),
]
PercentileOption = Annotated[
    int,
    measuring_option(min=0, max=100, help="Networks of an intensity above it are high.", show_default=True),
]
FormOption = Annotated[
    Form,
    measuring_option(
        help="What the paper's regression from performance counters to intensity (Eq. 1) is applied to: "
        "features as they are, as printed, or centred and scaled."
    ),
]
EstimateOption = Annotated[
    list[str] | None,
    measuring_option(
        metavar="NETWORK",
        help="Run this network alone only, and estimate its intensity from performance counters, by Eq. 1 as "
        "fitted to the others; can be repeated.",
    ),
]
PhoneOption = Annotated[
    str | None,
    measuring_option(
        metavar="PHONE",
        help="Measure nothing: estimate the intensity of the networks, and of each layer or part, on a "
        "shipped phone such as kirin990.",
    ),
]


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
    from ..tasks.co_runs import InterferenceChoice, Kept

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
        kept=Kept(store=store, resume=resume),
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


@command(
    "gapless costs contention squeezenet mobilenetv2 --no-pairs --out slow.json",
    "gapless costs contention vgg16 --platform kirin990 --parts 4 --out slow.json",
)
def costs_contention(
    networks: NetworksArgument = None,
    *,
    opening: Annotated[Opening, Only.of("shape")],
    machine: Annotated[Machine, Only.of("engine", "units", "emulate", "precision")],
    seconds: SecondsOption = 0.1,
    rounds: RoundsOption = 3,
    pairs: PairsOption = True,
    parts: PartsOption = 0,
    percentile: PercentileOption = 50,
    form: FormOption = Form.CENTRED,
    estimate: EstimateOption = None,
    platform: PhoneOption = None,
    store: StoreOption = None,
    resume: ResumeOption = False,
    out: OutOption = None,
) -> Answer:
    """Measure how much networks on different units slow each other down through the memory they share."""
    from ...answers.contention import contention_blocks
    from ...api.models import open_all
    from ...api.slowdown.contention import measure_contention
    from ...formulations.files import dump
    from ...profiler.slowdown.contention.result import CONTENTION, ContentionOptions
    from ..tasks.co_runs import Kept, measured

    if platform is not None:
        if estimate:
            raise InvalidInputError("--platform estimates by itself: leave --estimate out")
        if store or resume:
            raise InvalidInputError("--platform measures nothing that --store could keep: leave it out")
        return _estimated(networks or (), platform, form=form, parts=parts)
    options = ContentionOptions(
        rounds=rounds, seconds_per_item=seconds, pairs=pairs, parts=parts, percentile=percentile, form=form
    )
    others = estimate or []
    models = open_all([*(networks or ()), *others], opening)
    first = len(models) - len(others)
    found, notes = measured(
        measure_contention,
        models[:first],
        machine,
        estimated=models[first:],
        options=options,
        **Kept(store=store, resume=resume).words,
    )
    return Answer.of(
        "contention",
        found,
        lambda: contention_blocks(found),
        notes=notes,
        files={"out": lambda: dump(found, CONTENTION)},
    )


def _estimated(names: Sequence[str], platform: str, *, form: Form, parts: int) -> Answer:
    from ...answers.contention import estimated_blocks
    from ...api.slowdown.contention import estimate_contention
    from ...formulations.files import INTERFERENCE, dump

    found = estimate_contention(names, platform=platform, form=form, parts=parts)
    known = found.by_slice if parts else found.interference
    return Answer.of(
        "estimated_contention",
        found,
        lambda: estimated_blocks(found, parts=bool(parts) or len(found.networks) == 1),
        files={"out": lambda: dump(known, INTERFERENCE)},
    )
