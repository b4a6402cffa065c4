"""Scenarios played on Band's phones: what the figures need of each run, and bounds of whole frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean, stdev

from gapless.api.coordination import (
    BOUND_BACKEND,
    MOST_REQUESTS,
    Coordination,
    CoordinationBound,
    bound_coordination,
    with_deadlines,
)
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.policy import Policy
from gapless.formulations.coordination.record import Record
from gapless.formulations.coordination.scenario import FrameStep, Scenario, Workflow
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.simulation import Conditions, Late
from gapless.profiler.coordination.catalog import shipped_scenario, shipped_setting
from gapless.solvers.coordination.policies import make_policy

PIXEL, GALAXY, REDMI = "pixel4", "galaxy-s20", "redmi-k40"
PAPERS = {"tflite": "TFLite", "tflite-mp": "TFLite+MP", "sel-whole": "Band (No Subgraph)", "sel": "Band"}
"""Which policy here stands for which system of the paper where frames are to be short (6.2)."""

MORE = ("lst-whole", "lst", "heft")
"""Others that are shown beside them."""

_POLICIES = (*PAPERS, *MORE)


@dataclass(frozen=True, slots=True)
class Study:
    """How much is computed.

    Attributes
    ----------
    bound_s
        Seconds of CP-SAT for each frame.
    simulated_s
        Simulated seconds of each run.
    runs
        Runs, each with frames and luck of its own.
    combinations
        Workloads of each phone in the part `families`.
    """

    bound_s: float = 5.0
    simulated_s: float = 20.0
    runs: int = 5
    combinations: int = 100


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation of several runs."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.deviation:.2f}"


def spread(values: Sequence[float]) -> Spread:
    """Return mean and standard deviation; of one value 0."""
    return Spread(mean(values), stdev(values) if len(values) > 1 else 0.0)


def of_units(setting: Setting, units: Sequence[str]) -> Setting:
    """Return a setting with some of its units only."""
    kept = [setting.platform.index_of(name) for name in units]
    networks = tuple(each.of_columns(kept) for each in setting.costs.networks)
    return replace(
        setting,
        platform=replace(setting.platform, units=tuple(setting.platform.units[unit] for unit in kept)),
        costs=replace(setting.costs, units=tuple(units), networks=networks),
    )


def frames_of(steps: dict[str, int], seconds: float) -> Scenario:
    """Return a scenario whose frames have so many requests of each network, none after another."""
    named = (
        FrameStep(name=name, network=name, mean=float(count), exact=True) for name, count in steps.items()
    )
    workflow = Workflow(name="frame", steps=tuple(named))
    return Scenario(
        name=" + ".join(f"{count} {name}" for name, count in steps.items()),
        duration_us=round(1e6 * seconds),
        workflows=(workflow,),
    )


def plain(setting: Setting) -> Setting:
    """Return a setting in which units are always alike: nothing cold, hot or drawn."""
    return replace(setting, behaviour=None)


@cache
def phone(name: str, scenario: Scenario) -> Setting:
    """Return a phone with the networks of a scenario."""
    return shipped_setting(name, scenario.networks)


def scenario_for(study: Study, name: str) -> Scenario:
    """Return a shipped scenario that lasts as long as asked."""
    return replace(shipped_scenario(name), duration_us=round(1e6 * study.simulated_s))


def served(
    setting: Setting,
    scenario: Scenario,
    policy: str | Callable[[], Policy],
    seed: int = 0,
    conditions: Conditions | None = None,
) -> Record:
    """Return what happens in one run, with requests and luck of a seed."""
    made = make_policy(policy) if isinstance(policy, str) else policy()
    how = replace(conditions or Conditions(), seed=seed)
    return play(setting, replace(scenario, seed=seed), made, how)


@cache
def rates(study: Study, scenario: Scenario, platform: str, policy: str) -> Spread:
    """Return the frames a second of several runs."""
    return rates_on(study, scenario, phone(platform, scenario), policy)


def rates_on(
    study: Study, scenario: Scenario, setting: Setting, policy: str | Callable[[], Policy]
) -> Spread:
    """Return the same in a given setting."""
    records = (served(setting, scenario, policy, seed) for seed in range(study.runs))
    return spread([record.frames_per_s or 0.0 for record in records])


_LARGE = 200
"""Most requests of large frames."""


@cache
def bounds(
    study: Study,
    scenario: Scenario,
    platform: str,
    policies: tuple[str, ...] = _POLICIES,
    frames: int = 5,
    *,
    large: bool = False,
) -> CoordinationBound:
    """Return what policies reach on some frames, the best known, and a proven bound.

    Large frames are more than CP-SAT can hold in seconds; the native search and its bound are for any number.
    """
    setting = phone(platform, scenario)
    short = replace(scenario, duration_us=1)  # only names are needed of its records
    records = tuple(served(setting, short, policy) for policy in policies)
    found = Coordination(scenario=scenario, setting=setting, conditions=Conditions(), records=records)
    return bound_coordination(
        found,
        policies,
        time_limit_s=study.bound_s,
        frames=frames,
        most_requests=_LARGE if large else MOST_REQUESTS,
        backend="native" if large else BOUND_BACKEND,
    )


def in_time(
    study: Study, where: tuple[Setting, Scenario], policy: str, multiplier: float, late: Late
) -> float:
    """Return the share of requests in time with deadlines of so many 99th percentiles, mean of the runs."""
    setting, scenario = where
    asked = with_deadlines(scenario, round(1000 * multiplier))
    records = (served(setting, asked, policy, seed, Conditions(late=late)) for seed in range(study.runs))
    return mean(record.share_in_time() or 0.0 for record in records)
