"""Several networks at once: profile each, and make a problem of their requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ...executor.engine import Engine
from ...executor.model import Model
from ...executor.pipeline.runner import PipelineRunner
from ...executor.progress import Report, Step, silent
from ...executor.runner import Budget, Runner
from ...executor.tuning.store import Store
from ...formulations.costs import Interference, NetworkCosts
from ...formulations.hardware import Platform
from ...formulations.judge import check
from ...formulations.operation import operation_of
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.terms import Objective
from ...formulations.workload import Request, Workload
from ...profiler.profile import Method, Profile, ProfileOptions
from ...profiler.slowdown.side_by_side import (
    check_different,
    estimated_interference,
    joint_platform,
    joint_table,
)
from ..execution import open_store, resolve_all, take_profile

CALIBRATION = Budget(requests=20, warm_up_requests=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Several networks, measured for running at once.

    Attributes
    ----------
    profiles
        What was measured of each by itself.
    problem
        One request of each; `with_workload` asks for others.
    """

    profiles: tuple[Profile, ...]
    problem: Problem

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was unsteady, cannot run, or was cut off, in any of the profiles."""
        return tuple(warning for profile in self.profiles for warning in profile.warnings)


def profile_together(
    models: Sequence[Model | str | Path],
    *,
    platform: Platform | None = None,
    engine: str | Engine | None = None,
    options: ProfileOptions = ProfileOptions(),
    interference: Interference | None = None,
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    report: Report = silent,
) -> Together:
    """Measure what several networks cost that are to share this device: `profile_each`, then `calibrated`.

    Parameters
    ----------
    models, platform, engine, options, store, resume, report
        As for `profile_each`.
    interference
        As for `side_by_side`.

    Raises
    ------
    GaplessError
        As for these.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.costs.profile_together(["squeezenet", "resnet18"])  # doctest: +SKIP
    >>> problem = gapless.with_workload(found.problem, "squeezenetx3,resnet18")  # doctest: +SKIP
    >>> gapless.run(problem, gapless.plan(problem).plan).makespan_us  # doctest: +SKIP
    """
    opened, found, units = resolve_all(models, engine, platform)
    profiles = profile_each(
        opened, platform=units, engine=found, options=options, store=store, resume=resume, report=report
    )
    problem = side_by_side(profiles, interference=interference)
    report(Step(text="running all networks on each unit, one after the other"))
    with PipelineRunner({model.network.name: model for model in opened}, units, found) as runner:
        return Together(profiles=profiles, problem=calibrated(problem, runner))


def profile_each(
    models: Sequence[Model | str | Path],
    *,
    platform: Platform | None = None,
    engine: str | Engine | None = None,
    methods: Iterable[str | Method] = tuple(Method),
    options: ProfileOptions = ProfileOptions(),
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    report: Report = silent,
) -> tuple[Profile, ...]:
    """Measure what every layer of several networks costs on every unit, each network by itself.

    Parameters
    ----------
    models
        Networks, as `open_model` returns them, or their locators; each has a name of its own.
    platform, engine, methods, options, store, resume, report
        As for `profile`.

    Raises
    ------
    InvalidInputError
        A model or option is not valid, or the networks need different engines.
    ProfilingError, ExecutionError
        They could not be measured.
    """
    opened, found, units = resolve_all(models, engine, platform)
    check_different([model.network.name for model in opened])
    wanted = tuple(Method(method) for method in methods)
    with ExitStack() as stack:
        kept = open_store(store, stack)
        return tuple(
            take_profile(
                model,
                units,
                found,
                methods=wanted,
                options=options,
                store=kept,
                report=report,
                resume=resume,
            )
            for model in opened
        )


def side_by_side(profiles: Sequence[Profile], *, interference: Interference | None = None) -> Problem:
    """Return the problem of serving one request of each network at once, in the least time.

    `with_workload` puts other requests in their place.

    Parameters
    ----------
    profiles
        As `profile_each` returns them.
    interference
        How much the networks slow each other down, as `measure_contention` finds it; None: what the
        profiles tell of it (`estimated_interference`).

    Raises
    ------
    InvalidInputError
        A network comes twice, or the platforms differ.
    """
    costs = joint_table(profiles, Method.ISOLATED)
    return Problem(
        platform=joint_platform(profiles),
        networks=tuple(profile.network for profile in profiles),
        costs=costs,
        objective=Objective(terms=("makespan",)),
        data=Workload(
            requests=tuple(
                Request(name=profile.network.name, network=profile.network.name) for profile in profiles
            )
        ),
        interference=estimated_interference(profiles) if interference is None else interference,
    )


def calibrated(problem: Problem, runner: Runner, *, budget: Budget = CALIBRATION) -> Problem:
    """Return the problem with the times that its networks take when they alternate on one unit.

    A profile runs one network again and again, so its weights stay in the caches as far as they fit; in a
    workload each network finds there what the others have left. So all networks are run on each unit, one
    after the other, and the times of each are scaled to what was measured. Units that cannot run all of them
    keep their times.

    `problem`: as `side_by_side` returns it.
    Raises ExecutionError: the networks could not be run.
    """
    requests = tuple(Request(name=network.name, network=network.name) for network in problem.networks)
    everything = replace(problem, data=Workload(requests=requests))
    costs = problem.costs
    for column, unit in enumerate(costs.units):
        plan = _serial(everything, unit)
        if not check(everything, plan):
            found = runner.measure(operation_of(everything).deploy(everything, plan), budget)
            taken_us = {chunk.stream: chunk.busy_us.median for chunk in found.chunks}
            costs = replace(
                costs,
                networks=tuple(_scaled(table, column, taken_us[table.network]) for table in costs.networks),
            )
    notes = f"{costs.provenance.notes}; scaled to networks that alternate on each unit".removeprefix("; ")
    return replace(problem, costs=replace(costs, provenance=replace(costs.provenance, notes=notes)))


def _serial(problem: Problem, unit: str) -> Plan:
    return Plan(
        order=tuple(network.name for network in problem.networks),
        chunks=tuple(
            Chunk(request=network.name, network=network.name, start=0, stop=len(network.layers), unit=unit)
            for network in problem.networks
        ),
    )


def _scaled(costs: NetworkCosts, column: int, taken_us: float) -> NetworkCosts:
    """Return costs whose layers on one unit take so long together, with the copies at both ends."""
    copies = (costs.transfer_in_us[:1], costs.transfer_out_us[-1:])
    copies_us = sum(row[column] for rows in copies for row in rows)
    layers_us = sum(row[column] or 0 for row in costs.layer_us)
    factor = max(0.0, taken_us - copies_us) / layers_us
    return replace(
        costs,
        layer_us=tuple(
            tuple(
                max(1, round(time_us * factor)) if unit == column and time_us is not None else time_us
                for unit, time_us in enumerate(row)
            )
            for row in costs.layer_us
        ),
    )
