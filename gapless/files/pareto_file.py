"""Trade-offs as a file: the plans of a front, what each is worth, and what is proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ..formulations.errors import InvalidInputError
from ..formulations.files import (
    ListedPlan,
    Origin,
    Schema,
    dump,
    load,
    origin_fields,
    origin_of_file,
    plan_of_file,
)
from ..formulations.judge import score
from ..formulations.problem import Problem
from ..formulations.rule_files import RuleDocument
from ..formulations.validation import STRICT
from ..solvers.pareto import ParetoFront, ParetoPoint
from ..solvers.protocol import StopReason
from ..solvers.result import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPointDocument:
    """One plan of a front."""

    __pydantic_config__: ClassVar[Any] = STRICT

    plan: ListedPlan
    """The plan."""
    values: dict[str, int]
    """What it is worth in each term, by the names of scores: microseconds, bytes, nanojoules."""
    proven: bool
    """Whether it is proved that no plan of the class is better in one of the terms and as good in the
    others."""
    bound: int | None = None
    """What the first term is at least, of all plans that are as good in the others; None: not known."""
    measured: dict[str, float] = field(default_factory=dict)
    """What was measured of it, by the same names; empty: it was not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDocument:
    """Plans that no other known plan is better than, in two or three terms."""

    __pydantic_config__: ClassVar[Any] = STRICT

    terms: tuple[str, ...]
    """What is traded, the first one first."""
    points: tuple[FrontPointDocument, ...]
    """The plans, by their values."""
    complete: bool
    """Whether it is proved that these are all."""
    stop: StopReason
    """Why the search ended."""
    backend: str
    backend_version: str = ""
    """Who solved."""
    solves: int
    """How many problems were solved."""
    runtime_s: float
    """Seconds altogether."""
    plan_class: str = ""
    """Which plans are looked at: what the proofs are about (older files do not say it)."""
    energy_by: str = ""
    """Of measured plans, how their energy is known: measured by counters of the machine, or computed from
    measured times and the powers of the platform; empty: it is not."""
    problem: str | None = None
    asked: dict[str, str] = field(default_factory=dict)
    rules: tuple[RuleDocument, ...] = ()
    opaque_rules: tuple[str, ...] = ()
    """As in a plan file: what the plans were made for."""


PARETO = Schema(format="gapless.pareto", version=1, content=FrontDocument)


def dump_front(front: ParetoFront, problem: Problem, asked: Mapping[str, str] | None = None) -> str:
    """Return a front as JSON text; parameters as for `dump_plan`."""
    points = tuple(
        FrontPointDocument(
            plan=ListedPlan(
                chunks=point.candidate.plan.chunks,
                order=point.candidate.plan.order,
                plan_id=point.candidate.plan.plan_id,
            ),
            values=dict(zip(front.fields(problem), point.values, strict=True)),
            proven=point.proven,
            bound=point.bound,
            measured=dict(point.measured),
        )
        for point in front.points
    )
    document = FrontDocument(
        terms=front.terms,
        points=points,
        complete=front.complete,
        stop=front.stop,
        backend=front.backend,
        backend_version=front.version,
        solves=front.solves,
        runtime_s=round(front.runtime_s, 6),
        plan_class=front.plan_class,
        energy_by=front.energy_by,
        **origin_fields(problem, asked),
    )
    return dump(document, PARETO)


def load_front(path: str | Path) -> tuple[FrontDocument, Origin]:
    """Read a front, and what it knows of its problem; errors as for `load`."""
    found = load(path, PARETO)
    return found, origin_of_file(found)


def front_of(document: FrontDocument, problem: Problem, path: str | Path) -> ParetoFront:
    """Return the front of a file; its plans are judged again."""
    terms = problem.formulation.terms
    unknown = [term for term in document.terms if term not in terms]
    if unknown:
        raise InvalidInputError(f"{path}: {problem.formulation.label} have no {', '.join(unknown)}")
    return ParetoFront(
        terms=document.terms,
        points=tuple(_point(point, document.terms, problem, path) for point in document.points),
        complete=document.complete,
        stop=document.stop,
        backend=document.backend,
        version=document.backend_version,
        fingerprint=problem.fingerprint,
        plan_class=document.plan_class or problem.plan_class,
        solves=document.solves,
        runtime_s=document.runtime_s,
        energy_by=document.energy_by,
    )


def _point(
    written: FrontPointDocument, terms: tuple[str, ...], problem: Problem, path: str | Path
) -> ParetoPoint:
    plan = plan_of_file(written.plan, path)
    judged = score(problem, plan)
    values = judged.values(terms)
    if not judged.valid or values != tuple(written.values.values()):
        raise InvalidInputError(
            f"{path}: plan {plan.plan_id} is worth {values} by this problem, the file says "
            f"{tuple(written.values.values())}: it is of another problem; name its own before it"
        )
    return ParetoPoint(
        candidate=Candidate(plan=plan, score=judged),
        values=values,
        proven=written.proven,
        bound=written.bound,
        measured=written.measured,
    )
