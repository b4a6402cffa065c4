"""Costs that depend on the number of used units, and the number of units itself, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.api.problems import load_problem
from gapless.cli.base.exits import ExitCode
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve

from ...solvers import fakes
from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"
OCTREE = "jetson-orin-nano/octree"


def test_every_backend_plans_with_interpolated_costs(cli: Cli) -> None:
    words = (OCTREE, "--costs", "interpolated", "--top", "5", "--json")
    best = cli("plan", *words).document
    compared = cli("compare", *words, "--backends", "native,exhaustive")
    assert compared.code == 0
    assert compared.document["disagreements"] == []
    for result in compared.document["results"]:
        assert (result["status"], result["proven"]) == ("optimal", 5)
        assert result["candidates"] == best["candidates"]


def test_a_plan_file_remembers_its_costs(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    planned = cli(
        "plan", SPARSE, "--costs", "interpolated", "--max-units", "2", "--out", path, "--json"
    ).document
    found = planned["candidates"][0]["score"]
    for table in ("heavy", "isolated"):
        assert cli("tools", "check", path, "--costs", table, "--json").document["score"] != found
    checked = cli("tools", "check", path, "--json").document
    assert (checked["valid"], checked["score"]) == (True, found)
    trace = cli("simulate", path, "--json").document
    assert trace["period_us"] == found["period_us"]


def test_a_plan_file_remembers_what_was_asked(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    asked = ("--objective", "latency", "--min-balance", "85%", "--max-period", "30ms")
    planned = cli("plan", SPARSE, *asked, "--out", path, "--json").document
    checked = cli("tools", "check", path, "--json").document
    assert checked["problem"]["fingerprint"] == planned["problem"]["fingerprint"]
    assert checked["problem"]["limits"] == {"min_balance_permille": 850, "max_period_us": 30000}
    assert cli("tools", "check", path, "--max-period", "100us").code == ExitCode.VERIFICATION
    path.write_text(path.read_text().replace('"85%"', '"much"'))
    run = cli("tools", "check", path)
    assert run.code == ExitCode.USAGE
    assert "min_balance is 'much'" in run.err


def test_show_compares_the_tables(cli: Cli) -> None:
    run = cli("show", SPARSE, "--costs", "interpolated")
    problem = load_problem(SPARSE, costs="interpolated")
    # the times are those of plans on all four units, which are the heavy ones
    assert "5.225 x1.2" in run.out
    assert "times of plans on all units" in run.out
    gpu = problem.platform.unit_names.index("GPU")
    alone, _, _, four = (
        sum(row[gpu] or 0 for row in chain_of(problem.using(k)).layer_us) for k in range(1, 5)
    )
    assert f"x{four / alone:.2f} (" in run.out
    assert all(f"{used} units" in run.out for used in (2, 3, 4))
    document = cli("show", SPARSE, "--costs", "interpolated", "--json").document["document"]
    tables = [document["costs"], *document["co_run_costs"]]
    rows = [table["networks"][0]["layer_us"] for table in tables]
    assert rows == [[list(row) for row in chain_of(problem.using(k)).layer_us] for k in range(1, 5)]
    plain = cli("show", SPARSE)
    assert "units a plan uses" not in plain.out
    assert "co_run_costs" not in cli("show", SPARSE, "--json").document["document"]


def test_show_writes_a_problem_with_all_tables(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    assert cli("show", OCTREE, "--costs", "interpolated", "--out", path).code == 0
    wanted = load_problem(OCTREE, costs="interpolated")
    assert load_problem(path) == wanted
    assert cli("plan", path, "--json").document["values"] == list(solve(wanted).values or ())


def test_platforms_names_the_models(cli: Cli) -> None:
    assert "isolated, heavy, interpolated" in cli("list", "problems").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--costs", "interpolated", "--workload", "octreex2"), "take one table of costs (--costs heavy"),
        (("--costs", "interpolatd"), "'interpolatd'; did you mean interpolated?"),
        (("--costs", "interpolated", "--backend", "z3-paper"), "co-run costs are solved for each number"),
        (("--max-units", "0"), "--max-units"),
    ],
)
def test_mistakes(cli: Cli, words: tuple[str, ...], message: str) -> None:
    run = cli("plan", OCTREE, *words)
    assert run.code == ExitCode.USAGE
    assert message in run.err


@pytest.mark.parametrize("costs", ["heavy", "interpolated"])
def test_most_units_in_use(cli: Cli, costs: str) -> None:
    def chunks(most: int) -> int:
        document = cli("plan", SPARSE, "--costs", costs, "--json", "--max-units", str(most)).document
        assert document["status"] == "optimal"
        return len(document["candidates"][0]["plan"]["chunks"])

    assert [chunks(most) for most in (1, 2, 3, 9)] == [1, 2, 3, 4]
    run = cli("plan", SPARSE, "--costs", costs, "--max-units", "2", "--min-units", "3")
    assert run.code == ExitCode.INFEASIBLE
    assert "at least 3 units are used" in run.out
    assert "at most 2 units are used" in run.out
    assert "It breaks: max_units is 2, the plan has 4" in " ".join(run.out.split())


def test_more_units_than_there_are(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--costs", "interpolated", "--min-units", "5")
    assert run.code == ExitCode.INFEASIBLE
    assert "because of this alone" in run.out
    assert "at least 5 units are used" in run.out


def test_ctrl_c_between_two_parts_loses_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plans of finished parts are kept, and the bound of one part is not taken for that of the whole."""
    problem = load_problem(OCTREE, costs="interpolated").with_limits(min_units=1)
    alone = solve(problem.using(1)).plan
    assert alone is not None
    values = score(problem, alone).values(problem.objective.terms)

    def act(part: Problem, options: SolveOptions) -> Claim:
        if part.limits.min_units == 1:
            return fakes.optimal(alone, values=values, bound=values[0])
        options.publish(Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT, bound=1))
        raise KeyboardInterrupt

    make: Callable[[str], fakes.FakeBackend] = lambda name: fakes.FakeBackend(act=act)  # noqa: E731
    monkeypatch.setattr("gapless.solvers.registry.get_backend", make)
    run = cli("plan", OCTREE, "--costs", "interpolated", "--json")
    assert run.code == ExitCode.INTERRUPTED
    document = run.document
    assert (document["status"], document["stop"]) == ("feasible", "interrupted")
    assert (document["bound"], document["objective"]) == (None, values[0])
