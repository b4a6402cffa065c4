"""Mixed-integer programming through PuLP: HiGHS (in process) and CBC (as a program)."""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata, util
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol

from ...formulations.availability import Availability
from ...formulations.expr import BoolExpr, Variable
from ...formulations.model import Structure, Values
from ...formulations.processes import end_with_parent
from ..protocol import EXACT, LEAST_S, Capabilities, Deadline, SolveOptions
from .base import ExactBackend
from .flat import Affine, Column, Flattener, Row, Sense, merged, narrowed, unconditional, without_fixed
from .search import LargeNumbersError, Port, PortAnswer, Query, Verdict, reader_of

_BITS = 20
"""Rows, the objective and derived columns are divided by powers of two down to numbers of so many bits.

The tolerances of MILP solvers are absolute: with times of 10 minutes in microseconds HiGHS claimed
false optima.
"""

_PROBING = 1 << 15
"""The bit of probing among the rules of the presolve of HiGHS."""

_OTHER_RULE = 1 << 4
"""Another rule, without which optima are looked for again."""

_TOLERANCE = 1e-6
"""Feasibility tolerance of HiGHS and CBC."""

_EXACT = 2**53
"""Sums of whole numbers below are exact in floats, in units of any power of two."""

_FLOAT = 2.0**-50
"""Relative error of larger sums."""

_APART = 2.0**26
"""CBC denies plans where factors of one row are further apart."""

_LEAST_FACTOR = 1e-9
"""HiGHS and CBC leave out smaller factors."""


class _MilpBackend(ExactBackend):
    """Models of all formulations as programs of PuLP."""

    largest_number: ClassVar[int] = 10**6
    relaxation: ClassVar[bool] = True

    @abstractmethod
    def runner(self) -> ProgramRunner:
        """Return what solves a program."""

    def taken(self, number: float) -> float:
        """Return what the solver reads where a program has a number."""
        return number

    def check_row(self, factors: Sequence[float]) -> None:
        """Raise LargeNumbersError if the solver cannot count with the factors of a row."""

    def port(self, options: SolveOptions, structure: Structure) -> Port:
        """Return an empty program."""
        return _MilpPort(self, options, partial(self.runner(), structure=structure))


class PulpBackend(_MilpBackend):
    """Mixed-integer programs solved by HiGHS."""

    name: ClassVar[str] = "pulp"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="PuLP with HiGHS; arcs encoding when small, boundary encoding otherwise",
        others=EXACT,
        isolated=True,
        starts=True,
    )

    def runner(self) -> ProgramRunner:
        """Return HiGHS."""
        import highspy  # noqa: F401 - takes long, and belongs to the start

        return _run_highs

    def availability(self) -> Availability:
        """Say whether PuLP and HiGHS are installed."""
        missing = [name for name in ("pulp", "highspy") if util.find_spec(name) is None]
        if missing:
            reason = f"{' and '.join(missing)} not installed: pip install 'gapless[milp]'"
            return Availability(ok=False, reason=reason)
        version = f"PuLP {metadata.version('pulp')}, HiGHS {metadata.version('highspy')}"
        return Availability(ok=True, version=version)


class PulpCbcBackend(_MilpBackend):
    """Mixed-integer programs solved by the CBC program that PuLP brings along."""

    name: ClassVar[str] = "pulp-cbc"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="PuLP with its bundled CBC; the same models as 'pulp'",
        others=EXACT,
        isolated=True,
        starts=True,
    )

    def availability(self) -> Availability:
        """Say whether PuLP is installed."""
        if util.find_spec("pulp") is None:
            return Availability(ok=False, reason="pulp is not installed: pip install 'gapless[milp]'")
        return Availability(ok=True, version=f"PuLP {metadata.version('pulp')} with its CBC")

    def runner(self) -> ProgramRunner:
        """Return CBC."""
        return _run_cbc

    def taken(self, number: float) -> float:
        """Return a number with the 13 digits that PuLP writes into the file for CBC."""
        return float(f"{number:.12e}")

    def check_row(self, factors: Sequence[float]) -> None:
        """Refuse factors that are too far apart."""
        sizes = [abs(factor) for factor in factors if factor]
        if sizes and max(sizes) > _APART * min(sizes):
            raise LargeNumbersError("numbers so far apart that CBC denies plans")


class ProgramRunner(Protocol):
    """Solves a program."""

    def __call__(
        self, program: Any, options: SolveOptions, limit_s: float | None, *, structure: Structure, warm: bool
    ) -> float | None:
        """Return a bound of the objective, if there is one.

        `program`: a PuLP problem; with `warm` its variables hold a solution to start from; `options`,
        `limit_s`: as asked; seconds that are left; `structure`: what the model is like.
        """
        ...


class _MilpPort:
    """Keeps the rows; every question is a new program of them."""

    def __init__(
        self, backend: _MilpBackend, options: SolveOptions, run: Callable[..., float | None]
    ) -> None:
        import pulp

        self._taken, self._check_row = backend.taken, backend.check_row
        self._pulp = pulp
        self._options = options
        self._run = run
        self._flat = Flattener()
        self._rows: list[Row] = []
        self._defined = 0

    def add(self, condition: BoolExpr) -> None:
        """Add a condition."""
        self._rows += self._flat.require(condition)
        self._take_definitions()

    def minimise(self, query: Query) -> PortAnswer:
        """Solve, and ask again for something better while the bound leaves that open."""
        flat = self._flat
        rows = [row for condition in query.conditions for row in flat.require(condition)]
        objective = flat.affine(query.objective, Sense.UPPER)
        self._take_definitions()
        hint = None if query.hint is None else flat.complete(reader_of(query.hint))
        answer, most = self._ask(query, objective, rows, hint), None
        while answer.verdict is Verdict.OPTIMAL and answer.values is not None:
            value = query.objective.evaluate(answer.values)
            if (answer.bound is not None and answer.bound >= value) or (most is not None and value > most):
                break
            most = value - 1
            better = self._ask(query, objective, [*rows, objective.row(most)])
            if better.verdict is Verdict.INFEASIBLE:
                return PortAnswer(verdict=Verdict.OPTIMAL, values=answer.values, bound=value)
            if better.values is None:
                return PortAnswer(verdict=Verdict.FEASIBLE, values=answer.values, bound=answer.bound)
            answer = better
        return answer

    def _take_definitions(self) -> None:
        self._rows += self._flat.rows[self._defined :]
        self._defined = len(self._flat.rows)

    def _ask(
        self, query: Query, objective: Affine, rows: Sequence[Row], hint: Sequence[int] | None = None
    ) -> PortAnswer:
        scaled = self._program(objective, rows, query.at_least)
        if scaled is None:
            return PortAnswer(verdict=Verdict.INFEASIBLE)
        if hint is not None:
            scaled.start_from(hint)
        bound = self._run(scaled.program, self._options, query.deadline.left_s, warm=hint is not None)
        status, lp = scaled.program.sol_status, self._pulp
        if scaled.program.status == lp.LpStatusInfeasible:
            return PortAnswer(verdict=Verdict.INFEASIBLE)
        if status not in (lp.LpSolutionOptimal, lp.LpSolutionIntegerFeasible):
            return PortAnswer(verdict=Verdict.UNKNOWN, bound=scaled.integral(bound))
        # `sol_status` tells an optimum from an incumbent at the time limit; `status` does not.
        verdict = Verdict.OPTIMAL if status == lp.LpSolutionOptimal else Verdict.FEASIBLE
        if bound is None and verdict is Verdict.OPTIMAL:
            bound = lp.value(scaled.program.objective)
        values = self._reader(scaled.values())
        proven = scaled.integral(bound)
        if proven is not None:
            proven = min(proven, query.objective.evaluate(values))
        return PortAnswer(verdict=verdict, values=values, bound=proven)

    def _reader(self, values: list[int]) -> Values:
        def read(variable: Variable) -> int:
            column = self._flat.find(variable.key)
            return 0 if column is None else values[column]

        return read

    def _program(self, objective: Affine, rows: Sequence[Row], at_least: int | None) -> _Scaled | None:
        """Return a program, or None if a row cannot hold."""
        lp = self._pulp
        goal = tuple((factor, column) for column, factor in objective.terms.items() if factor)
        extra = [] if at_least is None else [Row(terms=goal, least=at_least - objective.constant)]
        asked = [*rows, *extra]
        own = self._narrowed(asked)
        if own is None:
            return None
        units = [_unit(c) for c in own]
        ends = [(c.low / unit, c.high / unit) for c, unit in zip(own, units, strict=True)]
        # A derived column is not made integral: that would turn a period of 100.0000001 into 101.
        columns = [
            lp.LpVariable(
                f"c{index}",
                low - self._rounding(low),
                high + self._rounding(high),
                "Continuous" if c.derived else "Integer",
            )
            for index, (c, (low, high)) in enumerate(zip(own, ends, strict=True))
        ]
        for column, (low, _) in zip(columns, ends, strict=True):
            column.setInitialValue(low, check=False)  # what no row has keeps it

        def total(terms: Sequence[tuple[int, int]]) -> tuple[Any, int, float]:
            weights = [factor * units[column] for factor, column in terms]
            unit = _scale(max(map(abs, weights), default=0))
            factors = [(c, weight / unit) for (_, c), weight in zip(terms, weights, strict=True)]
            most = [abs(factor) * max(map(abs, ends[c])) for c, factor in factors]
            lost = sum(part * self._lost(factor) for part, (_, factor) in zip(most, factors, strict=True))
            lost += _FLOAT * sum(most) * (sum(most) * unit >= _EXACT)
            return lp.LpAffineExpression([(columns[c], factor) for c, factor in factors]), unit, lost

        program = lp.LpProblem("plan", lp.LpMinimize)
        expr, goal_unit, _ = total(goal)
        program.setObjective(expr)
        always = [r for row in (*self._rows, *asked) for r in unconditional(row, own)]
        for row in merged(without_fixed(row, own) for row in always):
            for side, sense in _sides(row, lp):
                if not row.terms and not _holds_for_nothing(side, sense):
                    return None
                if row.terms:
                    expr, unit, lost = total(row.terms)
                    self._check_row([factor * units[column] for factor, column in row.terms])
                    for way, bound in self._widened(sense, side / unit, lost):
                        program.addConstraint(lp.LpConstraint(expr.copy(), way, rhs=bound))
        derived = sum(abs(factor) * units[c] for factor, c in goal if own[c].derived)
        return _Scaled(
            program=program,
            columns=columns,
            units=units,
            unit=goal_unit,
            constant=objective.constant,
            error=_TOLERANCE * max(derived, goal_unit),
        )

    def _narrowed(self, asked: Sequence[Row]) -> Sequence[Column] | None:
        """Return the columns for one question; where they are large, as large as it leaves them.

        Tolerances are shares of the largest values: plans of 20 us are all alike as long as the period could
        be a day. None: nothing is left.
        """
        columns = self._flat.columns
        if all(_unit(column) == 1 for column in columns):
            return columns
        return narrowed(columns, [*self._rows, *asked])

    def _lost(self, factor: float) -> float:
        """Return what part of a factor the solver may not count with."""
        taken = self._taken(factor) if abs(factor) > _LEAST_FACTOR else 0.0
        return abs(1 - taken / factor)

    def _rounding(self, side: float) -> float:
        return abs(side - self._taken(side))

    def _widened(self, sense: int, side: float, lost: float) -> list[tuple[int, float]]:
        """Return the sides of a row so that what is lost of its numbers cuts no plan off.

        Plans that only then are among the solutions are refuted by the judge.
        """
        lost += self._rounding(side)
        if not lost:
            return [(sense, side)]
        return [(way, side - way * lost) for way in ((-1, 1) if sense == 0 else (sense,))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scaled:
    """A program whose objective is (that of the question - constant) / unit, and columns / units."""

    program: Any
    columns: list[Any]
    units: list[int]
    unit: int
    constant: int
    error: float  # how far a bound can be off, in the numbers of the question

    def values(self) -> list[int]:
        """Return the columns of the solution, as integers."""
        pairs = zip(self.columns, self.units, strict=True)
        return [round(column.value() * unit) for column, unit in pairs]

    def start_from(self, values: Sequence[int]) -> None:
        """Give the columns initial values."""
        for column, unit, value in zip(self.columns, self.units, values, strict=True):
            column.setInitialValue(value / unit, check=False)

    def integral(self, bound: float | None) -> int | None:
        """Return the least integer that an inexact bound of the program allows for the question."""
        if bound is None:
            return None
        whole = bound * self.unit
        error = max(1e-3, self.error) + 1e-9 * abs(whole)
        return math.ceil(whole - error) + self.constant


def _scale(largest: int) -> int:
    return 1 << max(0, largest.bit_length() - _BITS)


def _unit(column: Column) -> int:
    """Return what a column is divided by: literals are not."""
    return _scale(max(-column.low, column.high)) if column.derived else 1


def _sides(row: Row, lp: Any) -> list[tuple[int, int]]:
    if row.least is not None and row.least == row.most:
        return [(row.most, lp.LpConstraintEQ)]
    sides = ((row.least, lp.LpConstraintGE), (row.most, lp.LpConstraintLE))
    return [(side, sense) for side, sense in sides if side is not None]


def _holds_for_nothing(side: int, sense: int) -> bool:
    """Return whether 0 is in the relation `sense` (-1: at most, 0: equal, 1: at least) to a side."""
    return side == 0 if sense == 0 else sense * side <= 0


def _run_highs(
    program: Any, options: SolveOptions, limit_s: float | None, *, structure: Structure, warm: bool
) -> float | None:
    import highspy
    import pulp

    deadline = Deadline(limit_s)

    class Highs(pulp.HiGHS):  # type: ignore[misc]
        def __init__(self, presolve: str, rules_off: int, *, warm: bool) -> None:
            self.warm, left_s = warm, deadline.left_s
            super().__init__(
                msg=False,
                gapRel=0.0,
                timeLimit=None if left_s is None else max(left_s, LEAST_S),  # 0 is none to PuLP
                threads=options.threads,
                random_seed=options.seed,
                presolve=presolve,
                presolve_rule_off=rules_off,
            )

        def callSolver(self, lp: Any) -> None:
            if self.warm:
                start = highspy.HighsSolution()
                # PuLP adds a variable without a value where nothing is left to minimise.
                start.col_value = [variable.value() or 0.0 for variable in lp.variables()]
                lp.solverModel.setSolution(start)
            super().callSolver(lp)

    # With its presolve, HiGHS 1.13.1 and 1.14.0 claim false optima on two of the shipped tables
    # (105800 where 99098 exists; HiGHS issues 2957, 2980, 3043, 3073); without it none, and these
    # models solve as fast. Tolerances stay at their defaults: tighter ones brought false optima too.
    # On workloads it is the other way round: without presolve it claimed 75 where 68 exists, and it
    # takes three times as long. With it, probing claimed 142 where 138 exists (4 of 720 questions about
    # the samples of workloads); without probing none of these, and none of 400 random ones.
    # Of large numbers presolve may bring back less than the tolerances ask, which is an error in HiGHS.
    for presolve in ("off",) if structure is Structure.CHOICE else ("on", "off"):
        program.solve(Highs(presolve, _PROBING, warm=warm))
        if program.solverModel.getModelStatus() != highspy.HighsModelStatus.kSolveError:
            break
    else:
        raise LargeNumbersError("numbers so far apart that HiGHS does not solve them within its tolerances")
    if presolve == "on" and program.sol_status == pulp.LpSolutionOptimal:
        # Of 1,000 drawn schedules one was "optimal" with 46 where 44 exists, and with 44 if any further rule
        # is left out. So an optimum is one that two presolves find, the second from the first one's plan.
        program.solve(Highs(presolve, _PROBING | _OTHER_RULE, warm=True))
    bound = program.solverModel.getInfo().mip_dual_bound
    return bound if math.isfinite(bound) else None


def _run_cbc(
    program: Any, options: SolveOptions, limit_s: float | None, *, structure: Structure, warm: bool
) -> float | None:
    import pulp
    from pulp.apis import coin_api

    # CBC is a program of its own: it ends with this process, which may be killed.
    start = partial(subprocess.Popen, preexec_fn=partial(end_with_parent, os.getpid()))
    coin_api.subprocess = SimpleNamespace(Popen=start)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        solver = pulp.PULP_CBC_CMD(
            msg=False,
            gapRel=0.0,
            timeLimit=limit_s,
            threads=options.threads if options.threads > 1 else None,
            warmStart=warm,
            options=[
                "allowableGap 0",
                f"randomCbcSeed {options.seed}",
            ],
        )
        solver.tmpDir = folder
        limit = Deadline(limit_s)
        try:
            program.solve(solver)
        except pulp.PulpSolverError:
            if not limit.passed:
                raise
            program.status = pulp.LpStatusInfeasible
        if program.status == pulp.LpStatusInfeasible and limit.passed:
            # Cut off in its preprocessing, CBC was seen to say infeasible of a program with a known
            # solution, and to end without an answer: at the limit neither is a proof.
            program.assignStatus(pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound)
    return None
