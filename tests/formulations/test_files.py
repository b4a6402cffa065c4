"""Files: what is written is what is read, at once or not at all, and versions are respected."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.api.problems import load_problem, table_problem
from gapless.formulations import files
from gapless.formulations.chain import Chain
from gapless.formulations.chunking.quantities import QUANTITIES, PlanValues
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.errors import (
    ExpressionError,
    InvalidInputError,
    InvalidPlanError,
    InvalidProblemError,
    SchemaVersionError,
)
from gapless.formulations.expr import (
    And,
    BoolExpr,
    Const,
    Expr,
    LessEq,
    Linear,
    Max,
    Not,
    Or,
    from_data,
    to_data,
)
from gapless.formulations.files import COSTS, NETWORK, PLATFORM
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.limits import Limits
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule, Rule
from gapless.formulations.terms import Objective, Quantities, Quantity

PROBLEM = table_problem([[3, 1, None], [1, 2, 4], [5, 2, 1]], ["cpu", "gpu", "npu"], network="net")
PLAN = Plan(
    chunks=(
        Chunk(network="net", start=0, stop=1, unit="cpu"),
        Chunk(network="net", start=1, stop=3, unit="npu"),
    )
)

names = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=12)
counts = st.integers(0, 2**40)
maybe = st.none() | counts


def variables(chain: Chain) -> tuple[list[BoolExpr], list[Expr]]:
    """Return the truth variables and all variables of a chain."""
    make = Quantities(QUANTITIES, chain)
    layers, units = range(chain.layer_count), range(chain.unit_count)
    truths: list[BoolExpr] = [make.truth(Quantity.ON, layer, unit) for layer in layers for unit in units]
    truths += [make.truth(Quantity.USES, unit) for unit in units]
    truths += [make.truth(Quantity.CUT, boundary) for boundary in range(1, chain.layer_count)]
    numbers: list[Expr] = [make.number(Quantity.BUSY, unit) for unit in units]
    numbers += [make.number(Quantity.MEMORY, unit) for unit in units]
    numbers += [make.number(q) for q in (Quantity.PERIOD, Quantity.LATENCY, Quantity.PEAK)]
    return truths, [*truths, *numbers]


def expressions(chain: Chain) -> st.SearchStrategy[BoolExpr]:
    truths, every = variables(chain)
    small = st.integers(-(2**40), 2**40)

    def deeper(truth: st.SearchStrategy[BoolExpr]) -> st.SearchStrategy[BoolExpr]:
        number = st.sampled_from(every) | small.map(Const) | truth
        sums = st.builds(Linear, st.lists(st.tuples(small, number), min_size=1, max_size=3).map(tuple), small)
        number = number | sums | st.lists(number, min_size=1, max_size=3).map(tuple).map(Max)
        several = st.lists(truth, max_size=3).map(tuple)
        return truth.map(Not) | several.map(And) | several.map(Or) | st.builds(LessEq, number, number)

    return st.recursive(
        st.sampled_from(truths) | st.sampled_from([Const(0), Const(1)]), deeper, max_leaves=12
    )


@given(expr=expressions(chain_of(PROBLEM)))
def test_an_expression_survives_json(expr: BoolExpr) -> None:
    data = json.loads(json.dumps(to_data(expr)))
    again = from_data(data, PROBLEM.formulation.variables(PROBLEM).find)
    assert repr(again) == repr(expr)
    values = PlanValues(chain_of(PROBLEM), chain_of(PROBLEM).parts(PLAN))
    assert again.evaluate(values) == expr.evaluate(values)


@st.composite
def platforms(draw: st.DrawFn) -> Platform:
    unit_names = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    cores = st.lists(st.integers(0, 7), max_size=2, unique=True).map(tuple)
    units = tuple(
        ProcessingUnit(
            name=name,
            kind=draw(st.sampled_from(UnitKind)),
            cores=draw(cores),
            threads=draw(st.none() | st.integers(1, 8)),
            memory_bytes=draw(maybe),
        )
        for name in unit_names
    )
    return Platform(name=draw(names), units=units, memory_bytes=draw(maybe), source=draw(names))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    layer_names = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    count = len(layer_names)
    types = st.lists(names, max_size=2).map(tuple)
    return Network(
        name=draw(names),
        layers=tuple(
            Layer(name=name, weight_bytes=draw(counts), flops=draw(maybe), op_types=draw(types))
            for name in layer_names
        ),
        tensors=tuple(
            Tensor(name=f"t{i}", bytes=draw(counts), source=i, targets=(i + 1,)) for i in range(-1, count)
        ),
        forbidden_cuts=tuple(draw(st.sets(st.integers(1, count - 1)))) if count > 1 else (),
    )


@st.composite
def cost_tables(draw: st.DrawFn, platform: Platform, network: Network) -> CostTable:
    units, layers = len(platform.units), len(network.layers)
    time = st.none() | st.integers(1, 2**40)
    rows = st.lists(st.tuples(*[time] * units), min_size=layers, max_size=layers).map(tuple)
    copies = st.lists(st.tuples(*[counts] * units), min_size=layers + 1, max_size=layers + 1).map(tuple)
    costs = NetworkCosts(
        network=network.name,
        layer_us=draw(rows),
        transfer_in_us=draw(copies | st.just(())),
        transfer_out_us=draw(copies | st.just(())),
    )
    provenance = Provenance(source=draw(names), estimated=draw(st.booleans()))
    batch = draw(st.integers(1, 512))
    return CostTable(units=platform.unit_names, networks=(costs,), batch=batch, provenance=provenance)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    platform, network = draw(platforms()), draw(networks())
    problem = Problem(
        platform=platform,
        networks=(network,),
        costs=draw(cost_tables(platform, network)),
        objective=draw(st.sampled_from([Objective(), Objective.paper(), Objective.slack(50, "bubbles")])),
        limits=Limits(min_units=draw(st.none() | st.integers(0, 3)), max_period_us=draw(maybe)),
    )
    if draw(st.booleans()):
        expr = draw(expressions(chain_of(problem)))
        problem = problem.with_rules(Rule(name=draw(names), expr=expr, text="in words"))
    return problem


@pytest.mark.slow
@given(problem=problems())
def test_a_problem_survives_its_file(problem: Problem) -> None:
    text = files.dump_problem(problem)
    again = files.parse_problem(text.encode(), name="again")
    assert again == problem
    assert again.fingerprint == problem.fingerprint
    assert files.dump_problem(again) == text


@pytest.mark.slow
@given(problem=problems())
def test_the_parts_of_a_problem_survive_their_files(problem: Problem) -> None:
    def again(value: Any, schema: files.Schema[Any]) -> object:
        return files.parse(files.dump(value, schema).encode(), schema, name="again")

    assert again(problem.platform, PLATFORM) == problem.platform
    assert again(problem.network, NETWORK) == problem.network
    assert again(problem.costs, COSTS) == problem.costs


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    files.save(files.dump_plan(PLAN, PROBLEM), path)
    assert files.load_plan(path) == PLAN
    document = json.loads(path.read_text())
    assert (document["plan_id"], document["problem"]) == (PLAN.plan_id, PROBLEM.fingerprint)


def test_an_edited_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(files.dump_plan(PLAN, PROBLEM).replace('"npu"', '"gpu"'))
    with pytest.raises(InvalidPlanError, match="it was edited"):
        files.load_plan(path)


def test_a_row_of_a_table_is_one_line() -> None:
    assert "    [22270, 5897, 5225, 4542],\n" in files.dump_problem(load_problem("pixel7a/alexnet-sparse"))


def test_opaque_rules_have_no_written_form() -> None:
    problem = PROBLEM.with_rules(OpaqueRule(name="odd", predicate=lambda plan: True))
    with pytest.raises(InvalidProblemError, match="'odd'"):
        files.dump_problem(problem)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (["var", "on", 0], InvalidProblemError),
        (["var", "on", 0, 9], InvalidProblemError),
        (["var", "cut", 0], InvalidProblemError),
        (["var", "cut", 3], InvalidProblemError),
        (["var", "speed"], InvalidProblemError),
        (["max"], InvalidProblemError),
        (["<=", 1], InvalidProblemError),
        (["sum", 1, [2]], InvalidProblemError),
        (["xor", 1, 0], InvalidProblemError),
        (True, InvalidProblemError),
        (1.5, InvalidProblemError),
        (None, InvalidProblemError),
        (2, ExpressionError),
        (["not", 5], ExpressionError),
        (["sum", 1], ExpressionError),
        (["var", "period_us"], ExpressionError),
    ],
)
def test_what_is_no_expression_is_refused(data: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        from_data(data, PROBLEM.formulation.variables(PROBLEM).find)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "has version 2 of gapless.platform; this gapless reads up to version 1"),
        ({"version": 0}, "version is 0"),
        ({"version": -1}, "version is -1"),
        ({"version": 1.0}, "version is 1.0"),
        ({"version": "1"}, "version is '1'"),
        ({"version": True}, "version is True"),
        ({"version": None}, "version is None"),
        ({"format": "gapless.network"}, "no gapless.platform file: its format is 'gapless.network'"),
        ({"format": None}, "its format is missing"),
    ],
)
def test_other_versions_and_formats_are_refused(change: dict[str, object], words: str) -> None:
    tree = {**json.loads(files.dump(PROBLEM.platform, PLATFORM)), **change}
    with pytest.raises(SchemaVersionError, match=words):
        files.parse(json.dumps(tree).encode(), PLATFORM, name="file")


def test_saving_replaces_the_whole_file_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    files.save("first", path)

    def fail(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InvalidInputError, match="No space left on device"):
        files.save("second", path)
    assert path.read_text() == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_saving_keeps_permissions_links_and_devices(tmp_path: Path) -> None:
    path, link = tmp_path / "file.json", tmp_path / "link.json"
    files.save("first", path)
    assert stat.S_IMODE(path.stat().st_mode) & 0o400
    path.chmod(0o640)
    link.symlink_to(path)
    files.save("second", link)
    assert link.is_symlink()
    assert path.read_text() == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    files.save("nothing", os.devnull)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_saving_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot write .*nowhere"):
        files.save("text", tmp_path / "nowhere" / "file.json")


@pytest.mark.parametrize(
    "data",
    [
        ["<=", ["var", "busy_us", True], 5],
        ["<=", ["sum", False, [1, ["var", "period_us"]]], 5],
        ["<=", ["sum", 0, [True, ["var", "period_us"]]], 5],
        ["<=", ["var", "period_us"], True],
    ],
)
def test_true_is_no_number_in_an_expression(data: list[object]) -> None:
    with pytest.raises(InvalidProblemError, match=r"truth value|is not an expression"):
        from_data(data, PROBLEM.formulation.variables(PROBLEM).find)


def test_keys_that_stand_twice_are_found_in_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    pairs = (f'"k{number % 30_000}": {number}' for number in range(60_000))
    path.write_text("{" + ", ".join(pairs) + "}")
    started = time.monotonic()
    with pytest.raises(InvalidInputError, match="the key 'k0' stands twice"):
        files.format_of(path)
    assert time.monotonic() - started < 10  # comparing each with each took a minute and a half


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested too deeply: more than 200 levels"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": 1e999}', "1e999 is not a number"),
        ('{"a": -' + "9" * 301 + "}", "-9{39} is not a number"),
        ('{"a": ' + "9" * 50 + ".0e400}", "9{40} is not a number"),
    ],
)
def test_what_no_later_step_could_take_is_refused_at_once(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=words):
        files.format_of(path)


def test_deep_but_not_too_deep(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"format": "x", "a": ' + "[" * 199 + "]" * 199 + "}")
    assert files.format_of(path) == "x"
