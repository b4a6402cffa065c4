"""A formulation that lives in the tests alone: independent jobs on units.

Every network is a job that runs whole on one unit; a unit runs its jobs one after the other. Nothing outside
this folder knows of it, and yet it has all exact backends, rules, comparisons, explanations and reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

from gapless.formulations.errors import MalformedPlanError
from gapless.formulations.expr import BoolVar, IntVar, VariableKey, count, linear, max_of
from gapless.formulations.formulation import Formulation
from gapless.formulations.model import Constraint, Digits, Encoded, Model
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.scores import Violation
from gapless.formulations.terms import (
    Dimension,
    Index,
    PlanNumbers,
    Quantities,
    QuantityInfo,
    TermInfo,
    table,
)
from gapless.formulations.validation import STRICT

Code = tuple[int, ...]
"""The unit of each job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """What the jobs are worth: a weight for each network, 1 for those that are not named."""

    __pydantic_config__: ClassVar[Any] = STRICT
    data_key: ClassVar[str] = "toy"

    weights: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Names of jobs and units, time by [job][unit] (None: impossible), weight by job."""

    jobs: tuple[str, ...]
    units: tuple[str, ...]
    layers: tuple[int, ...]
    time_us: tuple[tuple[int | None, ...], ...]
    weights: tuple[int, ...]


class ToyNumbers(PlanNumbers):
    """The numbers of one assignment of jobs."""

    terms = table(
        TermInfo(name=name, field=f"{name}_us", dimension=Dimension.MICROSECONDS, text=text, label=name)
        for name, text in (("period", "largest load of a unit"), ("work", "weighted time of all jobs"))
    )

    def __init__(self, tables: Tables, code: Code) -> None:
        self.tables, self.code = tables, code
        self.busy_us: dict[int, int] = {}
        for job, unit in enumerate(code):
            self.busy_us[unit] = self.busy_us.get(unit, 0) + (tables.time_us[job][unit] or 0)
        self.period_us = max(self.busy_us.values())
        times = (row[unit] or 0 for row, unit in zip(tables.time_us, code, strict=True))
        self.work_us = sum(weight * time for weight, time in zip(tables.weights, times, strict=True))


_JOB = Index(name="job", allowed=lambda tables, *_: range(len(tables.jobs)))
_UNIT = Index(name="unit", allowed=lambda tables, *_: range(len(tables.units)))


def _most_us(tables: Tables, *_: int) -> int:
    return sum(w * max(t or 0 for t in row) for w, row in zip(tables.weights, tables.time_us, strict=True))


ToyNumbers.quantities = table(
    (
        QuantityInfo(
            name="on",
            text="the unit runs the job",
            indices=(_JOB, _UNIT),
            read=lambda plan, job, unit: int(plan.code[job] == unit),
        ),
        QuantityInfo(
            name="busy_us",
            text="load of a unit",
            indices=(_UNIT,),
            most=_most_us,
            read=lambda plan, unit: plan.busy_us.get(unit, 0),
        ),
        QuantityInfo(name="period_us", text="largest load", most=_most_us),
        QuantityInfo(name="work_us", text="weighted time of all jobs", most=_most_us),
    )
)


class ToyView:
    """What a rule can say."""

    def __init__(self, tables: Tables) -> None:
        self._tables, self._variables = tables, Quantities(ToyNumbers.quantities, tables)

    def on(self, job: str, unit: str) -> BoolVar:
        """Return "the unit runs the job"."""
        return self._variables.truth("on", self._tables.jobs.index(job), self._tables.units.index(unit))

    def busy_us(self, unit: str) -> IntVar:
        """Return the load of a unit."""
        return self._variables.number("busy_us", self._tables.units.index(unit))


class ToyFormulation(Formulation[Tables, Code]):
    """Jobs on units."""

    name: ClassVar[str] = "toy"
    label: ClassVar[str] = "problems of independent jobs"
    data_key: ClassVar[str | None] = "toy"
    data_type: ClassVar[type | None] = Toy
    terms = ToyNumbers.terms
    tie_break: ClassVar[tuple[str, ...]] = ("period",)
    quantities = ToyNumbers.quantities
    limits: ClassVar[tuple[str, ...]] = ("max_period_us", "min_units", "max_units")

    def tables(self, problem: Problem) -> Tables:
        rows = []
        for network in problem.networks:
            columns = zip(*problem.costs.of(network.name).layer_us, strict=True)
            rows.append(tuple(None if None in column else sum(filter(None, column)) for column in columns))
        return Tables(
            jobs=tuple(network.name for network in problem.networks),
            units=problem.platform.unit_names,
            layers=tuple(len(network.layers) for network in problem.networks),
            time_us=tuple(rows),
            weights=problem.data.weights,
        )

    def view(self, problem: Problem) -> ToyView:
        return ToyView(problem.tables)

    def code(self, problem: Problem, plan: Plan) -> Code:
        tables: Tables = problem.tables
        units = {chunk.network: chunk.unit for chunk in plan.chunks}
        wrong = self._malformations(tables, plan)
        if wrong:
            raise MalformedPlanError(plan, wrong)
        return tuple(tables.units.index(units[job]) for job in tables.jobs)

    def plan(self, problem: Problem, code: Code) -> Plan:
        tables: Tables = problem.tables
        rows = zip(tables.jobs, tables.layers, code, strict=True)
        return Plan(chunks=tuple(Chunk(network=j, start=0, stop=n, unit=tables.units[u]) for j, n, u in rows))

    def _malformations(self, tables: Tables, plan: Plan) -> tuple[Violation, ...]:
        whole = dict(zip(tables.jobs, tables.layers, strict=True))
        if sorted((c.network, c.start, c.stop) for c in plan.chunks) != sorted(
            (j, 0, n) for j, n in whole.items()
        ):
            return (Violation(rule="coverage", message=f"[{plan}] does not run each job once and whole"),)
        unknown = sorted({chunk.unit for chunk in plan.chunks} - set(tables.units))
        return tuple(Violation(rule="names", message=f"there is no unit {unit!r}") for unit in unknown)

    def numbers(self, problem: Problem, code: Code) -> ToyNumbers:
        return ToyNumbers(problem.tables, code)

    def broken(self, problem: Problem, code: Code, numbers: PlanNumbers) -> Iterator[Violation]:
        tables: Tables = problem.tables
        for job, unit in enumerate(code):
            if tables.time_us[job][unit] is None:
                text = f"{tables.units[unit]!r} cannot run {tables.jobs[job]!r}"
                yield Violation(rule="support", message=text)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        assert isinstance(numbers, ToyNumbers)
        return {"busy_us": tuple(numbers.busy_us.get(unit) for unit in range(len(numbers.tables.units)))}

    def key(self, problem: Problem, code: Code) -> tuple[int, ...]:
        return code

    def plan_class(self, problem: Problem) -> str:
        return "plans that run each job whole on one unit"

    def count(self, problem: Problem) -> int:
        return int(len(problem.platform.units) ** len(problem.networks))

    def codes(self, problem: Problem) -> Iterator[Code]:
        return product(range(len(problem.platform.units)), repeat=len(problem.networks))

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Code | None = None
    ) -> Encoded[Code]:
        tables: Tables = problem.tables
        jobs, units = range(len(tables.jobs)), range(len(tables.units))
        x = {(job, unit): BoolVar("x", (job, unit)) for job in jobs for unit in units}
        variables = self.variables(problem)
        busy = [variables.number("busy_us", unit) for unit in units]
        rows = {"one unit": [count(x[job, unit] for unit in units) == 1 for job in jobs]}
        rows["support"] = [~x[j, u] for j in jobs for u in units if tables.time_us[j][u] is None]
        rows |= {rule.name: [rule.expr] for rule in problem.expression_rules}
        limit = problem.limits.max_period_us
        rows["max_period_us"] = [] if limit is None else [variables.number("period_us") <= limit]
        time = {(j, u): tables.time_us[j][u] or 0 for j in jobs for u in units}
        definitions: dict[VariableKey, Any] = {("on", key): literal for key, literal in x.items()}
        for unit in units:
            definitions["busy_us", (unit,)] = linear((time[job, unit], x[job, unit]) for job in jobs)
        definitions["period_us", ()] = max_of(busy)
        definitions["work_us", ()] = linear((tables.weights[j] * time[j, u], x[j, u]) for j, u in x)
        return Encoded(
            name="jobs",
            model=Model(
                constraints=tuple(Constraint(name=n, expr=e) for n, exprs in rows.items() for e in exprs),
                definitions=definitions,
            ),
            decode=lambda values: tuple(next(u for u in units if values(x[job, u])) for job in jobs),
            exclude=lambda code: count(x[job, unit] for job, unit in enumerate(code)) <= len(code) - 1,
            digits=Digits(
                symbols=tuple(linear((u, x[job, u]) for u in units) for job in jobs),
                base=len(tables.units),
                of=lambda code: code,
            ),
        )


TOY = ToyFormulation()
