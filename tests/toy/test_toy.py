"""A formulation that nothing outside this folder knows has all commands, through the generic views."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import gapless
from gapless.api.planning import default_backend
from gapless.api.problems import table_problem
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_plan, dump_problem, load_plan, load_problem
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.rules import named
from gapless.formulations.terms import Objective
from gapless.solvers.families import EXACT_BACKENDS
from gapless.view.presenter import GENERIC, Presenter, presenter_of, register_presenter

from ..gapless.conftest import Cli, cli
from .family import Toy

__all__ = ["cli"]  # the fixture of the command line tests

TIMES_US = {"a": (4000, 7000), "b": (3000, None), "c": (5000, 2000), "d": (1000, 6000)}
"""Of each job on cpu and gpu."""


def jobs() -> Problem:
    """Return four jobs of one layer on two units; the second one cannot run b."""
    return Problem(
        platform=Platform(name="board", units=(ProcessingUnit(name="cpu"), ProcessingUnit(name="gpu"))),
        networks=tuple(
            Network(name=name, layers=(Layer(name="all", op_types=("Op",)),)) for name in TIMES_US
        ),
        costs=CostTable(
            units=("cpu", "gpu"),
            networks=tuple(NetworkCosts(network=name, layer_us=(times,)) for name, times in TIMES_US.items()),
        ),
        objective=Objective(terms=("period", "work")),
        data=Toy(weights=(1, 2, 1, 1)),
    )


def brute() -> list[tuple[int, int]]:
    """Return (period, work) of all assignments, the best first: nothing of the formulation is used."""
    found = []
    for mask in range(2 ** len(TIMES_US)):
        loads, work = [0, 0], 0
        for job, (name, times) in enumerate(TIMES_US.items()):
            unit = mask >> job & 1
            time = times[unit]
            if time is None:
                break
            loads[unit] += time
            work += time * (2 if name == "b" else 1)
        else:
            found.append((max(loads), work))
    return sorted(found)


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.json"
    path.write_text(dump_problem(jobs()))
    return path


@pytest.fixture
def plan_file(tmp_path: Path, problem_file: Path, cli: Cli) -> Path:
    path = tmp_path / "jobs.plan.json"
    assert cli("plan", problem_file, "--out", path).code == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("backend", EXACT_BACKENDS)
def test_exact_backends_keep_rules_and_rank_alike(backend: str) -> None:
    best = gapless.plan(jobs(), backend=backend, top=3)
    assert [candidate.score.values(("period", "work")) for candidate in best.candidates] == brute()[:3]
    assert best.status == "optimal"
    rules = [
        named("a on cpu", "a runs on cpu", lambda view: view.on("a", "cpu")),
        named("cap", "the cpu works 8 ms at most", lambda view: view.busy_us("cpu") <= 8000),
    ]
    ruled = gapless.plan(jobs(), backend=backend, rules=rules, top=50)
    # Only the cpu can run b; beside a and b it has no time for c.
    assert [units(candidate.plan) for candidate in ruled.candidates] == ["cpu cpu gpu cpu", "cpu cpu gpu gpu"]
    assert ruled.exhausted


def units(plan: Plan) -> str:
    where = {chunk.network: chunk.unit for chunk in plan.chunks}
    return " ".join(where[name] for name in TIMES_US)


def test_without_a_native_algorithm_the_first_exact_backend_solves() -> None:
    assert default_backend(jobs()) == "exhaustive"
    assert gapless.plan(jobs()).backend == "exhaustive"
    assert default_backend(table_problem([[1, 2]], ["cpu", "gpu"])) == "native"


def test_plan(cli: Cli, problem_file: Path) -> None:
    found = cli("plan", problem_file, "--top", "3")
    assert found.code == 0
    assert "a, b, c, d on board: 4 layers, 2 units; least period, then work" in found.out
    assert (
        "OPTIMAL  proved: these 3 plans are the best ones, in this order, among plans that run each job"
        in found.out
    )
    assert "period: largest load of a unit; work: weighted time of all jobs" in found.out
    assert "requests/s" not in found.out
    document = cli("plan", problem_file, "--top", "3", "--json").document
    assert [each["score"]["period_us"] for each in document["candidates"]] == [p for p, _ in brute()[:3]]
    loads = document["candidates"][0]["score"]["busy_us"]
    assert max(loads.values()) == brute()[0][0]
    assert document["problem"]["toy"] == {"weights": [1, 2, 1, 1]}


def test_files_come_back(problem_file: Path, plan_file: Path) -> None:
    assert "toy" in json.loads(problem_file.read_text())
    assert load_problem(problem_file) == jobs()
    assert load_problem(problem_file).fingerprint == jobs().fingerprint
    assert load_plan(plan_file) == gapless.plan(jobs()).plan


def test_compare(cli: Cli, problem_file: Path) -> None:
    found = cli("compare", problem_file)
    assert found.code == 0
    assert "4 backends prove the same optimum among plans that run each job whole on one unit:" in found.out
    document = cli("compare", problem_file, "--json").document
    assert [result["backend"] for result in document["results"]] == list(EXACT_BACKENDS)
    assert document["disagreements"] == []


def test_check(cli: Cli, problem_file: Path, plan_file: Path) -> None:
    found = cli("tools", "check", plan_file)
    assert found.code == 0
    assert found.out.startswith("VALID")
    assert "c" in next(line for line in found.out.splitlines() if line.split()[:1] == ["gpu"])
    broken = cli("tools", "check", plan_file, "--max-period", "100us")
    assert broken.code == 6
    assert "VIOLATED" in broken.out
    assert "max_period_us" in broken.out
    document = cli("tools", "check", plan_file, "--json").document
    assert document["valid"]
    assert document["score"]["throughput_per_s"] is None


def test_impossible_plans_say_why(cli: Cli, problem_file: Path, tmp_path: Path) -> None:
    plan = Plan(chunks=tuple(Chunk(network=name, start=0, stop=1, unit="gpu") for name in TIMES_US))
    path = tmp_path / "wrong.json"
    path.write_text(dump_plan(plan, jobs()))
    found = cli("tools", "check", problem_file, path)
    assert found.code == 6
    assert "'gpu' cannot run 'b'" in found.out


def test_explain(cli: Cli, problem_file: Path, plan_file: Path) -> None:
    found = cli("explain", plan_file)
    assert found.code == 0
    assert "Proved: no valid one is better among plans that run each job" in found.out
    assert "only it can run" in found.out
    document = cli("explain", plan_file, "--json").document
    assert document["proven"]
    assert document["values"] == list(brute()[0])
    assert document["next_best"]["values"] == list(brute()[1])
    units = {reason["unit"]: reason for reason in document["units"]}
    assert units["gpu"]["used"]
    assert units["gpu"]["otherwise"]["values"] == [13000, 16000]


def test_explain_what_a_limit_costs(cli: Cli, problem_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    assert cli("plan", problem_file, "--max-units", "1", "--out", path).code == 0
    document = cli("explain", path, "--json").document
    binding = {entry["name"]: entry for entry in document["bindings"]}["max_units"]
    assert binding["binds"]
    assert binding["without"]["values"] == list(brute()[0])


def test_infeasible_problems_name_the_conflict(cli: Cli, problem_file: Path) -> None:
    for backend in EXACT_BACKENDS:
        found = cli("plan", problem_file, "--backend", backend, "--max-period", "100us", "--json")
        assert found.code == 3
        assert [item["name"] for item in found.document["conflict"]["items"]] == ["max_period_us"]
        assert found.document["unfiltered"]["score"]["period_us"] == brute()[0][0]
    assert "Without the limits the best plan is" in cli("plan", problem_file, "--max-period", "100us").out


def test_show(cli: Cli, problem_file: Path, plan_file: Path) -> None:
    found = cli("show", problem_file)
    assert found.code == 0
    assert "7.000 ms" in found.out
    assert "at most 16" in found.out
    assert "VALID" in cli("show", plan_file).out
    assert cli("show", problem_file, "--layers", "0-1").code == 2


def test_report(cli: Cli, problem_file: Path, plan_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = cli("report", plan_file, "--out", page, "--time-limit", "20s")
    assert found.code == 0, found.err
    text = page.read_text()
    assert "A plan for a, b and" in text or "A plan for a, b, c and 1 more" in text
    assert "Period, predicted" in text
    assert "weighted time of all jobs." in text
    assert "4 backends prove the same optimum among" in text
    assert cli("report", problem_file, "--out", page, "--backends", "none", "--no-explain").code == 0


def test_what_cannot_be_run_is_refused_in_words(cli: Cli, plan_file: Path) -> None:
    with pytest.raises(InvalidInputError, match="not run or simulated"):
        operation_of(jobs())
    found = cli("simulate", plan_file)
    assert found.code == 2
    assert "not run or simulated" in found.err


def test_pictures_of_busy_times() -> None:
    plan = gapless.plan(jobs()).plan
    assert plan is not None
    times = GENERIC.unit_times(jobs(), plan)
    assert max(time.busy for time in times) == brute()[0][0] / 1000


def test_a_presenter_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loud(Presenter):
        plan_title = "JOBS"

    assert presenter_of(jobs()) is GENERIC
    monkeypatch.setattr("gapless.view.presenter._presenters._known", {})
    loud = Loud()
    register_presenter("toy", loud)
    assert presenter_of(jobs()) is loud
    assert presenter_of(table_problem([[1, 2]], ["cpu", "gpu"])) is not loud


def test_nothing_else_knows_of_this_formulation() -> None:
    root = Path(__file__).parent.parent.parent
    code = ["*.py", "*.pyi", "*.toml", "*.ipynb", ":!tests/toy"]
    found = subprocess.run(
        ["git", "grep", "-niw", "-e", "toy", "--", *code],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.stdout, found.stderr) == ("", "")
