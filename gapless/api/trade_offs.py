"""Trade-offs: every plan that no other plan is better than, in two or three terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ..formulations.problem import Problem
from ..formulations.rules import AnyRule, RuleFunction
from ..solvers.pareto import ParetoFront, ParetoPoint, ParetoSearch
from ..solvers.protocol import Backend, SolveOptions
from .planning import default_backend, with_objective_and_rules


def pareto(
    problem: Problem | str | Path,
    terms: str | Sequence[str],
    *,
    backend: str | Backend | None = None,
    pipelines: str | int | None = None,
    time_limit_s: float | None = None,
    memory_limit_bytes: int | None = None,
    rules: Iterable[RuleFunction | AnyRule] = (),
    strict_rules: bool = False,
    seed: int = 0,
    threads: int = 1,
    isolate: bool = False,
    on_point: Callable[[ParetoPoint], None] = lambda point: None,
) -> ParetoFront:
    """Find all plans that no other plan is better than, in two or three terms of the objective.

    Parameters
    ----------
    problem
        As for `plan`; its objective does not count, its limits and rules do.
    terms
        Two or three of the terms of the problem, as a list or as "period,energy".
    time_limit_s
        Seconds for all points together; what is known by then is the answer.
    on_point
        Called with each plan that is found.
    backend, pipelines, memory_limit_bytes, rules, strict_rules, seed, threads, isolate
        As for `plan`.

    Returns
    -------
    ParetoFront
        Each plan with its values, and whether it is proven; `complete` says whether these are proved to be
        all. A problem without plans has none, and is complete.

    Raises
    ------
    InvalidInputError, ExpressionError
        A term, a rule or an option is not valid, or the platform does not say the powers that energy needs.
    BackendError
        The backend cannot answer.

    Examples
    --------
    >>> import gapless
    >>> front = gapless.pareto("pixel7a/alexnet-sparse", "period,latency")
    >>> front.complete, [point.values for point in front.points][0]
    (True, (7648, 27463))
    """
    asked = with_objective_and_rules(problem, None, rules, pipelines=pipelines)
    options = SolveOptions(
        time_limit_s=time_limit_s, memory_limit_bytes=memory_limit_bytes, seed=seed, threads=threads
    )
    return ParetoSearch(
        asked,
        parse_terms(terms),
        backend or default_backend(asked),
        options,
        isolate=isolate,
        strict_rules=strict_rules,
        on_point=on_point,
    ).run()


def parse_terms(terms: str | Sequence[str]) -> tuple[str, ...]:
    """Return terms that are given as a text with commas, or as a list."""
    return tuple(term.strip() for term in terms.split(",")) if isinstance(terms, str) else tuple(terms)
