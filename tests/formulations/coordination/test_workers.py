"""Units with several workers: in simulated time, under the bound, and within a budget of power."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.answers.blocks import Sentence
from gapless.answers.coordination import coordination_blocks, policies
from gapless.formulations.coordination.behaviour import Behaviour, HeatModel, UnitBehaviour
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.policy import Waiting
from gapless.formulations.coordination.record import Record
from gapless.formulations.coordination.scenario import Scenario, UnitChange, UnitEvent
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.simulation import Start, Task, UnitsAtWork
from gapless.formulations.costs import Interference
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.solvers.coordination.budget import PowerBudget
from gapless.solvers.coordination.policies import make_policy
from gapless.view.page.results import coordination_page


def setting(workers: int = 2, sharing: tuple[int, ...] = (1000, 1200), **behaviour: object) -> Setting:
    """Return one unit on which a network takes 100 us, and two at once as much longer as they say."""
    plain = Setting.of(gapless.table_problem({"layer": [0.1]}, ["npu"], network="net"))
    unit = UnitBehaviour(unit="npu", sharing_permille=sharing, busy_mw=2000, idle_mw=1000, **behaviour)  # type: ignore[arg-type]
    (npu,) = plain.platform.units
    platform = replace(plain.platform, units=(replace(npu, workers=workers, kind=UnitKind.CPU),))
    return replace(
        plain, platform=platform, behaviour=Behaviour(platform="table", units=(unit,), base_mw=500)
    )


def at_once(count: int, *events: UnitEvent) -> Scenario:
    """Return requests that come at the same time."""
    arrivals = gapless.coordination.Arrivals(at_us=(0,) * count)
    asker = gapless.coordination.Application(name="one", network="net", arrivals=arrivals)
    return Scenario(name="at once", duration_us=1, applications=(asker,), events=events)


def ends(record: Record) -> list[float]:
    return sorted(request.end_us or 0.0 for request in record.requests)


def test_two_at_once_take_what_company_costs() -> None:
    assert ends(play(setting(1), at_once(4), make_policy("lst"))) == pytest.approx([100, 200, 300, 400])
    record = play(setting(2), at_once(4), make_policy("lst"))
    assert record.units == ("npu", "npu.2")
    assert ends(record) == pytest.approx([120, 120, 240, 240])
    assert record.energy_mj == pytest.approx((500 + 2000) * 240 / 1e6)  # the unit is there once


def test_applications_without_coordination_see_no_workers() -> None:
    record = play(setting(2), at_once(2), make_policy("tflite-mp"))
    assert record.units == ("npu",)
    assert ends(record) == ends(play(setting(1), at_once(2), make_policy("tflite-mp")))


def test_powers_of_a_behaviour_win_over_those_of_the_platform() -> None:
    names = ("both", "idle", "none")
    units = tuple(ProcessingUnit(name=name, power_mw=900, idle_mw=90) for name in names)
    both = UnitBehaviour(unit="both", busy_mw=500)
    known = Behaviour(platform="p", units=(both, UnitBehaviour(unit="idle", idle_mw=30)))
    found = known.on(Platform(name="p", units=units))
    assert [(unit.busy_mw, unit.idle_mw) for unit in found.units] == [(500, None), (900, 30), (900, 90)]
    silent = known.on(Platform(name="p", units=tuple(ProcessingUnit(name=name) for name in names)))
    assert [(unit.busy_mw, unit.idle_mw) for unit in silent.units] == [(500, None), (None, 30), (None, None)]


def test_workers_of_a_problem_slow_each_other_down_as_its_platform_says_and_a_behaviour_wins() -> None:
    problem = gapless.table_problem({"layer": [0.1]}, ["npu"], network="net")
    (npu,) = problem.platform.units
    measured = replace(npu, workers=2, sharing_permille=(1000, 1300))
    served = replace(problem, platform=replace(problem.platform, units=(measured,)))
    assert ends(play(Setting.of(served), at_once(2), make_policy("lst"))) == pytest.approx([130, 130])
    known = Behaviour(platform="p", units=(UnitBehaviour(unit="npu", sharing_permille=(1000, 1200)),))
    assert ends(play(Setting.of(served, known), at_once(2), make_policy("lst"))) == pytest.approx([120, 120])


def test_a_unit_leaves_and_returns_with_all_workers() -> None:
    events = (
        UnitEvent(at_us=60, unit="npu", change=UnitChange.LOST),
        UnitEvent(at_us=1000, unit="npu", change=UnitChange.BACK),
    )
    record = play(setting(2), at_once(2, *events), make_policy("lst"))
    assert [ran.cut_off for ran in record.ran] == [True, True, False, False]
    assert ends(record) == pytest.approx([1120, 1120])


def test_a_second_worker_of_a_unit_at_work_takes_no_more_power() -> None:
    place = setting(2)
    record = play(place, at_once(2), PowerBudget(make_policy("lst"), place, 2500))
    assert ends(record) == pytest.approx([120, 120])


def test_a_hot_unit_is_away_with_all_workers() -> None:
    heat = HeatModel(kelvin_per_w=50, time_s=1e-3, limit_c=120, back_c=100)  # at work 125 degrees in the end
    record = play(setting(2, heat=heat), at_once(100), make_policy("lst"))
    assert {span.unit for span in record.away if span.cause == "heat"} == {0, 1}


def test_nobody_does_better_than_the_bound_which_knows_workers() -> None:
    scenario = gapless.coordination.Scenario(
        name="frame",
        duration_us=1,
        workflows=(
            gapless.coordination.Workflow(
                name="frame",
                steps=(gapless.coordination.FrameStep(name="a", network="net", mean=4.0, exact=True),),
            ),
        ),
    )
    for workers, least_us in ((1, 400), (2, 200)):
        found = gapless.coordinate(scenario, setting(workers), ["lst"])
        bound = gapless.coordination.bound_coordination(found, ["lst"], frames=1, time_limit_s=5)
        assert (bound.bound, bound.best, bound.reached) == (least_us, least_us, (least_us,))


def test_workers_of_one_unit_do_not_exclude_each_other_and_units_of_its_cores_do() -> None:
    two = ProcessingUnit(name="a", kind=UnitKind.CPU, cores=(0, 1), threads=1, workers=2)
    other = ProcessingUnit(name="b", kind=UnitKind.CPU, cores=(1,))
    whole = Platform(name="cores", units=(two, other)).by_worker()
    assert whole.unit_names == ("a", "a.2", "b")
    assert whole.conflicts == ((0, 2), (1, 2))
    assert whole.by_worker() == whole
    with pytest.raises(InvalidProblemError, match="a unit with a quota has one worker"):
        ProcessingUnit(name="a", kind=UnitKind.CPU, cores=(0,), quota_permille=500, workers=2)


def test_two_workers_of_a_unit_slow_others_down_as_that_unit_does() -> None:
    problem = gapless.table_problem({"layer": [0.1, 0.1]}, ["cpu", "npu"], network="net")
    cpu, npu = problem.platform.units
    platform = replace(problem.platform, units=(cpu, replace(npu, workers=2)))
    slower = Interference(units=("cpu", "npu"), slowdown_permille=((0, 1000), (0, 0)))
    work = UnitsAtWork(replace(Setting.of(problem), platform=platform, interference=slower).by_worker)
    tasks = []
    for unit in range(3):
        request = Waiting(number=unit, network=0, application=0, arrival_us=0)
        start = Start(number=unit, request=request, stop=1, unit=unit, at_us=0, expected_us=100)
        tasks.append(Task(start=start, legs=((0, 1, unit),)))
        work.begin(tasks[-1], unit, 100.0, 0.0)
        if unit:
            assert tasks[0].pace == pytest.approx(1 / 2)


def test_answers_count_a_unit_once_and_know_how_long_it_works_with_any_worker() -> None:
    found = gapless.coordinate(at_once(3), setting(2), ["lst", "tflite-mp"])
    shown = policies(found.records, found.setting.platform)
    busy = [column.title for column in shown.columns].index("busy")
    assert [row.cells[busy].value for row in shown.rows] == pytest.approx([1.0, 1.0])
    watts = [column.title for column in shown.columns].index("watts")
    assert [row.cells[watts].value for row in shown.rows] == pytest.approx([2.5, 2.5])
    first, *_ = coordination_blocks([found])
    assert isinstance(first, Sentence)
    assert first.text == " on platform, 1 unit, npu with 2 workers: 3 requests of one in 0.000 s; simulated"
    assert "on platform, 1 unit, npu with 2 workers: 3 requests" in coordination_page([found])


def test_requests_that_depend_on_the_policy_are_a_range() -> None:
    step = gapless.coordination.FrameStep(name="a", network="net", mean=3.0)
    flow = gapless.coordination.Workflow(name="flow", steps=(step,))
    scenario = Scenario(name="frames", duration_us=2000, workflows=(flow,))
    found = gapless.coordinate(scenario, setting(2), ["lst", "tflite"])
    few, many = sorted(len(record.requests) for record in found.records)
    assert few < many
    first, *_ = coordination_blocks([found])
    assert isinstance(first, Sentence)
    assert f": {few:,} to {many:,} requests of flow in " in first.text
    assert f"{few:,} to {many:,} requests of flow in " in coordination_page([found])


def test_energy_needs_the_powers_of_all_units_that_worked() -> None:
    units = (UnitBehaviour(unit="a", busy_mw=2000), UnitBehaviour(unit="b"))
    known = Behaviour(platform="p", units=units, base_mw=500)
    assert known.energy_mj({"a": 10.0, "b": 10.0}, 100.0) is None
    assert known.energy_mj({"a": 10.0, "b": 0.0}, 100.0) == pytest.approx((500 * 100 + 2000 * 10) / 1e6)
    assert known.energy_mj({"b": 0.0}, 100.0) is None
