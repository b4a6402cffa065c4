"""Plans: what a solver answered, what the judge says, what a simulation shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..api.comparison import Comparison
from ..formulations.deployment import Deployment
from ..formulations.history import History
from ..formulations.judge import check, score
from ..formulations.plan import Chunk, Plan
from ..formulations.problem import Problem
from ..formulations.scores import Score, Violation
from ..solvers.protocol import RuleHandling, SolveStatus
from ..solvers.result import Candidate, Conflict, SolveResult
from ..view.presenter import presenter_of
from .blocks import Block, Column, Sentence, Table, Tone, Unit, grid, table
from .comparing import comparison_blocks
from .problems import title
from .traces import titled_chart
from .words import (
    millis,
    seconds,
    source_words,
    status_words,
    term_name,
    term_value,
    tier_legend,
    tier_words,
)

MAX_PLANS_SHOWN = 50
_MOST_ROWS = 30

_STATUS = {
    SolveStatus.OPTIMAL: Tone.GOOD,
    SolveStatus.FEASIBLE: Tone.WARN,
    SolveStatus.INFEASIBLE: Tone.BAD,
    SolveStatus.NO_SOLUTION: Tone.BAD,
}


def result_blocks(problem: Problem, result: SolveResult, notes: Sequence[str] = ()) -> Iterator[Block]:
    """Yield what `gapless plan` answers; `notes`: what else is to be said of the plans."""
    yield title(problem)
    lead = "NO ANSWER" if result.status is SolveStatus.NO_SOLUTION else result.status.upper()
    words = f"  {status_words(problem.formulation.terms, result)}"
    words += f"  [{result.label}, {seconds(result.runtime_s)}]"
    yield Sentence(words, _STATUS[result.status], lead=lead)
    if handed := source_words(result):
        yield Sentence(handed, Tone.SOFT)
    if result.candidates:
        presenter = presenter_of(problem)
        yield _candidates(problem, result)
        yield Sentence(presenter.legend(problem), Tone.SOFT)
        if _tiers(result):
            ranked = term_name(problem.formulation.terms, _ranked(result))
            yield Sentence(f"tier: {tier_legend(ranked)}", Tone.SOFT)
        if _apart(problem, result):
            yield Sentence(f"differs by: {presenter.distance_words()}", Tone.SOFT)
    yield from map(Sentence, notes)
    if result.handling and any(how is not RuleHandling.LOWERED for how in result.handling.values()):
        handled = ", ".join(f"{name} ({how})" for name, how in result.handling.items())
        yield Sentence(f"rules: {handled}", Tone.SOFT)
    yield from _conflict(problem, result)
    if result.status is SolveStatus.INFEASIBLE:
        yield from _outside(problem)
    if result.best is not None:
        yield Sentence("")
        yield from _best_plan(problem, result.best)


def _candidates(problem: Problem, result: SolveResult) -> Table:
    presenter, infos, asked = presenter_of(problem), problem.formulation.terms, result.asked.terms
    terms = (*asked, *(term for term in presenter.shown_terms(problem) if term not in asked))
    tiers, first = _tiers(result), result.candidates[0].plan
    difference = problem.formulation.difference if _apart(problem, result) else None
    columns: list[Column[tuple[int, Candidate]]] = [Column("#", Unit.COUNT, lambda row: row[0])]
    if tiers:
        columns.append(Column("tier", Unit.COUNT, lambda row: tiers[row[0] - 1]))
    columns.append(Column(presenter.plan_title, Unit.NAME, lambda row: presenter.plan_text(row[1].plan)))
    for term in terms:

        def value(row: tuple[int, Candidate], term: str = term) -> str:
            return term_value(infos, term, row[1].score.value(term))

        columns.append(Column(term_name(infos, term), Unit.COUNT, value))
    columns.append(
        Column("requests/s", Unit.COUNT, lambda row: row[1].score.throughput, digits=1, optional=True)
    )
    if difference is not None:
        columns.append(Column("differs by", Unit.COUNT, lambda row: difference.between(row[1].plan, first)))

    def tone(row: tuple[int, Candidate]) -> Tone:
        return Tone.SOFT if 0 < result.proven < row[0] else Tone.PLAIN

    rows = enumerate(result.candidates, start=1)
    return table("Plans", columns, rows, tone=tone, most=MAX_PLANS_SHOWN)


def _ranked(result: SolveResult) -> str:
    """Return the term by which the plans are listed."""
    return result.asked.present_by or result.asked.terms[0]


def _tiers(result: SolveResult) -> tuple[str, ...]:
    """Return the tier of each plan, if that says anything."""
    return tier_words([candidate.score.value(_ranked(result)) for candidate in result.candidates])


def _apart(problem: Problem, result: SolveResult) -> bool:
    """Return whether plans were asked for that are far from each other."""
    return result.distance > 1 and problem.formulation.difference is not None


def _best_plan(problem: Problem, best: Candidate) -> Iterator[Block]:
    """Yield a plan in detail."""
    yield Sentence(f" (plan_id {best.plan.plan_id})", lead="best plan")
    yield from presenter_of(problem).best_parts(problem, best.plan, best.score)


def _conflict(problem: Problem, result: SolveResult) -> Iterator[Sentence]:
    if result.conflict is None:
        return
    yield Sentence("")
    yield from conflict_blocks(result.conflict)
    if result.unfiltered is not None:
        infos = problem.formulation.terms
        values = zip(result.asked.terms, result.unfiltered.score.values(result.asked.terms), strict=True)
        told = (f", {term_name(infos, term)} {term_value(infos, term, value)}" for term, value in values)
        broken = "; ".join(v.message for v in check(problem, result.unfiltered.plan))
        plan = result.unfiltered.plan
        yield Sentence(f"Without the limits the best plan is {plan}{''.join(told)}. It breaks: {broken}")


def _outside(problem: Problem) -> Iterator[Sentence]:
    """Yield what other plans there may be where it is proved that there is none of the class."""
    if words := problem.formulation.outside(problem):
        yield Sentence(words)


def conflict_blocks(conflict: Conflict) -> Iterator[Sentence]:
    """Yield why there is no plan."""
    if len(conflict.items) == 1:
        yield Sentence("There is no such plan because of this alone:")
    else:
        yield Sentence(f"These cannot {'' if conflict.irreducible else 'all '}hold together:")
    yield from (Sentence(f"  - {item.text}  [{item.name}]") for item in conflict.items)
    if len(conflict.items) == 1:
        return
    if not conflict.irreducible:
        words = "The time was not enough to find out which of them do already; give a longer limit."
        yield Sentence(words)
        return
    smallest = "; no smaller set of demands contradicts itself" if conflict.smallest else ""
    words = f"Leave out any one of them, and these no longer contradict each other{smallest}"
    yield Sentence(f"{words}. Confirmed by {conflict.confirmed_by}.")


def compared_blocks(comparison: Comparison) -> Iterator[Block]:
    """Yield what `gapless compare` answers."""
    problem, best = comparison.problem, comparison.best
    yield title(problem)
    yield Sentence("")
    yield from comparison_blocks(comparison)
    if best is not None and best.best is not None:
        yield Sentence("")
        yield from _best_plan(problem, best.best)
        return
    explained = next((result for result in comparison.results if result.conflict), None)
    yield from _conflict(problem, explained) if explained else ()
    if any(result.status is SolveStatus.INFEASIBLE for result in comparison.results):
        yield from _outside(problem)


def check_blocks(
    problem: Problem, plan: Plan, judged: Score | None, violations: Sequence[Violation]
) -> Iterator[Block]:
    """Yield what `gapless tools check` answers."""
    lead, tone = ("VIOLATED", Tone.BAD) if violations else ("VALID", Tone.GOOD)
    networks = ", ".join(network.name for network in problem.networks)
    yield Sentence(f"  [{plan}] for {networks} on {problem.platform.name}", tone, lead=lead)
    for one in violations:
        known = one.message.startswith(one.rule)
        yield Sentence(f"  - {one.message}" if known else f"  - {one.rule}: {one.message}")
    if violations:
        yield Sentence(f"Looked at are {problem.plan_class}.", Tone.SOFT)
    if judged is not None:
        infos = problem.formulation.terms
        yield _values(
            (term_name(infos, t), term_value(infos, t, judged.value(t))) for t in problem.known_terms
        )
        yield from presenter_of(problem).plan_parts(problem, plan, judged)


def _values(rows: Iterable[tuple[str, str]]) -> Table:
    return grid("Values", [("what", Unit.NAME), ("value", Unit.COUNT)], rows)


def simulation_blocks(problem: Problem, trace: History) -> Iterator[Block]:
    """Yield what `gapless simulate` answers."""
    presenter = presenter_of(problem)
    rows = list(presenter.trace_rows(problem, trace))
    if not presenter.is_one_round(problem):
        yield titled_chart(trace, presenter.trace_title(trace))
        bubbles = ((unit, trace.bubble_us(unit)) for unit in trace.units)
        rows += ((f"bubbles of {u}", "not used" if us is None else millis(us)) for u, us in bubbles)
    yield from presenter.trace_parts(problem, trace)
    yield _values(rows)


def plan_blocks(plan: Plan, problem: Problem | None, *, layers: range | None = None) -> Iterator[Block]:
    """Yield a plan: against its problem with all that follows, or its chunks alone."""
    if problem is None:
        networks = ", ".join(dict.fromkeys(chunk.network for chunk in plan.chunks))
        yield Sentence(f": {plan}  (plan_id {plan.plan_id})", lead=networks)
        yield _chunks([("", plan)])
        return
    violations = check(problem, plan)
    yield from check_blocks(problem, plan, None if violations else score(problem, plan), violations)
    if not violations:
        yield from presenter_of(problem).file_parts(problem, plan, layers=layers)


def plans_blocks(
    plans: Sequence[Plan], problem: Problem | None, *, layers: range | None = None
) -> Iterator[Block]:
    """Yield a list of plans, and the first of them in detail."""
    if len(plans) > 1:
        yield _listed(plans, problem)
    yield from plan_blocks(plans[0], problem, layers=layers)


def _listed(plans: Sequence[Plan], problem: Problem | None) -> Table:
    terms = () if problem is None else problem.objective.terms
    infos = {} if problem is None else problem.formulation.terms

    def row(number: int) -> tuple[str | int | None, ...]:
        plan = plans[number - 1]
        judged = None if problem is None or check(problem, plan) else score(problem, plan)
        values = (None if judged is None else term_value(infos, term, judged.value(term)) for term in terms)
        return number, *values, str(plan)

    heads = [("#", Unit.COUNT), *((term_name(infos, term), Unit.COUNT) for term in terms)]
    rows = map(row, range(1, min(len(plans), _MOST_ROWS) + 1))
    hidden = len(plans) - _MOST_ROWS
    more = [("", *("" for _ in terms), f"... and {hidden} more (--json shows all)")] if hidden > 0 else []
    return grid("Plans", [*heads, ("plan", Unit.CODE)], [*rows, *more])


def _chunks(streams: Iterable[tuple[str, Plan]]) -> Table:
    """Return chunks as they are: what they cost is not known."""
    columns: list[Column[tuple[str, Chunk]]] = [
        Column("stream", Unit.NAME, lambda row: row[0] or row[1].request),
        Column("network", Unit.NAME, lambda row: row[1].network),
        Column("layers", Unit.TEXT, lambda row: f"{row[1].start}-{row[1].stop - 1}"),
        Column("unit", Unit.NAME, lambda row: row[1].unit),
    ]
    chunks = [(name, chunk) for name, plan in streams for chunk in plan.chunks]
    return table("Chunks", columns, chunks, most=len(chunks))


def deployment_blocks(found: Deployment) -> Iterator[Block]:
    """Yield replicas, which are no plan: which network runs where."""
    yield Sentence(f": {len(found.streams)} streams side by side", lead=", ".join(found.networks))
    yield _chunks((stream.name, Plan(chunks=stream.placed)) for stream in found.streams)
