"""The encodings where units come back: plans and models say the same thing, in both directions."""

from __future__ import annotations

from functools import partial

import pytest

from gapless.formulations.chunking.encoding import Parts, encode_arcs, encode_boundary, encode_chunks
from gapless.formulations.chunking.space import all_parts
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.expr import IntVar, Variable
from gapless.formulations.judge import score
from gapless.formulations.model import Encoded
from gapless.formulations.passage.formulation import AnyPassage
from gapless.formulations.passage.quantities import PassageValues
from gapless.formulations.passages import Passage
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Quantity
from gapless.solvers.passage.samples import taking_turns
from tests.formulations.chunking.test_encoding import Assignment, Encode, has_literals
from tests.solvers.brute import CASES, Case, random_problem

BOUNDARY, ARCS = partial(encode_boundary, once=False), partial(encode_arcs, once=False)
ENCODINGS = [BOUNDARY, ARCS]
_BYTES = {Quantity.MEMORY, Quantity.PEAK}


def _any(problem: Problem) -> Problem:
    return problem.with_data(Passage())


def _without_bytes(problem: Problem) -> bool:
    return encode_chunks(problem, relaxation=False, once=False).name == "boundary"


class _Judged(Assignment):
    """The values of a model on a plan; those of quantities that it leaves open are the judge's."""

    def __init__(self, encoded: Encoded[Parts], parts: Parts, numbers: PassageValues) -> None:
        super().__init__(encoded, parts)
        self._numbers = numbers

    def __call__(self, variable: Variable) -> int:
        open_here = variable.name in AnyPassage.unmodelled
        return self._numbers(variable) if open_here else super().__call__(variable)


@pytest.mark.parametrize("case", [c for c in CASES if "opaque" not in c.name], ids=lambda case: case.name)
def test_a_plan_satisfies_the_model_exactly_if_the_judge_finds_nothing(case: Case) -> None:
    """Bytes of chunks are for arcs alone; what waits make of a request the judge alone knows."""
    problem = _any(case.problem(4, layers=6))
    chain, lower = chain_of(problem), problem.opaque_demands
    models = [encode(problem) for encode in (ENCODINGS if _without_bytes(problem) else [ARCS])]
    for index, parts in enumerate(all_parts(chain, once=False)):
        if index % 7 == 0:
            valid = {violation.rule for violation in score(problem, chain.plan(parts)).violations} <= lower
            for encoded in models:
                values = _Judged(encoded, parts, PassageValues(chain, parts))
                kept = has_literals(encoded, parts) and all(
                    constraint.expr.evaluate(values) for constraint in encoded.model.constraints
                )
                # Lower bounds keep plans out that miss a limit whatever the waits.
                assert kept == valid or (lower and valid), (encoded.name, parts)
                assert kept or not score(problem, chain.plan(parts)).valid, (encoded.name, parts)


@pytest.mark.parametrize("encode", ENCODINGS)
@pytest.mark.parametrize(
    ("features", "turns"), [("", False), ("ntcu", False), ("", True), ("ntcu", True)], ids=str
)
def test_every_quantity_has_its_value(encode: Encode, features: str, *, turns: bool) -> None:
    problem = _any(random_problem(8, features=features, units=3, layers=5))
    problem = taking_turns(problem) if turns else problem
    chain, encoded = chain_of(problem), encode(problem)
    known = problem.formulation.variables(problem)
    skipped = _BYTES if encode is BOUNDARY else set()
    totals = [q for q in Quantity if (q, ()) in encoded.model.definitions and q not in skipped]
    assert Quantity.HOPS in totals
    for parts in all_parts(chain, once=False):
        if not has_literals(encoded, parts):
            continue
        values, truth = Assignment(encoded, parts), PassageValues(chain, parts)
        wanted: list[Variable] = [known.number(quantity) for quantity in totals]
        for unit in range(chain.unit_count):
            wanted += [known.truth(Quantity.USES, unit), known.number(Quantity.CHUNKS, unit)]
            wanted += [known.number(q, unit) for q in (Quantity.BUSY, Quantity.MEMORY) if q not in skipped]
            wanted += [known.truth(Quantity.ON, layer, unit) for layer in range(chain.layer_count)]
        wanted += [known.truth(Quantity.CUT, cut) for cut in range(1, chain.layer_count)]
        assert [values(v) for v in wanted] == [truth(v) for v in wanted], parts
        assert all(truth(v) <= v.high for v in wanted if isinstance(v, IntVar)), parts


@pytest.mark.parametrize("encode", ENCODINGS)
def test_decode_exclude_and_order(encode: Encode) -> None:
    problem = _any(random_problem(3, layers=5))
    encoded = encode(problem)
    plans = list(all_parts(chain_of(problem), once=False))
    digits = encoded.digits
    assert digits is not None
    symbols = {}
    for parts in plans:
        values = Assignment(encoded, parts)
        assert encoded.decode(values) == parts
        symbols[parts] = [symbol.evaluate(values) for symbol in digits.symbols]
        assert symbols[parts] == list(digits.of(parts))
    by_chunks = sorted(plans, key=lambda parts: [(stop, unit) for _, stop, unit in parts])
    assert sorted(plans, key=symbols.__getitem__) == by_chunks


@pytest.mark.parametrize("encode", ENCODINGS)
def test_only_the_plan_itself_is_barred_not_one_that_has_all_its_chunks_ends_and_more(encode: Encode) -> None:
    problem = _any(random_problem(5, layers=5, units=2))
    encoded = encode(problem)
    plans = list(all_parts(chain_of(problem), once=False))
    for barred in plans[:: max(1, len(plans) // 8)]:
        rule = encoded.exclude(barred)
        allowed = [parts for parts in plans if rule.evaluate(Assignment(encoded, parts))]
        assert allowed == [parts for parts in plans if parts != barred]
