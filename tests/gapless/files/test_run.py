"""A run folder holds one run: who may begin one there, what is removed, and what is never touched."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gapless
from gapless.executor.tuning.store import Store
from gapless.files.run import Entry, Run, begin
from gapless.files.run_document import RunState, read_run
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import load, load_problem
from gapless.formulations.problem import Problem
from gapless.profiler.prediction.published import load_executions

from ..conftest import Cli

SPARSE, OCTREE = "pixel7a/alexnet-sparse", "pixel7a/octree"
NAMES = {"run.json", "tuning.json", "problem.json", "plan.json", "executions.json", "store.sqlite"}


def tune(cli: Cli, out: Path, *words: str, name: str = SPARSE) -> tuple[int, str]:
    """Tune on a simulated device; return the exit code, and what was said, in one line."""
    run = cli("tune", name, "--engine", "simulated", "--noise", "0%", "--top", "2", "--out", out, *words)
    return run.code, " ".join(run.err.split())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def shipped(name: str = SPARSE) -> Problem:
    return gapless.load_problem(name)


def test_a_used_folder_is_refused_and_left_alone(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert tune(cli, out)[0] == 0
    before = contents(out)
    assert before.keys() >= NAMES
    code, said = tune(cli, out)
    assert code == 2
    assert "holds a run (finished): tune alexnet-sparse, simulated" in said
    for way in (
        f"another folder, e.g. {tmp_path}/run-2",
        "nothing is measured twice: --resume",
        "--overwrite",
    ):
        assert way in said
    code, said = tune(cli, out, name=OCTREE)
    assert (code, "cannot be resumed" in said) == (2, True)
    assert tune(cli, out, "--resume", name=OCTREE)[0] == 2
    assert contents(out) == before


@pytest.mark.slow
def test_a_run_in_the_place_of_another_leaves_nothing_of_it(cli: Cli, tmp_path: Path) -> None:
    assert tune(cli, tmp_path, "--rounds", "2")[0] == 0
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "problem-2.json").write_text((tmp_path / "problem.json").read_text())
    (tmp_path / "store.sqlite-journal").write_bytes(b"")
    assert tune(cli, tmp_path, "--overwrite", name=OCTREE)[0] == 0
    found = {path.name for path in tmp_path.iterdir()}
    assert found >= {*NAMES, "notes.txt", "problem-2.json"}, "what users put there stays"
    assert not found & {"rounds.json", "store.sqlite-journal"}
    assert load_problem(tmp_path / "problem.json").network.name == "octree"
    assert load_executions(tmp_path / "executions.json").network.name == "octree"
    with sqlite3.connect(tmp_path / "store.sqlite") as kept:
        assert kept.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_the_same_run_is_resumed_and_its_files_replaced(cli: Cli, tmp_path: Path) -> None:
    assert tune(cli, tmp_path, "--rounds", "2")[0] == 0
    assert (tmp_path / "rounds.json").exists()
    code, said = tune(cli, tmp_path, "--resume")
    assert (code, f"removed {tmp_path}/rounds.json: of the session before" in said) == (0, True)
    assert not (tmp_path / "rounds.json").exists(), "the run has no rounds any more"
    assert tune(cli, tmp_path, "--resume", "--overwrite") == (
        2,
        "error: --resume goes on with a run and --overwrite removes it: give one of them",
    )


def test_a_run_of_another_command_is_never_gone_on_with(cli: Cli, tmp_path: Path) -> None:
    assert tune(cli, tmp_path / "tuned")[0] == 0
    with begin(tmp_path / "profiled", "profile", shipped(), simulated=True) as run:
        fail_not(run)
    resume = Entry(resume=True)
    for folder, command in (("tuned", "profile"), ("profiled", "tune")):
        before = contents(tmp_path / folder)
        with (
            pytest.raises(InvalidInputError, match=f"not of `gapless {command}`, so it cannot be resumed"),
            begin(tmp_path / folder, command, shipped(), entry=resume, simulated=True),
        ):
            pass
        assert contents(tmp_path / folder) == before
    (tmp_path / "tuned" / "run.json").unlink()
    with (
        pytest.raises(InvalidInputError, match="It is of `gapless tune`"),
        begin(tmp_path / "tuned", "profile", shipped(), entry=resume, simulated=True),
    ):
        pass


def test_what_was_saved_goes_on_only_with_the_same(tmp_path: Path) -> None:
    problem = shipped()
    gapless.running.save_run(gapless.tuning.tune_simulated(problem, problem, top=2), tmp_path)
    before, resume = contents(tmp_path), Entry(resume=True)
    for saves, command in (("", "profile"), ("profile", "save_run")):
        with (
            pytest.raises(InvalidInputError, match="It is of `gapless tune`, not of `gapless profile`"),
            begin(tmp_path, command, shipped(), entry=resume, simulated=True, saves=saves),
        ):
            pass
    assert contents(tmp_path) == before


@pytest.mark.slow
def test_runs_sweeps_and_comparisons_do_not_go_on_with_each_other(cli: Cli, tmp_path: Path) -> None:
    run, swept, compared = tmp_path / "run", tmp_path / "swept", tmp_path / "compared"
    assert tune(cli, run)[0] == 0
    spec = tmp_path / "spec.json"
    spec.write_text(
        '{"format": "gapless.sweep", "version": 1, "models": ["octree"], "platforms": ["pixel7a"]}'
    )
    many = tmp_path / "many.json"
    family = '{"formulation": "flow_shop", "requests": 2, "units": 2, "seeds": 1}'
    many.write_text(f'{{"format": "gapless.instances", "version": 1, "title": "", "generate": {family}}}')
    sweep, compare = ("sweep", spec), ("compare", "--instances", many, "--backends", "serial")
    assert cli(*sweep, "--jobs", "1", "--out", swept).code == 0
    assert cli(*compare, "--out", compared).code == 0
    before = {folder: contents(folder) for folder in (run, swept, compared)}
    for words, folder in ((sweep, run), (sweep, compared), (compare, swept), (compare, run)):
        refused = cli(*words, "--out", folder, "--resume")
        assert (refused.code, "cannot go on" in refused.err) == (2, True), refused.err
    code, said = tune(cli, swept, "--resume")
    assert (code, "holds a sweep" in said) == (2, True), said
    assert before == {folder: contents(folder) for folder in before}


def fail_not(run: Run) -> None:
    with Store(run.store) as store:
        store.keep("kind", "key", "measured")


def test_files_of_the_user_with_names_of_gapless_are_never_touched(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"my": "plan"}')
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    before = contents(tmp_path)
    for words in ((), ("--overwrite",), ("--resume",)):
        code, said = tune(cli, tmp_path, *words)
        assert code == 2
        assert "plan.json: its format is None" in said
        assert "table.csv: it does not begin with" in said
    assert contents(tmp_path) == before


def test_what_fails_before_it_measures_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert tune(cli, out, "--objective", "nonsense")[0] == 2
    assert not out.exists()
    out.mkdir()
    assert tune(cli, out, "--backends", "nobody")[0] != 0
    assert not list(out.iterdir())
    assert tune(cli, out)[0] == 0


def fail(run: Run) -> None:
    with Store(run.store) as store:
        store.keep("kind", "key", "measured for hours")
    raise RuntimeError


def test_a_run_that_failed_says_so_and_keeps_what_was_measured(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), begin(tmp_path, "tune", shipped()) as run:
        fail(run)
    assert state(tmp_path) is RunState.FAILED
    with (
        pytest.raises(InvalidInputError, match=r"holds a run \(failed\)"),
        begin(tmp_path, "tune", shipped()),
    ):
        pass
    resume = Entry(resume=True)
    with begin(tmp_path, "tune", shipped(), entry=resume) as again, Store(again.store) as store:
        assert store.find("kind", "key") == "measured for hours"


def test_results_are_kept_until_there_are_new_ones(tmp_path: Path, cli: Cli) -> None:
    assert tune(cli, tmp_path)[0] == 0
    plan = (tmp_path / "plan.json").read_bytes()
    how = {"entry": Entry(resume=True), "simulated": True}
    with pytest.raises(KeyboardInterrupt), begin(tmp_path, "tune", shipped(), **how):  # type: ignore[arg-type]
        raise KeyboardInterrupt
    found = read_run(tmp_path)
    assert found is not None
    assert (found.state, found.engine, "plan.json" in found.files) == (
        RunState.INTERRUPTED,
        "simulated",
        True,
    )
    assert (tmp_path / "plan.json").read_bytes() == plan


def test_measured_and_simulated_are_two_things(tmp_path: Path, cli: Cli) -> None:
    assert tune(cli, tmp_path)[0] == 0
    with (
        pytest.raises(InvalidInputError, match="another model or problem"),
        begin(tmp_path, "tune", shipped(), entry=Entry(resume=True)),
    ):
        pass


@pytest.mark.slow
def test_a_folder_of_an_earlier_gapless_goes_by_its_problem(cli: Cli, tmp_path: Path) -> None:
    assert tune(cli, tmp_path)[0] == 0
    (tmp_path / "run.json").unlink()
    assert "holds files of a run" in tune(cli, tmp_path)[1]
    assert tune(cli, tmp_path, "--resume", name=OCTREE)[0] == 2
    assert tune(cli, tmp_path, "--resume")[0] == 0
    (tmp_path / "run.json").write_text('{"format": "gapless.run", "version": 1, "edited": true}')
    assert tune(cli, tmp_path)[0] == 2
    assert tune(cli, tmp_path, "--overwrite")[0] == 0


HOLD = """
import sys, time
import gapless
from gapless.files.run import begin
with begin(sys.argv[1], "tune", gapless.load_problem("pixel7a/octree")) as run:
    run.store.write_bytes(b"")
    (run.place / "plan.json").write_text('{"format": "gapless.plan"}')
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_two_processes_do_not_work_in_one_folder(cli: Cli, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"begun\n"
        for words in ((), ("--resume",), ("--overwrite",)):
            code, said = tune(cli, tmp_path, *words)
            assert code == 2
            assert f"is in use: process {other.pid} works on tune octree" in said
        assert state(tmp_path) is RunState.RUNNING
        os.kill(other.pid, signal.SIGKILL)
    time.sleep(0.1)
    assert state(tmp_path) is RunState.INTERRUPTED, "killed: nobody could say how it ended"
    assert tune(cli, tmp_path, "--overwrite")[0] == 0


def test_python_saves_runs_alike(tmp_path: Path) -> None:
    problem = shipped()
    tuned = gapless.tuning.tune_simulated(problem, problem, top=2)
    written = gapless.running.save_run(tuned, tmp_path / "run")
    assert str(tmp_path / "run" / "plan.json") in written
    found = read_run(tmp_path / "run")
    assert found is not None
    assert (found.command, found.simulated, found.state) == ("save_run", True, RunState.FINISHED)
    assert found.units == problem.platform.unit_names
    with pytest.raises(InvalidInputError, match="overwrite=True"):
        gapless.running.save_run(tuned, tmp_path / "run")
    gapless.running.save_run(tuned, tmp_path / "run", resume=True)
    other = shipped(OCTREE)
    with pytest.raises(InvalidInputError, match="another model or problem"):
        gapless.running.save_run(
            gapless.tuning.tune_simulated(other, other, top=2), tmp_path / "run", resume=True
        )
    gapless.running.save_run(
        gapless.tuning.tune_simulated(other, other, top=2), tmp_path / "run", overwrite=True
    )
    assert json.loads((tmp_path / "run" / "problem.json").read_text())["networks"][0]["name"] == "octree"


def state(folder: Path) -> RunState:
    """Return how far the run of a folder has come."""
    from gapless.files.run_document import RUN

    return load(folder / "run.json", RUN).standing


def test_a_run_is_what_begin_returns(tmp_path: Path) -> None:
    with begin(tmp_path / "new", "tune", shipped()) as run:
        assert isinstance(run, Run)
        assert run.store == tmp_path / "new" / "store.sqlite"
    assert not (tmp_path / "new").exists()


def test_a_used_folder_is_refused_before_a_model_is_opened(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(cli, out := tmp_path / "run")

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a model was opened")

    monkeypatch.setattr("gapless.api.models.open_model", opened)
    for command in ("tune", "profile"):
        run = cli(command, "squeezenet", "--out", out)
        assert run.code == 2
        assert "go on with it, if it is about the same" in run.err
