"""The files of planning: platforms, networks, costs, slowdowns, problems, plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any

from .canonical import DIGITS
from .costs import CostTable, Interference
from .errors import InvalidInputError, InvalidPlanError, InvalidProblemError, SchemaVersionError
from .hardware import Platform
from .json_files import (
    LINE_LENGTH,
    Document,
    Schema,
    dump,
    format_of,
    load,
    load_foreign,
    parse,
    read_bytes,
    save,
)
from .limits import Limits
from .network import Network
from .plan import Chunk, Plan
from .problem import Problem
from .registry import data_keys, formulation_by_keys
from .rule_files import RuleDocument, with_written_rules, written_rules
from .terms import Objective
from .validation import FileContent

__all__ = [
    "COSTS",
    "INTERFERENCE",
    "LINE_LENGTH",
    "NETWORK",
    "PLAN",
    "PLANS",
    "PLATFORM",
    "PROBLEM",
    "Document",
    "Origin",
    "PlanDocument",
    "PlansDocument",
    "ProblemDocument",
    "RuleDocument",
    "Schema",
    "dump",
    "dump_plan",
    "dump_plans",
    "dump_problem",
    "format_of",
    "load",
    "load_foreign",
    "load_plan",
    "load_planned",
    "load_plans",
    "load_problem",
    "parse",
    "parse_problem",
    "save",
    "with_written_rules",
]


@dataclass(frozen=True, kw_only=True)  # no slots: formulations add fields
class ProblemDocument(FileContent):
    """A problem file: everything that a plan is judged by.

    A formulation can have data of its own, under a key of its own (`Formulation.data_key`).

    Attributes
    ----------
    platform
        The device.
    networks
        What runs on it.
    costs
        What the layers cost on its units.
    objective
        What is minimised.
    limits
        Filters that a plan must pass.
    rules
        The user's rules.
    interference
        How much units slow each other down.
    co_run_costs
        Tables for plans that use 2, 3, ... units, or one for each set of units that can run at once, named by
        its columns; `costs` is then for plans on one unit. Without them, `costs` is for all plans.
    """

    platform: Platform
    networks: tuple[Network, ...]
    costs: CostTable
    objective: Objective = Objective()
    limits: Limits = Limits()
    rules: tuple[RuleDocument, ...] = ()
    interference: Interference | None = None
    co_run_costs: tuple[CostTable, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDocument(FileContent):
    """A plan file."""

    chunks: tuple[Chunk, ...]
    """Which layers run where."""
    order: tuple[str, ...] = ()
    """Names of the requests in the order in which the units serve them; empty without a workload."""
    plan_id: str | None = None
    """Digest of chunks and order: who edits them must remove it."""
    problem: str | None = None
    """Fingerprint of the problem that the plan was made for."""
    asked: dict[str, str] = field(default_factory=dict)
    """How that problem was named: by the name of an option, what was given for it."""
    rules: tuple[RuleDocument, ...] = ()
    """The rules of that problem."""
    opaque_rules: tuple[str, ...] = ()
    """Names of its opaque rules, which are Python code and have no written form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPlan(FileContent):
    """One plan of a list."""

    chunks: tuple[Chunk, ...]
    order: tuple[str, ...] = ()
    plan_id: str | None = None
    """As in a plan file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansDocument(FileContent):
    """A list of plans for one problem."""

    plans: tuple[ListedPlan, ...]
    """At least one, the best first."""
    problem: str | None = None
    asked: dict[str, str] = field(default_factory=dict)
    rules: tuple[RuleDocument, ...] = ()
    opaque_rules: tuple[str, ...] = ()
    """As in a plan file: what all of them were made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a file of plans knows about the problem that they were made for."""

    asked: Mapping[str, str]
    """How the problem was named: by the name of an option, what was given for it; empty if not at all."""
    rules: tuple[RuleDocument, ...] = ()
    opaque_rules: tuple[str, ...] = ()  # names of its opaque rules
    fingerprint: str | None = None
    """Its fingerprint; None: not known, or in the form of an earlier version, which cannot be compared."""


PLATFORM = Schema(format="gapless.platform", version=1, content=Platform)
NETWORK = Schema(format="gapless.network", version=1, content=Network)
INTERFERENCE = Schema(format="gapless.slowdowns", version=1, content=Interference)
COSTS = Schema(format="gapless.costs", version=1, content=CostTable)
PLAN = Schema(format="gapless.plan", version=1, content=PlanDocument)
PLANS = Schema(format="gapless.plans", version=1, content=PlansDocument)


def load_problem(path: str | Path) -> Problem:
    """Read a problem file; errors as for `load`."""
    return parse_problem(read_bytes(path, needed=PROBLEM.format), name=str(path))


def parse_problem(data: bytes, *, name: str) -> Problem:
    """Read a problem document; errors as for `load`."""
    document = parse(data, PROBLEM, name=name)
    try:
        problem = Problem(
            platform=document.platform,
            networks=document.networks,
            costs=document.costs,
            objective=document.objective,
            limits=document.limits,
            data=_data_of(document),
            interference=document.interference,
            co_run_costs=document.co_run_costs,
        )
    except InvalidInputError as error:
        raise InvalidProblemError(f"{name} is not a valid problem:", error.problems) from None
    try:
        return with_written_rules(problem, document.rules)
    except InvalidInputError as error:
        raise InvalidProblemError(f"{name} is not a valid problem:", error.problems) from None


_OWN_KEYS = frozenset({"format", "version", *(field.name for field in fields(ProblemDocument))})


def _with_data(keys: Collection[str] | None) -> type[ProblemDocument]:
    """Return the type of a problem file with the data of the formulations under some keys; None: of all."""
    known = data_keys() if keys is None else (formulation_by_keys(set(keys) - _OWN_KEYS).data_key,)
    return _extended(tuple(key for key in known if key is not None))


@cache
def _extended(keys: tuple[str, ...]) -> type[ProblemDocument]:
    found = ((key, formulation_by_keys((key,)).data_type) for key in keys)
    added = {key: kind for key, kind in found if kind is not None}
    if not added:
        return ProblemDocument
    # JSON Schemas describe keys by the docstring.
    texts = (f"{key}\n    {cleandoc(kind.__doc__ or key).splitlines()[0]}" for key, kind in added.items())
    return make_dataclass(
        ProblemDocument.__name__,
        [(key, kind | None, None) for key, kind in added.items()],
        bases=(ProblemDocument,),
        namespace={"__doc__": "\n".join((cleandoc(ProblemDocument.__doc__ or ""), *texts))},
        frozen=True,
        kw_only=True,
    )


def _data_of(document: ProblemDocument) -> Any:
    added = {field.name for field in fields(document)} - {field.name for field in fields(ProblemDocument)}
    found = (getattr(document, key) for key in added)
    return next((data for data in found if data is not None), None)


PROBLEM = Schema(format="gapless.problem", version=1, content=ProblemDocument, extended=_with_data)


def dump_problem(problem: Problem) -> str:
    """Return a problem as JSON text.

    Raises InvalidProblemError: it has opaque rules, which are Python code and have no written form.
    """
    if problem.opaque_rules:
        names = ", ".join(repr(rule.name) for rule in problem.opaque_rules)
        raise InvalidProblemError(
            f"opaque rules are Python code and cannot be written to a file: {names}; "
            "keep them in a rules file and add them after loading"
        )
    key = problem.formulation.data_key
    document = _with_data(() if key is None else (key,))(
        platform=problem.platform,
        networks=problem.networks,
        costs=problem.costs,
        objective=problem.objective,
        limits=problem.limits,
        rules=written_rules(problem),
        interference=problem.interference,
        co_run_costs=problem.co_run_costs,
        **({} if key is None else {key: problem.data}),
    )
    return dump(document, PROBLEM)


def load_plan(path: str | Path) -> Plan:
    """Read a plan file, or the first plan, which is the best, of a list; errors as for `load`."""
    return load_plans(path)[0]


def load_plans(path: str | Path) -> tuple[Plan, ...]:
    """Read a list of plans, best first, or the only one of a plan file; errors as for `load`."""
    return load_planned(path)[0]


def load_planned(path: str | Path) -> tuple[tuple[Plan, ...], Origin]:
    """Read the plans of a file, best first, and what it knows of their problem; errors as for `load`."""
    document = _plans(path)
    if not document.plans:
        raise InvalidPlanError(f"{path}: a list needs at least one plan")
    return tuple(plan_of_file(listed, path) for listed in document.plans), origin_of_file(document)


def origin_of_file(document: Any) -> Origin:
    """Return what a file of plans (`origin_fields`) knows of their problem."""
    known = document.problem is not None and len(document.problem) == DIGITS
    return Origin(
        asked=document.asked,
        rules=document.rules,
        opaque_rules=document.opaque_rules,
        fingerprint=document.problem if known else None,
    )


def _plans(path: str | Path) -> PlansDocument:
    """Read a plan file or a list as a list."""
    try:
        one = load(path, PLAN)
    except SchemaVersionError:
        if format_of(path) != PLANS.format:
            raise
        return load(path, PLANS)
    return PlansDocument(
        plans=(ListedPlan(chunks=one.chunks, order=one.order, plan_id=one.plan_id),),
        problem=one.problem,
        asked=one.asked,
        rules=one.rules,
        opaque_rules=one.opaque_rules,
    )


def plan_of_file(document: ListedPlan, path: str | Path) -> Plan:
    """Return a plan as it is written in a file."""
    if not document.chunks:
        raise InvalidPlanError(f"{path}: a plan needs at least one chunk")
    plan = Plan(chunks=document.chunks, order=document.order)
    if document.plan_id is not None and document.plan_id != plan.plan_id:
        raise InvalidPlanError(
            f"{path}: its chunks have the plan_id {plan.plan_id}, but it says {document.plan_id!r}; "
            "it was edited: remove the plan_id, or restore the chunks"
        )
    return plan


def dump_plan(plan: Plan, problem: Problem, asked: Mapping[str, str] | None = None) -> str:
    """Return a plan as JSON text, with the fingerprint of its problem.

    `plan`, `problem`: the plan, and what it was made for; `asked`: how the problem was named. It is then
    found again, and the file keeps its rules, too.
    """
    document = PlanDocument(
        chunks=plan.chunks, order=plan.order, plan_id=plan.plan_id, **origin_fields(problem, asked)
    )
    return dump(document, PLAN)


def dump_plans(plans: Sequence[Plan], problem: Problem, asked: Mapping[str, str] | None = None) -> str:
    """Return several plans of one problem, best first, as JSON text; parameters as for `dump_plan`."""
    listed = tuple(ListedPlan(chunks=plan.chunks, order=plan.order, plan_id=plan.plan_id) for plan in plans)
    return dump(PlansDocument(plans=listed, **origin_fields(problem, asked)), PLANS)


def origin_fields(problem: Problem, asked: Mapping[str, str] | None) -> dict[str, Any]:
    """Return what a file of plans says about their problem."""
    found: dict[str, Any] = {"problem": problem.fingerprint}
    if asked:
        found |= {
            "asked": dict(asked),
            "rules": written_rules(problem),
            "opaque_rules": tuple(rule.name for rule in problem.opaque_rules),
        }
    return found
