"""CP-SAT (OR-Tools): constraint programming with lazy clause generation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata, util
from typing import TYPE_CHECKING, Any, ClassVar

from ...formulations.availability import Availability
from ...formulations.expr import BoolExpr, Variable
from ...formulations.model import Structure, Task, Values
from ..protocol import EXACT, Capabilities, SolveOptions
from .base import ExactBackend
from .flat import Flattener, Row, Sense
from .search import LargeNumbersError, Port, PortAnswer, Query, Verdict, reader_of

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

_FREE = 2**62
"""A side of a row that is not there, and the largest sum of a row: CP-SAT adds and compares in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How to search: how much of the model is relaxed to a linear program.

    With `turns`, searches of these names of CP-SAT share the threads and tell each other what they find. On
    fewer threads than searches they take turns, by its deterministic time; more threads take `_FURTHER` ones.
    """

    linearization: int
    turns: tuple[str, ...] = ()


_FURTHER = ("default_lp", "core", "quick_restart", "reduced_costs", "probing", "pseudo_costs")
"""Searches for threads beyond the turns."""

_RELAXED = _Way(linearization=2)

_WAYS = {
    Structure.CHOICE: _Way(linearization=1),
    Structure.INTEGRAL: _RELAXED,
    Structure.SCHEDULE: _RELAXED,
    Structure.SLOWED: _RELAXED,
    Structure.ORDERED: _Way(linearization=0, turns=("no_lp", "default_lp", "quick_restart_no_lp")),
    Structure.TIMED: _Way(linearization=2, turns=("no_lp", "max_lp")),
}
"""How to search.

Cuts and orders alone have relaxations with integral corners. With clocks, some workloads are proved by
conflicts without any relaxation and others by the relaxation, each in a tenth of the time of the other
way; the default in between was worse on both. Orders with loads are proved by conflicts: with relaxations
the bound of 332 layers on 16 accelerators did not move in 10 s, without them the proof took 3 s. Where chunks
slow each other down conflicts alone prove next to nothing.
"""


class CpSatBackend(ExactBackend):
    """Models of all formulations in CP-SAT."""

    name: ClassVar[str] = "cpsat"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="OR-Tools CP-SAT on the boundary encoding; proves the whole list of plans",
        others=EXACT,
        isolated=True,
        starts=True,
    )
    largest_number: ClassVar[int] = 2**31

    def availability(self) -> Availability:
        """Say whether OR-Tools is installed."""
        if util.find_spec("ortools") is None:
            return Availability(ok=False, reason="OR-Tools is not installed: pip install 'gapless[cpsat]'")
        return Availability(ok=True, version=metadata.version("ortools"))

    def port(self, options: SolveOptions, structure: Structure) -> Port:
        """Return an empty model of CP-SAT."""
        return _CpSatPort(options, _WAYS[structure])


class _CpSatPort:
    """Keeps one model; every question is put to a copy of it."""

    def __init__(self, options: SolveOptions, way: _Way) -> None:
        from ortools.sat.python import cp_model

        self._cp = cp_model
        self._options = options
        self._way = way
        self._flat = Flattener()
        self._model = cp_model.CpModel()
        self._columns: list[cp_model.IntVar] = []
        self._defined = 0

    def add(self, condition: BoolExpr) -> None:
        """Add a condition to the model."""
        rows = self._flat.require(condition)
        self._sync()
        self._post(self._model, rows)

    def share(self, tasks: Sequence[Task]) -> None:
        """Add tasks as optional intervals."""
        flat = self._flat
        starts = [flat.affine(task.start, Sense.EXACT) for task in tasks]
        present = [flat.column(task.present) for task in tasks]
        self._sync()
        intervals: list[cp_model.IntervalVar] = []
        for task, start, literal in zip(tasks, starts, present, strict=True):
            begin = self._sum([(f, c) for c, f in start.terms.items()]) + start.constant
            intervals.append(
                self._model.new_optional_fixed_size_interval_var(
                    begin, task.length, self._columns[literal], f"task{len(intervals)}"
                )
            )
        self._model.add_no_overlap(intervals)

    def minimise(self, query: Query) -> PortAnswer:
        """Solve a copy of the model with the conditions of one question."""
        flat = self._flat
        rows = [row for condition in query.conditions for row in flat.require(condition)]
        objective = flat.affine(query.objective, Sense.UPPER)
        if query.at_least is not None:
            least = query.at_least - objective.constant
            rows.append(Row(terms=tuple((f, c) for c, f in objective.terms.items()), least=least))
        self._sync()
        model = self._model.clone()
        self._post(model, rows)
        terms = [(factor, column) for column, factor in objective.terms.items()]
        self._check_sum(terms, objective.constant)
        model.minimize(self._sum(terms) + objective.constant)
        if query.hint is not None:
            # All columns, or the solver would have to find most of them.
            known = flat.complete(reader_of(query.hint))
            for column, value in zip(self._columns, known, strict=True):
                model.add_hint(column, value)
        solver = self._solver(query)
        return self._answer(solver, solver.solve(model, self._recorder(query)))

    def _sync(self) -> None:
        """Bring columns and rows that the flattener has made since the last time into the model."""
        for column in self._flat.columns[len(self._columns) :]:
            _check(max(abs(column.low), abs(column.high)))
            self._columns.append(self._model.new_int_var(column.low, column.high, column.name))
        self._post(self._model, self._flat.rows[self._defined :])
        self._defined = len(self._flat.rows)

    def _post(self, model: cp_model.CpModel, rows: Sequence[Row]) -> None:
        for row in rows:
            least = -_FREE if row.least is None else row.least
            most = _FREE if row.most is None else row.most
            self._check_sum(row.terms, row.least or 0, row.most or 0)
            posted = model.add_linear_constraint(self._sum(row.terms), least, most)
            if row.conditions:
                posted.only_enforce_if(*(self._literal(literal) for literal in row.conditions))

    def _check_sum(self, terms: Sequence[tuple[int, int]], *more: int) -> None:
        """Raise `LargeNumbersError` if a sum can leave 64 bits."""
        columns = self._flat.columns
        most = (abs(f) * max(abs(columns[c].low), abs(columns[c].high)) for f, c in terms)
        _check(sum(most) + max(map(abs, more)))

    def _sum(self, terms: Sequence[tuple[int, int]]) -> Any:
        chosen = [self._columns[column] for _, column in terms]
        return self._cp.LinearExpr.weighted_sum(chosen, [factor for factor, _ in terms])

    def _literal(self, literal: int) -> Any:
        return self._columns[literal] if literal >= 0 else ~self._columns[~literal]

    def _reader(self, value: Callable[[Any], int]) -> Values:
        def read(variable: Variable) -> int:
            column = self._flat.find(variable.key)
            return 0 if column is None else value(self._columns[column])

        return read

    def _recorder(self, query: Query) -> Any:
        reader = self._reader

        class Recorder(self._cp.CpSolverSolutionCallback):  # type: ignore[name-defined, misc]
            def on_solution_callback(self) -> None:
                query.progress(reader(self.value), _integral(self.best_objective_bound))

        return Recorder()

    def _solver(self, query: Query) -> cp_model.CpSolver:
        solver = self._cp.CpSolver()
        parameters = solver.parameters
        parameters.linearization_level = self._way.linearization
        parameters.num_workers = self._options.threads
        turns, threads = self._way.turns, self._options.threads
        if turns:
            parameters.subsolvers.extend([*turns, *_FURTHER][: max(threads, len(turns))])
        if turns and threads <= len(turns):
            parameters.interleave_search = threads < len(turns)
            parameters.interleave_batch_size = len(turns)
            # The plan to start from is hard to better: no turns for those who look for plans alone.
            parameters.use_lns = parameters.use_feasibility_jump = False
            parameters.num_violation_ls = 0
        parameters.random_seed = self._options.seed
        # CP-SAT 9.15 can claim a false optimum with this presolve step (or-tools issue 5293).
        parameters.presolve_inclusion_work_limit = 0
        if query.deadline.left_s is not None:
            parameters.max_time_in_seconds = max(query.deadline.left_s, 0.001)
        solver.best_bound_callback = lambda bound: query.progress(None, _integral(bound))
        return solver

    def _answer(self, solver: cp_model.CpSolver, status: Any) -> PortAnswer:
        if status == self._cp.INFEASIBLE:
            return PortAnswer(verdict=Verdict.INFEASIBLE)
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            bound = solver.best_objective_bound
            return PortAnswer(
                verdict=Verdict.UNKNOWN, bound=_integral(bound) if math.isfinite(bound) else None
            )
        return PortAnswer(
            verdict=Verdict.OPTIMAL if status == self._cp.OPTIMAL else Verdict.FEASIBLE,
            values=self._reader(solver.value),
            bound=_integral(solver.best_objective_bound),
        )


def _check(most: int) -> None:
    if most >= _FREE:
        raise LargeNumbersError(f"sums up to {most:.1e}, which leave the 64 bits that CP-SAT counts in")


def _integral(bound: float) -> int:
    """Return the bound of an integral objective; CP-SAT hands out doubles."""
    return math.ceil(bound - 1e-6)
