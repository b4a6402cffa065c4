"""Several networks at once, from Python functions to a measured makespan on this machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.api.execution import models_for, open_pipeline, run
from gapless.api.models import open_model
from gapless.api.problems import with_workload
from gapless.api.slowdown.side_by_side import Together, calibrated, profile_together
from gapless.api.tuning import tune, tune_simulated
from gapless.cli.options.problem import ask_plan
from gapless.cli.tasks.running import opened, run_requests, traced
from gapless.executor.model import Model
from gapless.executor.pipeline.trace_file import check_trace
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.runner import Budget
from gapless.executor.samples import read_samples
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.files.plans import DEPLOYMENT, load_deployment, named_plan
from gapless.files.run_files import save_run, save_trace
from gapless.formulations.costs import Interference
from gapless.formulations.deployment import Mode
from gapless.formulations.errors import ExecutionError
from gapless.formulations.files import dump, dump_plan, dump_problem, load_problem, save
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.flow_shop.tables import Cuts, Schedule, shop_of, workload_of
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Request, Workload
from gapless.profiler.profile import ProfileOptions

pytestmark = pytest.mark.measures

FUNCTIONS = """
import os
import time
import numpy as np
from gapless.executor.callable_layers import CallableLayer, CallableModel
from gapless.executor.model import TensorSpec

X = TensorSpec(name="x", shape=(4, 4))

def slow(x):
    time.sleep(0.003)
    return x + 1

def double(x):
    time.sleep(0.001)
    return 2 * x

def total(x):
    return x.sum(axis=1)

def broken(x):
    if "GAPLESS_TEST_BROKEN" in os.environ:
        raise ValueError("no more paper")
    return x

def model(name, *functions):
    layers = [CallableLayer(name=f"{f.__name__}{i}", variants={"*": f}) for i, f in enumerate(functions)]
    return CallableModel(name=name, inputs=(X,), layers=tuple(layers))

ADD = model("add", slow, slow, double)
MUL = model("mul", double, double)
SUM = model("sum", double, slow, total)
BAD = model("bad", double, broken)
"""

FREE = Platform(name="free", units=(ProcessingUnit(name="a"), ProcessingUnit(name="b")))
QUICK = ProfileOptions(
    min_repetitions=2, min_seconds_per_item=0.002, warm_up_repetitions=1, retries=0, checks=0, most_far=2.0
)
SHORT = TuningOptions(rungs=(Rung(seconds=0.05, rounds=2),))


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "functions.py"
    path.write_text(FUNCTIONS)
    return path


@pytest.fixture(scope="module")
def together(functions: Path) -> Together:
    """Return three networks, measured here."""
    return profile_together(
        [f"{functions}:{name}" for name in ("ADD", "MUL", "SUM")], platform=FREE, options=QUICK
    )


@pytest.fixture(scope="module")
def problem(together: Together) -> Problem:
    """Return a problem with four requests: `add` comes twice."""
    found = together.problem
    assert workload_of(found).names == ("add", "mul", "sum")
    names = {"add#1": "add", "mul": "mul", "sum": "sum", "add#2": "add"}
    requests = tuple(Request(name=name, network=network) for name, network in names.items())
    return replace(found, data=Workload(requests=requests))


def plan_of(problem: Problem, order: tuple[int, ...], *cuts: Cuts) -> Plan:
    return shop_of(problem).plan(Schedule(order, cuts))


@pytest.fixture(scope="module")
def plan(problem: Problem) -> Plan:
    """Return a plan in which `add` is cut in two ways, and `mul` skips a unit."""
    return plan_of(problem, (2, 0, 3, 1), (0, 1, 3), (0, 0, 2), (0, 1, 3), (0, 2, 3))


@pytest.mark.slow
def test_costs_are_those_of_networks_that_alternate(together: Together, tmp_path: Path) -> None:
    written = save_run(together, tmp_path)
    assert load_problem(tmp_path / "problem.json") == together.problem
    assert (tmp_path / "profile-3.json").exists()
    assert str(tmp_path / "profile-1.json") in written
    for chain, least_us in zip(shop_of(together.problem).chains, (7_000, 2_000, 4_000), strict=True):
        for unit in range(2):  # as long as its functions sleep, however a short profile splits that
            assert chain.busy_us(0, chain.layer_count, unit) >= 0.97 * least_us


@pytest.mark.slow
def test_the_makespan_of_a_plan_is_measured(problem: Problem, plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    save(dump_problem(problem), path)
    assert load_problem(path) == problem
    measured = run(problem, plan, budget=Budget(requests=4, warm_up_requests=1))
    assert measured.makespan_us is not None
    # It sleeps for so long on the second unit alone, and it can be no faster than that.
    assert measured.makespan_us.least > 3_000 + 2_000 + 3_000 + 1_000
    assert measured.requests == 16
    assert {stream.stream for stream in measured.streams} == set(plan.order)


@pytest.mark.slow
def test_every_request_gives_the_right_numbers(problem: Problem, plan: Plan, tmp_path: Path) -> None:
    with open_pipeline(problem, plan) as pipeline:
        assert verify(pipeline, References(models_for(problem))).requests == 12
        events = save_trace(pipeline.trace(requests=3), tmp_path / "trace.json")
    assert events == 3 * len(plan.chunks)
    assert check_trace(json.loads((tmp_path / "trace.json").read_text())) == []


@pytest.mark.slow
def test_files_lead_to_the_same_run(problem: Problem, plan: Plan, tmp_path: Path) -> None:
    asked, written, kept = tmp_path / "problem.json", tmp_path / "plan.json", tmp_path / "deployment.json"
    save(dump_problem(problem), asked)
    save(dump_plan(plan, problem), written)
    served = deploy_rounds(plan, workload_of(problem))
    save(dump(served, DEPLOYMENT), kept)
    assert load_deployment(written, problem) == load_deployment(kept, problem) == served
    with opened(problem, named_plan(written), engine=None, at=None) as work:
        assert "numbers agree" in work.notes[-1]
        assert set(work.models) == {"add", "mul", "sum"}
    out = tmp_path / "trace.json"
    found, named = ask_plan([str(asked), str(written)])
    assert found.problem == problem
    played, _ = traced(found.problem, named, requests=1, simulated=True, engine=None, at=None)
    assert save_trace(played, out, problem=problem) == len(plan.chunks)
    assert check_trace(json.loads(out.read_text())) == []


def test_a_plan_brings_its_workload_along(problem: Problem, tmp_path: Path) -> None:
    asked = tmp_path / "problem.json"
    save(dump_problem(problem), asked)
    other = with_workload(problem, "mulx2,sum")
    planned = plan_of(other, (1, 2, 0), (0, 0, 2), (0, 2, 2), (0, 1, 3))
    written = tmp_path / "plan.json"
    save(dump_plan(planned, other, {"problem": "elsewhere.json", "workload": "mulx2,sum"}), written)
    found, named = ask_plan([str(asked), str(written)])
    inputs: dict[str, Any] = {
        f"{name}/x": np.full((2, 4, 4), index, np.float32) for index, name in enumerate(planned.order)
    }
    np.savez(tmp_path / "in.npz", **inputs)
    samples = read_samples(tmp_path / "in.npz")
    with opened(found.problem, named, engine=None, at=None, samples=samples) as work:
        assert "numbers agree" in work.notes[-1]
        measured = work.pipeline.measure(Budget(requests=2))
        assert run_requests(work, tmp_path / "out.npz") == 2
    assert planned.order == ("mul#2", "sum", "mul#1")
    with np.load(tmp_path / "out.npz") as outputs:
        assert outputs["mul#1/double1"].tolist() == np.full((2, 4, 4), 8).tolist()
        assert outputs["sum/total2"].tolist() == np.full((2, 4), 12).tolist()
        assert set(outputs) == {"mul#1/double1", "mul#2/double1", "sum/total2"}
    assert measured.deployment.plan == planned
    assert measured.makespan_us is not None


@pytest.mark.slow
def test_a_failing_chunk_names_its_request(
    functions: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = open_model(f"{functions}:BAD"), open_model(f"{functions}:MUL")
    asked = replace(
        problem,
        networks=(good.network, bad.network),
        costs=replace(
            problem.costs,
            networks=tuple(
                replace(problem.costs.networks[1], network=model.network.name) for model in (good, bad)
            ),
        ),
        data=Workload(requests=(Request(name="fine", network="mul"), Request(name="paper", network="bad"))),
    )
    served = plan_of(asked, (0, 1), (0, 2, 2), (0, 1, 2))
    models: dict[str, Model] = {"mul": good, "bad": bad}
    monkeypatch.setenv("GAPLESS_TEST_BROKEN", "yes")
    with pytest.raises(ExecutionError, match=r"'paper' \(chunk 1, layers 1 to 1\) failed: .*no more paper"):
        run(asked, served, model=models, budget=Budget(requests=2))


def test_calibration_scales_every_network_to_what_it_takes(problem: Problem) -> None:
    """The device is simulated: it is slower than the table says, by another factor for each network."""
    factors = {"add": 3, "mul": 1, "sum": 2}
    truth = replace(
        problem,
        interference=None,
        data=Workload(requests=tuple(Request(name=name, network=name) for name in factors)),
        costs=replace(
            problem.costs,
            networks=tuple(
                replace(
                    costs,
                    layer_us=tuple(
                        tuple((time or 0) * factors[costs.network] for time in row) for row in costs.layer_us
                    ),
                )
                for costs in problem.costs.networks
            ),
        ),
    )
    found = calibrated(replace(problem, interference=None), SimulatedRunner(truth))
    assert workload_of(found) == workload_of(problem)
    assert "alternate" in found.costs.provenance.notes
    for costs, right in zip(found.costs.networks, truth.costs.networks, strict=True):
        for row, times in zip(costs.layer_us, right.layer_us, strict=True):
            assert row == pytest.approx(times, abs=2)


@pytest.mark.slow
def test_tuning_races_plans_and_baselines_by_their_makespan(problem: Problem) -> None:
    tuned = tune(problem, backends=("hetero2pipe",), top=3, options=SHORT)
    labels = {label for row in tuned.result.rows for label in row.candidate.labels}
    assert {"serial on a", "serial on b", "whole requests on a+b", "plan 1"} <= labels
    best = tuned.result.rows[0]
    assert best.failure is None
    assert best.verification is not None
    serial = next(row for row in tuned.result.rows if "serial on a" in row.candidate.labels)
    # Sleeps of 20 ms in a row, against two units that sleep at the same time.
    assert serial.period_us is not None
    assert serial.period_us.least > 20_000
    assert tuned.plan is not None
    assert set(tuned.plan.order) == set(workload_of(tuned.problem).names), "once each, or once per chunk"


@pytest.mark.parametrize("mode", list(Mode))
def test_tuning_on_a_simulated_device_finds_the_best_plan(problem: Problem, mode: Mode) -> None:
    slow = Interference(units=FREE.unit_names, slowdown_permille=((0, 900), (900, 0)))
    planned = replace(problem, interference=None, data=replace(workload_of(problem), mode=mode))
    tuned = tune_simulated(
        planned, replace(planned, interference=slow), backends=("hetero2pipe",), top=3, options=SHORT
    )
    assert tuned.plan is not None
    winner = tuned.result.rows[0].period_us
    assert winner is not None
    judged = gapless.score(replace(planned, interference=slow), tuned.plan)
    assert winner.median == getattr(judged, "makespan_us" if mode is Mode.BATCH else "period_us")
    best = min(row.period_us.median for row in tuned.result.rows if row.period_us)
    assert winner.median <= best * (1 + SHORT.margin)
