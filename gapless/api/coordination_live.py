"""Scenarios on this machine: the same requests, really served, beside the simulation of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from time import sleep

from ..executor.coordination.coordinator import Coordinator
from ..executor.coordination.held import Cannot
from ..executor.coordination.live import LiveRequests
from ..executor.engine import Engine
from ..executor.model import Model
from ..executor.progress import Report, Step, silent
from ..formulations.coordination.arrivals import demand_of
from ..formulations.coordination.dispatch import Late
from ..formulations.coordination.play import Traffic
from ..formulations.coordination.record import Record, percentile
from ..formulations.coordination.scenario import Application, Scenario
from ..formulations.coordination.sessions import SessionChoice
from ..formulations.coordination.setting import Setting
from ..formulations.coordination.simulation import Conditions
from ..formulations.coordination.times import SMOOTHING
from ..formulations.hardware import Platform
from .coordination import Coordination, coordinate, given_scenario
from .coordinators import open_coordinator
from .models import ZOO_PREFIX

WARM_UP = 30
"""Requests of each network alone: the 99th percentile of their times is what deadlines are multiples of."""

_P99 = 990
_LONGEST_PAUSE_S = 0.1
_SEED = 0


def coordinate_here(
    scenario: Scenario | str | Path,
    policies: Sequence[str] = ("lst",),
    *,
    models: Mapping[str, Model | str | Path] | None = None,
    platform: Platform | None = None,
    workers: Mapping[str, int] | None = None,
    engine: str | Engine | None = None,
    cannot: Cannot | None = None,
    split: int = 1,
    late: Late | str = Late.KEEP,
    smoothing: float = SMOOTHING,
    sessions: SessionChoice | str = SessionChoice.USEFUL,
    session_bytes: int | None = None,
    warm_up: int = WARM_UP,
    report: Report = silent,
) -> tuple[Coordination, Coordination]:
    """Serve a scenario on the units of this machine, and in a simulation by the times measured before.

    Each policy has a coordinator of its own. Every network first runs alone, on each unit; deadlines that are
    multiples of the 99th percentile alone get it from these runs, on the unit that is fastest.

    Parameters
    ----------
    scenario
        Who asks for what: a shipped scenario by name, a file, or a `Scenario`.
    policies
        What decides; policies that place requests whole are for simulations.
    models
        The model of each network; None, or left out: the built-in network of that name.
    platform, workers, engine, cannot, split, sessions, session_bytes
        As for `open_coordinator`.
    late
        What becomes of requests that cannot meet their deadline any more.
    smoothing
        Share of the last observation in an expected time.
    warm_up
        How many times each network runs alone.
    report
        Told of each policy.

    Returns
    -------
    tuple of Coordination
        As measured, and as simulated.

    Raises
    ------
    InvalidInputError
        Something that is given is not valid, or does not fit.
    ExecutionError
        A worker cannot be started, or an engine fails.

    Examples
    --------
    >>> import gapless
    >>> measured, simulated = gapless.coordination.coordinate_here("small-apps", ["lst"])  # doctest: +SKIP
    """
    asked = given_scenario(scenario)
    known = models or {}
    opened: list[Model | str | Path] = [known.get(n, f"{ZOO_PREFIX}{n}") for n in asked.networks]
    runs: list[tuple[Record, Record]] = []
    conditions = Conditions(late=Late(late), smoothing=smoothing, seed=asked.seed)
    for number, policy in enumerate(policies):
        report(Step(text=f"{asked.name}: {policy}, opening", done=number, total=len(policies)))
        with open_coordinator(
            opened,
            policy=policy,
            platform=platform,
            workers=workers,
            engine=engine,
            cannot=cannot,
            split=split,
            late=late,
            smoothing=smoothing,
            sessions=sessions,
            session_bytes=session_bytes,
            queue=100_000,
        ) as coordinator:
            p99_us = _warm_up(coordinator, asked, warm_up)
            setting, timed = coordinator.setting(), _with_deadlines(asked, p99_us)
            report(Step(text=f"{asked.name}: {policy}, serving", done=number, total=len(policies)))
            measured = _served(coordinator, setting, timed)
        simulated = coordinate(timed, setting, [policy], conditions=conditions)
        runs.append((measured, simulated.records[0]))
    found = Coordination(
        scenario=timed, setting=setting, conditions=conditions, records=tuple(r for r, _ in runs)
    )
    return found, replace(found, records=tuple(r for _, r in runs))


def _warm_up(coordinator: Coordinator, scenario: Scenario, times: int) -> dict[str, int]:
    """Return the 99th percentile of the time of each network alone, as the policy places it.

    Pauses between requests are as long as in the scenario: what a processor does after a pause takes longer
    (Band, Fig. 7).
    """
    random, demand = Random(_SEED), demand_of(scenario)
    pause_s = min(_LONGEST_PAUSE_S, 1 / max(1e-9, sum(demand.values()))) if scenario.applications else 0.0
    found = {}
    for name in scenario.networks:
        inputs = coordinator.registered[name].held.model.sample_inputs(_SEED)
        took = []
        for _ in range(times):
            sleep(2 * pause_s * random.random())
            took.append(coordinator.run(name, inputs).latency_us)
        found[name] = round(percentile(sorted(took), _P99) or 0.0)
    return found


def _with_deadlines(scenario: Scenario, p99_us: Mapping[str, int]) -> Scenario:
    return replace(scenario, applications=tuple(_fixed(each, p99_us) for each in scenario.applications))


def _fixed(application: Application, p99_us: Mapping[str, int]) -> Application:
    if application.deadline_permille is None:
        return application
    deadline_us = round(p99_us[application.network] * application.deadline_permille / 1000)
    return replace(application, deadline_us=deadline_us, deadline_permille=None)


def _served(coordinator: Coordinator, setting: Setting, scenario: Scenario) -> Record:
    names = tuple(network.name for network in setting.networks)
    inputs = {name: coordinator.registered[name].held.model.sample_inputs(_SEED) for name in names}
    demand = demand_of(scenario)
    coordinator.expect([demand.get(name, 0.0) for name in names])
    traffic = Traffic(setting, scenario)
    return traffic.run(LiveRequests(coordinator, names, inputs, traffic.ended))
