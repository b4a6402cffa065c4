"""Networks over devices on the command line: planned, remembered, shown; and what is wrong is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.cli.tasks import running
from gapless.executor.cluster.loss import Loss
from gapless.executor.measurement import Measurement
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.cluster import Pipelines
from gapless.formulations.files import NETWORK, dump, load_problem

from ...executor.graph.models import tiny, value
from ..api.test_clusters import NETWORK_OF_TWO
from ..conftest import Cli

ON_PIS = ("--platform", "raspberry-pis", "--backend", "exhaustive")


@pytest.fixture
def network(tmp_path: Path) -> str:
    file = tmp_path / "two.json"
    file.write_text(dump(NETWORK_OF_TWO, NETWORK))
    return str(file)


@pytest.mark.slow
def test_a_plan_remembers_the_cluster(cli: Cli, network: str, tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    made = cli("plan", network, *ON_PIS, "--batch", "4", "--pipelines", "one", "--out", out)
    assert made.code == 0
    assert "two*4 on raspberry-pis" in made.out
    asked = json.loads(Path(out).read_text())["asked"]
    assert asked == {"problem": network, "platform": "raspberry-pis", "batch": "4", "pipelines": "one"}
    checked = cli("tools", "check", out, "--json")
    assert checked.code == 0
    assert checked.document["valid"]
    assert cli("tools", "check", out, "--batch", "5").code != 0  # of another network, two*5


def test_one_pipeline_or_many(cli: Cli, network: str) -> None:
    many = cli("plan", network, *ON_PIS, "--json")
    one = cli("plan", network, *ON_PIS, "--pipelines", "one", "--json")
    assert (many.code, one.code) == (0, 0)
    assert many.document["terms"][0] == one.document["terms"][0] == "throughput"
    assert one.document["problem"]["pipelines"]["most"] == 1
    assert many.document["problem"]["pipelines"]["most"] is None
    used = {chunk["unit"] for chunk in many.document["candidates"][0]["plan"]["chunks"]}
    assert len(used) == 6  # each device serves some items


def test_a_problem_of_devices_is_shown_written_and_planned(cli: Cli, network: str, tmp_path: Path) -> None:
    out = str(tmp_path / "problem.json")
    shown = cli("show", network, "--platform", "raspberry-pis", "--out", out)
    assert shown.code == 0
    problem = load_problem(out)
    assert isinstance(problem.data, Pipelines)
    assert problem.data.most is None
    assert problem.costs.provenance.estimated
    one = cli("plan", out, "--pipelines", "one", "--backend", "exhaustive", "--json")
    assert one.code == 0


def test_clusters_are_listed_and_shown(cli: Cli, tmp_path: Path) -> None:
    listed = cli("list", "problems", "--json").document["clusters"]
    assert [entry["name"] for entry in listed][:4] == [f"epipe-case-{number}" for number in (1, 2, 3, 4)]
    assert "raspberry-pis" in cli("list", "problems").out
    assert "vit-huge" in cli("list", "networks").out
    file = tmp_path / "lab.json"
    file.write_text(
        '{"format": "gapless.cluster", "version": 1, "name": "lab", "host": "pi-1",\n'
        ' "types": [{"name": "pi", "count": 2, "power_mw": 6500,\n'
        ' "speed": {"flops_per_second": 20000000000}}],\n'
        ' "links": [{"source": "pi", "target": "pi", "bytes_per_second": 125000000, "latency_us": 9}]}'
    )
    shown = cli("show", str(file))
    assert shown.code == 0
    for text in ("lab: 2 devices", "20.0", "6.5 W", "1,000 Mbit/s", "9 us"):
        assert text in shown.out


@pytest.mark.slow
def test_a_model_with_dynamic_shapes(cli: Cli, tmp_path: Path) -> None:
    file, out = str(tmp_path / "model.onnx"), str(tmp_path / "plan.json")
    rows = {"inputs": [value("x", ["rows", 4])], "outputs": [value("y", ["rows", 4])]}
    Path(file).write_bytes(tiny(**rows).SerializeToString())
    assert "--shape" in cli("plan", file, *ON_PIS).err
    made = cli("plan", file, *ON_PIS, "--shape", "x=5,4", "--out", out)
    assert made.code == 0
    assert json.loads(Path(out).read_text())["asked"]["shape"] == "x=5,4"
    assert cli("tools", "check", out).code == 0
    assert cli("show", file, "--platform", "raspberry-pis", "--shape", "x=5,4").code == 0


WRONG = (
    (("--platform", "nowhere"), "'nowhere' is neither a cluster file nor a shipped cluster"),
    (
        ("--platform", "pixel7a"),
        "--platform pixel7a takes alexnet-dense, alexnet-sparse, octree, or a --workload",
    ),
    (("--platform", "raspberry-pis", "--costs", "heavy"), "--costs chooses between measured tables"),
    (("--platform", "raspberry-pis", "--stream"), "--stream is about a workload"),
    (("--platform", "raspberry-pis", "--batch", "0"), "--batch is 0, must be at least 1"),
    (("--platform", "raspberry-pis", "--batch", "1001"), "the batch is 1001"),
    (("--platform", "raspberry-pis", "--pipelines", "three"), "three"),
)


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_bad_input_is_told(words: tuple[str, ...], message: str, cli: Cli, network: str) -> None:
    run = cli("plan", network, *words)
    assert run.code == 2
    assert message in " ".join(run.err.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("pixel7a/octree", "--batch", "4"), "--batch is about a network over devices: give --platform too"),
        (("pixel7a/octree", "--shape", "x=4"), "--shape is about a network over devices"),
        (("pixel7a/octree", "--devices", "pi4=1"), "--devices is about a network over devices"),
        (("vit-large", "--platform", "raspberry-pis", "--devices", "pi6=1"), "no devices of the type 'pi6'"),
        (("vit-large", "--platform", "raspberry-pis", "--devices", "pi4"), "write TYPE=NUMBER"),
        (("pixel7a/octree", "--platform", "raspberry-pis", "--shape", "x=4"), "shapes are for ONNX files"),
        (("--platform", "raspberry-pis"), "no problem is named"),
        (("--workload", "a,b", "--platform", "kirin990", "--batch", "2"), "--batch is about one network"),
        (("vit-large",), "`gapless plan vit-large --platform epipe-case-1`"),
    ],
)
def test_options_that_do_not_go_together_are_told(words: tuple[str, ...], message: str, cli: Cli) -> None:
    run = cli("plan", *words)
    assert run.code == 2
    assert message in " ".join(run.err.split())


def test_what_is_measured_on_one_device_only_is_refused_for_a_cluster(cli: Cli, tmp_path: Path) -> None:
    for words in (("--steady",), ("--most-workers", "2")):
        run = cli("profile", "squeezenet", "--local", "2", "--out", tmp_path / "out", *words)
        assert run.code == 2
        assert f"{words[0]} is for networks on one device" in run.err


def pipeedge_files() -> dict[str, str]:
    """Return the text of each file of PipeEdge, for a network of two layers on two hosts."""
    profile = "[{dtype: torch.float32, batch_size: 8, time_s: [0.5, 0.25]}]"
    return {
        "models.yml": "net: {layers: 2, parameters_in: 10, parameters_out: [20, 30], mem_MB: [1, 2]}",
        "device_types.yml": f"pi: {{mem_MB: 64, bw_Mbps: 1000, model_profiles: {{net: {profile}}}}}",
        "devices.yml": "pi: [pi-0, pi-1]",
    }


def test_files_of_pipeedge_become_a_problem(cli: Cli, tmp_path: Path) -> None:
    texts = pipeedge_files()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / name) for name in texts]
    out = str(tmp_path / "problem.json")
    run = cli("tools", "import", "pipeedge", *files, "--model", "net", "--out", out)
    assert run.code == 0
    assert "8 inferences at once" in run.err
    words = ("--pipelines", "one", "--objective", "period", "--backend", "exhaustive", "--json")
    assert cli("plan", out, *words).document["objective"] == 500_000
    wrong = cli("tools", "import", "pipeedge", *files, "--model", "nets")
    assert (wrong.code, "did you mean net" in wrong.err) == (2, True)
    assert cli("tools", "import", "edgepipe", *files, "--model", "net").code == 2


def test_what_is_lost_while_a_plan_runs_is_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = gapless.load_problem("pixel7a/octree")
    plan = tmp_path / "plan.json"
    assert cli("plan", "pixel7a/octree", "--backend", "native", "--out", plan).code == 0
    notes, losses = ["before"], list[Loss]()

    def measure(budget: Budget) -> Measurement:
        """Lose a device meanwhile."""
        notes.append("device 'b' is lost: its power was cut; planning without it")
        losses.append(
            Loss(device="b", words="its power was cut", at="2026-11-27T10:00:00+00:00", then="0-6 a")
        )
        best = gapless.plan(problem).plan
        assert best is not None
        deployment = gapless.reports.subject(problem, best, explained=None).deployment
        return SimulatedRunner(problem).measure(deployment, budget)

    class Lossy:
        deployment = None

        def __init__(self) -> None:
            self.losses, self.measure = losses, measure

    @contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[running.Work]:
        pipeline: Any = Lossy()
        yield running.Work(problem=problem, pipeline=pipeline, models={}, requests=(), notes=notes)

    monkeypatch.setattr(running, "opened", opened)
    monkeypatch.setattr(running, "predicted", lambda problem, deployment: None)
    run = cli("run", plan, "--local", "2", "--requests", "5")
    assert run.code == 0, run.err
    told = "2026-11-27T10:00:00+00:00: device 'b' is lost: its power was cut; from then on [0-6 a] ran"
    assert told in " ".join(run.out.split())
    assert "planning without it" in run.err
    del losses[:]
    document = cli("run", plan, "--local", "2", "--requests", "5", "--json").document
    assert [(one["device"], one["at"][:4], one["then"]) for one in document["losses"]] == [
        ("b", "2026", "0-6 a")
    ]
