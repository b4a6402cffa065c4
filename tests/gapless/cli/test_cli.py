"""Every command, for people and for machines, with its exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from gapless import __version__
from gapless.answers.doctor import doctor_blocks
from gapless.api.diagnosis import Diagnosis, EngineReport
from gapless.cli.base.exits import ExitCode
from gapless.formulations.availability import Availability
from gapless.view.terminal.blocks import blocks_view

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"
BEST = ((0, 1, "Big"), (1, 4, "GPU"), (4, 5, "Little"), (5, 9, "Medium"))


def test_version(cli: Cli) -> None:
    assert cli("tools", "version").out == f"gapless {__version__}\n"
    assert cli("--version").out == f"gapless {__version__}\n"
    assert cli("tools", "version", "--json").document["gapless"] == __version__


def test_without_a_command_the_help_is_shown(cli: Cli) -> None:
    run = cli()
    assert run.code == 0
    assert "compare" in run.out


@pytest.mark.slow
def test_doctor_names_every_backend(cli: Cli) -> None:
    run = cli("doctor")
    assert run.code == 0
    (line,) = (line for line in run.out.splitlines() if "with a workload" in line)
    assert line.split()[3:] == ["native,", "exhaustive,", "cpsat,", "z3,", "pulp,", "pulp-cbc"]
    assert len(run.out.splitlines()) < 40
    run = cli("doctor", "--backends")
    for name in ("native", "exhaustive", "cpsat", "z3", "pulp"):
        assert name in run.out
    assert "bounded" in run.out  # native, on workloads
    assert "* z3-paper does not handle, of chunking: anything but unsupported layers" in run.out
    assert len(run.out.splitlines()) < 130
    backends = {entry["name"]: entry for entry in cli("doctor", "--json").document["backends"]}
    assert backends["native"]["ok"] is True
    assert backends["native"]["guarantee"] == "exact"


@pytest.mark.parametrize(("reached", "told"), [("opencl-cpu", True), ("opencl", False)])
def test_doctor_says_where_to_read_about_a_gpu_where_none_is_reached(reached: str, *, told: bool) -> None:
    engines = tuple(
        EngineReport(name=name, found=Availability(ok=True), backends=("cpu", name))
        for name in ("cpu", reached)
    )
    diagnosis = Diagnosis(
        gapless="", python="", system="", device="", cores=1, backends=(), engines=engines, permissions=()
    )
    shown = io.StringIO()
    Console(file=shown, width=120).print(blocks_view(doctor_blocks(diagnosis)))
    assert ("docs/how-to/use-a-gpu.md" in shown.getvalue()) is told
    assert (Path(__file__).parents[3] / "docs/how-to/use-a-gpu.md").exists()


@pytest.mark.slow
def test_doctor_survives_a_broken_backend(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise OSError(f"{name}: wrong ELF class")

    monkeypatch.setattr("gapless.api.diagnosis.get_backend", broken)
    run = cli("doctor")
    assert run.code == 0
    assert "native: broken: OSError: native: wrong ELF class" in run.out


def test_plans_that_predictions_do_not_tell_apart_are_a_tier(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--top", "6")
    assert "tier: plans whose period is within 5 %" in run.out
    rows = [line.split()[:2] for line in run.out.splitlines() if " GPU | " in line]
    assert rows[:6] == [["1", "1"], ["2", "1"], ["3", "1"], ["4", "1"], ["5", "2"], ["6", "2"]]
    assert "tier" not in cli("plan", SPARSE).out


def test_platforms_lists_the_shipped_problems(cli: Cli) -> None:
    assert SPARSE in cli("list", "problems").out
    problems = cli("list", "problems", "--json").document["problems"]
    assert {"name": SPARSE, "costs": ["isolated", "heavy", "interpolated"]} in problems
    assert len(problems) == 13


def test_show(cli: Cli) -> None:
    run = cli("show", SPARSE, "--min-units", "2")
    assert run.code == 0
    for words in ("conv1", "5.225 x1.2", "Medium", "min_units 2", "2,116", "BetterTogether"):
        assert words in run.out
    document = cli("show", SPARSE, "--costs", "isolated", "--json").document
    assert document["most_plans"] == 2116
    assert document["document"]["costs"]["provenance"]["method"] == "isolated"


def test_show_writes_a_problem_that_can_be_planned(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    assert cli("show", SPARSE, "--objective", "gapness", "--out", path).err == f"wrote {path}\n"
    document = cli("plan", path, "--json").document
    assert document["terms"] == ["gapness"]
    assert document["problem"]["platform"] == "pixel7a"


def test_more_plans_than_python_writes_are_told_by_their_power(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gapless.cli.tasks.showing.count_plans", lambda problem: 10**5000 - 1)
    assert "at most 10^5000" in cli("show", "pixel7a/octree").out
    assert cli("show", "pixel7a/octree", "--json").document["most_plans"] is None


def test_show_of_a_large_problem_is_short(cli: Cli, tmp_path: Path) -> None:
    layers = [{"name": f"l{index}"} for index in range(500)]
    rows = [[1] * 20 for _ in layers]
    units = [f"u{index}" for index in range(20)]
    path = tmp_path / "large.json"
    costs = {"units": units, "networks": [{"network": "n", "layer_us": rows}]}
    platform = {"name": "p", "units": [{"name": name} for name in units]}
    problem = {"platform": platform, "networks": [{"name": "n", "layers": layers}], "costs": costs}
    path.write_text(json.dumps({"format": "gapless.problem", "version": 1, **problem}))
    run = cli("show", path)
    assert run.code == 0
    assert "9 layers a row; --layers 0-59 shows single ones" in run.out
    assert "8 more units" in run.out
    assert run.out.count("\n") < 170
    assert "at most 10^" in run.out  # the number of plans


def test_plan_for_people(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--top", "3")
    assert (run.code, run.err) == (0, "")
    for words in ("OPTIMAL", "7.648 ms", "0-0 Big | 1-3 GPU | 4-4 Little | 5-8 Medium", "2.423 ms"):
        assert words in run.out
    assert "these 3 plans are the best ones" in run.out
    assert "100.0 %" in run.out


def test_plan_for_machines(cli: Cli) -> None:
    document = cli("plan", SPARSE, "--top", "2", "--json").document
    assert document["format"] == "gapless.result"
    assert (document["status"], document["stop"], document["backend"]) == ("optimal", "complete", "native")
    assert (document["objective"], document["bound"], document["gap"]) == (7648, 7648, 0.0)
    assert document["values"] == [7648, 2423]
    assert len(document["candidates"]) == 2
    best = document["candidates"][0]
    assert best["plan"]["chunks"][0] == {
        "network": "alexnet-sparse",
        "start": 0,
        "stop": 1,
        "unit": "Big",
    }
    assert best["score"]["busy_us"] == {"Little": 7648, "Medium": 7179, "Big": 5225, "GPU": 7411}
    assert best["plan"]["plan_id"] == best["plan_id"]


@pytest.mark.parametrize("options", [(), ("--costs", "heavy"), ("--objective", " period , gapness ")])
def test_spelling_out_the_defaults_changes_nothing(cli: Cli, options: tuple[str, ...]) -> None:
    assert cli("plan", SPARSE, "--json", *options).document["values"] == [7648, 2423]


def test_objectives_limits_and_costs_reach_the_backend(cli: Cli) -> None:
    def answer(*options: str) -> object:
        return cli("plan", SPARSE, "--json", *options).document["values"]

    assert answer("--costs", "isolated") != [7648, 2423]
    assert answer("--objective", "latency")[0] < 27463  # type: ignore[index]
    assert answer("--min-balance", "80%")[0] > 7648  # type: ignore[index]
    assert answer("--min-utilisation", "91.5%")[0] > 7648  # type: ignore[index]
    assert answer("--objective", "latency", "--max-period", "8ms")[0] > 20000  # type: ignore[index]


def test_plan_out_is_a_plan_that_check_and_simulate_take(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    assert cli("plan", SPARSE, "--out", path).err == f"wrote {path}\n"
    run = cli("tools", "check", SPARSE, path)
    assert run.code == 0
    assert "VALID" in run.out
    document = cli("tools", "check", SPARSE, path, "--json").document
    assert (document["valid"], document["score"]["period_us"]) == (True, 7648)
    trace = cli("simulate", SPARSE, path, "--requests", "5", "--json").document
    assert (trace["requests"], trace["period_us"]) == (5, 7648)
    assert len(trace["events"]) == 20
    assert "simulation of 5 requests" in cli("simulate", SPARSE, path, "--requests", "5").out


@pytest.mark.slow
def test_a_plan_that_breaks_a_limit_fails_the_check(cli: Cli, plan_file: Callable[..., Path]) -> None:
    path = plan_file(*BEST)
    run = cli("tools", "check", SPARSE, path, "--min-balance", "90%")
    assert run.code == ExitCode.VERIFICATION
    assert "min_balance_permille is 900, the plan has 683" in run.out
    document = cli("tools", "check", SPARSE, path, "--min-balance", "90%", "--json").document
    assert document["violations"][0]["rule"] == "min_balance_permille"
    assert document["score"]["period_us"] == 7648


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (((0, 5, "Big"), (6, 9, "GPU")), "layers 5 to 5 are not covered"),
        (((0, 5, "Big"), (4, 9, "GPU")), "layers 4 to 4 are covered twice"),
        (((0, 5, "Big"), (5, 9, "Huge")), "no such unit"),
        (((0, 5, "Big"), (5, 11, "GPU")), "only 9 layers"),
        (((0, 5, "Big"), (5, 6, "GPU"), (6, 9, "Big")), "second chunk"),
    ],
)
def test_a_malformed_plan_fails_the_check_and_cannot_be_played(
    cli: Cli, plan_file: Callable[..., Path], parts: tuple[tuple[int, int, str], ...], words: str
) -> None:
    path = plan_file(*parts)
    run = cli("tools", "check", SPARSE, path)
    assert run.code == ExitCode.VERIFICATION
    assert words in run.out
    assert cli("tools", "check", SPARSE, path, "--json").document["score"] is None
    played = cli("simulate", SPARSE, path)
    assert played.code == ExitCode.USAGE
    assert words in played.err


def test_compare(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "comparison.json"
    words = ("compare", SPARSE, "--backends", "native,exhaustive", "--top", "2")
    run = cli(*words, "--out", out)
    assert (run.code, run.err) == (0, f"wrote {out}\n")
    assert (
        "2 backends prove the same optimum among plans with at most one chunk per unit: native, exhaustive."
        in " ".join(run.out.split())
    )
    document = cli(*words, "--json").document
    assert [entry["backend"] for entry in document["results"]] == ["native", "exhaustive"]
    assert {entry["objective"] for entry in document["results"]} == {7648}
    assert (document["failures"], document["disagreements"], document["best"]) == ([], [], "native")
    assert json.loads(out.read_text())["results"][0]["candidates"] == document["results"][0]["candidates"]


def test_compare_holds_heuristics_against_the_bound_of_others(cli: Cli) -> None:
    words = ("compare", "--workload", "squeezenetx2", "--platform", "kirin990", "--time-limit", "200ms")
    document = cli(*words, "--backends", "native,serial", "--json").document
    native, serial = document["results"]
    assert (native["bound"], serial["bound"]) == (document["bound"], None)
    assert serial["gap"] is None, "it proved no bound of its own"
    assert serial["gap_to_best_bound"] == (serial["objective"] - native["bound"]) / serial["objective"]
    own = (native["objective"] - native["bound"]) / native["objective"]
    assert (native["gap"], native["gap_to_best_bound"]) == (own, own)
    assert serial["above_best"] == pytest.approx(serial["objective"] / native["objective"] - 1)
    assert native["above_best"] == 0
    assert native["startup_s"] >= 0
    printed = cli(*words, "--backends", "native,serial").out
    assert "which native proved" in " ".join(printed.split())


@pytest.mark.slow
@pytest.mark.parametrize("command", [("plan",), ("compare", "--backends", "native,exhaustive")])
def test_infeasible_says_why(cli: Cli, command: tuple[str, ...]) -> None:
    words = (*command, SPARSE, "--min-balance", "95%", "--min-units", "4")
    run = cli(*words)
    assert run.code == ExitCode.INFEASIBLE
    assert "INFEASIBLE" in run.out
    assert "at least 4 units are used" in run.out
    assert "Without the limits the best plan is 0-0 Big" in run.out
    document = cli(*words, "--json").document
    result = document["results"][0] if "results" in document else document
    assert (result["status"], result["candidates"], result["bound"]) == ("infeasible", [], None)
    assert {item["name"] for item in result["conflict"]["items"]} == {"min_units", "min_balance_permille"}
    assert result["unfiltered"]["score"]["period_us"] == 7648


def test_no_plan_is_not_written(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "none.json"
    run = cli("plan", SPARSE, "--max-period", "1us", "--out", out)
    assert run.code == ExitCode.INFEASIBLE
    assert "not written" in run.err
    assert not out.exists()


def test_no_answer_within_the_limit(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    units = [f"u{index}" for index in range(12)]
    costs = {"units": units, "networks": [{"network": "n", "layer_us": [[1] * 12] * 40}]}
    layers = [{"name": f"l{index}"} for index in range(40)]
    platform = {"name": "p", "units": [{"name": name} for name in units]}
    problem = {"platform": platform, "networks": [{"name": "n", "layers": layers}], "costs": costs}
    path.write_text(json.dumps({"format": "gapless.problem", "version": 1, **problem}))
    run = cli("plan", path, "--backend", "exhaustive")
    assert run.code == ExitCode.NO_ANSWER
    assert "NO ANSWER" in run.out
    assert "larger than this backend is willing to walk" in run.out
    document = cli("plan", path, "--backend", "exhaustive", "--json").document
    assert (document["status"], document["stop"]) == ("no_solution", "space_limit")


def test_rules_files(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "from gapless import OpaqueRule\n"
        "from gapless.rules import at_most, pin\n"
        "print('printed by the rules file')\n"
        "first = pin('conv1', unit='Little')\n"
        "even = OpaqueRule(name='even', predicate=lambda plan: len(plan.chunks) % 2 == 0)\n"
        "def _helper(view):\n    return 1\n"
        "def shape(view, other):\n    return 1\n"
        "few = lambda view: view.chunks() <= 3\n"
        "def gpu_needs_big(view):\n"
        "    '''who uses the GPU also uses the big cores'''\n"
        "    return view.uses('GPU').implies(view.uses('Big'))\n"
    )
    run = cli("plan", SPARSE, "--rules", rules, "--json")
    assert run.code == 0
    names = [rule["name"] for rule in run.document["problem"]["rules"]]
    assert names == ["pin(conv1, Little)", "even", "few", "gpu_needs_big"]
    assert run.document["handling"]["even"] == "cut"
    chunks = run.document["candidates"][0]["plan"]["chunks"]
    assert chunks[0]["unit"] == "Little"
    assert len(chunks) == 2
    assert "printed by" in run.err
    assert "even (cut)" in cli("plan", SPARSE, "--rules", rules).out


def test_a_rules_list_is_taken_as_it_is(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "from gapless.rules import avoid\n"
        "def unused(view):\n    return view.uses('GPU')\n"
        "RULES = [avoid('GPU')]\n"
    )
    names = [r["name"] for r in cli("show", SPARSE, "--rules", rules, "--json").document["problem"]["rules"]]
    assert names == ["avoid(GPU)"]


def test_opaque_rules_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text("from gapless import OpaqueRule\nr = OpaqueRule(name='r', predicate=lambda p: True)\n")
    assert cli("show", SPARSE, "--rules", rules, "--json").document["document"] is None
    run = cli("show", SPARSE, "--rules", rules, "--out", tmp_path / "problem.json")
    assert run.code == ExitCode.USAGE
    assert "opaque rules are Python code" in run.err


def test_one_layer_and_one_unit(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    problem = {
        "platform": {"name": "p", "units": [{"name": "only"}]},
        "networks": [{"name": "n", "layers": [{"name": "l"}]}],
        "costs": {"units": ["only"], "networks": [{"network": "n", "layer_us": [[5]]}]},
    }
    path.write_text(json.dumps({"format": "gapless.problem", "version": 1, **problem}))
    for command in (("show",), ("plan",), ("compare", "--backends", "native,exhaustive")):
        assert cli(*command, path).code == 0
    document = cli("plan", path, "--top", "5", "--json").document
    assert (document["values"], document["exhausted"]) == ([5, 0], True)


def test_arrivals_have_a_unit(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert cli("plan", SPARSE, "--out", plan).code == 0
    trace = cli("simulate", plan, "--requests", "3", "--interval", "50ms", "--json").document
    assert trace["arrivals_us"] == [0, 50_000, 100_000]
    wrong = cli("simulate", plan, "--interval", "50")
    assert (wrong.code, wrong.err) == (2, "error: --interval: '50' has no unit (us, ms, s), e.g. 30ms\n")
