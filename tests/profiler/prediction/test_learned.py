"""The learned model: without data it is `interpolated`; it finds who slows whom, and says how sure it is."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.formulations.co_run import INTERPOLATED, combine
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.judge import score
from gapless.formulations.network import Layer, Network
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.profiler.prediction.executions import ExecutedPlan, Executions
from gapless.profiler.prediction.learned import MOST_UNITS, check_units, learn
from gapless.profiler.prediction.noisy_or import Array
from gapless.profiler.prediction.session import Session, session
from gapless.solvers.exhaustive import all_plans

from .executed import LAYERS, UNITS, Document, Factors, document, executions

SLOW_UNITS: Factors = [[1.3, 0.7, 1.1]] * LAYERS


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Draw both tables of a network, with copies, absent layers and units that share cores."""
    units, layers = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    seed = draw(st.integers(0, 10_000))
    rng = random.Random(seed)
    names = tuple("abcd"[:units])
    absent = {(rng.randrange(layers), rng.randrange(units)) for _ in range(draw(st.integers(0, 2)))}

    def table(method: str) -> CostTable:
        rows = tuple(
            tuple(None if (i, u) in absent else rng.randint(1, 3000) for u in range(units))
            for i in range(layers)
        )
        copies = tuple(tuple(rng.randint(0, 90) for _ in names) for _ in range(layers + 1))
        costs = NetworkCosts(network="net", layer_us=rows, transfer_in_us=copies if seed % 2 else ())
        return CostTable(units=names, networks=(costs,), provenance=Provenance(method=method))

    cores = [(0,), (0, 1) if seed % 3 == 0 else (1,), (2,), (3,)]
    platform = Platform(
        name="board",
        units=tuple(ProcessingUnit(name=n, cores=c) for n, c in zip(names, cores, strict=False)),
    )
    network = Network(name="net", layers=tuple(Layer(name=f"l{i}") for i in range(layers)))
    return session(platform, network, [table("heavy"), table("isolated")])


@pytest.mark.slow
@given(sessions())
def test_without_executed_plans_it_is_interpolated(given_session: Session) -> None:
    one = given_session
    found = combine(INTERPOLATED, (one.isolated, one.heavy), one.platform)
    plain = Problem(
        platform=one.platform, networks=(one.network,), costs=found.costs, co_run_costs=found.beside
    )
    learned = learn(one)
    problem = learned.problem()
    for plan in all_plans(plain):
        if score(plain, plan).valid:  # what cannot run at once has no table of its own
            assert score(problem, plan).busy_us == score(plain, plan).busy_us
            assert learned.foretell(plan).period_us == pytest.approx(score(plain, plan).period_us)
    assert all(one.factor == 1 for one in learned.lessons().companies)


@pytest.mark.slow
@settings(max_examples=25)
@given(sessions(), st.integers(0, 10_000))
def test_tables_by_set_say_what_the_model_foretells(one: Session, seed: int) -> None:
    rng = random.Random(seed)
    base = learn(one).problem()
    plans = [plan for plan in all_plans(base) if score(base, plan).valid]
    if not plans:
        return
    seen = tuple(
        ExecutedPlan(plan=plan, period_us=score(base, plan).period_us * rng.uniform(0.6, 1.7))
        for plan in rng.sample(plans, min(4, len(plans)))
    )
    learned = learn(replace(one, executed=seen))
    problem = learned.problem()
    for plan in plans:
        told = learned.foretell(plan)
        # Tables are rounded to whole microseconds, cell by cell.
        cells = len(one.network.layers) + 2
        assert score(problem, plan).period_us == pytest.approx(told.period_us, abs=cells)
        assert told.low_us <= told.period_us <= told.high_us


def test_units_that_slow_each_other_are_found_by_name(tmp_path: Path) -> None:
    """The gpu slows big, and nobody else: numbers of units cannot say that."""
    found = executions(_pairwise(), tmp_path)
    own = Session.of(found)
    half = replace(own, executed=found.executed[::2])
    problem, plain = learn(half).problem(), found.problem(INTERPOLATED)
    unseen = found.executed[1::2]
    assert _error(problem, unseen) < 0.6 * _error(plain, unseen)
    companies = {(one.unit, one.beside): one for one in learn(own).lessons().companies}
    beside_gpu, beside_little = companies["big", ("gpu",)], companies["big", ("little",)]
    assert beside_gpu.loaded - beside_little.loaded > 0.3


def test_what_is_not_known_is_less_sure(tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    own = Session.of(found)
    plan = found.executed[0]

    def width(known: Session) -> float:
        told = learn(known).foretell(plan)
        return told.high_us / told.low_us

    nothing, others, all_of_it = (
        width(replace(own, executed=executed)) for executed in ((), found.executed[1:], found.executed)
    )
    assert nothing > 1.3 * others
    assert others >= all_of_it


def test_periods_alone_teach_too(tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    blind = tuple(replace(one, chunk_us=()) for one in found.executed[::2])
    problem = learn(replace(Session.of(found), executed=blind)).problem()
    assert _error(problem, found.executed[1::2]) < 0.6 * _error(
        found.problem(INTERPOLATED), found.executed[1::2]
    )


def test_earlier_sessions_of_the_device_teach_structure(tmp_path: Path) -> None:
    before = executions(document(SLOW_UNITS, seed=1), tmp_path)
    now = executions(document(SLOW_UNITS, seed=2), tmp_path)
    fresh = replace(Session.of(now), executed=())
    other = session(
        before.platform,
        replace(before.network, name="other"),
        [_named(table, "other") for table in before.tables],
        [replace(one, plan=_renamed(one)) for one in before.executed],
    )
    plain = _error(learn(fresh).problem(), now.executed)
    assert _error(learn(fresh, [other]).problem(), now.executed) < 0.75 * plain
    strange = replace(other, platform=replace(other.platform, units=_elsewhere(other.platform)))
    apart = learn(fresh, [strange]).problem()
    assert _error(apart, now.executed) > 0.9 * plain, "units of another kind tell next to nothing"


def test_layers_that_did_not_run_are_not_foretold(tmp_path: Path) -> None:
    found = executions(document(), tmp_path)
    own = Session.of(found)
    one = next(one for one in found.executed if one.plan.chunks[0].stop > 1)
    skipped = replace(one, skipped_layers=(0,), chunk_us=())
    (chunk, *_), whole = own.pieces(skipped), own.pieces(one)[0]
    assert set(whole.cells) - set(chunk.cells) == {0}


def test_own_shares_are_foretold_but_not_planned_with(tmp_path: Path) -> None:
    own = Session.of(executions(document(SLOW_UNITS), tmp_path))
    learned = learn(own, own_share=True)
    assert learned.foretell(own.executed[0]).period_us > 0
    with pytest.raises(InvalidInputError, match="leave own_share out"):
        learned.costs()


def test_what_it_needs(tmp_path: Path) -> None:
    found = executions(document(), tmp_path)
    with pytest.raises(InvalidInputError, match="the table heavy is missing"):
        Session.of(replace(found, tables=found.tables[:1]))
    many = tuple(ProcessingUnit(name=f"u{i}") for i in range(MOST_UNITS + 1))
    crowded = replace(Session.of(found), platform=Platform(name="many", units=many))
    with pytest.raises(InvalidInputError, match="11 units have too many sets"):
        check_units(crowded)


def _error(problem: Problem, plans: tuple[ExecutedPlan, ...]) -> float:
    return fmean(abs(score(problem, one.plan).period_us / one.period_us - 1) for one in plans)


def _pairwise() -> Document:
    """Return plans in which big takes its heavy time beside the gpu only; all others run as if alone."""
    made = document(plans=24)
    rng = np.random.default_rng(3)
    isolated = rng.uniform(2, 9, (LAYERS, len(UNITS)))
    heavy = isolated * np.array([2.2, 1.05, 1.1])
    made["isolated_ms"], made["heavy_ms"] = isolated.tolist(), heavy.tolist()
    schedules = []
    for count in (2, 3):
        for units in permutations(range(len(UNITS)), count):
            for first in range(1, LAYERS - count + 2):
                bounds = [0, first, LAYERS] if count == 2 else [0, first, first + 1, LAYERS]
                schedules.append(_schedule(bounds, units, isolated, heavy))
    made["schedules"] = schedules
    return made


def _schedule(bounds: list[int], units: tuple[int, ...], isolated: Array, heavy: Array) -> Document:
    big, gpu = UNITS.index("big"), UNITS.index("gpu")
    times, chunks = [], []
    for index, unit in enumerate(units):
        span = slice(bounds[index], bounds[index + 1])
        table = heavy if unit == big and gpu in units else isolated
        times.append(float(table[span, unit].sum()))
        chunks.append({"unit": UNITS[unit], "layers": list(range(span.start + 1, span.stop + 1))})
    return {"chunks": chunks, "runs": 1, "interval_ms": max(times), "chunk_mean_ms": times}


def _named(table: CostTable, name: str) -> CostTable:
    return replace(table, networks=tuple(replace(one, network=name) for one in table.networks))


def _renamed(one: ExecutedPlan) -> Plan:
    return replace(one.plan, chunks=tuple(replace(chunk, network="other") for chunk in one.plan.chunks))


def _elsewhere(platform: Platform) -> tuple[ProcessingUnit, ...]:
    return tuple(replace(unit, threads=7) for unit in platform.units)


def test_executions_are_sessions(tmp_path: Path) -> None:
    found = executions(document(), tmp_path)
    assert isinstance(found, Executions)
    assert Session.of(found).executed == found.executed
