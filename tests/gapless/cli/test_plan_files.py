"""Lists of plans, and what users may name where a plan is needed: a file, a list, the folder of a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import gapless
from gapless.files.plans import named_plan
from gapless.formulations.errors import InvalidInputError, InvalidPlanError
from gapless.formulations.files import dump_plans, load_planned

from ..conftest import Cli, Run

SPARSE = "pixel7a/alexnet-sparse"
BEST = "0-0 Big | 1-3 GPU | 4-4 Little | 5-8 Medium"


@pytest.fixture
def plans(cli: Cli, tmp_path: Path) -> Path:
    """A list of the three best plans that use at most three units."""
    path = tmp_path / "plans.json"
    assert cli("plan", SPARSE, "--top", "3", "--max-units", "3", "--out", path).code == 0
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose plan was made with costs that problem.json does not have."""
    problem, truth = gapless.load_problem(SPARSE, costs="interpolated"), gapless.load_problem(SPARSE)
    tuned = gapless.tuning.tune_simulated(problem, truth, top=3)
    path = tmp_path_factory.mktemp("runs") / "run"
    gapless.running.save_run(tuned, path)
    return path


def said(run: Run) -> str:
    return " ".join(run.err.split())


def test_all_plans_are_kept_with_their_problem(plans: Path) -> None:
    tree = json.loads(plans.read_text())
    assert (tree["format"], len(tree["plans"])) == ("gapless.plans", 3)
    assert tree["asked"] == {"problem": SPARSE, "max_units": "3"}
    found, problem = gapless.load_plans(plans), gapless.load_problem(SPARSE).with_limits(max_units=3)
    assert found == tuple(one.plan for one in gapless.plan(problem, top=3).candidates)
    assert gapless.load_plan(plans) == found[0]
    assert load_planned(plans)[1].fingerprint == problem.fingerprint


def test_one_plan_is_a_plan_file_as_before(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert cli("plan", SPARSE, "--out", path).code == 0
    assert json.loads(path.read_text())["format"] == "gapless.plan"
    assert [str(plan) for plan in gapless.load_plans(path)] == [BEST]


@pytest.mark.parametrize("words", [("tools check",), ("simulate",), ("explain", "--time-limit", "1s")])
def test_the_best_of_a_list_is_taken_unless_told(cli: Cli, plans: Path, words: tuple[str, ...]) -> None:
    first, second, _ = gapless.load_plans(plans)
    run = cli(*words, plans)
    assert run.code == 0
    assert f"plans.json holds 3 plans: the best is taken, [{first}]" in said(run)
    run = cli(*words, plans, "--plan", "2", "--json")
    assert run.code == 0
    assert f"number 2 is taken, [{second}]" in said(run)
    assert second.plan_id in run.out
    run = cli(*words, plans, "--plan", "4")
    assert (run.code, "--plan is 4, but" in said(run), "holds 3 plans" in said(run)) == (2, True, True)


def test_traces_and_pages_of_a_list(cli: Cli, plans: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "trace.json", tmp_path / "page.html"
    assert cli("tools", "trace", plans, "--plan", "3", "--simulated", "--out", out).code == 0
    shown = cli("show", out).out
    assert shown
    run = cli("report", plans, "--backends", "none", "--no-explain", "--out", page)
    assert (run.code, "the best is taken" in said(run)) == (0, True)
    run = cli("show", plans)
    assert run.code == 0
    assert all(str(plan) in run.out for plan in gapless.load_plans(plans))
    assert "VALID" in run.out


@pytest.mark.parametrize(
    "words", [("tools check",), ("simulate",), ("explain", "--time-limit", "1s"), ("show",)]
)
def test_a_folder_stands_for_its_winner(cli: Cli, folder: Path, words: tuple[str, ...]) -> None:
    run = cli(*words, folder, "--json")
    assert run.code == 0
    if words != ("show",):
        assert f"{folder}/deployment.json is taken its problem is {folder}/problem.json" in said(run)
        problem = gapless.with_passage(gapless.load_problem(folder / "problem.json"))  # its winner comes back
        assert run.document["problem"]["fingerprint"] == problem.fingerprint


def test_a_folder_is_refused_without_a_plan(cli: Cli, folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "problem.json", tmp_path)
    run = cli("tools", "check", tmp_path)
    assert (run.code, "holds neither deployment.json nor plan.json" in said(run)) == (2, True)


def test_a_problem_of_a_run_is_the_one_that_was_planned(cli: Cli, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    shutil.copytree(folder, place)
    planned = (place / "problem.json").read_text()
    (place / "problem-interpolated.json").write_text(planned)
    cli("show", SPARSE, "--out", tmp_path / "heavy.json")
    shutil.copy(tmp_path / "heavy.json", place / "problem.json")
    run = cli("tools", "check", place, "--json")
    assert f"its problem is {place}/problem-interpolated.json" in said(run)
    (place / "problem-interpolated.json").unlink()
    assert f"its problem is taken to be {place}/problem.json" in said(cli("tools", "check", place))


def test_limits_and_objectives_count_for_folders(cli: Cli, folder: Path) -> None:
    run = cli("tools", "check", folder, "--max-units", "1")
    assert (run.code, "max_units" in run.out) == (6, True)


def test_compare_and_plan_take_the_problem_of_a_plan(
    cli: Cli, plans: Path, folder: Path, tmp_path: Path
) -> None:
    limited = gapless.load_problem(SPARSE).with_limits(max_units=3)
    for command in ("plan", "compare"):
        words = ("--backends", "native") if command == "compare" else ("--out", tmp_path / "again.json")
        run = cli(command, plans, *words, "--json")
        assert run.code == 0
        assert run.document["problem"]["fingerprint"] == limited.fingerprint
        assert f"the problem of {plans} is taken" in said(run)
        run = cli(command, folder, *words, "--json")
        own = gapless.load_problem(folder / "problem.json")
        assert run.document["problem"]["fingerprint"] == own.fingerprint
    assert cli("tools", "check", tmp_path / "again.json").code == 0
    alone = tmp_path / "profiled"
    alone.mkdir()
    shutil.copy(folder / "problem.json", alone)
    assert f"{alone}/problem.json is taken" in said(cli("plan", alone))


def test_a_problem_that_was_moved_with_its_plan_is_found(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("show", SPARSE, "--out", "problem.json").code == 0
    assert cli("plan", "problem.json", "--out", "plan.json").code == 0
    Path("board").mkdir()
    shutil.move("problem.json", "board")
    shutil.move("plan.json", "board")
    run = cli("tools", "check", "board/plan.json")
    assert (run.code, said(run)) == (0, "its problem is board/problem.json")


def test_replicas_are_no_plan(cli: Cli, tmp_path: Path) -> None:
    chunks = [{"network": "alexnet-sparse", "start": 0, "stop": 9}]
    streams = [{"name": unit, "chunks": [{**chunks[0], "unit": unit}]} for unit in ("Big", "GPU")]
    path = tmp_path / "deployment.json"
    path.write_text(json.dumps({"format": "gapless.deployment", "version": 1, "streams": streams}))
    for words in (("tools check",), ("simulate",), ("tools trace", "--simulated")):
        run = cli(*words, SPARSE, path)
        assert (run.code, "holds replicas" in said(run)) == (2, True), words


def test_lists_that_are_wrong(tmp_path: Path) -> None:
    problem = gapless.load_problem(SPARSE)
    path = tmp_path / "plans.json"
    path.write_text(dump_plans([], problem))
    with pytest.raises(InvalidPlanError, match="at least one plan"):
        named_plan(path)
    best = gapless.plan(problem).plan
    assert best is not None
    path.write_text(dump_plans([best, best], problem).replace(best.plan_id, "0" * 12, 1))
    with pytest.raises(InvalidPlanError, match="it was edited"):
        gapless.load_plans(path)
    with pytest.raises(InvalidInputError, match="it holds a list of plans"):
        gapless.load_problem(path)
    tree = json.loads(dump_plans([best], problem, {"problem": SPARSE}))
    path.write_text(json.dumps({**tree, "asked": {"weather": "fine"}}))
    from gapless.files.plans import problem_of_plan

    with pytest.raises(InvalidInputError, match="by 'weather', which this gapless does not know"):
        problem_of_plan(named_plan(path))
