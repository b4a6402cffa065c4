"""Plans of several kinds side by side: sizes of batches, kinds over a cluster, orders of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf

from ..api.batches import BatchChoice
from ..api.branching import branching
from ..api.kinds import KINDS, KindResult
from ..api.layer_orders import OrderResult
from ..formulations.problem import Problem
from ..formulations.reordering import order_words
from ..formulations.schedules import Jobs
from ..formulations.scores import Score
from ..formulations.terms import Dimension
from ..formulations.workload import Workload, split_batch
from ..view.presenter import presenter_of
from .blocks import Block, Column, Sentence, Tone, Unit, table
from .plans import result_blocks
from .words import branching_words, gap, share, term_name, term_value


def batches_blocks(found: Sequence[BatchChoice]) -> Iterator[Block]:
    """Yield what `gapless plan --batches` answers: what each choice comes to, and the best plan."""
    best = found[0]
    infos, first = best.problem.formulation.terms, best.problem.objective.first

    def value(choice: BatchChoice) -> int | None:
        return None if choice.key[0] == inf else int(choice.key[0])

    def each(choice: BatchChoice) -> float | None:
        whole, data = value(choice), choice.problem.data
        assert isinstance(data, Workload | Jobs)
        if whole is None or infos[first].dimension is not Dimension.MICROSECONDS:
            return None
        return whole / sum(split_batch(request.network)[1] for request in data.requests)

    def worth(choice: BatchChoice) -> str | None:
        return None if value(choice) is None else term_value(infos, first, value(choice))

    columns: list[Column[BatchChoice]] = [
        Column("requests", Unit.NAME, lambda choice: choice.workload),
        Column("status", Unit.TEXT, lambda choice: str(choice.result.status)),
        Column(term_name(infos, first), Unit.COUNT, worth),
        Column("per inference", Unit.MEASURED, each),
    ]
    yield table("Batches", columns, found, tone=lambda one: Tone.STRONG if one is best else Tone.PLAIN)
    words = "the others were planned for a part of the time, and the best one once more"
    yield Sentence(words, Tone.SOFT)
    yield Sentence("")
    yield from result_blocks(best.problem, best.result)


def kinds_blocks(found: Sequence[KindResult]) -> Iterator[Block]:
    """Yield what `gapless compare --kinds` answers: a line for each kind, and the plans."""
    first = next((one.problem for one in found if one.problem is not None), None)
    best = max((one.throughput or 0.0 for one in found), default=0.0)
    if first is not None:
        devices = len(first.platform.units)
        yield Sentence(f"{first.network.name} over the {devices} devices of {first.platform.name}")

    def judged(one: KindResult) -> Score | None:
        return one.result.best.score if one.result is not None and one.result.best is not None else None

    def value(term: str) -> Callable[[KindResult], int | None]:
        def of(one: KindResult) -> int | None:
            own = judged(one)
            return None if own is None else own.value(term) or None

        return of

    def more(one: KindResult) -> float | None:
        base = found[0].throughput
        return None if one is found[0] or not base or one.throughput is None else one.throughput / base - 1

    columns: list[Column[KindResult]] = [
        Column("kind", Unit.NAME, lambda one: KINDS[one.kind]),
        Column("items/s", Unit.COUNT, lambda one: one.throughput and f"{one.throughput:,.3g}"),
        Column("more", Unit.CHANGE, more),
        Column("latency", Unit.MICROSECONDS, value("latency")),
        Column("devices", Unit.COUNT, value("devices")),
        Column("energy per item", Unit.NANOJOULES, value("energy"), digits=0),
        Column("largest memory", Unit.BYTES, value("peak_memory")),
        Column("gap", Unit.SHARE, lambda one: None if one.result is None else one.result.gap, digits=2),
        Column("time", Unit.SECONDS, lambda one: None if judged(one) is None else one.seconds),
    ]
    yield table("Kinds", columns, found)
    for one in found:
        yield from _kind_lines(one, Tone.GOOD if one.throughput == best > 0 else Tone.PLAIN)
    yield Sentence(
        "more: items/s beyond those of the first kind; latency: one request from entry to exit, without "
        "waiting; energy per item: from the powers in the cluster file; gap: how far the plan may be from "
        "the best of its kind; time: of planning",
        Tone.SOFT,
    )


def _kind_lines(one: KindResult, tone: Tone) -> Iterator[Sentence]:
    name = KINDS[one.kind]
    if one.problem is None or one.result is None:
        yield Sentence(f": left out: {one.failure}", Tone.WARN, lead=name)
    elif one.result.best is None:
        yield Sentence(f": {one.result.status}", Tone.WARN, lead=name)
    else:
        plan = presenter_of(one.problem).plan_text(one.result.best.plan)
        yield Sentence(f": {plan}", tone, lead=name)
        found = getattr(one.problem.data, "over_graph", None)
        if found is not None:
            lost = share(found.given_pieces_us - found.period_us, found.period_us)
            yield Sentence(f"  its pieces lengthen the least period by {lost}", Tone.SOFT)


def orders_blocks(given: Problem, found: Sequence[OrderResult]) -> Iterator[Block]:
    """Yield what `gapless compare --layer-orders` answers: a line for each order, and the plans."""
    yield Sentence(f"{given.network.name}: {branching_words(branching(given))}")

    def worth(one: OrderResult, *, bound: bool) -> str | None:
        if one.problem is None or one.result is None or one.result.best is None:
            return None
        terms, first = one.problem.formulation.terms, one.problem.objective.terms[0]
        return term_value(terms, first, one.result.bound if bound else one.result.objective)

    columns: list[Column[OrderResult]] = [
        Column("order", Unit.NAME, lambda one: one.order),
        Column("objective", Unit.COUNT, lambda one: worth(one, bound=False)),
        Column("bound", Unit.COUNT, lambda one: worth(one, bound=True)),
        Column("gap", Unit.COUNT, lambda one: gap(one.result.gap if one.result else None)),
        Column("as chunks", Unit.MICROSECONDS, lambda one: one.chunks_us),
        Column("as parts", Unit.MICROSECONDS, lambda one: one.parts_us),
        Column("time", Unit.SECONDS, lambda one: one.seconds if worth(one, bound=False) else None),
    ]
    yield table("Orders", columns, found)
    yield from map(_order_line, found)
    yield from _worth(found)
    yield Sentence(
        "objective, bound, gap: of what plans of this order can be, by their own costs; as chunks: the "
        "period of the plan where all that is alive at a boundary is copied; as parts: where each part "
        "copies what it touches. Compare within one of these two columns.",
        Tone.SOFT,
    )


def _order_line(one: OrderResult) -> Sentence:
    if one.problem is None or one.result is None:
        return Sentence(f": left out: {one.failure}", Tone.WARN, lead=one.order)
    if one.plan is None:
        return Sentence(f": {one.result.status}", Tone.WARN, lead=one.order)
    order = one.problem.network.order
    moved = f" in the order {order_words(order)}" if order else ""
    return Sentence(f": {presenter_of(one.problem).plan_text(one.plan)}{moved}", lead=one.order)


def _worth(found: Sequence[OrderResult]) -> Iterator[Sentence]:
    """Yield how much longer or shorter the period is than in the given order, in words."""
    fixed = next((one for one in found if one.order == "fixed"), None)
    for one in found:
        if fixed is None or one is fixed:
            continue
        pairs = {"chunks": (one.chunks_us, fixed.chunks_us), "parts": (one.parts_us, fixed.parts_us)}
        changes = [
            f"{100 * (new / old - 1):+.1f} % as {what}" for what, (new, old) in pairs.items() if new and old
        ]
        if changes:
            yield Sentence(f"{one.order} against fixed: {', '.join(changes)}", Tone.STRONG)
