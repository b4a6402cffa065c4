"""Coordination: serve the requests of a scenario in simulated time, by several policies side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from ..executor.progress import Report, Step, silent
from ..formulations.chain import Chain
from ..formulations.coordination.play import first_frames, first_stretch, play, play_jobs, problem_of
from ..formulations.coordination.policy import Policy
from ..formulations.coordination.record import Record
from ..formulations.coordination.scenario import SCENARIO, Scenario
from ..formulations.coordination.sections import Section, sessions_of
from ..formulations.coordination.sessions import Loaded, loaded_within
from ..formulations.coordination.setting import Setting
from ..formulations.coordination.simulation import Conditions
from ..formulations.coordination.times import chunk_times
from ..formulations.errors import InvalidInputError, InvalidProblemError
from ..formulations.files import load
from ..formulations.hardware import Platform
from ..formulations.problem import Problem
from ..formulations.schedules import Jobs
from ..formulations.validation import shown
from ..solvers.coordination.budget import PowerBudget
from ..solvers.coordination.policies import DEFAULT_POLICY, make_policy
from ..solvers.protocol import SolveOptions
from ..solvers.result import SolveResult
from ..solvers.session import solve

AskedPolicy = str | Callable[[], Policy]
"""The name of a policy or where it is found, as for `make_policy`, or what makes one."""


@dataclass(frozen=True, kw_only=True)
class Coordination:
    """One scenario, served by several policies.

    Attributes
    ----------
    scenario, setting, conditions
        What was served, where and how.
    records
        What happened, by policy, in the order in which they were asked for.
    """

    scenario: Scenario
    setting: Setting
    conditions: Conditions
    records: tuple[Record, ...]


def coordinate(
    scenario: Scenario | str | Path,
    setting: Setting | str,
    policies: Sequence[AskedPolicy] = (DEFAULT_POLICY,),
    *,
    conditions: Conditions | None = None,
    report: Report = silent,
) -> Coordination:
    """Serve the requests of a scenario in simulated time, by several policies one after the other.

    Parameters
    ----------
    scenario
        Who asks for what: a shipped scenario by name, a file, or a `Scenario`.
    setting
        The units, and what networks cost on them: a shipped phone by name, or a `Setting`.
    policies
        What decides.
    conditions
        What becomes of late requests, noise, and more; None: nothing of that.
    report
        Told of each policy.

    Raises
    ------
    InvalidInputError
        There is no such scenario, platform, network or policy; or a policy decides what cannot be.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.coordinate("eagleeye", "pixel4", ["lst", "sel"])
    >>> all(record.frames_per_s > 1 for record in found.records)
    True
    """
    asked = given_scenario(scenario)
    place = given_setting(setting, asked)
    how = conditions or Conditions(seed=asked.seed)
    if how.rest_kelvin is not None and not any(unit.heat for unit in place.behaviours):
        raise InvalidInputError(
            f"units rest below the temperature at which they are lost, and {place.platform.name!r} has no "
            "model of heat: leave --rest out, or give a behaviour with heat (--problem with --behaviour)"
        )
    records = []
    for number, policy in enumerate(policies):
        made = make_policy(policy) if isinstance(policy, str) else policy()
        report(Step(text=f"{asked.name}: {made.name}", done=number, total=len(policies)))
        records.append(play(place, asked, made, how))
    return Coordination(scenario=asked, setting=place, conditions=how, records=tuple(records))


def coordinate_deadlines(
    scenario: Scenario | str | Path,
    setting: Setting | str,
    policies: Sequence[AskedPolicy],
    multipliers: Sequence[float],
    *,
    conditions: Conditions | None = None,
    report: Report = silent,
) -> list[Coordination]:
    """Serve a scenario once for each multiplier of the deadlines of its applications (Band, Fig. 18).

    Parameters
    ----------
    scenario, setting, policies, conditions, report
        As for `coordinate`.
    multipliers
        Deadlines, in 99th percentiles of the time of each network alone on its fastest unit.

    Raises
    ------
    InvalidInputError
        The scenario has no applications; or as for `coordinate`.
    """
    asked = given_scenario(scenario)
    place = given_setting(setting, asked)
    return [
        coordinate(
            with_deadlines(asked, round(1000 * multiplier)),
            place,
            policies,
            conditions=conditions,
            report=report,
        )
        for multiplier in multipliers
    ]


def with_power(policy: str, setting: Setting, watt: float | None) -> AskedPolicy:
    """Return a policy that starts nothing beyond a power of the device; None: no limit.

    Raises InvalidInputError: there is no such policy, or as for `PowerBudget`.
    """
    if watt is None:
        return policy
    check_budget(make_policy(policy))
    limit_mw = round(1000 * watt)
    return lambda: PowerBudget(make_policy(policy), setting, limit_mw)


def check_budget(policy: Policy) -> None:
    """Refuse a budget of power for a policy that adapts plans: it looks at which units are there."""
    if policy.adapts:
        raise InvalidInputError(
            f"policy {policy.name!r} takes no budget of power: units without power would count as lost for it"
        )


def with_sessions(setting: Setting, limit_bytes: int | None = None) -> tuple[Setting, dict[str, Loaded]]:
    """Return a setting in which only useful sessions are loaded, and by network which those are.

    Parameters
    ----------
    setting
        In which all are.
    limit_bytes
        What the sessions of one network may need together; None: only those go that no shortest way has.

    Raises
    ------
    InvalidInputError
        A network cannot run within this memory.

    Examples
    --------
    >>> import gapless
    >>> phone = gapless.coordination.shipped_setting("pixel4", ["fsrnet"])
    >>> _, loaded = gapless.coordination.with_sessions(phone)
    >>> len(loaded["fsrnet"].sessions), len(loaded["fsrnet"].dropped)
    (82, 294)
    """
    found = {}
    for chain, parts in zip(setting.chains, setting.sections, strict=True):
        found[chain.network] = loaded_within(
            chunk_times(chain, parts), sessions_of(chain, parts), limit_bytes
        )
    kept = {network: frozenset(loaded.sessions) for network, loaded in found.items()}
    return replace(setting, sessions=kept), found


def with_workers(setting: Setting, workers: Mapping[str, int]) -> Setting:
    """Return a setting with the given numbers of workers, by unit (Band, 4.1).

    Raises
    ------
    InvalidInputError
        There is no such unit, or the number is not allowed.

    Examples
    --------
    >>> import gapless
    >>> phone = gapless.coordination.shipped_setting("galaxy-s20", ["fsrnet"])
    >>> two = gapless.coordination.with_workers(phone, {"npu": 2})
    >>> two.by_worker.platform.unit_names
    ('cpu0', 'cpu1', 'gpu', 'dsp', 'npu', 'npu.2')
    """
    return replace(setting, platform=platform_with_workers(setting.platform, workers))


def platform_with_workers(platform: Platform, workers: Mapping[str, int]) -> Platform:
    """Return a platform with the given numbers of workers, by unit.

    Raises InvalidInputError: there is no such unit, or the number is not allowed.
    """
    for unit in workers:
        platform.index_of(unit)
    try:
        return replace(
            platform,
            units=tuple(
                replace(unit, workers=workers.get(unit.name, unit.workers)) for unit in platform.units
            ),
        )
    except InvalidProblemError as error:
        raise InvalidInputError(f"workers cannot be as asked: {error}") from error


def with_crowd(scenario: Scenario, counts: Sequence[int]) -> Scenario:
    """Return a scenario whose frames are as crowded as counts say, of faces in a video, for instance.

    Raises
    ------
    InvalidInputError
        It has no frames, or no count is above 0.
    """
    if not scenario.workflows:
        raise InvalidInputError(
            f"scenario {scenario.name!r} has no frames that could be crowded; take one with frames, e.g. "
            "eagleeye"
        )
    if not any(counts):
        raise InvalidInputError("the counts of a crowd are all 0; at least one must be above")
    crowded = (replace(each, crowd=tuple(counts), crowding_permille=0) for each in scenario.workflows)
    return replace(scenario, workflows=tuple(crowded))


def read_counts(path: Path) -> list[int]:
    """Return the counts of a file: a line for each frame, whose last value counts ("video,frame,faces").

    A first line without a number is a heading. Raises InvalidInputError: the file or a line cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}") from error
    words = [line.replace(",", " ").replace(";", " ").split() for line in lines]
    found = []
    for number, row in enumerate(words, 1):
        if row and row[-1].isascii() and row[-1].isdigit():
            found.append(int(row[-1]))
        elif row and number > 1:
            raise InvalidInputError(f"{path}, line {number}: {shown(row[-1])} is no count")
    if not found:
        raise InvalidInputError(f"{path} has no counts; a line for each frame, e.g. Aaron_Eckhart/0,12,3")
    return found


def divided(setting: Setting, sections: int) -> Setting:
    """Return a setting in which networks of fewer sections have further borders (beyond Band, 4.2).

    `sections`: how many sections a network has then, if it can be cut into that many: of about equal time on
    the unit that is fastest for the whole of it.
    """
    borders = {
        chain.network: further_borders(chain, parts, sections)
        for chain, parts in zip(setting.chains, setting.sections, strict=True)
    }
    return replace(setting, borders=borders)


def further_borders(chain: Chain, parts: Sequence[Section], sections: int) -> tuple[int, ...]:
    """Return further borders of a network: the legal cuts next to equal shares of its work."""
    least_us = [min(time for time in row if time is not None) for row in chain.layer_us]
    before = [0, *accumulate(least_us)]
    have = {part.stop for part in parts[:-1]}
    wanted = [before[-1] * number / sections for number in range(1, sections)]
    for goal in wanted:
        free = [cut for cut in chain.cuts[1:-1] if cut not in have]
        if len(have) + 1 >= sections or not free:
            break
        have.add(min(free, key=lambda cut: (abs(before[cut] - goal), cut)))
    return tuple(sorted(have))


def given_scenario(scenario: Scenario | str | Path) -> Scenario:
    """Return a scenario that is given as such, by name, or as a file."""
    if isinstance(scenario, Scenario):
        return scenario
    from ..profiler.coordination.catalog import scenario_names, shipped_scenario

    if isinstance(scenario, str) and (scenario in scenario_names() or not _is_file(scenario)):
        return shipped_scenario(scenario)
    return load(scenario, SCENARIO)


def _is_file(name: str) -> bool:
    return bool(Path(name).suffix) or Path(name).exists()


def given_setting(setting: Setting | str, scenario: Scenario) -> Setting:
    """Return a setting that is given as such, or by the name of a shipped phone."""
    if isinstance(setting, Setting):
        return setting
    from ..profiler.coordination.catalog import shipped_setting

    return shipped_setting(setting, scenario.networks)


def with_deadlines(scenario: Scenario, permille: int) -> Scenario:
    """Return a scenario in which every application has another multiplier of its deadline (Band, Fig. 18)."""
    if not scenario.applications:
        raise InvalidInputError(
            f"scenario {scenario.name!r} has no applications whose deadlines could change"
        )
    return replace(
        scenario,
        applications=tuple(
            replace(each, deadline_us=None, deadline_permille=permille) for each in scenario.applications
        ),
    )


BOUND_BACKEND = "cpsat"
MOST_REQUESTS = 23
"""Most requests of a part, unless something else is asked for: of larger ones little is proven in seconds."""


@dataclass(frozen=True, kw_only=True)
class BoundedPart:
    """A frame, or the first stretch of a scenario.

    Attributes
    ----------
    name
        What it is.
    problem
        It as a problem: what is minimised is its first term, the makespan or the late requests.
    result
        What was found and proven.
    reached
        By policy, the same term.
    """

    name: str
    problem: Problem
    result: SolveResult
    reached: tuple[int, ...]

    @property
    def best(self) -> int:
        """The best that is known: of the solver, or of a policy."""
        return min(*self.reached, *(() if self.result.objective is None else (self.result.objective,)))

    @property
    def bound(self) -> int:
        """Nobody who runs one chunk at a time on each unit reaches less; 0 where nothing is proven."""
        return self.result.bound or 0


@dataclass(frozen=True, kw_only=True)
class CoordinationBound:
    """What policies reach beside the best known and a proven bound.

    Attributes
    ----------
    term
        "makespan" of frames, microseconds, or "late": requests, weighted.
    policies
        Names.
    parts
        The frames, or the stretch.
    """

    term: str
    policies: tuple[str, ...]
    parts: tuple[BoundedPart, ...]

    @property
    def best(self) -> int:
        """The best that is known, of all parts together."""
        return sum(part.best for part in self.parts)

    @property
    def bound(self) -> int:
        """The bound of all parts together."""
        return sum(part.bound for part in self.parts)

    @property
    def reached(self) -> tuple[int, ...]:
        """What each policy reaches, of all parts together."""
        return tuple(sum(part.reached[index] for part in self.parts) for index in range(len(self.policies)))

    @property
    def proven(self) -> int:
        """Number of parts of which the best is proven."""
        return sum(part.best == part.bound for part in self.parts)


def bound_coordination(
    found: Coordination,
    policies: Sequence[str | Callable[[], Policy]],
    *,
    time_limit_s: float = 5.0,
    frames: int = 5,
    most_requests: int = MOST_REQUESTS,
    backend: str = BOUND_BACKEND,
    report: Report = silent,
) -> CoordinationBound:
    """Solve parts of a scenario with everything known beforehand, and serve them by the policies.

    Slowdown, noise, cold and hot units do not count in these parts, for the policies neither: then the same
    numbers hold for both. The bound is for whoever runs one chunk at a time on each worker of a unit.

    Parameters
    ----------
    found
        Of `coordinate`.
    policies
        As they were given there.
    time_limit_s
        For each part.
    frames
        How many frames, of scenarios with workflows; of others one stretch is taken, from their beginning.
    most_requests
        Larger frames are left out; the stretch has this number.
    backend
        Who solves.
    report
        Told of each part.

    Raises
    ------
    InvalidInputError
        Every frame is larger than `most_requests`.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.coordinate("eagleeye", "pixel4", ["lst", "sel"])
    >>> bound = gapless.coordination.bound_coordination
    >>> best = bound(found, ["lst", "sel"], frames=2, time_limit_s=1, most_requests=9)
    >>> all(best.bound <= best.best <= reached for reached in best.reached)
    True
    """
    ideal = found.setting.ideal
    parts = list(_parts(found, frames, most_requests))
    if not parts:
        raise InvalidInputError(
            f"no frame of {found.scenario.name!r} has at most {most_requests} requests; allow more"
        )
    plain = Conditions(late=found.conditions.late)
    term = "makespan" if found.scenario.workflows else "late"
    bounded = []
    for number, (name, jobs) in enumerate(parts):
        report(Step(text=f"solving {name}: {len(jobs.requests)} requests", done=number, total=len(parts)))
        problem = problem_of(found.setting, jobs, term)
        result = solve(problem, backend, SolveOptions(time_limit_s=time_limit_s))
        reached = []
        for policy in policies:
            made = make_policy(policy) if isinstance(policy, str) else policy()
            reached.append(_reached(play_jobs(ideal, jobs, made, plain), term))
        bounded.append(BoundedPart(name=name, problem=problem, result=result, reached=tuple(reached)))
    names = tuple(record.policy for record in found.records)
    return CoordinationBound(term=term, policies=names, parts=tuple(bounded))


def _parts(found: Coordination, frames: int, most_requests: int) -> Iterator[tuple[str, Jobs]]:
    if found.scenario.workflows:
        yield from first_frames(found.scenario, frames, most_requests=most_requests)
        return
    stretch = first_stretch(found.setting, found.scenario, most_requests)
    if stretch is not None:
        yield f"the first {len(stretch.requests)} requests", stretch


def _reached(record: Record, term: str) -> int:
    if term == "makespan":
        return round(record.end_us)
    return sum(request.weight for request in record.requests if not request.in_time)
