"""Planning: solve one problem with one backend, or compare several backends on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

from ..formulations.errors import BackendError, InvalidInputError
from ..formulations.limits import Limits
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.rules import AnyRule, RuleFunction
from ..formulations.terms import Objective
from ..question.question import Question
from ..solvers.course import Recorder
from ..solvers.families import Usual, family_of, runs_of, takes_start
from ..solvers.protocol import (
    Backend,
    Claim,
    Clock,
    SolveOptions,
    SolveStatus,
    StopReason,
    handling_of,
    unwatched,
)
from ..solvers.registry import backend_names, get_backend, get_backends
from ..solvers.result import SolveResult
from ..solvers.session import reconcile, solve
from ..solvers.sources import StartMode, label_of, start_mode
from .asked import Words, asked_problem, for_backends
from .comparison import BackendFailure, Comparison, disagreements

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What came of planning in one way, of several that are compared."""

    problem: Problem | None = None  # what was asked; None where there is no such problem
    result: SolveResult | None = None  # the answer; None where there is none
    failure: str = ""  # why there is none; else empty
    seconds: float = 0.0  # how long it took, with making the problem

    @property
    def plan(self) -> Plan | None:
        """The best plan, or None."""
        return None if self.result is None else self.result.plan


def able_backends(problem: Problem) -> Iterator[str]:
    """Yield those of the usual backends that can solve a problem here."""
    workers = map(get_backend, default_backends(problem).names)
    return (w.name for w in workers if w.capabilities.support(problem) is not None and w.availability().ok)


def each_way(
    ways: Sequence[str],
    known: Collection[str],
    what: str,
    plan: Callable[[str], tuple[Problem, SolveResult]],
    tell: Callable[[str], None] | None,
) -> Iterator[tuple[str, Way]]:
    """Yield what comes of planning in each of some ways; `tell`: called with each before it is planned.

    Raises InvalidInputError: none is named, or one that is not `known`; `what`: what they are.
    """
    unknown = [way for way in ways if way not in known]
    if unknown or not ways:
        name = f"{unknown[0]!r} is no {what}" if unknown else f"no {what} is named"
        raise InvalidInputError(f"{name}; there are {', '.join(known)}")
    for way in ways:
        if tell is not None:
            tell(way)
        started = time.monotonic()
        try:
            problem, result = plan(way)
        except (InvalidInputError, BackendError) as error:
            yield way, Way(failure=str(error))
        else:
            yield way, Way(problem=problem, result=result, seconds=time.monotonic() - started)


class Watch(Protocol):
    """Who is told how far a search is, and keeps what it has shown: an interruption then loses nothing."""

    clock: Clock
    """Of the searches (`SolveOptions.clock`)."""

    @property
    def backend(self) -> str:
        """Label of the run at work (`label_of`), or "" before the first."""
        ...

    @property
    def claim(self) -> Claim | None:
        """What that run has published last."""
        ...

    @property
    def recorder(self) -> Recorder:
        """All that it has published."""
        ...

    @property
    def elapsed_s(self) -> float:
        """Seconds since it began."""
        ...

    def start(self, backend: str) -> None:
        """Note that a run starts."""
        ...

    def publish(self, claim: Claim) -> None:
        """Note an intermediate claim."""
        ...


def plan(
    problem: Planned | Question | None = None,
    *,
    platform: ClusterPlatform | str | Path | None = None,
    workload: str | None = None,
    devices: Mapping[str, int] | None = None,
    batch: int | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    order: str | None = None,
    execution: str | None = None,
    mode: str | None = None,
    task_slots: int | None = None,
    contention: str | Path | None = None,
    costs: str | None = None,
    state: Mapping[str, str] | None = None,
    pipelines: str | int | None = None,
    passage: str | None = None,
    groups: str | int | None = None,
    over_graph: bool | None = None,
    layer_order: str | None = None,
    segments: str | None = None,
    objective: str | Objective | None = None,
    limits: Limits | None = None,
    window: Mapping[str, tuple[int, int | None]] | None = None,
    rules: Iterable[RuleFunction | AnyRule] = (),
    backend: str | Backend | None = None,
    top: int = 1,
    distance: int = 1,
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
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
        `load_problem`, or a `Question`. With a platform, a model, as for `cluster_problem`. None: the
        workload on the platform.
    platform
        The cluster that a model is planned over, as for `cluster_problem`: its name, its file or itself. With
        a workload, or a network that it has: the name of a shipped platform.
    workload, order, execution, mode, task_slots, contention, window
        Requests that share the units, and how they are served, as for `load_workload`.
    devices, batch, shape
        As for `cluster_problem`.
    costs
        As for `load_problem`.
    state
        Of a recurrent network: by input, the output whose last value it takes (`with_states`).
    pipelines
        How many pipelines may run side by side, each on units of its own: "many", "one" or a number
        (`with_pipelines`). None: as the problem says.
    passage
        "any": a unit may have several chunks of a request; "once": one; more for workloads (`with_passage`).
        None: a problem says it itself; of a name what is known decides, as on the command line
        (`with_free_passage`).
    groups, over_graph
        As for `group_problem`.
    layer_order, segments
        What plans cut: "fixed", "best", "free", or an order in numbers (`with_layer_order`), and with "free"
        and the latency what is one task (`with_side_by_side`).
    objective
        Overrides the objective of the problem: "period", "period,gapness", "paper", "slack:50", or an
        `Objective`.
    limits
        What plans have to keep, besides the limits of the problem.
    rules
        Further rules: functions of a `PlanView`, ready-made rules, `OpaqueRule`s.
    backend
        Name of a backend (`gapless doctor` lists them), or a backend of your own: itself, or as
        "module:Class" or "file.py:Class". None: `native`, or where the formulation has no native algorithm
        the first exact backend that is able to (`default_backend`).
    top
        How many of the best plans to return, in order.
    distance
        On how many layers, at least, each plan is to run on other units than every plan before it; 1: any
        other plan. Of a workload, pairs of requests in the other order count, too.
    time_limit_s
        Seconds; the best plans so far are returned when it is reached.
    memory_limit_bytes
        Memory that a backend may take, which then runs in a child process. None: a child process may
        take half of the machine's.
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
        The objective, a rule or an option is not valid, or has no meaning for such a problem.
    BackendError
        The backend cannot answer.

    Examples
    --------
    >>> import gapless
    >>> result = gapless.plan("pixel7a/alexnet-sparse")
    >>> result.status, result.objective
    (<SolveStatus.OPTIMAL: 'optimal'>, 7648)
    >>> gapless.plan("pixel7a/alexnet-sparse", limits=gapless.Limits(max_units=2)).objective
    11953
    """
    words = Words(
        platform=platform,
        workload=workload,
        devices=devices,
        batch=batch,
        shape=shape,
        order=order,
        execution=execution,
        mode=mode,
        task_slots=task_slots,
        contention=contention,
        costs=costs,
        state=state,
        pipelines=pipelines,
        passage=passage,
        groups=groups,
        over_graph=over_graph,
        layer_order=layer_order,
        segments=segments,
        objective=objective,
        limits=limits,
        window=window,
        rules=rules,
    )
    asked = for_backends(asked_problem(problem, words), [] if backend is None else [backend]).problem
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
    worker = backend or default_backend(asked)
    return solve(asked, worker, options, isolate=isolate, strict_rules=strict_rules)


def planned(
    problem: Problem,
    backend: str | Backend | None,
    options: SolveOptions,
    watch: Watch,
    *,
    strict_rules: bool = False,
) -> SolveResult:
    """Do what `plan` does while somebody watches; an interruption (KeyboardInterrupt) ends the search.

    Then the answer is the best that the backend had shown until then, judged like any other, and its `stop`
    says so.
    """
    (worker,) = get_backends([backend or default_backend(problem)])
    watch.start(worker.name)
    watched = replace(options, publish=watch.publish, clock=watch.clock)
    try:
        return solve(problem, worker, watched, strict_rules=strict_rules)
    except KeyboardInterrupt:
        begun = options.start if takes_start(worker, problem) else None
        return _so_far(problem, worker, begun, watch, options.top)


def _so_far(
    problem: Problem, backend: Backend, begun: StartMode | None, watch: Watch, top: int
) -> SolveResult:
    """Return what the interrupted backend had shown, as a judged result."""
    shown = watch.claim or Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.INTERRUPTED)
    slack = problem.objective.period_slack_permille is not None
    claim = Claim(
        status=SolveStatus.FEASIBLE if shown.plans else SolveStatus.NO_SOLUTION,
        stop=StopReason.INTERRUPTED,
        plans=shown.plans[:top],
        # In slack mode the bound may be one on the period, which comes first there.
        bound=None if slack else shown.bound,
        plan_source=shown.plan_source,
        bound_source=shown.bound_source,
        handling=handling_of(problem, backend.capabilities),
    )
    result = reconcile(problem, backend, claim, top, watch.elapsed_s)
    return replace(result, start=begun, course=watch.recorder.course(result))


def compare(
    problem: Planned | Question | None = None,
    *,
    backends: Sequence[str | Backend] | None = None,
    top: int = 1,
    distance: int = 1,
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    strict_rules: bool = False,
    seed: int = 0,
    threads: int = 1,
    start: str = StartMode.NATIVE,
    on_backend: Callable[[str], None] | None = None,
    on_progress: Callable[[Claim], None] | None = None,
    on_result: Callable[[SolveResult], None] | None = None,
    **words: Unpack[Words],
) -> Comparison:
    """Solve one problem with several backends, one after the other, on the same integers.

    Parameters
    ----------
    problem, words
        What is asked, as for `plan`: platform, workload, passage, objective, limits, rules, ...
    top, distance, strict_rules, seed, threads, on_progress
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
        for_backends(asked_problem(problem, words), backends or ()).problem,
        options,
        backends=backends,
        strict_rules=strict_rules,
        on_backend=on_backend,
        on_result=on_result,
    )


def compared(
    problem: Problem,
    options: SolveOptions,
    watch: Watch,
    *,
    backends: Sequence[str | Backend] | None = None,
    strict_rules: bool = False,
) -> tuple[Comparison, bool]:
    """Do what `compare` does while somebody watches.

    Returns the answers, and whether an interruption came before all were there. If so, the backend that was
    at work counts with the best that it had shown (`planned`).
    """
    usual, results = default_backends(problem), list[SolveResult]()
    workers = get_backends(usual.names if backends is None else backends)
    try:
        done = compare_backends(
            problem,
            replace(options, publish=watch.publish, clock=watch.clock),
            backends=workers,
            strict_rules=strict_rules,
            on_backend=watch.start,
            on_result=results.append,
        )
    except KeyboardInterrupt:
        both = runs_of(problem, workers, options.start)
        runs = {label_of(one.name, begun): (one, begun) for one, begun in both}
        if watch.backend not in runs:  # not even the first one has started
            raise
        stopped = _so_far(problem, *runs[watch.backend], watch, options.top)
        found = Comparison(
            problem=problem,
            results=(*results, stopped),
            failures=(),
            disagreements=(),
            time_limit_s=options.time_limit_s or usual.time_limit_s,
        )
        return found, True
    return done, False


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
