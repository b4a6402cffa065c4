"""Requests as they come: scenarios served in simulated time by several policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...question.fields import Only
from ...question.service import Play
from ...question.subjects import Machine
from ..base.answer import Answer, command
from ..base.general_options import argument
from ..options.problem import OutOption, PictureOption, result_option

ScenarioArgument = Annotated[
    str,
    argument("SCENARIO", "A scenario file, or a shipped one such as eagleeye (see `gapless list policies`)."),
]
PageOption = Annotated[Path | None, result_option("Also write a page (.html).")]


@command(
    "gapless requests coordinate eagleeye --platform pixel4 --policy lst,sel,tflite-mp",
    "gapless requests coordinate four-apps --platform pixel4 --policy lst --multipliers 1,2",
)
def requests_coordinate(
    scenario: ScenarioArgument,
    *,
    play: Play,
    machine: Annotated[Machine, Only.of("engine", "units", "emulate")],
    picture: PictureOption = None,
    report: PageOption = None,
    out: OutOption = None,
) -> Answer:
    """Serve the requests of applications as they come, by several policies, in simulated time or really."""
    from ..tasks import coordinating as tasks

    asked = tasks.scenario_of(scenario, play)
    if play.here:
        tasks.check_alone(play, report)
        return tasks.served_here(asked, play, machine)
    place, notes = tasks.loaded(tasks.place(asked, play), play)
    return tasks.shown(tasks.serve(asked, place, play), notes)
