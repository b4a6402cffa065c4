"""What users name as a plan (a plan file, a list, a deployment, the folder of a run), and its problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..api.asked import Asked, ask, problem_of, settled
from ..formulations.deployment import Deployment
from ..formulations.errors import InvalidInputError, InvalidPlanError
from ..formulations.files import (
    PLAN,
    PLANS,
    Origin,
    Schema,
    format_of,
    load,
    load_planned,
    load_problem,
    plan_of_file,
    with_written_rules,
)
from ..formulations.judge import check
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.schedules import orders_chunks
from ..formulations.workload import Workload
from ..question.question import Question
from .pareto_file import PARETO, load_front


def question_of(origin: Origin) -> Question:
    """Return what was asked; raises InvalidInputError: in words that this gapless does not know."""
    return Question.of_texts(origin.asked)


def on_problem(origin: Origin, problem: str) -> Origin:
    """Return an origin with another problem: the workload that was asked for, on other costs and units.

    Rules are about the layers and units of one problem, and are left behind.
    """
    return Origin(asked=replace(question_of(origin), platform=None, problem=problem).texts())


def remembered_problem(origin: Origin) -> Problem:
    """Return the problem that an origin names, with its objective, limits and rules.

    Raises InvalidInputError: it names nothing, or something that is not there; an objective, a limit or a
    rule is not valid.
    """
    return with_remembered_rules(problem_of(question_of(origin)), origin)


def with_remembered_rules(problem: Problem, origin: Origin) -> Problem:
    """Return a problem with the rules that a plan file remembers and that it does not have already."""
    own = {rule.name for rule in problem.rules}
    try:
        return with_written_rules(problem, [rule for rule in origin.rules if rule.name not in own])
    except InvalidInputError as error:
        raise InvalidInputError(
            "the problem has changed since the plan was made; give its rules again with --rules:",
            error.problems,
        ) from None


def forgotten(origin: Origin, problem: Problem) -> tuple[str, ...]:
    """Return what to say about rules that a plan file could not keep, and its problem has not."""
    known = {rule.name for rule in problem.rules}
    names = ", ".join(repr(name) for name in origin.opaque_rules if name not in known)
    if not names:
        return ()
    return (f"the plan was made with opaque rules, which no file can keep: {names}; add them with --rules",)


DEPLOYMENT = Schema(format="gapless.deployment", version=1, content=Deployment)

PLAN_KINDS = (PLAN.format, PLANS.format, PARETO.format, DEPLOYMENT.format)
"""Of which kind a file is that stands for a plan."""

_IN_FOLDER = ("deployment.json", "plan.json")
"""What is taken from the folder of a run: the first that is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPlan:
    """What the user named as a plan."""

    path: Path  # the file that it was read from
    plans: tuple[Plan, ...]
    """All plans of that file, the best first; none where it holds replicas, which are no plan."""
    number: int = 1  # which of them is meant, from 1
    deployment: Deployment | None = None  # what a deployment file holds, or None
    origin: Origin = Origin(asked={})  # what is known of the problem that they were made for
    notes: tuple[str, ...] = ()  # which file, and which of several plans, was taken

    @property
    def plan(self) -> Plan:
        """The plan that is meant."""
        if not self.plans:
            raise InvalidInputError(
                f"{self.path} holds replicas: a network that runs as a whole on several units at once. They "
                "are no plan; `gapless run`, `gapless show` and `gapless export` take them"
            )
        return self.plans[self.number - 1]

    def deployed(self, problem: Problem) -> Deployment:
        """Return what runs.

        Raises InvalidPlanError: it breaks the problem; everything is named.
        """
        if self.deployment is None:
            require_valid(problem, self.plan, self.path)
            return operation_of(problem).deploy(problem, self.plan)
        problem = fitting(problem, self.deployment.parts)
        for plan in self.deployment.plans:
            require_valid(problem, plan, self.path)
        return self.deployment


def fitting(problem: Problem, plans: Sequence[Plan]) -> Problem:
    """Return the problem that plans are of: that whose requests may come back, where a plan is one of these.

    A race keeps the problem that was asked for beside a winner of another shape. What people give a problem
    for themselves is held against that problem.
    """
    operation = problem.formulation.operation
    return problem if operation is None else operation.matching(problem, plans)


def named_plan(name: str | Path, number: int | None = None) -> NamedPlan:
    """Read what the user named as a plan.

    `name`: a plan file, a list of plans, a deployment file, or a folder of `gapless tune` or `gapless
    profile`. `number`: which plan of a list is meant, from 1; None: the first, which is the best.
    """
    path = Path(name)
    if not path.is_dir():
        return _read(path, number)
    found = [path / known for known in _IN_FOLDER if (path / known).is_file()]
    if not found:
        raise InvalidInputError(
            f"{path} holds neither {' nor '.join(_IN_FOLDER)}: name a plan file; `gapless plan` makes one"
        )
    taken = _read(found[0], number)
    return replace(taken, notes=(f"{taken.path} is taken", *taken.notes))


def problem_of_plan(
    named: NamedPlan, given: Question = Question(), *, remembered: bool = True
) -> tuple[Problem, tuple[str, ...]]:
    """Return the problem of a plan, and notes: what is given counts, the rest is as when the plan was made.

    `given`: what the user asks for. With a problem or a workload it is another problem; a plan that was made
    for a workload brings that along to a problem, and one of another order of the layers that order.
    Raises InvalidInputError: it does not say which problem it is for, and none lies beside it; or that one
    cannot be read.
    """
    if given.problem is not None or given.workload is not None:
        given = _with_passage(named, _with_order(named.origin, given))
        problem = problem_of(_with_workload(named.origin, given))
        if named.deployment is not None:
            return fitting(problem, named.deployment.parts), ()
        told = problem.costs.knows_hops or isinstance(problem.data, Workload)
        chosen = told and given.passage is None
        return fitting(problem, named.plans) if chosen else problem, ()
    asked, notes = _asked(named)
    problem = fitting(problem_of(given.over(asked)), named.plans)
    if not remembered:
        return problem, notes
    problem = with_remembered_rules(problem, named.origin)
    lost = forgotten(named.origin, problem)
    if not given and not lost and named.origin.fingerprint not in (None, problem.fingerprint):
        notes += (f"the problem has changed since {named.path} was made, so its numbers may differ",)
    return problem, (*notes, *lost)


def problem_named(given: Question, change: Callable[[Problem], Problem] | None = None) -> Asked:
    """Return the problem that is asked for.

    A plan, a list, a deployment and the folder of a run stand for their problem; what else is given counts.

    `given`: what the user asks for; `change`: adds rules, in the place of those that a file of plans
    remembers; None: these count.
    """
    name, changed = given.problem, change or (lambda problem: problem)
    if not name or not _stands_for_problem(Path(name)):
        return ask(given, change=changed)
    own = Path(name) / "problem.json"
    if own.is_file() and not any((Path(name) / known).is_file() for known in _IN_FOLDER):
        found = ask(replace(given, problem=str(own)), change=changed)
        return replace(found, notes=(f"{own} is taken", *found.notes))
    named = named_plan(name)
    given = replace(given, problem=None).over(_asked(named)[0])
    problem = problem_of(given)
    asked, notes = settled(given, problem)
    notes = (f"the problem of {name} is taken", *notes)
    if change is None:
        problem = with_remembered_rules(problem, named.origin)
        notes += forgotten(named.origin, problem)
    return Asked(problem=changed(problem), question=asked, notes=notes)


def _stands_for_problem(path: Path) -> bool:
    """Return whether a name is that of a folder of a run, or of a file of plans."""
    try:
        if path.is_dir():
            return any((path / known).is_file() for known in (*_IN_FOLDER, "problem.json"))
        return path.suffix == ".json" and format_of(path) in PLAN_KINDS
    except (InvalidInputError, OSError, ValueError):  # that is for who reads it as a problem to say
        return False


def load_deployment(path: str | Path, problem: Problem) -> Deployment:
    """Read a plan file, or a deployment file (replicas), for a problem.

    Raises
    ------
    InvalidInputError
        The file is not valid.
    InvalidPlanError
        What it holds breaks the problem; everything is named.
    """
    return _read(Path(path)).deployed(problem)


def require_valid(problem: Problem, plan: Plan, path: str | Path) -> None:
    """Refuse the plan of a file that breaks its problem."""
    violations = check(problem, plan)
    if violations:
        raise InvalidPlanError(
            f"{path} cannot be run on this problem:", [violation.message for violation in violations]
        )


def _read(path: Path, number: int | None = None) -> NamedPlan:
    if format_of(path) == DEPLOYMENT.format:
        deployment = load(path, DEPLOYMENT)
        own = () if deployment.plan is None else (deployment.plan,)
        return NamedPlan(
            path=path,
            plans=own,
            number=_chosen(path, 1, number),
            deployment=deployment,
            origin=_beside(path, own),
        )
    plans, origin = _planned(path)
    chosen = _chosen(path, len(plans), number)
    which = "the best" if chosen == 1 else f"number {chosen}"
    note = f"{path} holds {len(plans)} plans: {which} is taken, [{plans[chosen - 1]}]; --plan takes another"
    return NamedPlan(
        path=path,
        plans=plans,
        number=chosen,
        origin=origin,
        notes=(note,) if len(plans) > 1 else (),
    )


def _planned(path: Path) -> tuple[tuple[Plan, ...], Origin]:
    """Return the plans of a list or of a front, and what is known of their problem."""
    if format_of(path) != PARETO.format:
        return load_planned(path)
    front, origin = load_front(path)
    return tuple(plan_of_file(point.plan, path) for point in front.points), origin


def _chosen(path: Path, count: int, number: int | None) -> int:
    if number is not None and not 1 <= number <= count:
        holds = "one plan" if count == 1 else f"{count} plans"
        raise InvalidInputError(f"--plan is {number}, but {path} holds {holds}")
    return number or 1


def _beside(path: Path, own: Sequence[Plan]) -> Origin:
    """Return the origin of a deployment: that of the plan file beside it, where that is the same plan."""
    plan = path.parent / "plan.json"
    try:
        if plan.is_file():
            plans, origin = load_planned(plan)
            if plans[0] in own:
                return origin
    except InvalidInputError:  # it is nothing that the deployment needs
        pass
    return Origin(asked={})


def _with_workload(origin: Origin, given: Question) -> Question:
    """Return what is given, with the workload that the plan was made for, unless another one is given."""
    if given.workload is not None or given.problem is None or "workload" not in origin.asked:
        return given
    return given.over(question_of(on_problem(origin, given.problem)))


def _with_passage(named: NamedPlan, given: Question) -> Question:
    """Return a workload that is given with the passage that a plan was made for.

    In schedules a request stands in the order once per chunk.
    """
    if given.workload is None or given.passage is not None:
        return given
    again = any(map(orders_chunks, named.plans))
    return replace(given, passage=named.origin.asked.get("passage", "any" if again else None))


def _with_order(origin: Origin, given: Question) -> Question:
    """Return what is given, with the order of the layers that a plan counts in."""
    order = origin.asked.get("layer_order", "")
    use = order[:1].isdecimal() and given.layer_order is None
    return replace(given, layer_order=order) if use else given


def _asked(named: NamedPlan) -> tuple[Question, tuple[str, ...]]:
    """Return how the problem of a plan is named, and notes: by what its file says, or by what lies beside it.

    A problem that is not where it was can lie beside the plan, under the same name.
    """
    asked, folder = question_of(named.origin), named.path.parent
    if asked:
        name = asked.problem or ""
        near = folder / Path(name).name
        if not name.endswith(".json") or os.path.exists(name) or not near.is_file():
            return asked, ()
        return replace(asked, problem=str(near)), (f"its problem is {near}",)
    for path in sorted(folder.glob("problem*.json")):
        if _fits(path, named, exactly=True):
            return Question(problem=str(path)), (f"its problem is {path}",)
    path = folder / "problem.json"
    if _fits(path, named, exactly=False):
        return Question(problem=str(path)), (f"its problem is taken to be {path}",)
    raise InvalidInputError(
        f"{named.path} does not say which problem it is for; name it before the plan, or with --workload"
    )


def _fits(path: Path, named: NamedPlan, *, exactly: bool) -> bool:
    """Return whether a problem file is what plans were made for: exactly, or as far as can be told."""
    try:
        problem = load_problem(path)
    except InvalidInputError:
        return False
    if exactly:
        return named.origin.fingerprint == problem.fingerprint
    plans = named.deployment.plans if named.deployment else named.plans
    return not any(check(fitting(problem, [plan]), plan) for plan in plans)
