"""Serving models to other programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...files import documents
from ...question.service import Hosting, Service
from ...question.subjects import Machine, Opening
from ..base.answer import Answer, command
from ..base.general_options import JsonOption, output_option
from ..options.models import CheckOption
from ..options.problem import check_writable


class LogLevel(StrEnum):
    """Which messages of a log are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


SubjectsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL...|PLAN",
        help="Models: ONNX files, built-in networks (see `gapless list networks`), or path.py:NAME of a "
        "CallableModel; NAME=... before one gives it a name of your own. Or a plan, or the folder of a run: "
        "every request then takes its chunks.",
        show_default=False,
    ),
]
TraceOption = Annotated[
    Path | None, output_option(help="In the end, write a Perfetto trace of the last requests.")
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


@command
def serve(
    subjects: SubjectsArgument,
    *,
    hosting: Hosting,
    service: Service,
    check: CheckOption = True,
    opening: Opening,
    machine: Machine,
    trace: TraceOption = None,
    log_level: LogLevelOption = LogLevel.INFO,
    log_json: LogJsonOption = False,
    json: JsonOption = False,
) -> Answer:
    """Serve models to other programs by the Open Inference Protocol; a policy shares out the units."""
    from ...answers.serving import served_blocks
    from ...serving.logs import kept
    from ..tasks import serving

    check_writable(trace)
    with kept(sys.stderr, level=log_level, as_json=log_json) as log:
        find = partial(serving.subject, subjects, opening, service.problem, service.max_batch)
        server, asked = serving.opened(find, machine, hosting, service, check=check)
        found, notes = serving.serve_until(server, service, trace=trace, log=log)
    return Answer(
        document=lambda: {**documents.header("served"), **documents.plain_data(found)},
        view=lambda: served_blocks(found),
        notes=[*asked.notes, *notes],
    )
