"""What happens when a backend fails, lies or is interrupted, and in a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.api import diagnosis
from gapless.api.comparison import BackendFailure, Comparison
from gapless.api.planning import compare
from gapless.api.problems import load_problem
from gapless.cli.base.exits import ExitCode, code_of_comparison, code_of_error
from gapless.formulations.errors import (
    BackendDisagreementError,
    BackendError,
    BackendFailedError,
    BackendUnavailableError,
    ExpressionError,
    InvalidProblemError,
    UnknownBackendError,
    UnsupportedFeatureError,
)
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import Claim, SolveOptions

from ...solvers import fakes
from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"
BEST = ((0, 1, "Big"), (1, 4, "GPU"), (4, 5, "Little"), (5, 9, "Medium"))


def fake(act: Callable[[Problem, SolveOptions], Claim]) -> Callable[[str], fakes.FakeBackend]:
    return lambda name: fakes.FakeBackend(act=act)


def test_a_failing_backend_is_exit_code_5(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.solvers.registry.get_backend", fake(fakes.fail))
    run = cli("plan", SPARSE)
    assert run.code == ExitCode.FAILURE
    assert "ZeroDivisionError: by nought" in run.err
    document = cli("plan", SPARSE, "--json").document
    assert (document["format"], document["error"], document["exit_code"]) == (
        "gapless.error",
        "BackendFailedError",
        5,
    )


def test_a_lying_backend_is_exit_code_6(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    best = fakes.plan(*BEST, network="alexnet-sparse")
    lie = fakes.optimal(best, values=(1, 1), bound=1)
    monkeypatch.setattr("gapless.solvers.registry.get_backend", fake(lambda problem, options: lie))
    run = cli("plan", SPARSE)
    assert run.code == ExitCode.VERIFICATION
    assert "7648" in run.err


def test_ctrl_c_loses_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    best = fakes.plan(*BEST, network="alexnet-sparse")

    def show_and_stop(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(fakes.feasible(best, bound=7000))
        raise KeyboardInterrupt

    monkeypatch.setattr("gapless.solvers.registry.get_backend", fake(show_and_stop))
    out = tmp_path / "best.json"
    run = cli("plan", SPARSE, "--out", out)
    assert run.code == ExitCode.INTERRUPTED
    assert "FEASIBLE" in run.out
    assert "7.648 ms" in run.out
    assert "interrupted" in run.err
    assert out.exists()
    document = cli("plan", SPARSE, "--json").document
    assert (document["status"], document["stop"], document["bound"]) == ("feasible", "interrupted", 7000)
    compared = cli("compare", SPARSE, "--backends", "fake", "--json")
    assert compared.code == ExitCode.INTERRUPTED
    assert compared.document["interrupted"] is True
    assert compared.document["results"][0]["objective"] == 7648


def test_ctrl_c_before_anything_was_found(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(problem: Problem, options: SolveOptions) -> Claim:
        raise KeyboardInterrupt

    monkeypatch.setattr("gapless.solvers.registry.get_backend", fake(stop))
    run = cli("plan", SPARSE, "--json")
    assert (run.code, run.document["status"], run.document["candidates"]) == (130, "no_solution", [])


def test_a_bug_is_one_line_unless_debug_is_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> object:
        raise KeyError("nothing [red]here[/red]\x1b[31m")

    monkeypatch.setattr(diagnosis, "doctor", broken)
    run = cli("doctor")
    assert run.code == ExitCode.INTERNAL
    assert run.err.startswith("error: gapless has a bug: KeyError: ")
    assert "[red]here[/red]" in run.err
    assert "\x1b" not in run.err
    assert "Traceback" not in run.err
    assert "Traceback" in cli("doctor", "--debug").err
    assert cli("doctor", "--json").document["exit_code"] == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidProblemError("x"), 2),
        (UnknownBackendError("x"), 2),
        (ExpressionError("x"), 2),
        (UnsupportedFeatureError("x"), 2),
        (BackendUnavailableError("x"), 5),
        (BackendFailedError("x"), 5),
        (BackendDisagreementError("x"), 6),
        (KeyboardInterrupt(), 130),
        (OSError("x"), 5),
        (KeyError("x"), 1),
    ],
)
def test_exit_codes_of_errors(error: BaseException, code: int) -> None:
    assert code_of_error(error) == code


def comparison(*errors: BackendError, disagreements: tuple[str, ...] = (), backend: str = "") -> Comparison:
    problem = load_problem(SPARSE)
    return Comparison(
        problem=problem,
        results=compare(problem, backends=[backend]).results if backend else (),
        failures=tuple(BackendFailure(backend="other", error=error) for error in errors),
        disagreements=disagreements,
    )


def test_exit_codes_of_comparisons() -> None:
    missing, crash, lie = (
        BackendUnavailableError("x"),
        BackendFailedError("x"),
        BackendDisagreementError("x"),
    )
    assert code_of_comparison(comparison(backend="native"), required=()) == 0
    assert code_of_comparison(comparison(missing, backend="native"), required=()) == 0
    assert code_of_comparison(comparison(missing, backend="native"), required=("other",)) == 5
    assert code_of_comparison(comparison(missing), required=()) == 5
    assert code_of_comparison(comparison(crash, backend="native"), required=()) == 5
    assert code_of_comparison(comparison(lie, backend="native"), required=()) == 6
    assert code_of_comparison(comparison(disagreements=("x",), backend="native"), required=()) == 6


def test_compare_shows_who_failed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.solvers.registry.get_backend", fake(fakes.fail))
    run = cli("compare", SPARSE, "--backends", "fake")
    assert run.code == ExitCode.FAILURE
    assert "fake FAILED: backend 'fake' failed: ZeroDivisionError" in run.out
    document = cli("compare", SPARSE, "--backends", "fake", "--json").document
    assert document["failures"][0]["error"] == "BackendFailedError"


def test_a_feasible_answer_shows_bound_and_gap(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = fakes.feasible(fakes.plan(*BEST, network="alexnet-sparse"), bound=7000)
    for module in ("solvers.session", "solvers.registry"):
        monkeypatch.setattr(f"gapless.{module}.get_backend", fake(lambda problem, options: claim))
    run = cli("plan", SPARSE)
    assert run.code == 0
    assert "not proved to be the best one: stopped by the time limit" in run.out
    assert "no valid one has less period than 7.000 ms" in run.out
    assert "8.47 %" in cli("compare", SPARSE, "--backends", "fake").out


def test_results_of_every_objective_can_be_shown(cli: Cli) -> None:
    for objective in ("gapness", "bubbles,period", "peak_memory", "idle", "paper", "slack:50"):
        assert cli("plan", SPARSE, "--top", "3", "--objective", objective).code == 0


def gapless(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gapless", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
def test_the_module_runs_as_a_program() -> None:
    run = gapless("plan", SPARSE, "--json")
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)["objective"] == 7648
    wrong = gapless("plan", "nowhere")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: 'nowhere' is neither a file")


@pytest.mark.slow
def test_output_survives_a_terminal_without_unicode(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    problem = {
        "platform": {"name": "Gerät", "units": [{"name": "größe"}]},
        "networks": [{"name": "ネット", "layers": [{"name": "שכבה"}]}],
        "costs": {"units": ["größe"], "networks": [{"network": "ネット", "layer_us": [[5]]}]},
    }
    path.write_text(json.dumps({"format": "gapless.problem", "version": 1, **problem}))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    run = gapless("plan", str(path), env=environment)
    assert (run.returncode, run.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in run.stdout


@pytest.mark.slow
def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m gapless show {SPARSE}"
    with subprocess.Popen(
        command.split(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == ExitCode.BROKEN_PIPE


@pytest.mark.parametrize(
    ("redirected", "code", "words"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, None),
        (">&- 2>&- <&-", 0, ""),
        ("2>/dev/full", 0, None),
        ("> /dev/full", 5, "error: cannot write to standard output: No space left on device"),
        ("--json > /dev/full", 5, "error: cannot write to standard output: No space left on device"),
        ("--json >&-", 0, ""),
    ],
)
@pytest.mark.slow
def test_a_stream_that_is_closed_or_full_is_no_bug(redirected: str, code: int, words: str | None) -> None:
    """`None`: the answer is there, and nothing on standard error can be."""
    command = f"exec {sys.executable} -m gapless plan {SPARSE} {redirected}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stderr
    if words is None:
        assert ("0-0 Big" in run.stdout, run.stderr) == (True, "")
    else:
        assert (run.stdout, run.stderr[: len(words) or None]) == ("", words)


@pytest.mark.slow
def test_a_real_ctrl_c_ends_a_real_program(tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import time\nfrom gapless import OpaqueRule\n"
        "def slow(plan):\n    print('working', flush=True)\n    time.sleep(600)\n    return True\n"
        "rule = OpaqueRule(name='slow', predicate=slow)\n"
    )
    command = [sys.executable, "-m", "gapless", "plan", SPARSE, "--rules", str(rules), "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "working\n"
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        assert process.returncode == 130
        assert time.monotonic() - started < 60
        assert json.loads(out)["stop"] == "interrupted"


EARLY = """
import os, runpy, signal, sys
wanted = [sys.argv.pop(1)]
class Pressing:
    def find_spec(self, name, path=None, target=None):
        if name in wanted and wanted.pop():
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
runpy.run_module("gapless", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("loaded", ["gapless.cli", "typer", "rich.console", "gapless.cli.commands.planning"])
def test_ctrl_c_while_the_program_is_loaded(loaded: str) -> None:
    command = [sys.executable, "-c", EARLY, loaded, "plan", SPARSE]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "error: interrupted\n")
    run = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert (run.returncode, json.loads(run.stdout)["exit_code"]) == (130, 130)


def test_the_script_begins_where_the_module_does() -> None:
    pyproject = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert pyproject["project"]["scripts"]["gapless"] == "gapless.__main__:main"


@pytest.mark.parametrize(
    ("words", "resumes"), [(("profile", "squeezenet"), True), (("show", "squeezenet"), False)]
)
def test_ctrl_c_names_resume_where_it_applies(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], resumes: bool
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gapless.api.models.open_all", stop)
    monkeypatch.setattr("gapless.cli.commands.showing.showing", stop, raising=False)
    shown = cli(*words)
    assert ("--resume goes on" in shown.err) == resumes
    assert shown.code == (ExitCode.INTERRUPTED if resumes else shown.code)
