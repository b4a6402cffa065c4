"""Contention: how much networks slow each other down on this device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ...formulations.errors import InvalidInputError
from ...profiler.slowdown.contention.ridge import Form
from ...question.fields import Only
from ...question.subjects import Machine, Opening
from ..base.answer import Answer, command
from ..base.general_options import argument
from ..options.models import RoundsOption, SecondsOption, measuring_option
from ..options.problem import OutOption

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
    out: OutOption = None,
) -> Answer:
    """Measure how much networks on different units slow each other down through the memory they share."""
    from ...answers.contention import contention_blocks
    from ...api.engines import resolve_engine
    from ...api.models import open_all
    from ...api.slowdown.contention import measure_contention
    from ...formulations.files import dump
    from ...profiler.slowdown.contention.result import CONTENTION, ContentionOptions
    from ..base.progress import StepLine
    from ..tasks import measuring

    if platform is not None:
        if estimate:
            raise InvalidInputError("--platform estimates by itself: leave --estimate out")
        return _estimated(networks or (), platform, form=form, parts=parts)
    options = ContentionOptions(
        rounds=rounds, seconds_per_item=seconds, pairs=pairs, parts=parts, percentile=percentile, form=form
    )
    others = estimate or []
    models = open_all([*(networks or ()), *others], opening)
    first = len(models) - len(others)
    runner = resolve_engine(machine.engine, *models).name
    device_platform, notes = measuring.platform_of(machine, runner), measuring.busy_notes()
    with StepLine() as line:
        found = measure_contention(
            models[:first],
            platform=device_platform,
            engine=runner,
            options=options,
            estimated=models[first:],
            report=line.report,
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
