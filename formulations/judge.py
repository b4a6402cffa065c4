"""The judge: checks and scores every plan in exact integers. Nobody else decides what a plan is worth."""

from __future__ import annotations

from .chain import Chain, Part
from .chunking.quantities import PlanValues
from .errors import InvalidPlanError
from .flow_shop.score import malformed_workload_plan, workload_score
from .plan import Plan
from .problem import Problem
from .scores import Score, Violation, limit_violations

MALFORMED = frozenset({"names", "coverage", "contiguity", "support", "unit_order"})
"""What a plan may break so that it has no score at all (`Violation.rule`)."""


def score(problem: Problem, plan: Plan) -> Score:
    """Check and score one plan; with a workload the score is a `WorkloadScore`.

    Raises
    ------
    InvalidPlanError
        The plan is not well formed for the problem (unknown names, a unit with two chunks, gaps or
        overlaps, a layer that its unit cannot run), so that no score can be computed. Every other
        defect is a violation.
    """
    if problem.workload is not None:
        return workload_score(problem, plan)
    chain = problem.chain_of(plan)
    parts = chain.parts(plan)
    broken = malformations(chain, parts)
    if broken:
        raise InvalidPlanError(
            f"plan [{plan}] is not well formed:", [f"{v.rule}: {v.message}" for v in broken]
        )
    values = PlanValues(chain, parts)
    units = range(chain.unit_count)
    busy = values.busy_us
    return Score(
        period_us=values.period_us,
        latency_us=values.latency_us,
        gapness_us=values.gapness_us,
        paper_gapness_us=values.paper_gapness_us,
        bubbles_us=values.bubbles_us,
        peak_bytes=values.peak_bytes,
        idle_permille=values.idle_permille,
        busy_us=tuple(busy.get(unit) for unit in units),
        bubble_us=tuple(values.period_us - busy[u] if u in busy else None for u in units),
        memory_bytes=tuple(values.memory_bytes.get(unit) for unit in units),
        violations=_violations(problem, plan, values),
    )


def check(problem: Problem, plan: Plan) -> tuple[Violation, ...]:
    """Return everything that a plan breaks, malformed plans included; empty for a valid plan."""
    if problem.workload is not None:
        return malformed_workload_plan(problem, plan) or workload_score(problem, plan).violations
    try:
        parts = problem.chain.parts(plan)
    except InvalidPlanError as error:
        return tuple(Violation(rule="names", message=text) for text in error.problems)
    return malformations(problem.chain, parts) or score(problem, plan).violations


def rank_key(problem: Problem, plan: Plan, plan_score: Score) -> tuple[object, ...]:
    """Return the key of the canonical order of plans: objective, tie-break, then chunks.

    Plans with equal numbers are ordered by (stop, unit index) of their chunks, first chunk first; with
    a workload by the order of the requests and then by their cuts.
    """
    if problem.workload is not None:
        schedule = problem.flow_shop.schedule(plan)
        return plan_score.values(problem.objective.terms), schedule.order, schedule.cuts
    chunks = tuple((stop, unit) for _, stop, unit in problem.chain.parts(plan))
    return plan_score.values(problem.objective.ranking), chunks


def malformations(chain: Chain, parts: tuple[Part, ...]) -> tuple[Violation, ...]:
    """Return what keeps a plan from having a score at all."""
    found = []
    at = 0
    seen: set[int] = set()
    for start, stop, unit in parts:
        where = f"chunk [{start}, {stop}) on {chain.units[unit]!r}"
        if start != at:
            kind = "are covered twice" if start < at else "are not covered"
            low, high = min(start, at), max(start, at)
            found.append(Violation(rule="coverage", message=f"layers {low} to {high - 1} {kind}"))
        if unit in seen:
            found.append(Violation(rule="contiguity", message=f"{where} is a second chunk on that unit"))
        if not chain.runs(start, stop, unit):
            stuck = [i for i in range(start, stop) if chain.layer_us[i][unit] is None]
            found.append(Violation(rule="support", message=f"{where}: cannot run layers {stuck}"))
        seen.add(unit)
        at = max(at, stop)
    if at != chain.layer_count:
        message = f"layers {at} to {chain.layer_count - 1} are not covered"
        found.append(Violation(rule="coverage", message=message))
    return tuple(found)


def _violations(problem: Problem, plan: Plan, values: PlanValues) -> tuple[Violation, ...]:
    return (
        *_structure(values.chain, values.parts, values),
        *limit_violations(problem.limits, values),
        *(
            Violation(rule=rule.name, message=rule.text or "the rule does not hold")
            for rule in problem.expression_rules
            if not rule.holds(values)
        ),
        *(
            Violation(rule=opaque.name, message=opaque.text or "the predicate is false")
            for opaque in problem.opaque_rules
            if not opaque.holds(plan)
        ),
    )


def _structure(chain: Chain, parts: tuple[Part, ...], values: PlanValues) -> list[Violation]:
    found = []
    used = {unit for _, _, unit in parts}
    for start, stop, unit in parts:
        where = f"chunk [{start}, {stop}) on {chain.units[unit]!r}"
        if stop not in chain.cuts:
            found.append(Violation(rule="cut", message=f"{where} ends where no cut is allowed"))
        for other in sorted(chain.exclusive[unit] & used):
            if other > unit:
                names = f"{chain.units[unit]!r} and {chain.units[other]!r}"
                found.append(Violation(rule="conflict", message=f"units {names} share cores"))
        if not chain.fits(start, stop, unit):
            message = f"{where} needs {values.memory_bytes[unit]} bytes, has {chain.unit_memory[unit]}"
            found.append(Violation(rule="unit_memory", message=message))
    if chain.device_memory is not None and values.peak_bytes > chain.device_memory:
        message = f"the plan needs {values.peak_bytes} bytes, the device has {chain.device_memory}"
        found.append(Violation(rule="device_memory", message=message))
    return found
