"""The encodings: plans and models say the same thing, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from gapless.formulations.chain import Part
from gapless.formulations.chunking.encoding import Parts, count_arcs, encode_arcs, encode_boundary
from gapless.formulations.chunking.paper import encode_paper
from gapless.formulations.chunking.quantities import QUANTITIES, TERMS, PlanValues, idle_excess
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.expr import BoolVar, Const, Expr, Variable, variables
from gapless.formulations.judge import score
from gapless.formulations.model import Encoded
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Quantities, Quantity
from tests.solvers.brute import CASES, Case, all_parts, problem_of, random_problem

Encode = Callable[[Problem], Encoded[Parts]]
ENCODINGS = [encode_boundary, encode_arcs]


class Assignment:
    """The values of an encoding's own variables on a plan, and through the definitions of all others."""

    def __init__(self, encoded: Encoded[Parts], parts: tuple[Part, ...]) -> None:
        self.encoded = encoded
        self.parts = set(parts)
        self.on = {(layer, unit) for start, stop, unit in parts for layer in range(start, stop)}
        self.starts = {(start, unit) for start, _, unit in parts}
        self.ends = {(stop - 1, unit) for _, stop, unit in parts}

    def __call__(self, variable: Variable) -> int:
        if variable.key in self.encoded.model.definitions:
            return self.encoded.model.definitions[variable.key].evaluate(self)
        chosen: set[tuple[int, ...]] = {
            "x": self.on,
            "s": self.starts,
            "e": self.ends,
            "a": self.parts,
        }[variable.name]  # type: ignore[assignment]
        return int(variable.args in chosen)


def has_literals(encoded: Encoded[Parts], parts: tuple[Part, ...]) -> bool:
    """Return whether the encoding has a literal for each chunk; what it leaves out is never allowed."""
    try:
        encoded.exclude(parts)
    except KeyError:
        return False
    return True


@pytest.mark.parametrize("encode", ENCODINGS)
@pytest.mark.parametrize("case", [c for c in CASES if "opaque" not in c.name], ids=lambda case: case.name)
def test_a_plan_satisfies_the_model_exactly_if_the_judge_finds_nothing(encode: Encode, case: Case) -> None:
    problem = case.problem(4, layers=6)
    encoded = encode(problem)
    for index, parts in enumerate(all_parts(chain_of(problem))):
        if index % 3 == 0:
            values = Assignment(encoded, parts)
            kept = has_literals(encoded, parts) and all(
                constraint.expr.evaluate(values) for constraint in encoded.model.constraints
            )
            assert kept == score(problem, chain_of(problem).plan(parts)).valid, parts


@pytest.mark.parametrize("encode", ENCODINGS)
@pytest.mark.parametrize("features", ["", "ntcu"])
def test_every_quantity_has_its_value(encode: Encode, features: str) -> None:
    problem = random_problem(8, features=features, units=3)
    chain, encoded = chain_of(problem), encode(problem)
    variables = Quantities(QUANTITIES, chain)
    totals = [q for q in Quantity if (q, ()) in encoded.model.definitions]
    assert len(totals) == 11
    for parts in all_parts(chain):
        if not has_literals(encoded, parts):
            continue
        values, truth = Assignment(encoded, parts), PlanValues(chain, parts)
        wanted: list[Variable] = [variables.number(quantity) for quantity in totals]
        for unit in range(chain.unit_count):
            busy = variables.number(Quantity.BUSY, unit)
            wanted += [variables.truth(Quantity.USES, unit), busy, variables.number(Quantity.MEMORY, unit)]
            wanted += [variables.truth(Quantity.ON, layer, unit) for layer in range(chain.layer_count)]
            assert values(busy) <= chain.most_busy_us(unit)
        wanted += [variables.truth(Quantity.CUT, cut) for cut in range(1, chain.layer_count)]
        assert [values(v) for v in wanted] == [truth(v) for v in wanted], parts


@pytest.mark.parametrize("encode", ENCODINGS)
def test_decode_exclude_and_order(encode: Encode) -> None:
    problem = random_problem(3, layers=5)
    encoded = encode(problem)
    plans = list(all_parts(chain_of(problem)))
    barred = encoded.exclude(plans[7])
    digits = encoded.digits
    assert digits is not None
    symbols = {}
    for parts in plans:
        values = Assignment(encoded, parts)
        assert encoded.decode(values) == parts
        assert barred.evaluate(values) == (parts != plans[7])
        symbols[parts] = [symbol.evaluate(values) for symbol in digits.symbols]
        assert symbols[parts] == list(digits.of(parts))
        assert all(0 <= digit < digits.base for digit in symbols[parts])
    by_chunks = sorted(plans, key=lambda parts: [(stop, unit) for _, stop, unit in parts])
    assert sorted(plans, key=symbols.__getitem__) == by_chunks


def solutions(encoded: Encoded[Parts]) -> list[tuple[Part, ...]]:
    """Return the decoded plans of all assignments that satisfy the structure, by trying every one."""
    rows = [c.expr for c in encoded.model.constraints]
    keys = sorted({key for row in rows for key in variables(row)})
    found = []
    for bits in product((0, 1), repeat=len(keys)):
        values = dict(zip(keys, bits, strict=True))

        def read(variable: Variable, values: dict[tuple[str, tuple[int, ...]], int] = values) -> int:
            return values[variable.key]

        if all(row.evaluate(read) for row in rows):
            found.append(encoded.decode(read))
    return sorted(found)


@pytest.mark.parametrize("encode", ENCODINGS)
@pytest.mark.parametrize("rows", [[[1, 2], [3, 4]], [[1, None], [3, 4]], [[1], [2], [3]], [[1, 2, 3]]])
def test_every_solution_is_a_plan_and_every_plan_one_solution(
    encode: Encode, rows: list[list[int | None]]
) -> None:
    problem = problem_of(rows)
    assert solutions(encode(problem)) == sorted(all_parts(chain_of(problem)))


def test_arcs_leave_out_what_is_impossible() -> None:
    free = problem_of([[1, 1]] * 3)
    assert count_arcs(chain_of(free)) == 12
    restricted = problem_of([[1, 1], [None, 1], [1, 1]], forbidden=(2,))
    # unit a: [0, 1) only, since cut 2 is forbidden; unit b: [0, 1), [0, 3), [1, 3)
    assert count_arcs(chain_of(restricted)) == 4
    tight = problem_of([[1, 1]] * 3, weights=[5, 5, 5], unit_bytes={"a": 9, "b": 10})
    assert count_arcs(chain_of(tight)) == 3 + 5


def test_idle_excess_has_the_sign_of_the_judgement() -> None:
    problem = random_problem(6)
    encoded = encode_boundary(problem)
    for parts in list(all_parts(chain_of(problem)))[::5]:
        values, idle = Assignment(encoded, parts), PlanValues(chain_of(problem), parts).idle_permille
        for permille in (idle - 1, idle, idle + 1):
            assert (idle_excess(chain_of(problem), permille).evaluate(values) <= 0) == (idle <= permille)
    period = Quantities(QUANTITIES, chain_of(problem)).number(TERMS["period"].field)
    assert period.evaluate(values) > 0


class PaperAssignment:
    """x, Tmax and Tmin of a plan, in the paper's encoding."""

    def __init__(self, problem: Problem, parts: tuple[Part, ...], t_min: int | None = None) -> None:
        self.on = {(layer, unit) for start, stop, unit in parts for layer in range(start, stop)}
        loads = [chain_of(problem).busy_us(*part) for part in parts]
        self.times = {"t_max": max(loads), "t_min": min(loads) if t_min is None else t_min}

    def __call__(self, variable: Variable) -> int:
        if isinstance(variable, BoolVar):
            return int(variable.args in self.on)
        return self.times[variable.name]


def holds(encoded: Encoded[Parts], values: Callable[[Variable], int]) -> bool:
    return all(constraint.expr.evaluate(values) for constraint in encoded.model.constraints)


def test_the_paper_bounds_maximal_chunks_only() -> None:
    problem = random_problem(2, layers=5, features="n")
    encoded = encode_paper(problem)
    for parts in all_parts(chain_of(problem)):
        values = PaperAssignment(problem, parts)
        assert holds(encoded, values)
        assert encoded.decode(values) == parts
        too_large = PaperAssignment(problem, parts, t_min=values.times["t_min"] + 1)
        assert not holds(encoded, too_large)
        truth = PlanValues(chain_of(problem), parts)
        for quantity in ("period_us", "paper_gapness_us", "gapness_us", "latency_us"):
            defined: Expr = encoded.model.definitions[quantity, ()]
            assert defined.evaluate(values) == getattr(truth, quantity)


def test_the_paper_forbids_a_unit_to_be_used_twice() -> None:
    problem = problem_of([[1, 1]] * 3)
    broken = PaperAssignment(problem, ((0, 1, 0), (1, 2, 1), (2, 3, 0)))
    names = [c.name for c in encode_paper(problem).model.constraints if not c.expr.evaluate(broken)]
    assert names == ["C2"]
    assert Const(1).evaluate(broken) == 1
