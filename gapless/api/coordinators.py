"""Coordinators of models on this machine, and scenarios that are really served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from time import sleep
from typing import TYPE_CHECKING, TypedDict

from ..executor.coordination.coordinator import QUEUE, Coordinator
from ..executor.coordination.held import Cannot, Routes, chain_of
from ..executor.coordination.live import LiveRequests
from ..executor.coordination.restarts import RESTARTS
from ..executor.coordination.workers import OwnWorkers
from ..executor.engine import Engine
from ..executor.model import Model
from ..executor.progress import Report, Step, silent
from ..formulations.cluster import Pipelines
from ..formulations.coordination.behaviour import Behaviour
from ..formulations.coordination.play import Traffic
from ..formulations.coordination.policy import Policy
from ..formulations.coordination.record import Record, percentile
from ..formulations.coordination.scenario import Application, Scenario, demand_of
from ..formulations.coordination.sections import sections_of
from ..formulations.coordination.sessions import SessionChoice
from ..formulations.coordination.setting import Setting
from ..formulations.coordination.simulation import Conditions, Late
from ..formulations.coordination.times import SMOOTHING
from ..formulations.costs import CostTable, NetworkCosts
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError
from ..formulations.hardware import Platform
from ..formulations.operation import operation_of
from ..formulations.problem import Problem
from ..formulations.validation import meant, shown
from ..solvers.coordination.budget import PowerBudget
from ..solvers.coordination.policies import DEFAULT_POLICY, make_policy
from .coordination import (
    Coordination,
    check_budget,
    coordinate,
    further_borders,
    given_scenario,
    platform_with_workers,
)
from .execution import resolve_all
from .models import ZOO_PREFIX
from .problems import given_problem

if TYPE_CHECKING:
    from ..executor.cluster.cluster import Cluster
    from ..executor.cluster.serving import ClusterWorkers


class CoordinatorOptions(TypedDict, total=False):
    """How models are opened to be served: the options of `open_coordinator`."""

    problem: Problem | str | Path | None
    plan: Deployment | None
    policy: str | Policy
    late: Late | str
    deadlines_us: Mapping[str, int] | None
    cannot: Cannot | None
    split: int
    platform: Platform | None
    workers: Mapping[str, int] | None
    engine: str | Engine | None
    behaviour: Behaviour | None
    power_w: float | None
    smoothing: float
    sessions: SessionChoice | str
    session_bytes: int | None
    queue: int
    restarts: int
    check: bool
    report: Report
    cluster: Cluster | None
    devices: Sequence[str]


def open_coordinator(
    models: Sequence[Model | str | Path],
    *,
    problem: Problem | str | Path | None = None,
    plan: Deployment | None = None,
    policy: str | Policy = DEFAULT_POLICY,
    late: Late | str = Late.KEEP,
    deadlines_us: Mapping[str, int] | None = None,
    cannot: Cannot | None = None,
    split: int = 1,
    platform: Platform | None = None,
    workers: Mapping[str, int] | None = None,
    engine: str | Engine | None = None,
    behaviour: Behaviour | None = None,
    power_w: float | None = None,
    smoothing: float = SMOOTHING,
    sessions: SessionChoice | str = SessionChoice.USEFUL,
    session_bytes: int | None = None,
    queue: int = QUEUE,
    restarts: int = RESTARTS,
    check: bool = True,
    report: Report = silent,
    cluster: Cluster | None = None,
    devices: Sequence[str] = (),
) -> Coordinator:
    """Open models for requests as they come, on the units of this machine or the devices of a cluster.

    Parameters
    ----------
    models
        Models, or their locators; requests ask for them by the names of their networks.
    problem
        Its units serve, and its costs are taken for the networks that it has; None: what the largest chunk
        of each network takes on each unit is measured, and the rest estimated.
    plan
        Every request of its networks takes its chunks; of several streams of a network, one of them. With
        the policy "adaptive" only while it fits: see `--policy` on the page about serving.
    policy
        What decides: a name, "file.py:NAME" of one of your own, or a policy.
    late
        What becomes of requests that cannot meet their deadline any more: "keep" or "drop".
    deadlines_us
        By name, by when after their arrival requests have to be done.
    cannot
        By unit, rules about the operators that it cannot run ("Resize"): to emulate accelerators.
    split
        Networks that run everywhere are divided into this number of sections.
    platform
        The units; None: those of the problem, or all of this device.
    workers
        By unit, how many requests may run there at the same time; None: as the platform says.
    engine
        Who runs the models; None: MNN for ONNX files, "callable" for Python functions.
    behaviour
        Powers of the units and of the device, for `power_w`; of units of which it says none, and without
        it, those of the platform.
    power_w
        Start nothing beyond this power of the device, as far as powers are known; None: no limit.
    smoothing
        Share of the last observation in an expected time.
    sessions
        Which chunks are loaded: "useful", those that the shortest ways have, or "all".
    session_bytes
        What the loaded sessions of one network may need together; None: no limit.
    queue
        Most requests that are accepted and not answered; further ones are refused.
    restarts
        How many times within a minute the worker of each unit may be started again; 0: never.
    check
        Whether each chunk is first compared with the uncut model, on each unit that may run it.
    report
        Told of each model.
    cluster
        From `gapless.clusters.join_cluster` or `local_cluster`: each of its devices is a unit; it has to stay
        open as long as the coordinator. A problem or a plan is then one over these devices; without a
        cluster such a one is refused.
    devices
        Those of the cluster that serve; empty: those of the problem, or all.

    Returns
    -------
    Coordinator
        To be closed; a context manager.

    Raises
    ------
    InvalidInputError
        Something that is given is not valid, or does not fit.
    OutputMismatchError
        A unit gives wrong numbers; the message names the first chunk that does.
    ExecutionError
        A worker cannot be started, or a chunk not be opened.

    Examples
    --------
    >>> import gapless
    >>> with gapless.coordination.open_coordinator(["squeezenet"]) as coordinator:  # doctest: +SKIP
    ...     served = coordinator.run("squeezenet", {"image": image})
    ...     print(served.latency_us, served.outputs["logits"])
    """
    asked = None if problem is None else given_problem(problem)
    if asked is not None and cluster is None and platform is None:
        _check_here(asked, plan)
    units = asked.platform if asked is not None and platform is None else platform
    remote = None if cluster is None else _on_cluster(cluster, devices, asked, platform)
    opened, found, units = resolve_all(models, engine, units if remote is None else remote.platform)
    units = platform_with_workers(units, workers or {})
    names = [model.network.name for model in opened]
    _check_names(deadlines_us or {}, names)
    table = None if asked is None else asked.costs
    decides = limited(policy, units, behaviour, power_w)
    followed: dict[str, Routes] = {}
    coordinator = Coordinator(
        units,
        found,
        decides,
        late=Late(late),
        smoothing=smoothing,
        sessions=SessionChoice(sessions),
        session_bytes=session_bytes,
        queue=queue,
        restarts=restarts,
        check=check,
        workers=remote or OwnWorkers(),
    )
    try:
        for number, model in enumerate(opened):
            name = model.network.name
            report(Step(text=f"opening {name}", done=number, total=len(opened)))
            costs = _costs(table, name, units)
            borders = _borders(model, units, costs, cannot, split)
            routes = _routes(plan, name)
            if routes and decides.adapts:  # it may need other chunks than those of the plan
                followed[name], routes = routes, ()
                ends = {chunk.stop for route in followed[name] for chunk in route[:-1]}
                borders = tuple(sorted({*borders, *ends}))
            coordinator.register(
                model,
                name,
                deadline_us=(deadlines_us or {}).get(name),
                costs=costs,
                cannot=cannot,
                borders=borders,
                routes=routes,
                states=_states(asked, plan, name),
            )
        if followed:
            coordinator.follow(followed)
    except BaseException:
        coordinator.close(patience_s=0.0)
        raise
    return coordinator


def _on_cluster(
    cluster: Cluster, devices: Sequence[str], problem: Problem | None, platform: Platform | None
) -> ClusterWorkers:
    """Return the workers of the devices that serve: the given ones, those of a problem, or all."""
    from ..executor.cluster.serving import ClusterWorkers

    if platform is not None:
        raise InvalidInputError(
            f"the units of {platform.name!r} are of one machine, and a cluster serves by its devices: leave "
            "out platform, and choose among them by devices"
        )
    return ClusterWorkers(cluster, devices or (() if problem is None else problem.platform.unit_names))


def _check_here(problem: Problem, plan: Deployment | None) -> None:
    """Refuse what is for several devices: their names would be given to units of this machine."""
    if plan is not None or isinstance(problem.data, Pipelines):
        operation_of(problem).check_executable(problem)


def limited(
    policy: str | Policy, platform: Platform, behaviour: Behaviour | None, power_w: float | None
) -> Policy:
    """Return a policy that starts nothing beyond a power of the device; None: no limit."""
    made = make_policy(policy) if isinstance(policy, str) else policy
    if power_w is None:
        return made
    check_budget(made)
    known = behaviour or Behaviour(platform=platform.name)
    if strange := sorted({unit.unit for unit in known.units} - set(platform.unit_names)):
        raise InvalidInputError(
            f"the behaviour has a unit {shown(strange[0])}; {meant(strange[0], platform.unit_names)}"
        )
    nothing = CostTable(units=platform.unit_names, networks=())
    place = Setting(platform=platform, networks=(), costs=nothing, behaviour=known.on(platform))
    return PowerBudget(made, place, round(1000 * power_w))


def _check_names(given: Iterable[str], names: Sequence[str]) -> None:
    for name in given:
        if name not in names:
            raise InvalidInputError(f"a deadline is given for {shown(name)}; {meant(name, names)}")


def _costs(table: CostTable | None, name: str, platform: Platform) -> NetworkCosts | None:
    if table is None or name not in {costs.network for costs in table.networks}:
        return None
    if table.units != platform.unit_names:
        raise InvalidInputError(
            f"the costs are for the units {', '.join(table.units)}, "
            f"but {', '.join(platform.unit_names)} serve"
        )
    return table.of(name)


def _states(problem: Problem | None, plan: Deployment | None, name: str) -> dict[str, str]:
    """Return what a network keeps between requests, as its problem or its plan says."""
    known = [network.states for network in problem.networks if network.name == name] if problem else []
    known += [stream.states for stream in plan.streams if stream.network == name] if plan else []
    return {state.input: state.output for states in known for state in states}


def _borders(
    model: Model, platform: Platform, costs: NetworkCosts | None, cannot: Cannot | None, split: int
) -> tuple[int, ...]:
    if split == 1:
        return ()
    chain = chain_of(model, platform, costs, cannot or {})
    return further_borders(chain, sections_of(chain), split)


def _routes(plan: Deployment | None, network: str) -> Routes:
    streams = [stream for stream in plan.streams if stream.network == network] if plan else []
    if any(any(stream.tiles) for stream in streams):
        raise InvalidInputError(
            f"the plan divides chunks of {network!r} among units; requests as they come are served by whole "
            "chunks: give a plan without groups"
        )
    return [stream.chunks for stream in streams]


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
