"""Networks in another order of their layers: one order is chosen, then cut like that of any chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..formulations.cluster import Pipelines
from ..formulations.errors import InvalidInputError
from ..formulations.judge import score
from ..formulations.limits import Limits
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.reordering import parse_order, reordered
from ..formulations.terms import Objective
from ..solvers.best_order import best_order
from ..solvers.protocol import SolveOptions, SolveStatus
from ..solvers.result import SolveResult
from ..solvers.session import solve
from .graphs import with_parts
from .planning import Way, able_backends, default_backend, each_way
from .problems import pipelines_of

LAYER_ORDERS = ("fixed", "best", "free")
"""What plans cut: the given order of the layers, one that was chosen, or the graph itself (convex parts)."""

CHOICE_S = 60.0
"""Longest search for an order, and longest comparison of plans in it with those in the given one."""


def with_layer_order(problem: Problem, order: str = "best", *, time_limit_s: float = CHOICE_S) -> Problem:
    """Return a problem of one network with its layers in another order, or with the order free.

    The best order is that in which the best cuts have the least period, among many: that of the best convex
    parts, depth-first ones, and orders that differ around a cut (`solvers.best_order`). It stays as
    it is where no better one was found. Everything that can be asked of a chain can be asked of it then: any
    objective, rules, tables for company, replicas, several pipelines. Chunks count positions in the new order
    (`Network.order`).

    Parameters
    ----------
    problem
        Of one network on units or devices, without rules.
    order
        "fixed": as it is; "best"; "free": convex parts instead of chunks (`with_parts`); or the numbers of
        the layers in their order, such as "0-2,5,3-4".
    time_limit_s
        For the search; with tables for company, again for a comparison with the given order.

    Raises
    ------
    InvalidInputError
        The problem is of another kind, has rules, or does not say which layer reads from which; the order is
        none of these.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.table_problem({"a": [4], "b": [5]}, ["cpu"])
    >>> gapless.graphs.with_layer_order(problem, "1,0").network.layer_names
    ('b', 'a')
    """
    check_order_word(order)
    if order == "fixed":
        return problem
    if order == "free":
        return with_parts(problem)
    pipelines_of(problem, "chunks of another order")
    if order != "best":
        return _in_order(problem, parse_order(order, problem.network))
    return _best(problem, SolveOptions(time_limit_s=time_limit_s))


def check_order_word(order: str) -> None:
    """Refuse what is neither a word of `LAYER_ORDERS` nor numbers."""
    if order not in LAYER_ORDERS and not order[:1].isdecimal():
        raise InvalidInputError(
            f"layer_order is {order!r}, must be {', '.join(LAYER_ORDERS)}, or numbers of layers such as "
            "0-2,5,3-4"
        )


def _best(problem: Problem, options: SolveOptions) -> Problem:
    company = problem.costs if problem.by_set else (problem.costs, *(problem.co_run_costs or ()))[-1]
    plain = replace(_plain(problem), costs=company, co_run_costs=None)
    stateless = replace(plain, networks=tuple(replace(network, states=()) for network in plain.networks))
    moved = _in_order(problem, best_order(plain, with_parts(stateless), options))
    if problem.co_run_costs is None:
        return moved
    before, after = (
        solve(_plain(each), "native", options, explain=False).objective for each in (problem, moved)
    )
    return moved if after is not None and (before is None or after < before) else problem


def _plain(problem: Problem) -> Problem:
    """Return the problem of the least period, of one pipeline."""
    data = replace(problem.data, most=1) if isinstance(problem.data, Pipelines) else None
    return replace(problem, objective=Objective(terms=("period",)), limits=Limits(), data=data)


def _in_order(problem: Problem, order: tuple[int, ...]) -> Problem:
    if order == tuple(range(len(order))):
        return problem
    if len(problem.network.models) > 1:
        raise InvalidInputError(
            f"{problem.network.name!r} is several models in a row, whose layers run in their own order only: "
            "another order is for one model"
        )
    return reordered(problem, order)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderResult(Way):
    """The best plan with one order of the layers, or with the order free.

    Attributes
    ----------
    order
        One of `LAYER_ORDERS`.
    problem, result
        What was asked, and the answer; None where there is none.
    failure
        Why there is none; else empty.
    seconds
        How long it took, with the choice of the order.
    chunks_us
        The period of the best plan, if tensors are copied at the boundaries of its chunks, as the table says.
    parts_us
        Its period, if each part pays for the tensors that it touches (`with_parts`).
    """

    order: str
    chunks_us: int | None = None
    parts_us: int | None = None


def compare_layer_orders(
    problem: Problem,
    *,
    orders: Sequence[str] = LAYER_ORDERS,
    backend: str | None = None,
    options: SolveOptions = SolveOptions(),
    on_order: Callable[[str], None] | None = None,
) -> tuple[OrderResult, ...]:
    """Plan one network with its layers in the given order, in a chosen one, and in parts of its graph.

    What tensors cost is one thing for chunks (copies of all that is alive at a boundary) and another for
    parts (copies of what a part touches), so each plan has both periods: `chunks_us` are comparable with
    each other, and so are `parts_us`.

    Parameters
    ----------
    problem
        As for `with_layer_order`.
    orders
        Words of `LAYER_ORDERS`.
    backend
        Who solves; None: the usual backends one after the other, until one has a proof.
    options
        How to solve; the time limit is for each of them.
    on_order
        Called with each before it is planned.

    Returns
    -------
    tuple of OrderResult
        One for each, in order; where something is not possible it says why.

    Raises
    ------
    InvalidInputError
        There is no such word.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("pixel7a/alexnet-sparse")  # a chain has one order
    >>> fixed, best = gapless.graphs.compare_layer_orders(problem, orders=("fixed", "best"))
    >>> fixed.chunks_us == best.chunks_us
    True
    """

    def planned(order: str) -> tuple[Problem, SolveResult]:
        asked = with_layer_order(problem, order)
        return asked, _most_proven(asked, backend, options)

    found = []
    for order, way in each_way(orders, LAYER_ORDERS, "order of layers", planned, on_order):
        made = OrderResult(
            order=order, problem=way.problem, result=way.result, failure=way.failure, seconds=way.seconds
        )
        if made.problem is not None and made.plan is not None:
            chunks_us, parts_us = _periods(problem, made.problem, made.plan)
            made = replace(made, chunks_us=chunks_us, parts_us=parts_us)
        found.append(made)
    return tuple(found)


def _most_proven(problem: Problem, backend: str | None, options: SolveOptions) -> SolveResult:
    """Return the answer that is nearest to a proof: of one backend, or of the usual ones up to a proof."""
    first, *others = [backend] if backend else [*able_backends(problem)] or [default_backend(problem)]
    found = solve(problem, first, options)
    for name in others:
        if found.gap == 0 or found.status is SolveStatus.INFEASIBLE:
            break
        found = min(found, solve(problem, name, options), key=lambda one: 1.0 if one.gap is None else one.gap)
    return found


def _periods(given: Problem, asked: Problem, plan: Plan) -> tuple[int | None, int | None]:
    """Return the periods of a plan as chunks and as parts.

    Several pipelines have none of them; where there are several tables, there are no parts.
    """
    stream, *others = operation_of(asked).arrange(asked, plan).streams
    if others:
        return None, None
    if given.co_run_costs is not None:
        return score(asked, plan).value("period"), None
    place = {name: layer for layer, name in enumerate(given.network.layer_names)}
    names = asked.network.layer_names
    order = [place[names[layer]] for layer in stream.order or range(len(names))]
    unit_of = {layer: chunk.unit for chunk in stream.chunks for layer in order[chunk.start : chunk.stop]}
    parts, units = with_parts(_plain(given)), given.platform.unit_names
    code = tuple(units.index(unit_of[layer]) for layer in range(len(names)))
    chain = reordered(_plain(given), order)
    return (
        score(chain, Plan(chunks=stream.chunks)).value("period"),
        score(parts, parts.formulation.plan(parts, code)).value("period"),
    )
