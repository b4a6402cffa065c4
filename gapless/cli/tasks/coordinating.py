"""What `gapless requests coordinate` does, besides reading its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ...answers.coordination import coordination_blocks, here_blocks
from ...api.coordination import (
    AskedPolicy,
    Coordination,
    CoordinationBound,
    bound_coordination,
    coordinate,
    coordinate_deadlines,
    divided,
    given_scenario,
    given_setting,
    read_counts,
    with_crowd,
    with_power,
    with_sessions,
    with_workers,
)
from ...api.engines import DEFAULT_ENGINE
from ...api.problems import given_problem
from ...files.documents import Document, plain_data
from ...formulations.coordination.record import Record, percentile
from ...formulations.coordination.scenario import BEHAVIOUR, Scenario, at_pace
from ...formulations.coordination.sessions import SessionChoice
from ...formulations.coordination.setting import Setting
from ...formulations.coordination.simulation import Conditions
from ...formulations.coordination.truth import Noise
from ...formulations.errors import InvalidInputError
from ...formulations.files import load
from ...formulations.validation import read_number
from ...question.service import Play
from ...question.subjects import Machine
from ...solvers.coordination.policies import make_policy
from ..base.answer import Answer, command_line
from ..base.progress import StepLine
from .measuring import platform_of
from .serving import parse_cannot, parse_workers


def _bound_data(bound: CoordinationBound) -> Document:
    return {
        "term": bound.term,
        "best": bound.best,
        "bound": bound.bound,
        "policies": dict(zip(bound.policies, bound.reached, strict=True)),
        "parts": [
            {
                "name": part.name,
                "requests": len(part.problem.formulation.arrivals(part.problem)),
                "status": str(part.result.status),
                "backend": part.result.backend,
                "best": part.best,
                "bound": part.bound,
                "policies": dict(zip(bound.policies, part.reached, strict=True)),
            }
            for part in bound.parts
        ],
    }


def _coordination_data(found: Coordination) -> Document:
    return {
        "scenario": plain_data(found.scenario),
        "platform": found.setting.platform.name,
        "conditions": plain_data(found.conditions),
        "policies": [record_data(record) for record in found.records],
    }


def record_data(record: Record) -> Document:
    """Return what happened to the requests of a scenario, in numbers."""
    took = sorted(record.decisions_ns)
    return {
        "policy": record.policy,
        "end_us": round(record.end_us),
        "frames": len(record.done_frames),
        "frames_per_s": record.frames_per_s,
        **_served_data(record, None),
        "utilisation": dict(zip(record.units, record.utilisation, strict=True)),
        "energy_mj": record.energy_mj,
        "decisions": len(took),
        "decision_ns": percentile(took, 500),
        "away": [
            {
                "unit": record.units[span.unit],
                "start_us": round(span.start_us),
                "end_us": None if span.end_us is None else round(span.end_us),
                "cause": span.cause,
            }
            for span in record.away
        ],
        "applications": {name: _served_data(record, index) for index, name in enumerate(record.applications)},
    }


def _served_data(record: Record, application: int | None) -> Document:
    latencies = record.latencies_us(application)
    asked = record.requests if application is None else record.of(application)
    return {
        "requests": len(asked),
        "answered": len(latencies),
        "dropped": record.dropped(application),
        "in_time": record.share_in_time(application),
        "latency_us": {
            str(permille / 10): None if (value := percentile(latencies, permille)) is None else round(value)
            for permille in (500, 900, 990)
        },
    }


_MOST_MULTIPLIER = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Runs of a scenario: one, or one for each deadline; and the bound, if it was asked for."""

    runs: Sequence[Coordination]
    bound: CoordinationBound | None


def scenario_of(name: str, play: Play) -> Scenario:
    """Return the scenario that is asked for, as fast, as long, and drawn as it is asked for."""
    found = at_pace(given_scenario(name), play.pace)
    if play.crowd is not None:
        found = with_crowd(found, read_counts(play.crowd))
    return replace(
        found,
        duration_us=found.duration_us if play.seconds is None else round(1e6 * play.seconds),
        seed=found.seed if play.seed is None else play.seed,
    )


def place(scenario: Scenario, play: Play) -> Setting:
    """Return where a scenario is served."""
    if (play.platform is None) == (play.problem is None):
        raise InvalidInputError("say where: --platform PHONE, e.g. pixel4, or --problem PROBLEM")
    if play.problem is None:
        assert play.platform is not None
        if play.behaviour is not None:
            raise InvalidInputError("--behaviour goes with --problem: a shipped phone has its own")
        found = given_setting(play.platform, scenario)
    else:
        known = None if play.behaviour is None else load(play.behaviour, BEHAVIOUR)
        found = Setting.of(given_problem(play.problem), known)
    found = with_workers(found, parse_workers(play.workers))
    return found if play.split is None else divided(found, play.split)


def loaded(setting: Setting, play: Play) -> tuple[Setting, list[str]]:
    """Return a setting with the sessions that are asked for, and what is lost without the others."""
    limit_bytes = play.session_memory_bytes
    if play.sessions is not SessionChoice.USEFUL and limit_bytes is None:
        return setting, []
    if play.sessions is SessionChoice.ALL:
        raise InvalidInputError("--sessions all and --session-memory contradict each other: give one of them")
    every = [name for name in play.policy if make_policy(name).any_chunk]
    if every and limit_bytes is not None:
        raise InvalidInputError(
            f"--session-memory: policy {every[0]!r} needs all sessions; leave the policy or the limit out"
        )
    found, kept = with_sessions(setting, limit_bytes)
    notes = [f"{network}: {each.words}" for network, each in kept.items()]
    return found, notes + [f"{name}: all sessions are loaded, it may start any chunk" for name in every]


def serve(scenario: Scenario, setting: Setting, play: Play) -> Found:
    """Serve a scenario in simulated time."""
    noise = Noise(estimates_permille=play.noise_estimates_permille, times_permille=play.noise_times_permille)
    conditions = play.made(Conditions, noise=noise, seed=scenario.seed)
    served_by: list[AskedPolicy] = [with_power(name, setting, play.power) for name in play.policy]
    with StepLine() as line:
        if play.multipliers is not None:
            numbers = _numbers(play.multipliers)
            runs = coordinate_deadlines(
                scenario, setting, served_by, numbers, conditions=conditions, report=line.report
            )
        else:
            runs = [coordinate(scenario, setting, served_by, conditions=conditions, report=line.report)]
        if play.bound_s is None:
            return Found(runs=runs, bound=None)
        bound = bound_coordination(
            runs[0], served_by, time_limit_s=play.bound_s, frames=play.bound_frames, report=line.report
        )
    return Found(runs=runs, bound=bound)


def shown(found: Found, notes: Sequence[str]) -> Answer:
    """Return the answer about runs in simulated time; `notes`: what people should know."""
    runs, bound = found.runs, found.bound

    def page() -> str:
        from ...view.page.results import coordination_page

        return coordination_page(runs, bound=bound, command=command_line())

    return Answer.of(
        "coordination",
        {},
        lambda: coordination_blocks(runs, bound),
        notes=notes,
        files={"out": None, "report": page},
        drawn={"picture": partial(_draw, runs)},
        runs=list(map(_coordination_data, runs)),
        bound=None if bound is None else _bound_data(bound),
    )


_SIMULATED = (
    "platform",
    "problem",
    "behaviour",
    "noise_estimates_permille",
    "noise_times_permille",
    "rest_kelvin",
    "power",
    "multipliers",
    "bound_s",
)
"""What is said of simulations only."""


def check_alone(play: Play, page: Path | None) -> None:
    """Refuse options of simulations where a scenario is really served."""
    for option in [*play.options(*_SIMULATED), *(["--report"] if page is not None else [])]:
        raise InvalidInputError(f"{option} is for simulations; leave it out, or leave out --here")


def served_here(scenario: Scenario, play: Play, machine: Machine) -> Answer:
    """Serve a scenario on this machine, and show it beside its simulation."""
    from ...api.coordinators import coordinate_here

    with StepLine() as line:
        measured, simulated = coordinate_here(
            scenario,
            play.policy,
            platform=platform_of(machine, machine.engine or DEFAULT_ENGINE),
            engine=machine.engine,
            cannot=parse_cannot(play.cannot),
            late=play.late,
            split=play.split or 1,
            sessions=play.sessions or SessionChoice.USEFUL,
            session_bytes=play.session_memory_bytes,
            workers=parse_workers(play.workers),
            smoothing=play.smoothing,
            report=line.report,
        )
    records = [
        replace(record, policy=f"{record.policy}, {how_so}")
        for pair in zip(measured.records, simulated.records, strict=True)
        for record, how_so in zip(pair, ("measured", "simulated"), strict=True)
    ]
    return Answer.of(
        "coordination_here",
        {},
        lambda: here_blocks(measured, simulated),
        files={"out": None},
        drawn={"picture": partial(_draw, [replace(measured, records=tuple(records))])},
        measured=_coordination_data(measured),
        simulated=_coordination_data(simulated),
    )


def _draw(runs: Sequence[Coordination], path: Path) -> None:
    from ...view.plots.pictures import save_coordination

    save_coordination(runs, path)


def _numbers(text: str) -> list[float]:
    """Return numbers between commas."""
    found = [read_number(each) or 0.0 for each in text.split(",")]
    if not all(0 < each <= _MOST_MULTIPLIER for each in found):
        raise InvalidInputError(
            f"--multipliers {text!r}: expected numbers above 0 and up to {_MOST_MULTIPLIER}, e.g. 1,2,3,4"
        )
    return found
