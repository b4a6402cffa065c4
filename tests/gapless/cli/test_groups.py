"""Groups of devices on the command line and in Python: planned, kept, simulated; what is wrong is told."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import gapless
from gapless.api.execution import models_for
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import load_problem
from gapless.formulations.groups import Cooperation

from ...executor.graph.models import residual
from ..conftest import Cli, Run

ENERGIES = ("computing_nj", "standby_nj")
ON_PIS = ("--platform", "raspberry-pis", "--devices", "pi5=1,pi4=2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("groups") / "net.onnx"
    onnx.save(residual(blocks=2, channels=48, size=32), file)
    return str(file)


@pytest.mark.slow
def test_groups_are_planned_kept_and_simulated(cli: Cli, model: str, tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    made = cli("plan", model, *ON_PIS, "--groups", "all", "--backend", "exhaustive", "--out", out)
    assert made.code == 0, made.err
    assert "done twice" in made.out
    assert "sets the pace with" in made.out
    assert json.loads(Path(out).read_text())["asked"]["groups"] == "all"
    checked = cli("tools", "check", out, "--json")
    assert checked.code == 0
    assert checked.document["valid"]
    played = cli("simulate", out, "--requests", "5")
    assert played.code == 0, played.err
    assert "makespan" in played.out


@pytest.mark.slow
def test_the_latency_has_a_limit_and_energy_is_told_apart(cli: Cli, model: str, tmp_path: Path) -> None:
    def planned(*words: str) -> Run:
        own = "--platform", "pico-testbed", "--devices", "nx=0,pi15=1,pi12=1", "--groups", "1"
        return cli("plan", model, *own, "--backend", "exhaustive", *words)

    soonest = planned("--objective", "latency", "--json").document["candidates"][0]["score"]
    assert soonest["energy_nj"] == sum(n or 0 for k in ENERGIES for n in soonest[k].values())
    least = soonest["latency_us"]
    out = str(tmp_path / "plan.json")
    kept = planned("--max-latency", f"{least}us", "--out", out)  # tight to the last unit
    assert kept.code == 0
    assert "of computing and" in " ".join(kept.out.split())
    assert json.loads(Path(out).read_text())["asked"]["max_latency_us"] == str(least)
    assert planned("--max-latency", f"{least - 1}us").code == 3


@pytest.mark.slow
def test_groups_are_no_worse_than_one_pipeline(cli: Cli, model: str) -> None:
    def period(*words: str) -> int:
        answer = cli("plan", model, *ON_PIS, *words, "--backend", "exhaustive", "--json")
        assert answer.code == 0, answer.err
        return int(answer.document["candidates"][0]["score"]["period_us"])

    alone, pairs, free = (period("--groups", size) for size in ("1", "2", "all"))
    assert alone >= pairs >= free


@pytest.mark.slow
def test_cuts_anywhere_in_the_graph_are_kept_and_can_be_run(cli: Cli, model: str, tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    made = cli("plan", model, *ON_PIS, "--groups", "all", "--over-graph", "--out", out)
    assert made.code == 0, made.err
    assert "Cuts are anywhere in the graph: all chains of its" in made.out
    assert cli("tools", "check", out).code == 0
    problem = gapless.clusters.group_problem(
        model, "raspberry-pis", over_graph=True, devices={"pi5": 1, "pi4": 2}
    )
    found = problem.data.over_graph
    assert gapless.plan(problem).objective == found.period_us <= found.given_pieces_us
    assert models_for(problem)["net"].network == problem.network
    assert cli("plan", model, *ON_PIS, "--over-graph").code == 2
    pieces = gapless.clusters.group_problem(model, "raspberry-pis")
    with pytest.raises(InvalidInputError, match="not compared in 0 s"):
        gapless.graphs.chunks_over_graph(
            pieces, gapless.open_model(model, granularity="piece"), time_limit_s=0.0
        )


@pytest.mark.slow
def test_kinds_of_plans_stand_side_by_side(cli: Cli, model: str) -> None:
    made = cli("compare", model, *ON_PIS, "--kinds", "all", "--json")
    assert made.code == 0, made.err
    rates = {one["kind"]: one["throughput_per_s"] for one in made.document["kinds"]}
    assert list(rates) == ["one", "many", "groups", "graph"]
    assert rates["one"] <= rates["many"]
    assert rates["groups"] <= rates["graph"]
    assert all(one["result"]["status"] == "optimal" for one in made.document["kinds"])


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--kinds", "one,two"), "'two' is no kind of plan; there are one, many, groups, graph"),
        (("--kinds", "all", "--groups", "2"), "--groups is not about all kinds of plans"),
        (("--kinds", "all", "--backends", "native"), "give one of them"),
    ],
)
def test_kinds_that_are_not_there(cli: Cli, model: str, words: tuple[str, ...], error: str) -> None:
    made = cli("compare", model, *ON_PIS, *words)
    assert made.code == 2
    assert error in " ".join(made.err.split())


def test_a_batch_takes_as_many_messages_as_its_inferences(model: str) -> None:
    one, four = (gapless.clusters.group_problem(model, "raspberry-pis", batch=batch) for batch in (1, 4))
    assert [4 * node.bytes for node in one.data.spatial.nodes] == [n.bytes for n in four.data.spatial.nodes]
    assert [4 * size for size in one.network.boundary_bytes] == [*four.network.boundary_bytes]


def test_a_problem_of_groups_is_written_and_planned_again(cli: Cli, model: str, tmp_path: Path) -> None:
    out = str(tmp_path / "problem.json")
    assert cli("show", model, *ON_PIS, "--groups", "2", "--out", out).code == 0
    problem = load_problem(out)
    assert isinstance(problem.data, Cooperation)
    assert problem.data.most_group == 2
    assert problem.costs.provenance.estimated
    assert cli("plan", out, "--backend", "exhaustive").code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--groups", "no"), "groups is 'no', must be all, or a number of at least 1"),
        (("--groups", "0"), "groups is '0'"),
        (("--groups", "all", "--pipelines", "one"), "omit --groups"),
    ],
)
def test_what_is_wrong_is_told(cli: Cli, model: str, words: tuple[str, ...], told: str) -> None:
    answer = cli("plan", model, *ON_PIS, *words)
    assert answer.code == 2
    assert told in " ".join(answer.err.split())


def test_groups_need_a_cluster_and_a_model(cli: Cli) -> None:
    answer = cli("plan", "pixel7a/alexnet-sparse", "--groups", "all")
    assert answer.code == 2
    assert "--groups is about a network over devices" in " ".join(answer.err.split())


@pytest.mark.slow
def test_rules_and_axes_in_python(model: str) -> None:
    from gapless.rules import largest_group, never_together

    problem = gapless.clusters.group_problem(
        model, "raspberry-pis", axis="columns", devices={"pi5": 1, "pi4": 2}
    )
    assert problem.data.axis == "columns"
    result = gapless.plan(
        problem, backend="exhaustive", rules=[largest_group(2), never_together("pi4-1", "pi4-2")]
    )
    assert result.plan is not None
    with pytest.raises(InvalidInputError, match="groups are of one network"):
        gapless.clusters.with_groups(problem, gapless.open_model(model, granularity="piece"))
    with pytest.raises(InvalidInputError, match="other layers than the pieces"):
        gapless.clusters.with_groups(
            gapless.clusters.cluster_problem(model, "raspberry-pis"),
            gapless.open_model(model, granularity="operator"),
        )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--workload", "net"), "--groups is about one network, and several share the units"),
        (("--granularity", "block"), "--groups needs the pieces of a network, --granularity is block"),
        (("--engine", "simulated"), "--groups measures tiles of a model"),
    ],
)
def test_what_tuning_groups_does_not_go_with_is_told(
    cli: Cli, model: str, words: tuple[str, ...], told: str
) -> None:
    answer = cli("tune", model, "--groups", "all", *words)
    assert answer.code == 2
    assert told in " ".join(answer.err.split())


@pytest.mark.slow
@pytest.mark.measures
def test_groups_of_units_are_tuned_run_and_reported(cli: Cli, tmp_path: Path) -> None:
    names = [unit.name for unit in gapless.this_device(engine="onnxruntime").units if len(unit.cores) == 1]
    if len(names) < 2:
        pytest.skip("two cores are needed")
    out = tmp_path / "run"
    onnx.save(residual(blocks=1), tmp_path / "net.onnx")
    tuned = cli(
        "tune", tmp_path / "net.onnx", "--groups", "2", "--engine", "onnxruntime", "--budget", "1s",
        "--units", ",".join(names[:2]), "--top", "1", "--out", out, "--json",
    )  # fmt: skip
    assert tuned.code == 0, tuned.err
    shared = [row for row in tuned.document["rows"] if row["candidate"]["deployment"]["streams"][0]["tiles"]]
    assert shared
    problem = load_problem(out / "problem.json")
    assert isinstance(problem.data, Cooperation)
    assert problem.data.steps
    assert len(problem.data.fixed_us) == len(problem.network.layers)
    # What shares chunks runs from its file, whoever has won, and the page shows it.
    deployment = {"format": "gapless.deployment", "version": 1, **shared[0]["candidate"]["deployment"]}
    (tmp_path / "shared.json").write_text(json.dumps(deployment))
    files = (str(out / "problem.json"), str(tmp_path / "shared.json"))
    run = cli("run", *files, "--requests", "20", "--out", str(tmp_path / "m.json"))
    assert run.code == 0, run.err
    assert "numbers agree" in run.err
    page = tmp_path / "page.html"
    assert cli("report", *files, str(tmp_path / "m.json"), "--no-explain", "--out", str(page)).code == 0
    assert "which share chunks" in page.read_text()
    assert cli("export", *files, "--to", "onnx", "--out", str(tmp_path / "onnx")).code == 2
