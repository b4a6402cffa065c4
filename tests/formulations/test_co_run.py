"""Co-run costs: models, the problems that have them, and which table a plan is charged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.api.problems import table_problem
from gapless.formulations import co_run
from gapless.formulations.co_run import (
    BUILT_IN_MODELS,
    LEARNED,
    CoRunCosts,
    CoRunModel,
    co_run_model_names,
    get_co_run_model,
    possible_models,
    register_co_run_model,
)
from gapless.formulations.costs import CostRows, CostTable
from gapless.formulations.errors import BackendFailedError, InvalidInputError, InvalidProblemError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.validation import MAX_COUNT
from tests.entry_points import install

from .cost_tables import UNITS, table

BOARD = Platform(name="board", units=tuple(ProcessingUnit(name=name) for name in UNITS))


def combine(name: str, found: Sequence[CostTable]) -> CoRunCosts:
    """Combine tables of units that can all run at once."""
    units = BOARD.units[: len(found[0].units) if found else 1]
    return co_run.combine(name, found, replace(BOARD, units=units))


def tables(isolated: CostRows, heavy: CostRows) -> list[CostTable]:
    return [table("heavy", heavy), table("isolated", isolated)]


def exact_mean(a: int, b: int, used: int, most: int) -> int:
    """Return a^(1-w) b^w with w = (used - 1) / (most - 1), in decimals of 60 digits, rounded to integers."""
    with localcontext() as context:
        context.prec = 60
        power = Decimal(a) ** (most - used) * Decimal(b) ** (used - 1)
        root = power ** (Decimal(1) / (most - 1))
        return int(root.quantize(Decimal(1), rounding=ROUND_HALF_EVEN))


def plan(*parts: tuple[int, int, str], network: str = "net") -> Plan:
    return Plan(chunks=tuple(Chunk(network=network, start=a, stop=b, unit=u) for a, b, u in parts))


@given(a=st.integers(1, 10**6), b=st.integers(1, 10**6), most=st.integers(2, 4))
def test_the_interpolated_time_is_the_weighted_geometric_mean(a: int, b: int, most: int) -> None:
    found = combine("interpolated", tables(((a,) * most,), ((b,) * most,)))
    for used in range(1, most + 1):
        assert found.table(used).networks[0].layer_us == ((exact_mean(a, b, used, most),) * most,)


def test_numbers_worked_out_by_hand() -> None:
    # sqrt(4 * 9) = 6; sqrt(10 * 20) = 14.14; sqrt(8 * 2) = 4: company may make layers faster
    found = combine("interpolated", tables(((4, 10, 8),), ((9, 20, 2),)))
    assert [found.table(used).networks[0].layer_us for used in (1, 2, 3)] == [
        ((4, 10, 8),),
        ((6, 14, 4),),
        ((9, 20, 2),),
    ]


@given(
    rows=st.lists(
        st.tuples(st.integers(1, MAX_COUNT // 4), st.integers(1, MAX_COUNT // 4)), min_size=1, max_size=2
    )
)
def test_one_unit_is_charged_as_alone_and_all_as_all_together(rows: list[tuple[int, int]]) -> None:
    alone, busy = (tuple((row[i],) * 4 for row in rows) for i in (0, 1))
    found = combine("interpolated", tables(alone, busy))
    assert found.table(1).networks[0].layer_us == alone
    assert found.table(4).networks[0].layer_us == busy
    for used in (2, 3):
        for row, one, other in zip(found.table(used).networks[0].layer_us, alone, busy, strict=True):
            times = [sorted(filter(None, triple)) for triple in zip(one, row, other, strict=True)]
            assert [triple[1] for triple in times] == list(row)


def test_copies_are_interpolated_too() -> None:
    isolated = table(
        "isolated", ((5, 5, 5),), into=((0, 4, 0), (0, 9, 5)), out=((1, 1, 1), (0, 0, 0)), notes="alone"
    )
    heavy = table("heavy", ((5, 5, 5),), into=((8, 9, 0), (0, 0, 5)), notes="together")
    costs = combine("interpolated", [isolated, heavy])
    found = [costs.table(used).networks[0] for used in (1, 2, 3)]
    # a copy that costs nothing on one side has no geometric mean: half of the other one then
    assert found[1].transfer_in_us == ((4, 6, 0), (0, 4, 5))
    # no copies at all in one table are copies that cost nothing
    assert [costs.transfer_out_us for costs in found] == [
        ((1, 1, 1), (0, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
    ]
    assert found[0].transfer_in_us == isolated.networks[0].transfer_in_us
    assert found[2].transfer_in_us == heavy.networks[0].transfer_in_us


def test_tables_say_what_they_are_made_from() -> None:
    isolated, heavy = (table(name, ((4, 4, 4),), notes=f"{name} notes") for name in ("isolated", "heavy"))
    found = combine("interpolated", [isolated, heavy])
    told = [found.table(used).provenance for used in (1, 2, 3)]
    assert {one.method for one in told} == {"interpolated"}
    assert [one.estimated for one in told] == [False, True, False]
    for one in told:
        assert one.source == "here"
        assert "isolated: isolated notes" in one.notes
        assert "heavy: heavy notes" in one.notes


def test_one_unit_has_one_table() -> None:
    found = combine("interpolated", tables(((4,), (7,)), ((9,), (7,))))
    assert found.beside == ()
    assert found.costs.networks[0].layer_us == ((4,), (7,))
    problem = replace(table_problem([[4], [7]], ["a"], network="net"), costs=found.costs, co_run_costs=())
    assert score(problem, plan((0, 2, "a"))).period_us == 11


def test_units_that_share_cores_count_as_one() -> None:
    """With two cores and a unit of both, a plan on the two cores has as much company as there can be."""
    cores = {"a": (0,), "b": (1,), "c": (0, 1)}
    units = tuple(ProcessingUnit(name=name, cores=own) for name, own in cores.items())
    board = Platform(name="board", units=units)
    found = co_run.combine("interpolated", tables(((4, 4, 4),), ((9, 9, 9),)), board)
    assert [found.table(used).networks[0].layer_us for used in (1, 2, 3)] == [
        ((4, 4, 4),),
        ((9, 9, 9),),
        ((9, 9, 9),),
    ]


def test_layers_that_cannot_run_stay_so() -> None:
    found = combine("interpolated", tables(((4, None),), ((9, None),)))
    assert [found.table(used).networks[0].layer_us for used in (1, 2)] == [((4, None),), ((9, None),)]


@pytest.mark.parametrize(
    "heavy",
    [
        table("heavy", ((9, 3),)),
        table("heavy", ((9, None), (1, 1))),
        table("heavy", ((9, 3, 4),)),
        table("heavy", ((9, None),), batch=2),
    ],
    ids=["supported", "layers", "units", "batch"],
)
def test_tables_that_differ_in_shape_are_refused(heavy: CostTable) -> None:
    with pytest.raises(InvalidProblemError, match=r"which layers run where.*Measure both in one profile"):
        combine("interpolated", [table("isolated", ((4, None),)), heavy])


def test_measured_tables_stay_as_they_are() -> None:
    isolated, heavy = table("isolated", ((4, 5),)), table("heavy", ((9, 3),))
    assert combine("isolated", [heavy, isolated]) == CoRunCosts(costs=isolated)
    assert combine("heavy", [heavy, isolated]) == CoRunCosts(costs=heavy)
    assert combine("heavy", [heavy]).table(2) is heavy


def test_a_model_without_its_tables_says_which() -> None:
    with pytest.raises(InvalidInputError, match="needs the table heavy; measured are isolated"):
        combine("interpolated", [table("isolated", ((4, 5),))])
    with pytest.raises(InvalidInputError, match="needs the table heavy, isolated; measured are none"):
        combine("interpolated", [])


def test_possible_models_are_those_whose_tables_are_there() -> None:
    assert possible_models(["heavy", "isolated"]) == BUILT_IN_MODELS == ("isolated", "heavy", "interpolated")
    assert possible_models({"heavy"}) == ("heavy",)
    assert possible_models(["else"]) == ()


@dataclass(frozen=True)
class Pessimist:
    """Whatever is slower."""

    name: str = "pessimist"
    needs: frozenset[str] = frozenset({"isolated", "heavy"})

    def combine(self, isolated: CostTable | None, heavy: CostTable | None, platform: Platform) -> CoRunCosts:
        assert isolated is not None
        assert heavy is not None
        (one,), (other,) = isolated.networks, heavy.networks
        rows = tuple(
            tuple(a if a is None or b is None else max(a, b) for a, b in zip(x, y, strict=True))
            for x, y in zip(one.layer_us, other.layer_us, strict=True)
        )
        return CoRunCosts(costs=replace(heavy, networks=(replace(other, layer_us=rows),)))


@pytest.fixture
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(co_run, "_REGISTERED", {})


@pytest.mark.usefixtures("_clean")
def test_a_model_of_ones_own() -> None:
    model: CoRunModel = Pessimist()
    register_co_run_model(model)
    assert co_run_model_names() == (*BUILT_IN_MODELS, LEARNED, "pessimist")
    assert get_co_run_model("pessimist") is model
    found = combine("pessimist", tables(((4, 5),), ((9, 3),)))
    assert found.costs.networks[0].layer_us == ((9, 5),)
    assert found.beside is None


@pytest.mark.usefixtures("_clean")
@pytest.mark.parametrize("name", BUILT_IN_MODELS)
def test_the_name_of_a_built_in_model_is_taken(name: str) -> None:
    with pytest.raises(InvalidInputError, match="is built in; choose another name"):
        register_co_run_model(Pessimist(name=name))
    assert get_co_run_model(name).name == name


def test_an_unknown_model() -> None:
    with pytest.raises(InvalidInputError, match="'nosuch'; choose one of isolated, heavy, interpolated"):
        combine("nosuch", [])


def test_models_come_as_entry_points_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    targets = {"mine": f"{__name__}:Pessimist", "broken": f"{__name__}:Gone", "odd": f"{__name__}:tables"}
    install(monkeypatch, tmp_path, "gapless.co_run_models", targets)
    assert co_run_model_names() == (*BUILT_IN_MODELS, LEARNED, *targets)
    assert get_co_run_model("mine") == Pessimist()
    with pytest.raises(BackendFailedError, match=r"'broken' of the entry-point group gapless.co_run_models"):
        get_co_run_model("broken")
    with pytest.raises(BackendFailedError, match=r"'odd' .* tables\(\) raised TypeError"):
        get_co_run_model("odd")
