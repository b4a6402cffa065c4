"""How far policies are from the best: frames or a stretch of a scenario, solved with everything known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..executor.progress import Report, Step, silent
from ..formulations.coordination.policy import Policy
from ..formulations.coordination.record import Record
from ..formulations.coordination.simulation import Conditions
from ..formulations.coordination.stretch import first_frames, first_stretch, play_jobs, problem_of
from ..formulations.errors import InvalidInputError
from ..formulations.job_requests import Jobs
from ..formulations.problem import Problem
from ..solvers.coordination.policies import make_policy
from ..solvers.protocol import SolveOptions
from ..solvers.result import SolveResult
from ..solvers.session import solve
from .coordination import Coordination

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
