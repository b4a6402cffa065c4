"""Requests as they come: scenarios served in simulated time by several policies."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...files import documents
from ...formulations.coordination.dispatch import Late
from ...formulations.coordination.times import SMOOTHING
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Precision
from ..base.answer import Answer, command, write_out
from ..base.general_options import JsonOption, heading, output_option
from ..options.models import EmulateOption, EngineOption, UnitsOption
from ..options.problem import OutOption, check_writable

if TYPE_CHECKING:
    from ...formulations.coordination.scenario import Scenario
    from ...formulations.coordination.setting import Setting
    from ..tasks.measuring import DeviceChoice

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
def coordinate(
    scenario: ScenarioArgument = None,
    *,
    policy: PoliciesOption = "lst",
    platform: PhoneOption = None,
    problem: CostsOption = None,
    behaviour: BehaviourOption = None,
    split: SplitOption = None,
    late: LateOption = Late.KEEP,
    seconds: SecondsOption = None,
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
    from rich.console import Group

    from ...api.coordination import coordinate as serve
    from ...api.coordination import coordinate_deadlines, given_scenario, with_power
    from ...api.coordination_bound import bound_coordination
    from ...files.coordination_document import coordination_document
    from ...formulations.coordination.simulation import Conditions
    from ...formulations.coordination.truth import Noise
    from ...view.terminal.coordination import bound_view, coordination_view, deadlines_view, overview
    from ..base.progress import StepLine

    for path in (picture, report, out):
        check_writable(path)
    if scenario is None:
        return Answer(document=overview_document, view=overview)
    asked = given_scenario(scenario)
    asked = replace(
        asked,
        duration_us=asked.duration_us if seconds is None else round(1e6 * seconds),
        seed=asked.seed if seed is None else seed,
    )
    policies = [name.strip() for name in policy.split(",")]
    if here:
        from ..tasks.measuring import DeviceChoice

        given = {"--platform": platform, "--problem": problem, "--multipliers": multipliers, "--bound": bound}
        for option, value in given.items():
            if value is not None:
                raise InvalidInputError(f"{option} is for simulations; leave it out, or leave out --here")
        choice = DeviceChoice.of(engine, units=units, emulate=emulate, precision=Precision.HIGH)
        return _served_here(asked, policies, choice, cannot, late=late, split=split or 1, out=out)
    place = _place(asked, platform, problem, behaviour, split)
    conditions = Conditions(
        late=late,
        smoothing=smoothing,
        noise=Noise(
            estimates_permille=_permille("--noise-estimates", noise_estimates),
            times_permille=_permille("--noise-times", noise_times),
        ),
        rest_kelvin=rest,
        seed=asked.seed,
    )
    served_by = [with_power(name, place, power) for name in policies]
    with StepLine() as line:
        if multipliers is None:
            runs = [serve(asked, place, served_by, conditions=conditions, report=line.report)]
        else:
            runs = coordinate_deadlines(
                asked, place, served_by, _numbers(multipliers), conditions=conditions, report=line.report
            )
        best = None
        if bound is not None:
            best = bound_coordination(
                runs[0], served_by, time_limit_s=bound, frames=bound_frames, report=line.report
            )
    document = coordination_document(runs, best)
    notes = write_out(out, lambda: documents.json_text(document))
    if picture is not None:
        from ...view.plots.coordination import save_coordination

        save_coordination(runs, picture)
        notes.append(f"wrote {picture}")
    if report is not None:
        from ...view.page.coordination import write_coordination_report

        write_coordination_report(runs, report, bound=best, command=shlex.join(["gapless", *sys.argv[1:]]))
        notes.append(f"wrote {report}")
    view = coordination_view(runs[0]) if multipliers is None else deadlines_view(runs)
    if best is not None:
        view = Group(view, "", bound_view(best))
    return Answer(document=lambda: document, view=lambda: view, notes=notes)


def _served_here(
    scenario: Scenario,
    policies: list[str],
    choice: DeviceChoice,
    cannot: list[str] | None,
    *,
    late: Late,
    split: int,
    out: Path | None,
) -> Answer:
    """Serve a scenario on this machine, and show it beside its simulation."""
    from ...api.coordination_live import coordinate_here
    from ...api.device import DEFAULT_ENGINE
    from ...files.coordination_document import here_document
    from ...view.terminal.coordination import here_view
    from ..base.progress import StepLine
    from ..tasks.serving import parse_cannot

    with StepLine() as line:
        measured, simulated = coordinate_here(
            scenario,
            policies,
            platform=choice.platform(choice.engine or DEFAULT_ENGINE),
            engine=choice.engine,
            cannot=parse_cannot(cannot),
            split=split,
            late=late,
            report=line.report,
        )
    document = here_document(measured, simulated)
    return Answer(
        document=lambda: document,
        view=lambda: here_view(measured, simulated),
        notes=write_out(out, lambda: documents.json_text(document)),
    )


def overview_document() -> documents.Document:
    """Return which scenarios, platforms and policies there are."""
    from ...profiler.coordination.catalog import scenario_names
    from ...solvers.coordination.policies import policy_names

    return {
        **documents.header("coordination_overview"),
        "scenarios": list(scenario_names()),
        "policies": list(policy_names()),
    }


def _place(
    scenario: Scenario, platform: str | None, problem: str | None, behaviour: Path | None, split: int | None
) -> Setting:
    """Return where a scenario is served."""
    from ...api.coordination import divided, given_setting
    from ...api.problems import given_problem
    from ...formulations.coordination.files import BEHAVIOUR
    from ...formulations.coordination.setting import Setting
    from ...formulations.files import load

    if (platform is None) == (problem is None):
        raise InvalidInputError("say where: --platform PHONE, e.g. pixel4, or --problem PROBLEM")
    if problem is None:
        assert platform is not None
        if behaviour is not None:
            raise InvalidInputError("--behaviour goes with --problem: a shipped phone has its own")
        found = given_setting(platform, scenario)
    else:
        known = None if behaviour is None else load(behaviour, BEHAVIOUR)
        found = Setting.of(given_problem(problem), known)
    return found if split is None else divided(found, split)


def _permille(option: str, text: str | None) -> int:
    """Return a share such as "30%" in permille."""
    if text is None:
        return 0
    number, mark, rest = text.strip().partition("%")
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if not mark or rest or not 0 <= share <= 100:
        raise InvalidInputError(f"{option} {text!r}: expected a percentage from 0% to 100%, e.g. 30%")
    return round(10 * share)


def _numbers(text: str) -> list[float]:
    """Return numbers between commas."""
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < each <= _MOST_MULTIPLIER for each in found):
        raise InvalidInputError(
            f"--multipliers {text!r}: expected numbers above 0 and up to {_MOST_MULTIPLIER}, e.g. 1,2,3,4"
        )
    return found


_MOST_MULTIPLIER = 1000
