"""Requests as they come: scenarios served in simulated time by several policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...formulations.coordination.dispatch import Late
from ...formulations.coordination.times import SMOOTHING
from ...formulations.hardware import Precision
from ..base.answer import Answer, command
from ..base.general_options import JsonOption, heading, output_option
from ..options.models import EmulateOption, EngineOption, SessionMemoryOption, SessionsOption, UnitsOption
from ..options.problem import OutOption, check_writable

_served_option = heading("How requests are served")
_here_option = heading("On this machine")

ScenarioArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, or a shipped one such as eagleeye. Without it: which scenarios and policies "
        "there are.",
        show_default=False,
    ),
]
PoliciesOption = Annotated[
    str,
    _served_option(
        "--policy",
        metavar="NAME,...",
        help="Who decides: names, or my_file.py:NAME of one of your own, which is run.",
    ),
]
PhoneOption = Annotated[
    str | None,
    _served_option("--platform", help="A shipped phone, e.g. pixel4: its networks have estimated costs."),
]
CostsOption = Annotated[
    str | None,
    _served_option(
        "--problem", metavar="PROBLEM", help="Or a problem, file or shipped name, with all networks' costs."
    ),
]
BehaviourOption = Annotated[
    Path | None, _served_option(help="With --problem: a file on how its units behave (powers, heat, ...).")
]
LateOption = Annotated[
    Late, _served_option(help="What becomes of requests that cannot meet their deadline any more.")
]
SecondsOption = Annotated[
    float | None,
    _served_option(min=0.001, max=1e6, help="How long requests come; otherwise as it says."),
]
PaceOption = Annotated[
    float,
    _served_option(
        min=0.001, max=1000, help="Let requests come so many times as fast, e.g. 0.1 for a slow device."
    ),
]
SeedOption = Annotated[int | None, _served_option(min=0, help="Of all that is drawn, instead of its own.")]
SplitOption = Annotated[
    int | None,
    _served_option(
        min=2, max=50, help="Divide networks that run everywhere into so many sections of about equal work."
    ),
]
SmoothingOption = Annotated[
    float, _served_option(min=0, max=1, help="Share of the last observation in an expected time.")
]
EstimateNoiseOption = Annotated[
    str | None, _served_option(metavar="PERCENT", help="Let expected times be wrong by up to so much.")
]
TimeNoiseOption = Annotated[
    str | None, _served_option(metavar="PERCENT", help="Let the times of chunks vary by up to so much.")
]
RestOption = Annotated[
    float | None,
    _served_option(
        "--rest", metavar="KELVIN", min=0, help="Let units rest so far below the heat at which they are lost."
    ),
]
PowerOption = Annotated[
    float | None,
    _served_option("--power", metavar="WATT", min=0.001, help="Start nothing beyond a power of the device."),
]
MultipliersOption = Annotated[
    str | None,
    _served_option(
        metavar="X,...",
        help="Serve it once for each deadline: so many times the 99th percentile of the time alone.",
    ),
]
HereOption = Annotated[
    bool,
    _here_option(
        "--here",
        help="Really serve it with the built-in networks of these names, and simulate it by the times that "
        "were measured before.",
    ),
]
CannotOption = Annotated[
    list[str] | None,
    _here_option(
        metavar="UNIT=RULE,...",
        help="Operators that a unit cannot run, to emulate accelerators, e.g. core1=Softplus,Resize.",
    ),
]
BoundOption = Annotated[
    float | None,
    _served_option(
        "--bound",
        metavar="SECONDS",
        min=0.1,
        help="Also solve the first frames, or the first requests, with everything known beforehand: so many "
        "seconds each.",
    ),
]
FramesOption = Annotated[int, _served_option("--bound-frames", min=1, max=1000, help="How many frames.")]
PictureOption = Annotated[Path | None, output_option(help="Also draw it into this file (.png, .svg).")]
PageOption = Annotated[Path | None, output_option("--report", help="Also write a page (.html).")]


@command
def requests_coordinate(
    scenario: ScenarioArgument = None,
    *,
    policy: PoliciesOption = "lst",
    platform: PhoneOption = None,
    problem: CostsOption = None,
    behaviour: BehaviourOption = None,
    split: SplitOption = None,
    sessions: SessionsOption = None,
    session_memory: SessionMemoryOption = None,
    late: LateOption = Late.KEEP,
    seconds: SecondsOption = None,
    pace: PaceOption = 1.0,
    seed: SeedOption = None,
    smoothing: SmoothingOption = SMOOTHING,
    noise_estimates: EstimateNoiseOption = None,
    noise_times: TimeNoiseOption = None,
    rest: RestOption = None,
    power: PowerOption = None,
    multipliers: MultipliersOption = None,
    here: HereOption = False,
    engine: EngineOption = None,
    units: UnitsOption = None,
    emulate: EmulateOption = None,
    cannot: CannotOption = None,
    bound: BoundOption = None,
    bound_frames: FramesOption = 5,
    picture: PictureOption = None,
    report: PageOption = None,
    out: OutOption = None,
    json: JsonOption = False,
) -> Answer:
    """Serve the requests of applications as they come, by several policies, in simulated time or really."""
    from ...formulations.coordination.simulation import Conditions
    from ..tasks import coordinating as tasks
    from ..tasks.measuring import DeviceChoice
    from ..tasks.serving import sessions_of

    for path in (picture, report, out):
        check_writable(path)
    if scenario is None:
        return tasks.overview_answer()
    asked = tasks.scenario_of(scenario, seconds=seconds, seed=seed, pace=pace)
    policies = [name.strip() for name in policy.split(",")]
    if here:
        alone: dict[str, object] = {"platform": platform, "problem": problem, "behaviour": behaviour}
        alone |= {"noise-estimates": noise_estimates, "noise-times": noise_times, "rest": rest}
        alone |= {"power": power, "multipliers": multipliers, "bound": bound, "report": report}
        tasks.check_alone(alone)
        choice = DeviceChoice.of(engine, units=units, emulate=emulate, precision=Precision.HIGH)
        how: dict[str, Any] = {"late": late, "split": split or 1, "smoothing": smoothing}
        how |= sessions_of(sessions, session_memory)
        return tasks.served_here(asked, policies, choice, cannot, how=how, out=out, picture=picture)
    place = tasks.place(asked, platform, problem, behaviour, split)
    place, notes = tasks.loaded(place, sessions, session_memory)
    noise = tasks.noise_of(noise_estimates, noise_times)
    conditions = Conditions(late=late, smoothing=smoothing, noise=noise, rest_kelvin=rest, seed=asked.seed)
    wanted = tasks.Wanted(power_w=power, multipliers=multipliers, bound_s=bound, frames=bound_frames)
    found = tasks.serve(asked, place, policies, conditions, wanted)
    return tasks.shown(found, notes, picture=picture, page=report, out=out)
