from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gapless.api.clusters import cluster_problem
from gapless.api.problems import load_problem
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem
from gapless.formulations.passages import Passage
from gapless.formulations.schedules import Jobs
from gapless.sweeps.answers import answer, problem_of
from gapless.sweeps.spec import LimitSet, Sweep, SweepModel, SweepPlatform
from gapless.sweeps.tasks import tasks_of


def test_every_combination_is_one_task() -> None:
    sweep = Sweep(
        models=("octree", "alexnet-sparse"),
        platforms=("pixel7a", SweepPlatform(name="oneplus11", units="1..3")),
        problems=("jetson-orin-nano/octree",),
        objectives=("period", "latency"),
        limits=(LimitSet(), LimitSet(max_units=2)),
        backends=("native", "cpsat", "pulp"),
    )
    tasks = tasks_of(sweep)
    assert len(tasks) == (2 * (1 + 3) + 1) * 2 * 2 * 3
    assert len({str(task) for task in tasks}) == len(tasks)
    assert len({task.key for task in tasks}) == len(tasks) - 3 * 2 * 2 * 3, (
        "of 1, 2, 3 units at most 2 is 1, 2, 2"
    )


def test_the_numbers_of_units_and_limits_hold_together() -> None:
    sweep = Sweep(
        models=("octree",),
        platforms=(SweepPlatform(name="pixel7a", units="1..3"),),
        limits=(LimitSet(max_units=2, min_balance_permille=625),),
    )
    tasks = tasks_of(sweep)
    assert [task.base.asked.limits.max_units for task in tasks] == [1, 2, 2]
    assert [task.base.devices for task in tasks[:2]] == ["1 unit at most", "2 units at most"]
    limits = problem_of(tasks[0]).limits
    assert (limits.max_units, limits.min_balance_permille) == (1, 625)
    assert tasks[1].key == tasks[2].key, "equal tasks are solved once"


def test_a_board_may_be_planned_with_several_chunks_per_unit() -> None:
    boards = ("pixel7a", SweepPlatform(name="pixel7a", units="2", passage="any"))
    once, again = tasks_of(Sweep(models=("octree",), platforms=boards))
    assert again.base.devices == "2 units at most, passage any"
    assert (problem_of(once).data, problem_of(again).data) == (None, Passage())
    with pytest.raises(InvalidInputError, match="passage is 'twice'"):
        SweepPlatform(name="pixel7a", passage="twice")
    with pytest.raises(InvalidInputError, match="raspberry-pis: passage"):
        tasks_of(Sweep(models=("vit",), platforms=(SweepPlatform(name="raspberry-pis", passage="any"),)))


def test_requests_on_a_phone_pass_as_they_would_for_the_command() -> None:
    phones = (
        "kirin990",
        SweepPlatform(name="kirin990", passage="once"),
        SweepPlatform(name="kirin990", passage="ordered"),
    )
    asked = [problem_of(task).data for task in tasks_of(Sweep(models=("vit",), platforms=phones))]
    assert [data.passage if isinstance(data, Jobs) else None for data in asked] == ["any", "once", None]


def test_numbers_of_devices_and_what_they_cost() -> None:
    sweep = Sweep(
        models=(SweepModel(name="vit-large"),),
        platforms=(
            SweepPlatform(name="raspberry-pis", devices={"pi5": "0..1", "pi4": "0,2"}, batch=4),
            "epipe-case-1",
        ),
        prices={"pi5": 90, "pi4": 60.5, "agx": 1},
    )
    with pytest.raises(InvalidInputError, match="prices: 'pi6' is no platform of the sweep"):
        tasks_of(replace(sweep, prices={"pi6": 1, "nx": 2}))
    tasks = tasks_of(sweep)
    found = [(task.base.devices, task.base.price) for task in tasks]
    assert found == [("pi5=0,pi4=2", 121), ("pi5=1,pi4=0", 90), ("pi5=1,pi4=2", 211), ("", None)], (
        "none has none"
    )
    problem = problem_of(tasks[1])
    assert [unit.name for unit in problem.platform.units] == ["pi5"]
    assert (
        problem.costs
        == cluster_problem("vit-large", "raspberry-pis", batch=4, devices={"pi5": 1, "pi4": 0}).costs
    )


def test_a_workload_is_a_model_of_a_phone() -> None:
    (task,) = tasks_of(Sweep(models=("bert,vit",), platforms=("kirin990",)))
    assert [network.name for network in problem_of(task).networks] == ["bert", "vit"]


def test_all_defects_are_named_at_once() -> None:
    sweep = Sweep(
        models=("octre", "octree"),
        platforms=(
            "pixel7a",
            "pixel8",
            SweepPlatform(name="raspberry-pis", units="1..4"),
            SweepPlatform(name="raspberry-pis", devices={"pi3": "1"}),
            SweepPlatform(name="pixel7a", batch=2),
        ),
        problems=("nowhere.json", {"board": "x"}, {"workloads": "bert"}),
        objectives=("period", "perido"),
        limits=(LimitSet(rules="nowhere.py"),),
        backends=("nativ",),
    )
    with pytest.raises(InvalidInputError) as caught:
        tasks_of(sweep)
    said = str(caught.value)
    for words in (
        "platforms[0]: 'octre' was not measured on pixel7a",
        "platforms[1]: 'pixel8' is neither",
        "platforms[2]: raspberry-pis: units mean nothing",
        "platforms[3]: cluster 'raspberry-pis' has no devices of the type 'pi3'",
        "platforms[4]: pixel7a: batch",
        "problems[0]: 'nowhere.json' is neither",
        "problems[1]: it names no problem",
        "problems[2]: the problem is named by 'workloads', which this gapless does not know",
        "objectives[1]: 'perido' is no term; did you mean period?",
        "limits[0]: there is no file of rules 'nowhere.py'",
        "backends[0]: no backend 'nativ'",
    ):
        assert said.count(words) == 1, said


@pytest.mark.slow
def test_nothing_to_plan_and_too_much() -> None:
    with pytest.raises(InvalidInputError, match="nothing to plan"):
        tasks_of(Sweep())
    many = tuple(LimitSet(max_period_us=number) for number in range(1, 50_002))
    with pytest.raises(InvalidInputError, match="100002 plans to make, at most 100000"):
        tasks_of(Sweep(problems=("pixel7a/octree",), objectives=("period", "latency"), limits=many))


def test_problems_of_python_take_objectives_and_limits_of_the_sweep() -> None:
    problem = load_problem("pixel7a/octree")
    sweep = Sweep(objectives=("latency",), limits=(LimitSet(max_units=1),))
    (task,) = tasks_of(sweep, [("mine", problem)])
    asked = problem_of(task)
    assert (asked.objective.terms, asked.limits.max_units) == (("latency",), 1)
    assert str(task) == "octree on mine latency max_units=1"
    with pytest.raises(InvalidInputError, match="makespan"):
        tasks_of(Sweep(objectives=("makespan",)), [("", problem)])


def test_the_key_is_that_of_everything_the_answer_depends_on(tmp_path: Path) -> None:
    path, rules = tmp_path / "own.json", tmp_path / "rules.py"
    problem = load_problem("pixel7a/octree")
    sweep = Sweep(problems=(str(path),), limits=(LimitSet(rules=str(rules), label="r"),))

    def key(sweep: Sweep = sweep) -> str:
        from gapless.sweeps import tasks

        tasks._digest.cache_clear()
        (task,) = tasks_of(sweep)
        return task.key

    path.write_text(dump_problem(problem))
    rules.write_text("def small(view): return view.busy_us('GPU') <= 10**6")
    first = key()
    assert key() == first
    assert key(replace(sweep, limits=(LimitSet(rules=str(rules), label="other"),))) == first, "a name only"
    others = [replace(sweep, seed=1), replace(sweep, time_limit_s=5.0), replace(sweep, backends=("cpsat",))]
    keys = [first, *map(key, others), key(replace(sweep, objectives=("latency",)))]
    path.write_text(dump_problem(problem.with_limits(max_units=3)))
    keys.append(key())
    rules.write_text("def small(view): return view.busy_us('GPU') <= 10**5")
    keys.append(key())
    assert len(set(keys)) == 7


def test_an_error_is_an_answer(tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text("def wrong(view): return view.uses('NPU')")
    (task,) = tasks_of(Sweep(problems=("pixel7a/octree",), limits=(LimitSet(rules=str(rules)),)))
    found = answer(task)
    assert (found.status, found.failure, found.lost) == ("", "InvalidInputError", False)
    assert "NPU" in found.error
    (task,) = tasks_of(Sweep(problems=("pixel7a/octree",), objectives=("makespan",)))
    assert "makespan" in answer(task).error
