"""Serving models to other programs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

from ...question.service import Hosting, Service
from ...question.subjects import Machine, Opening
from ..base.answer import Answer, command
from ..base.general_options import argument, output_option
from ..options.cluster import ClusterChoice
from ..options.models import CheckOption
from ..options.problem import result_option


class LogLevel(StrEnum):
    """Which messages of a log are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


SubjectsArgument = Annotated[
    list[str],
    argument(
        "MODEL...|PLAN",
        "Models: ONNX files, built-in networks (see `gapless list networks`), or path.py:NAME of a "
        "CallableModel; NAME=... before one gives it a name of your own. Or a plan, or the folder of a run: "
        "every request then takes its chunks.",
    ),
]
TraceOption = Annotated[
    Path | None, result_option("In the end, write a Perfetto trace of the last requests.")
]
LogLevelOption = Annotated[
    LogLevel,
    output_option(
        help="The least important messages of the log on standard error: requests are debug, lost workers "
        "warnings."
    ),
]
LogJsonOption = Annotated[
    bool, output_option("--log-json", help="The log, and what else is said meanwhile, in JSON lines.")
]


@command(
    "gapless serve squeezenet mobilenetv2 --seconds 1s --port 0",
    "gapless serve squeezenet --deadline squeezenet=50ms --late drop --seconds 1s --port 0",
)
def serve(
    subjects: SubjectsArgument,
    *,
    hosting: Hosting,
    service: Service,
    check: CheckOption = True,
    opening: Opening,
    machine: Machine,
    place: ClusterChoice,
    trace: TraceOption = None,
    log_level: LogLevelOption = LogLevel.INFO,
    log_json: LogJsonOption = False,
) -> Answer:
    """Serve models to other programs by the Open Inference Protocol; a policy shares out units or devices."""
    from ...answers.scenarios import served_blocks
    from ...serving.logs import kept
    from ..tasks import serving

    with kept(sys.stderr, level=log_level, as_json=log_json) as log, ExitStack() as stack:
        find = partial(
            serving.subject,
            subjects,
            opening,
            service.problem,
            service.max_batch,
            about_units=() if place else machine.options("device", "units", "emulate", "precision"),
        )
        cluster = serving.ClusterPlace(place, stack) if place else None
        server, asked = serving.opened(find, machine, hosting, service, check=check, cluster=cluster)
        found, notes = serving.serve_until(server, service, trace=trace, log=log, metered=not place)
    return Answer.of("served", found, lambda: served_blocks(found), notes=[*asked.notes, *notes])
