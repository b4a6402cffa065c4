"""Solving with progress on standard error, and Ctrl-C that loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...answers.words import other_words, slots_words
from ...api.asked import device_options, problem_of
from ...api.comparison import Comparison
from ...api.planning import compared, default_backend, default_backends, planned
from ...executor.progress import Step
from ...formulations.errors import GaplessError, InvalidInputError
from ...formulations.operation import operation_of
from ...formulations.problem import Problem
from ...question.question import Question
from ...question.values import names_in
from ...solvers.families import runs_of
from ...solvers.pareto import ParetoFront, ParetoPoint, ParetoSearch
from ...solvers.protocol import Backend, SolveOptions, StopReason
from ...solvers.registry import get_backends
from ...solvers.result import SolveResult
from ...solvers.session import solve
from ...solvers.sources import label_of
from ..base.progress import Progress, StepLine

if TYPE_CHECKING:
    from ...api.asked import Asked
    from ...api.batches import BatchChoice
    from ...api.kinds import KindResult
    from ...api.layer_orders import OrderResult


WIDER_S = 0.3
"""How long other plans than those that were asked for are searched for one line about them."""


def plan_watched(
    problem: Problem, backend: str | None, options: SolveOptions, *, strict_rules: bool = False
) -> SolveResult:
    """Plan with progress (`planned`); `backend` None: the usual one."""
    with Progress(problem, time_limit_s=options.time_limit_s) as progress:
        return planned(problem, backend, options, progress, strict_rules=strict_rules)


def class_notes(asked: Asked, result: SolveResult) -> list[str]:
    """Return what another class of plans would bring, where a moment of search finds something.

    That is a wider one, or the one that nobody asked to leave.
    """
    problem, wider = asked.problem, asked.problem.formulation.wider(asked.problem)
    if result.best is None:
        return []
    try:
        if wider is not None:
            option, other = wider
        elif asked.once is not None:
            option, other = "--passage once", asked.once().problem
        else:
            return []
        found = _glimpse(other)
    except (GaplessError, KeyboardInterrupt):  # the answer is there; this is one line more
        return []
    first = problem.objective.first
    if found.best is None or (wider and found.best.score.value(first) > result.best.score.value(first)):
        return []
    words = other_words(problem.formulation.terms, option, result.best.score, found.best.score, first)
    return [words] if words else []


def _glimpse(problem: Problem) -> SolveResult:
    """Return what a moment of search finds."""
    return solve(problem, default_backend(problem), SolveOptions(time_limit_s=WIDER_S), explain=False)


def slots_notes(problem: Problem, result: SolveResult) -> list[str]:
    """Return what a plan without a limit on requests in flight does with as few, if that is faster.

    The limit is about plans at their least period, and one that needs more at that may be faster with few.
    The plan is the best one that a moment of search finds for its own period; others may be faster with few.
    """
    slots = problem.limits.max_in_flight
    if slots is None or problem.objective.first != "period":
        return []
    free, operation = problem.with_limits(max_in_flight=None), operation_of(problem)
    try:
        found = _glimpse(free)
        if found.best is None:
            return []
        deployment = operation.deploy(free, found.best.plan, task_slots=slots)
        period_us = max(one.period_us for one in operation.steady(free, deployment))
    except (GaplessError, KeyboardInterrupt):  # the answer is there; this is one line more
        return []
    best_us = None if result.best is None else result.best.score.value("period")
    return slots_words(slots, period_us, best_us)


def plan_uninterrupted(problem: Problem, backend: str | None, options: SolveOptions) -> SolveResult:
    """Plan with progress one of several problems that are all needed: an interruption ends the command."""
    result = plan_watched(problem, backend, options)
    if result.stop is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def front_watched(
    problem: Problem,
    terms: Sequence[str],
    backend: str | None,
    options: SolveOptions,
    *,
    strict_rules: bool = False,
) -> tuple[ParetoFront, bool]:
    """Find trade-offs with progress; return them, and whether the user stopped the search before its end."""
    found = 0

    def told(point: ParetoPoint) -> None:
        nonlocal found
        found += 1
        line.report(Step(text=f"trade-offs: {found} plans", done=found, total=None))

    with StepLine() as line:
        search = ParetoSearch(
            problem,
            terms,
            backend or default_backend(problem),
            options,
            strict_rules=strict_rules,
            on_point=told,
        )
        try:
            return search.run(), False
        except KeyboardInterrupt:
            return search.front(StopReason.INTERRUPTED), True


def compare_watched(
    problem: Problem,
    backends: Sequence[str | Backend] | None,
    options: SolveOptions,
    *,
    strict_rules: bool = False,
) -> tuple[Comparison, bool]:
    """Compare with progress (`compared`); `backends` None: the usual ones."""
    usual = default_backends(problem)
    workers = get_backends(usual.names if backends is None else backends)
    names = [label_of(worker.name, begun) for worker, begun in runs_of(problem, workers, options.start)]
    limit_s = options.time_limit_s or usual.time_limit_s
    with Progress(problem, time_limit_s=limit_s, backends=names) as progress:
        return compared(problem, options, progress, backends=workers, strict_rules=strict_rules)


def batches_watched(
    asked: Asked, sizes: Sequence[int], backend: str | None, options: SolveOptions
) -> tuple[BatchChoice, ...]:
    """Choose sizes of batches with progress."""
    from ...api.batches import batchings, compared
    from ...api.problems import load_problem

    question = asked.question
    if question.workload is None:
        raise InvalidInputError("--batches is about the requests of a workload: give --workload")
    if asked.problem.rules:
        raise InvalidInputError("rules name requests, which --batches changes: leave one of them away")
    known = None
    if question.problem is not None:
        costs = load_problem(question.problem, costs=question.costs)
        known = [network.name for network in costs.networks]
    texts = batchings(question.workload, sizes, known)
    with StepLine() as line:
        return compared(
            texts,
            lambda text: problem_of(replace(question, workload=text)),
            backend or default_backend(asked.problem),
            options,
            on_choice=lambda place: line.report(
                Step(text=f"planning {texts[place]}", done=place, total=len(texts))
            ),
        )


_OF_ALL_KINDS = {"problem", "platform", "devices", "batch", "shape"}
"""What can be asked of plans of every kind."""


def kinds_watched(question: Question, kinds: str, options: SolveOptions) -> tuple[KindResult, ...]:
    """Compare kinds of plans with progress; `kinds`: their names with commas, or "all"."""
    from ...api.kinds import KINDS, compare_kinds

    if question.platform is None or question.problem is None:
        raise InvalidInputError(
            "--kinds is about a model over a cluster: name both, the cluster with --platform"
        )
    known = question.options(*_OF_ALL_KINDS)
    stray = sorted(option for option in question.options() if option not in known)
    if stray:
        raise InvalidInputError(f"{stray[0]} is not about all kinds of plans: leave it away")
    names = tuple(KINDS) if kinds == "all" else names_in("--kinds", kinds)
    with StepLine() as line:
        return compare_kinds(
            question.problem,
            question.platform,
            kinds=names,
            options=options,
            on_kind=lambda kind: line.report(
                Step(text=f"planning {KINDS[kind]}", done=names.index(kind), total=len(names))
            ),
            **device_options(question),
        )


def orders_watched(
    problem: Problem, orders: str, backend: str | None, options: SolveOptions
) -> tuple[OrderResult, ...]:
    """Compare orders of layers with progress; `orders`: their words with commas, or "all"."""
    from ...api.layer_orders import LAYER_ORDERS, compare_layer_orders

    words = LAYER_ORDERS if orders == "all" else names_in("--layer-orders", orders)
    with StepLine() as line:
        return compare_layer_orders(
            problem,
            orders=words,
            backend=backend,
            options=options,
            on_order=lambda word: line.report(
                Step(text=f"planning, order of the layers: {word}", done=words.index(word), total=len(words))
            ),
        )
