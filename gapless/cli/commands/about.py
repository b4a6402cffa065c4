"""What is here: what works, and the units of this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...files import documents
from ...formulations.errors import InvalidInputError
from ...question.fields import Only
from ...question.subjects import Machine
from ..base.answer import Answer, View, command
from ..base.exits import ExitCode
from ..options.boards import OnOption, on_boards
from ..options.problem import OutOption

if TYPE_CHECKING:
    from ...boards.running import Ran


@command("gapless doctor")
def doctor(
    *,
    on: OnOption = None,
    backends: Annotated[
        bool, typer.Option("--backends", help="Show what each backend can do with each kind of problem.")
    ] = False,
) -> Answer:
    """Say what works here, or on a board: Python, the machine, its engines, and what plans each problem."""
    if on is not None:
        if backends:
            raise InvalidInputError("--backends is about this machine: leave --on out")
        return _board(on)
    from ...answers.doctor import doctor_blocks
    from ...api.diagnosis import doctor as diagnose
    from ...files.diagnosis_document import diagnosis_document

    diagnosis = diagnose()
    return Answer(
        document=lambda: diagnosis_document(diagnosis),
        view=lambda: doctor_blocks(diagnosis, matrix=backends),
    )


def _board(on: str) -> Answer:
    from ...answers.doctor import board_blocks
    from ...boards.checks import diagnose_board
    from ...boards.ssh import Address
    from ..base.progress import StepLine

    with StepLine() as line:
        found = diagnose_board(Address.of(on), report=line.report)
    code = ExitCode.OK if found.ok else ExitCode.FAILURE
    return Answer.of("board_diagnosis", found, lambda: board_blocks(found), code=code, ok=found.ok)


def _platform_of_board(ran: Ran, given: Mapping[str, Any]) -> View:
    from ...answers.problems import platform_blocks
    from ...formulations.hardware import Platform

    return platform_blocks(ran.read(Platform, "a platform"))


@command(
    "gapless device detect",
    "gapless device detect --units core0 --out device.json",
)
@on_boards(_platform_of_board)
def device_detect(
    *,
    machine: Annotated[Machine, Only.of("engine", "units", "emulate")],
    out: OutOption = None,
) -> Answer:
    """Show this machine as a platform: its clusters and cores as units."""
    from ...answers.problems import platform_blocks
    from ...api.device import this_device
    from ...api.engines import DEFAULT_ENGINE
    from ...formulations.files import PLATFORM, dump

    platform = this_device(
        engine=machine.engine or DEFAULT_ENGINE, units=machine.units, emulate=machine.emulate
    )
    text = dump(platform, PLATFORM)
    return Answer(
        document=lambda: {**documents.header("platform"), **json.loads(text)},
        view=lambda: platform_blocks(platform),
        files={"out": lambda: text},
    )
