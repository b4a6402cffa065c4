"""Task streams: networks that run one after the other on the same devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from ...files import documents
from ...formulations.errors import InvalidInputError
from ...question.fields import Only, said
from ...question.question import Question
from ...question.subjects import SOLVING, Search
from ...question.values import span_form
from ..base.answer import Answer, command
from ..base.general_options import argument
from ..options.cluster import ClusterChoice
from ..options.models import CheckOption, EngineOption
from ..options.problem import OutOption, PictureOption, ProblemOptions, ask

TasksArgument = Annotated[
    list[str],
    argument(
        "PROBLEM:ITEMS...",
        "What runs one after the other: a problem, as for `gapless plan`, and how many items; an item "
        "is one run of the plan, e.g. a batch.",
    ),
]
ProfileTimeOption = Annotated[
    float | None,
    said(
        "Also play it as if each network were first measured for this time.",
        span_form("20s", least="0us"),
        heading=SOLVING,
    ),
]
IdleTimeOption = Annotated[
    float | None,
    said(
        "Likewise: how long until a plan is made and sent to the devices.",
        span_form("1s", least="0us"),
        heading=SOLVING,
    ),
]


@command("gapless requests stream pixel7a/alexnet-sparse:300 pixel7a/octree:9 --profile 20s --idle 1s")
def requests_stream(
    tasks: TasksArgument,
    *,
    question: Annotated[Question, Only.of("platform")],
    backend: Annotated[
        str | None,
        said("What plans, as for `gapless plan`; otherwise the usual backend.", heading=SOLVING),
    ] = None,
    search: Annotated[Search, Only.of("time_limit_s", "start")] = Search(start="native"),
    profile: ProfileTimeOption = None,
    idle: IdleTimeOption = None,
    picture: PictureOption = None,
    engine: EngineOption = None,
    check: CheckOption = True,
    place: ClusterChoice,
    out: OutOption = None,
) -> Answer:
    """Plan networks that run one after the other on the same devices; play them, or run them on a cluster."""
    from ...answers.streams import stream_blocks
    from ...api.streams import played
    from ...formulations.task_stream import PlanningTime
    from ..tasks.clusters import stream_on
    from ..tasks.solving import plan_uninterrupted

    asked = [
        (ask(ProblemOptions(question=replace(question, problem=name))), items)
        for name, items in map(_task, tasks)
    ]
    planning = None
    if profile is not None or idle is not None:
        planning = PlanningTime(profile_us=round(1e6 * (profile or 0)), idle_us=round(1e6 * (idle or 0)))
    found = played(
        [(each.problem, items) for each, items in asked],
        lambda problem: plan_uninterrupted(problem, backend, search.solver_options),
        planning,
    )
    notes = [note for each, _ in asked for note in each.notes]
    ran = stream_on(found.tasks, place, engine=engine, check=check) if place else None

    def draw(path: Path) -> None:
        from ...view.plots.pictures import save_stream

        save_stream(found, path)

    return Answer(
        document=lambda: documents.stream_document(found, ran),
        view=lambda: stream_blocks(found, ran),
        notes=notes,
        files={"out": None},
        drawn={"picture": draw},
    )


def _task(text: str) -> tuple[str, int]:
    """Return the problem and the number of items of "PROBLEM:ITEMS"."""
    name, _, number = text.rpartition(":")
    if not name or not number.isdecimal():
        raise InvalidInputError(f"{text!r} is no task: write PROBLEM:ITEMS, e.g. pixel7a/alexnet-sparse:3000")
    return name, int(number)
