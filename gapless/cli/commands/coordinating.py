"""Requests as they come: scenarios served in simulated time by several policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...question.fields import Only
from ...question.service import Play
from ...question.subjects import Machine
from ..base.answer import Answer, command
from ..base.general_options import JsonOption, output_option
from ..options.problem import OutOption, check_writable

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, or a shipped one such as eagleeye (see `gapless list policies`).",
        show_default=False,
    ),
]
PictureOption = Annotated[Path | None, output_option(help="Also draw it into this file (.png, .svg).")]
PageOption = Annotated[Path | None, output_option("--report", help="Also write a page (.html).")]


@command
def list_policies(*, json: JsonOption = False) -> Answer:
    """List who may decide about requests as they come, and the scenarios to try them on."""
    from ...answers.coordination import overview
    from ..tasks.coordinating import overview_document

    return Answer(document=overview_document, view=overview)


@command
def requests_coordinate(
    scenario: ScenarioArgument,
    *,
    play: Play,
    machine: Annotated[Machine, Only.of("engine", "units", "emulate")],
    picture: PictureOption = None,
    report: PageOption = None,
    out: OutOption = None,
    json: JsonOption = False,
) -> Answer:
    """Serve the requests of applications as they come, by several policies, in simulated time or really."""
    from ..tasks import coordinating as tasks

    for path in (picture, report, out):
        check_writable(path)
    asked = tasks.scenario_of(scenario, play)
    if play.here:
        tasks.check_alone(play, report)
        return tasks.served_here(asked, play, machine, out=out, picture=picture)
    place, notes = tasks.loaded(tasks.place(asked, play), play)
    return tasks.shown(tasks.serve(asked, place, play), notes, picture=picture, page=report, out=out)
