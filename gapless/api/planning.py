"""Planning: solve one problem with one backend, or compare several backends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..formulations.errors import BackendError, InvalidInputError
from ..formulations.objective import Objective
from ..formulations.problem import Problem
from ..formulations.rules import AnyRule, RuleFunction
from ..solvers.course import Recorder
from ..solvers.families import Usual, family_of, runs_of
from ..solvers.protocol import Backend, Claim, SolveOptions, unwatched
from ..solvers.registry import backend_names, get_backend, get_backends
from ..solvers.result import SolveResult
from ..solvers.session import solve
from ..solvers.sources import StartMode, label_of, start_mode
from .comparison import BackendFailure, Comparison, disagreements
from .problems import given_problem, with_passage, with_pipelines

if TYPE_CHECKING:
    from ..formulations.cluster_platform import ClusterPlatform
    from .clusters import Planned


def default_backends(problem: Problem) -> Usual:
    """Return what `compare` does with a problem when nothing is said."""
    return family_of(problem.formulation.name).usual


def default_backend(problem: Problem) -> str:
    """Return who solves a problem when nothing is said: the first of the usual backends that is able to.

    That is the native algorithm of its formulation, if there is one, else an exact backend.
    """
    return next(able_backends(problem), default_backends(problem).names[0])


def able_backends(problem: Problem) -> Iterator[str]:
    """Yield those of the usual backends that can solve a problem here."""
    workers = map(get_backend, default_backends(problem).names)
    return (w.name for w in workers if w.capabilities.support(problem) is not None and w.availability().ok)


def plan(
    problem: Planned,
    *,
    platform: ClusterPlatform | str | Path | None = None,
    batch: int = 1,
    backend: str | Backend | None = None,
    top: int = 1,
    distance: int = 1,
    pipelines: str | int | None = None,
    passage: str | None = None,
    objective: str | Objective | None = None,
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    rules: Iterable[RuleFunction | AnyRule] = (),
    strict_rules: bool = False,
    seed: int = 0,
    threads: int = 1,
    start: str = StartMode.NATIVE,
    isolate: bool = False,
    on_progress: Callable[[Claim], None] | None = None,
) -> SolveResult:
    """Find the best plans of a problem with one backend.

    Parameters
    ----------
    problem
        From `load_problem`, `table_problem`, or built from its parts; or its name or file, as for
        `load_problem`. With a platform, a model, as for `cluster_problem`.
    platform
        The cluster that a model is planned over, as for `cluster_problem`: its name, its file or itself.
    batch
        As for `cluster_problem`; of no meaning without a platform.
    backend
        Name of a backend (`gapless doctor` lists them), or a backend of your own: itself, or as
        "module:Class" or "file.py:Class". None: `native`, or where the formulation has no native algorithm
        the first exact backend that is able to (`default_backend`).
    top
        How many of the best plans to return, in order.
    distance
        On how many layers, at least, each plan is to run on other units than every plan before it; 1: any
        other plan. Of a workload, pairs of requests in the other order count, too.
    pipelines
        How many pipelines may run side by side, each on units of its own: "many", "one" or a number
        (`with_pipelines`). None: as the problem says.
    passage
        "any": a unit may have several chunks of a request; "once": one; more for workloads (`with_passage`).
        None: as the problem says. The command line asks for `with_free_passage` where nothing is said.
    objective
        Overrides the objective of the problem: "period", "period,gapness", "paper", "slack:50", or an
        `Objective`.
    time_limit_s
        Seconds; the best plans so far are returned when it is reached.
    memory_limit_bytes
        Memory that a backend may take, which then runs in a child process. None: a child process may
        take half of the machine's.
    rules
        Further rules: functions of a `PlanView`, ready-made rules, `OpaqueRule`s.
    strict_rules
        Refuse backends that merely check or repair plans against the rules.
    seed, threads
        For backends that use them.
    start
        What an exact third-party solver begins with: "native": a plan and a bound that native algorithms find
        within a share of the time; "none": nothing, it works cold. `SolveResult.plan_source` and
        `bound_source` say what came of it.
    isolate
        Run in a child process, so that the limits are enforced by killing it. Third-party solvers
        always do; a backend of your own that you do not trust should.
    on_progress
        Called with every intermediate claim of the backend; such claims have not been judged.

    Returns
    -------
    SolveResult
        Judged candidates, status, bound. An infeasible problem is a result, with the conflicting
        rules and limits, not an error.

    Raises
    ------
    InvalidInputError, ExpressionError
        The objective, a rule or an option is not valid.
    BackendError
        The backend cannot answer.

    Examples
    --------
    >>> import gapless
    >>> result = gapless.plan("pixel7a/alexnet-sparse")
    >>> result.status, result.objective
    (<SolveStatus.OPTIMAL: 'optimal'>, 7648)
    """
    options = SolveOptions(
        top=top,
        distance=distance,
        time_limit_s=time_limit_s,
        memory_limit_bytes=memory_limit_bytes,
        seed=seed,
        threads=threads,
        start=start_mode(start),
        publish=on_progress or unwatched,
    )
    asked = with_objective_and_rules(
        _given(problem, platform, batch), objective, rules, pipelines=pipelines, passage=passage
    )
    return solve(
        asked, backend or default_backend(asked), options, isolate=isolate, strict_rules=strict_rules
    )


def compare(
    problem: Planned,
    *,
    platform: ClusterPlatform | str | Path | None = None,
    batch: int = 1,
    backends: Sequence[str | Backend] | None = None,
    top: int = 1,
    distance: int = 1,
    pipelines: str | int | None = None,
    passage: str | None = None,
    objective: str | Objective | None = None,
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    rules: Iterable[RuleFunction | AnyRule] = (),
    strict_rules: bool = False,
    seed: int = 0,
    threads: int = 1,
    start: str = StartMode.NATIVE,
    on_backend: Callable[[str], None] | None = None,
    on_progress: Callable[[Claim], None] | None = None,
    on_result: Callable[[SolveResult], None] | None = None,
) -> Comparison:
    """Solve one problem with several backends, one after the other, on the same integers.

    Parameters
    ----------
    problem, platform, batch, pipelines, passage, top, distance, objective, rules, strict_rules, seed
        As for `plan`.
    threads, on_progress
        As for `plan`.
    time_limit_s, memory_limit_bytes
        As for `plan`, for each backend; without a time limit, workloads get the usual one.
    start
        As for `plan`, or "both": backends that begin with something are asked with it, and cold.
    backends
        Names or backends, as for `plan`; None: the usual ones (`default_backends`).
    on_backend
        Called with the label of each run before it starts: the name of the backend, "(cold)" behind it
        where it begins with nothing by choice.
    on_result
        Called with each result as soon as it is there.

    Returns
    -------
    Comparison
        A backend that fails does not stop the others. Proofs that contradict each other are listed.

    Raises
    ------
    InvalidInputError, ExpressionError
        The objective, a rule, an option or a name of a backend is not valid.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/alexnet-sparse")
    >>> found = gapless.compare(problem, backends=["native", "exhaustive"])
    >>> [(one.backend, str(one.status), one.objective) for one in found.results]
    [('native', 'optimal', 7648), ('exhaustive', 'optimal', 7648)]
    """
    options = SolveOptions(
        top=top,
        distance=distance,
        time_limit_s=time_limit_s,
        memory_limit_bytes=memory_limit_bytes,
        seed=seed,
        threads=threads,
        start=start_mode(start),
        publish=on_progress or unwatched,
    )
    return compare_backends(
        with_objective_and_rules(
            _given(problem, platform, batch), objective, rules, pipelines=pipelines, passage=passage
        ),
        options,
        backends=backends,
        strict_rules=strict_rules,
        on_backend=on_backend,
        on_result=on_result,
    )


def _given(
    problem: Planned, platform: ClusterPlatform | str | Path | None, batch: int
) -> Problem | str | Path:
    """Return the problem that is given: as it is, or over the devices of a cluster."""
    if platform is not None:
        from .clusters import cluster_problem

        return cluster_problem(problem, platform, batch=batch)
    if not isinstance(problem, Problem | str | Path):
        raise InvalidInputError(
            "a model is given, and no problem: name the cluster that it is planned over (platform=...), or "
            "measure it with gapless.profile"
        )
    return problem


def compare_backends(
    problem: Problem,
    options: SolveOptions,
    *,
    backends: Sequence[str | Backend] | None = None,
    strict_rules: bool = False,
    on_backend: Callable[[str], None] | None = None,
    on_result: Callable[[SolveResult], None] | None = None,
) -> Comparison:
    """Do what `compare` does, with the options as one."""
    usual = default_backends(problem)
    backends = usual.names if backends is None else backends
    if not backends:
        raise InvalidInputError(f"no backends are given; choose from {', '.join(backend_names())}")
    if options.time_limit_s is None:
        options = replace(options, time_limit_s=usual.time_limit_s)
    results: list[SolveResult] = []
    failures: list[BackendFailure] = []
    for worker, begun in runs_of(problem, get_backends(backends), options.start):
        if on_backend is not None:
            on_backend(label_of(worker.name, begun))
        recorder = Recorder(problem, options.publish, options.clock)
        asked = replace(
            options, start=begun or StartMode.NATIVE, publish=recorder.publish, clock=recorder.clock
        )
        try:
            answer = solve(problem, worker, asked, strict_rules=strict_rules)
        except BackendError as error:
            failures.append(BackendFailure(backend=worker.name, error=error, start=begun))
        else:
            results.append(replace(answer, course=recorder.course(answer)))
            if on_result is not None:
                on_result(results[-1])
    return Comparison(
        problem=problem,
        results=tuple(results),
        failures=tuple(failures),
        disagreements=tuple(disagreements(results)),
        time_limit_s=options.time_limit_s,
    )


def with_objective_and_rules(
    problem: Problem | str | Path,
    objective: str | Objective | None,
    rules: Iterable[RuleFunction | AnyRule],
    *,
    pipelines: str | int | None = None,
    passage: str | None = None,
) -> Problem:
    """Return a problem, or that of a name, with what else is given."""
    asked = given_problem(problem)
    asked = asked if pipelines is None else with_pipelines(asked, pipelines)
    asked = asked if passage is None else with_passage(asked, passage)
    return (asked if objective is None else asked.with_objective(objective)).with_rules(*rules)
