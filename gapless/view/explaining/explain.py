"""Why a plan is as it is: what each cut, unit and demand is good for, from the best plans without them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path

from ...api.problems import given_problem
from ...executor.progress import Report, Step, silent
from ...formulations.demands import Demand
from ...formulations.errors import InvalidInputError, InvalidPlanError
from ...formulations.flight import Flight
from ...formulations.judge import check, score
from ...formulations.plan import Chunk, Plan
from ...formulations.problem import Problem
from ...formulations.scores import Violation
from ...solvers.protocol import Deadline, SolveStatus
from ...solvers.result import SolveResult
from ..presenter import presenter_of
from .explanation import TIME_LIMIT_S, Alternative, Binding, CutReason, Explanation, SetReason, UnitReason
from .inquiry import Inquiry
from .nearby import without_unit
from .reasons import cannot_run, only_here, summary_of
from .variants import demands, slack_words, variant_of


def explain(
    problem: Problem | str | Path,
    plan: Plan,
    *,
    time_limit_s: float | None = TIME_LIMIT_S,
    report: Report = silent,
    answers: Sequence[SolveResult] = (),
) -> Explanation:
    """Explain a plan by what would be otherwise: other cuts, other units, fewer demands, the next best plan.

    Every question is a problem of its own, which the usual backend solves and the judge scores: the
    same problem with the rule that a unit is (not) used, or without one of its rules, limits, deadlines
    or facts of the device. A cut is moved to its neighbours, and the plan judged again.

    In slack mode, the cap on the period is a demand like any other.

    Parameters
    ----------
    problem, plan
        The problem, its name or its file, as for `load_problem`; and a valid plan for it, which need not
        be the best one.
    time_limit_s
        Seconds for all questions together. Where the usual backend is exact they rarely take that long, and
        the answers are proven. Answers of a local search use the time up; None: it takes a fixed number of
        steps for each question, so that equal questions have equal answers.
    report
        Called before each question.
    answers
        What backends answered to this very problem before: their plans are known, what they proved counts,
        and what they settled is not asked again. Answers to other problems are left out.

    Returns
    -------
    Explanation
        The best alternatives; each says whether it is proven to be the best of its kind.

    Raises
    ------
    InvalidPlanError
        The plan breaks the problem; everything that it breaks is listed.
    InvalidInputError
        The time limit is not greater than 0.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.table_problem({"conv": [9.0, 2.0], "fc": [1.0, None]}, ["cpu", "gpu"])
    >>> why = gapless.explain(problem, gapless.plan(problem).plan)
    >>> why.units[1].otherwise.values  # period and gapness without the gpu, microseconds
    (10000, 10000)
    """
    if time_limit_s is not None and time_limit_s <= 0:
        raise InvalidInputError(f"the time limit is {time_limit_s} s, must be greater than 0")
    problem = given_problem(problem)
    broken = check(problem, plan)
    if broken:
        raise InvalidPlanError(
            f"plan [{plan}] is not valid for the problem, so there is nothing to explain:",
            [f"{violation.rule}: {violation.message}" for violation in broken],
        )
    return _Explainer(problem, plan, time_limit_s, report, answers).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next:
    """The best other plan, and whether it is proven that none beats the explained one."""

    other: Alternative
    proven: bool


class _Explainer:
    """One explanation in the making."""

    def __init__(
        self,
        problem: Problem,
        plan: Plan,
        time_limit_s: float | None,
        report: Report,
        answers: Sequence[SolveResult],
    ) -> None:
        self._given, self._plan, self._report = problem, plan, report
        self._started, self._limit_s = time.monotonic(), time_limit_s
        self._inquiry = Inquiry(problem, plan, time_limit_s=time_limit_s)
        self._problem = self._inquiry.problem
        self._values = score(problem, plan).values(problem.objective.terms)
        # Not remembered, as any other plan of slack mode, if its period is above the cap.
        self._inquiry.judge(plan)
        self._answers = [found for found in answers if found.fingerprint == problem.fingerprint]
        for found in self._answers:
            for candidate in found.candidates:
                self._inquiry.judge(candidate.plan)
        self._slack = slack_words(problem, self._problem)
        self._demands = demands(problem, self._problem, self._slack)
        self._sets = tuple(problem.formulation.other_units(self._problem))
        self._left = self._total = len(problem.platform.units) + len(self._demands) + len(self._sets) + 2

    def run(self) -> Explanation:
        """Ask everything; then let each answer profit from the plans that the others have brought up."""
        cuts, left_out = self._cuts()
        following = self._next()
        units = [self._unit(unit) for unit in self._problem.platform.unit_names]
        free = [
            (demand, self._best(demand.without(self._problem), f"without {demand.name}"))
            for demand in self._demands
        ]
        sets = self._set_reasons()
        inquiry = self._inquiry
        other = inquiry.improved(following.other, self._is_other)
        best = inquiry.improved(Alternative(plan=None, proven=False), lambda known: True)
        bindings = tuple(self._binding(item, found, best) for item, found in free)
        proven = following.proven or any(map(self._proves, self._answers))
        proven = proven and (other.values is None or other.values >= self._values)
        explanation = Explanation(
            terms=self._problem.objective.terms,
            values=self._values,
            summary="",
            cuts=tuple(cuts),
            units=tuple(self._with_known(reason) for reason in units),
            bindings=bindings,
            next_best=other,
            proven=proven,
            plan_class=self._problem.plan_class,
            sets=sets,
            left_out=left_out,
            backend=inquiry.backend,
            looked_s=time.monotonic() - self._started,
            limit_s=self._limit_s,
            told_by=tuple(dict.fromkeys(found.backend for found in self._answers)),
            flight=_flight_of(self._given, self._plan),
        )
        return replace(explanation, summary=summary_of(self._given, self._plan, explanation))

    def _question(self, text: str) -> Deadline:
        """Say what is asked now, and return how long that may take."""
        self._report(Step(text=text, done=self._total - self._left, total=self._total))
        share = self._inquiry.share(self._left)
        self._left -= 1
        return share

    def _best(self, variant: Problem, text: str, *, rule: str = "", nothing: str = "") -> Alternative:
        """Return the best plan of a variant.

        `nothing`: why there is no plan, if that is due to this rule alone.
        """

        def why(infeasible: Problem, deadline: Deadline) -> str:
            found = self._inquiry.contradiction(infeasible, deadline, but=(rule,))
            if found is None:
                return "none keeps everything that is asked"
            texts = [self._slack.get(item.name, item.text) for item in found]
            return f"contradicts: {'; '.join(texts)}" if texts else nothing

        return self._inquiry.best(variant, self._question(text), why)

    def _next(self) -> _Next:
        """Ask for the two best plans."""
        top, deadline = presenter_of(self._problem).alternatives, self._question("the next best plan")
        result = self._settled(top) or self._inquiry.solve(self._problem, deadline, top=top)
        if result is None or not result.candidates:
            nothing = Alternative(plan=None, reason="no other plan was found in time", proven=False)
            return _Next(other=nothing, proven=False)
        sure = self._inquiry.sure
        optimal = sure and result.status is SolveStatus.OPTIMAL
        values = [candidate.score.values(self._problem.objective.terms) for candidate in result.candidates]
        others = (i for i, found in enumerate(result.candidates) if self._is_other(found.plan))
        place = next(others, None)
        if place is None:
            reason = "there is no other valid one" if result.exhausted else "no other plan was found"
            other = Alternative(plan=None, reason=reason, proven=sure and result.exhausted)
        else:
            proven = (sure and result.proven > place) or (optimal and values[place] == values[0])
            other = Alternative(plan=result.candidates[place].plan, values=values[place], proven=proven)
        return _Next(other=other, proven=optimal and self._values <= values[0])

    def _settled(self, top: int) -> SolveResult | None:
        """Return an answer that has this many of the best plans, proved; None: that has to be asked."""
        objective = self._given.objective
        if objective.period_slack_permille is not None or objective.present_by is not None:
            return None  # its plans are in another order, or by another cap
        enough = (found for found in self._answers if found.distance == 1 and _has_best(found, top))
        return next(enough, None)

    def _proves(self, found: SolveResult) -> bool:
        """Return whether an answer proves that none is better than the explained plan."""
        if found.status is not SolveStatus.OPTIMAL:
            return False
        if self._given.objective.period_slack_permille is not None:
            # A plan above the cap may look better than the best one below: only what was answered is proved.
            return any(candidate.plan == self._plan for candidate in found.candidates[:1])
        values = [candidate.score.values(self._problem.objective.terms) for candidate in found.candidates]
        return self._values <= min(values)

    def _is_other(self, plan: Plan) -> bool:
        """Return whether a plan is another one, and not only with equal requests in each other's place."""
        shape = presenter_of(self._problem).shape
        return shape(self._problem, plan) != shape(self._problem, self._plan)

    def _cuts(self) -> tuple[list[CutReason], tuple[str, ...]]:
        """Judge the plan with each cut at its neighbours, and say what there was no time for."""
        deadline = self._question("the cuts")
        cuts = list(_cuts_of(self._plan))
        found = []
        for before, after in cuts:
            if deadline.passed:
                break
            found.append(self._cut(before, after))
        missing = len(cuts) - len(found)
        return found, (f"{missing} of {len(cuts)} cuts",) if missing else ()

    def _cut(self, before: _Group, after: _Group) -> CutReason:
        first, second = before[0], after[0]
        chain_cuts = _legal_cuts(self._problem, first.network)
        earlier = [cut for cut in chain_cuts if first.start < cut < first.stop]
        later = [cut for cut in chain_cuts if second.start < cut < second.stop]
        return CutReason(
            network=first.network,
            request=first.request,
            boundary=first.stop,
            before="+".join(chunk.unit for chunk in before),
            after="+".join(chunk.unit for chunk in after),
            earlier=self._moved(before, after, earlier[-1]) if earlier else None,
            later=self._moved(before, after, later[0]) if later else None,
        )

    def _moved(self, before: _Group, after: _Group, boundary: int) -> Alternative:
        """Return the plan with one cut elsewhere, judged."""
        kept = (chunk for chunk in self._plan.chunks if chunk not in (*before, *after))
        ends = (replace(chunk, stop=boundary) for chunk in before)
        starts = (replace(chunk, start=boundary) for chunk in after)
        moved = replace(self._plan, chunks=(*kept, *ends, *starts))
        judged, broken = self._inquiry.judge(moved)
        network, old = before[0].network, before[0].stop
        low, high = sorted((old, boundary))
        units = [chunk.unit for chunk in (after if boundary < old else before)]
        found = (cannot_run(self._problem, network, range(low, high), unit) for unit in units)
        stuck = next(filter(None, found), "")
        reason = stuck if stuck and judged is None else "; ".join(map(self._broken, broken))
        values = None if judged is None else judged.values(self._problem.objective.terms)
        return Alternative(plan=moved, values=values, reason=reason)

    def _broken(self, violation: Violation) -> str:
        """Return what a plan breaks, in words."""
        rules = {rule.name for rule in self._problem.rules}
        name = "slack" if violation.rule in self._slack else violation.rule
        named_elsewhere = name == violation.rule and violation.rule not in rules
        return violation.message if named_elsewhere else f"{name}: {violation.message}"

    def _unit(self, unit: str) -> UnitReason:
        """Ask for the best plan without a unit, or with it."""
        problem, used = self._problem, _uses(self._plan, unit)
        unsupported = tuple(_unsupported(problem, unit))
        name = f"{'without' if used else 'with'} {unit}"
        while name in {rule.name for rule in problem.rules}:
            name += "'"
        if used:
            known, nothing = only_here(problem, unit), "no chunks on the other units cover the network"
        else:
            able = len(unsupported) < sum(
                len(network.layers) for network in problem.formulation.placed(problem)
            )
            known, nothing = "" if able else "it cannot run any layer", "no chunks cover the network with it"
        if known:
            self._question(name)
            otherwise = Alternative(plan=None, reason=known)
        else:
            for near in without_unit(problem, self._plan, unit) if used else ():
                self._inquiry.judge(near)  # remembered, if it is valid
            variant, demand = variant_of(problem, unit, name, used=used, searched=self._inquiry.searched)
            otherwise = self._best(variant, name, rule=demand, nothing=nothing)
        return UnitReason(
            unit=unit,
            used=used,
            unsupported=unsupported,
            otherwise=otherwise,
            excluded_by=() if used else tuple(_rivals(problem, self._plan, unit)),
        )

    def _set_reasons(self) -> tuple[SetReason, ...]:
        """Ask for the best plan on each other set of units that the formulation wants to know of.

        One question a set; a solver that knows the best plans of all sets at once can answer here in one go.
        """
        found = [(text, variant, self._best(variant, f"with {text}")) for text, variant in self._sets]

        def valid(variant: Problem) -> Callable[[Plan], bool]:
            return lambda plan: not check(variant, plan)

        return tuple(
            SetReason(text=text, otherwise=self._inquiry.improved(best, valid(variant)))
            for text, variant, best in found
        )

    def _with_known(self, reason: UnitReason) -> UnitReason:
        def suits(plan: Plan) -> bool:
            return _uses(plan, reason.unit) is not reason.used

        return replace(reason, otherwise=self._inquiry.improved(reason.otherwise, suits))

    def _binding(self, item: Demand, found: Alternative, best: Alternative) -> Binding:
        """Return whether the best plan without a demand is better than the best one with it."""
        without = self._inquiry.improved(found, lambda known: True)
        binds = without.values is not None and (best.values is None or without.values < best.values)
        return Binding(name=item.name, text=item.text, binds=binds, without=without)


def _flight_of(problem: Problem, plan: Plan) -> Flight | None:
    operation = problem.formulation.operation
    return None if operation is None else operation.flight(problem, plan)


def _has_best(found: SolveResult, top: int) -> bool:
    """Return whether an answer has this many of the best plans, or all that there are."""
    return found.status is SolveStatus.OPTIMAL and (found.proven >= top or found.exhausted)


_Group = tuple[Chunk, ...]
"""Chunks of the same layers, which several units compute together; most often only one."""


def _cuts_of(plan: Plan) -> Iterator[tuple[_Group, _Group]]:
    """Yield the chunks on both sides of each cut, but for steps of one group, which are no decision."""
    ranked = sorted(plan.chunks, key=_layers)
    for before, after in pairwise(tuple(same) for _, same in groupby(ranked, key=_layers)):
        steps = len(before) + len(after) > 2 and {c.unit for c in before} & {c.unit for c in after}
        if _layers(before[0])[:2] == _layers(after[0])[:2] and not steps:
            yield before, after


def _layers(chunk: Chunk) -> tuple[str, str, int, int]:
    return chunk.request, chunk.network, chunk.start, chunk.stop


def _legal_cuts(problem: Problem, network: str) -> tuple[int, ...]:
    return next(known for known in problem.networks if known.name == network).legal_cuts


def _unsupported(problem: Problem, unit: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield network, layer and operator types of all that a unit cannot run."""
    column = problem.platform.unit_names.index(unit)
    for network in problem.formulation.placed(problem):
        for layer, row in zip(network.layers, problem.costs.of(network.name).layer_us, strict=True):
            if row[column] is None:
                yield network.name, layer.name, layer.op_types


def _uses(plan: Plan, unit: str) -> bool:
    return any(chunk.unit == unit for chunk in plan.chunks)


def _rivals(problem: Problem, plan: Plan, unit: str) -> Iterator[str]:
    """Yield the used units that share cores with a unit."""
    names = problem.platform.unit_names
    for pair in problem.platform.conflicts:
        first, second = (names[index] for index in pair)
        if unit in (first, second):
            other = second if unit == first else first
            if _uses(plan, other):
                yield other
