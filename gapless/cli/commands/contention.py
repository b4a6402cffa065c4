"""Contention: how much networks slow each other down on this device."""

from __future__ import annotations

from typing import Annotated

import typer

from ...files import documents
from ...formulations.hardware import Precision
from ..base.answer import Answer, command, write_out
from ..base.general_options import JsonOption
from ..options.models import (
    EmulateOption,
    EngineOption,
    PrecisionOption,
    RoundsOption,
    SecondsOption,
    ShapeOption,
    UnitsOption,
    measuring_option,
)
from ..options.problem import OutOption, check_writable

NetworksArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="NETWORK...",
        help="ONNX files, built-in networks (see `gapless networks`), or path.py:NAME of CallableModels; "
        "NAME=... before one gives it a name of your own.",
        show_default=False,
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
        min=0, max=64, help="Also measure each network in so many parts against the probe.", show_default=True
    ),
]
PercentileOption = Annotated[
    int,
    measuring_option(min=0, max=100, help="Networks of an intensity above it are high.", show_default=True),
]


@command
def contention(
    networks: NetworksArgument,
    *,
    shape: ShapeOption = None,
    engine: EngineOption = None,
    units: UnitsOption = None,
    emulate: EmulateOption = None,
    precision: PrecisionOption = Precision.HIGH,
    seconds: SecondsOption = 0.1,
    rounds: RoundsOption = 3,
    pairs: PairsOption = True,
    parts: PartsOption = 0,
    percentile: PercentileOption = 50,
    out: OutOption = None,
    json: JsonOption = False,
) -> Answer:
    """Measure how much networks on different units slow each other down through the memory they share."""
    from ...api.device import common_engine
    from ...api.models import open_each
    from ...api.slowdown.contention import measure_contention
    from ...executor.graph.shapes import parse_shapes
    from ...formulations.files import dump
    from ...profiler.slowdown.contention.result import CONTENTION, ContentionOptions
    from ...view.terminal.contention import contention_view
    from ..base.progress import StepLine
    from ..tasks import measuring

    check_writable(out)
    options = ContentionOptions(
        rounds=rounds, seconds_per_item=seconds, pairs=pairs, parts=parts, percentile=percentile
    )
    device = measuring.DeviceChoice.of(engine, units=units, emulate=emulate, precision=precision)
    models = open_each(networks, shapes=parse_shapes(shape or ()))
    runner = device.engine or common_engine(models)
    platform, notes = device.platform(runner), measuring.busy_notes()
    with StepLine() as line:
        found = measure_contention(
            models, platform=platform, engine=runner, options=options, report=line.report
        )
    notes += write_out(out, lambda: dump(found, CONTENTION))
    return Answer(
        document=lambda: {**documents.header("contention"), **documents.plain_data(found)},
        view=lambda: contention_view(found),
        notes=notes,
    )
