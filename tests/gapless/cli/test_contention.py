"""`gapless costs contention`, and its Python functions."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

import gapless
import gapless.cli.commands.co_runs
from gapless.answers.contention import contention_blocks
from gapless.api.device import this_device
from gapless.api.slowdown.contention import estimate_contention, measure_contention
from gapless.cli.base.console import console
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import INTERFERENCE, load
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.profiler.slowdown.contention.result import CONTENTION, ContentionOptions
from gapless.profiler.slowdown.corun import unit_pairs
from gapless.view.presenter import presenter_of
from gapless.view.terminal.blocks import blocks_view
from tests.executor.graph.models import residual
from tests.profiler.slowdown.contention.worlds import WorldBench, measured

from ..conftest import Cli

pytestmark = pytest.mark.measures

EDGES = Path(__file__).parents[3] / "docs" / "examples" / "edges.py"
PAIRS = unit_pairs(this_device())
QUICK = ContentionOptions(rounds=1, seconds_per_item=0.005)

needs_two_units = pytest.mark.skipif(not PAIRS, reason="no two units of this machine can run at once")


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.onnx"
    onnx.save(residual(), str(path))
    return path


@pytest.mark.slow
@needs_two_units
def test_contention_is_printed_and_written(cli: Cli, model_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "contention.json"
    words = [f"a={model_file}", f"b={model_file}", "--units", ",".join(PAIRS[0])]
    run = cli("costs", "contention", *words, "--rounds", "1", "--seconds", "5ms", "--out", out)
    assert run.code == 0, run.err
    for text in (
        "a, b: co-runs of networks",
        "GB/s",
        "slows the probe by",
        "explains",
        f"on {PAIRS[0][0]} (rows)",
    ):
        assert text in run.out, text
    assert f"wrote {out}" in run.err.replace("\n", " ")
    found = load(out, CONTENTION)
    assert found.networks == ("a", "b")
    assert found.interference.units == PAIRS[0]


@pytest.mark.slow
@needs_two_units
def test_contention_with_the_probe_alone_as_json(cli: Cli, model_file: Path) -> None:
    run = cli(
        "costs", "contention", model_file, "--units", ",".join(PAIRS[0]), "--no-pairs", "--parts", "2",
        "--rounds", "1", "--seconds", "5ms", "--json",
    )  # fmt: skip
    assert run.code == 0, run.err
    assert run.document["format"] == "gapless.contention"
    assert run.document["pair_fit"] is None
    assert len(run.document["parts"]) == 2
    assert run.document["interference"]["provenance"]["method"] == "co-runs with a memory probe"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["squeezenet", "--units", this_device().unit_names[0]], "no two of the units"),
        (["squeezenet", "squeezenet"], "NAME=... before a model"),
        (["bert", "--platform", "kirin"], "did you mean kirin990"),
        (["bert", "--platform", "kirin990", "--estimate", "vit"], "leave --estimate out"),
        (["squeezenet", "--resume"], "name it with --store"),
        (["bert", "--platform", "kirin990", "--store", "x.sqlite"], "measures nothing that --store"),
        (["squeezenot"], "did you mean squeezenet"),
        (["squeezenet", "--seconds", "0"], "--seconds"),
        (["squeezenet", "--out", "nowhere/x.json"], "the folder nowhere does not exist"),
        (["squeezenet", "--units", "core999"], "core999"),
    ],
)
def test_bad_input_gets_one_message(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = cli("costs", "contention", *words)
    assert run.code == 2
    assert run.err.count("error:") == 1
    assert message in " ".join(run.err.split())


@pytest.mark.slow
def test_python_functions_have_contention_too() -> None:
    free = Platform(name="free", units=(ProcessingUnit(name="a"), ProcessingUnit(name="b")))
    found = measure_contention([f"{EDGES}:EDGES"], platform=free, options=QUICK)
    assert found.interference.provenance.engine.startswith("callable")
    with pytest.raises(InvalidInputError, match=r"\(none\)"):
        measure_contention([], platform=free)


def test_a_phone_is_estimated(cli: Cli) -> None:
    run = cli(
        "costs", "contention", "vgg16", "vit", "--platform", "kirin990", "--form", "printed", "--parts", "2"
    )
    assert run.code == 0, run.err
    for text in ("Eq. (1) in its printed form", "taken", "vgg16", "low", "Observations 2 and 3"):
        assert text in run.out, text
    run = cli("costs", "contention", "bert", "--platform", "kirin990", "--json")
    assert run.document["format"] == "gapless.estimated_contention"
    assert len(run.document["parts"]) == 98


def test_an_estimate_by_slice_is_planned_with(cli: Cli, tmp_path: Path) -> None:
    out, saved = tmp_path / "slow.json", tmp_path / "problem.json"
    run = cli(
        "costs", "contention", "vgg16", "vit", "--platform", "kirin990", "--parts", "4", "--out", str(out)
    )
    assert run.code == 0, run.err
    known = json.loads(out.read_text())
    assert known["format"] == "gapless.slowdowns"
    (vgg16,) = (entry for entry in known["networks"] if entry["network"] == "vgg16")
    assert [(own["start"], own["stop"]) for own in vgg16["slices"]][-1][1] == 15
    # Fully connected layers press hardest.
    assert vgg16["slices"][-1]["intensity_permille"] > 2 * vgg16["slices"][0]["intensity_permille"]
    words = ("--workload", "vgg16,vit", "--platform", "kirin990", "--contention", str(out))
    run = cli("plan", *words, "--backend", "sel", "--out", str(saved))
    assert run.code == 0, run.err
    assert "It goes by slice: layers" in " ".join(run.out.split())
    problem = gapless.load_workload("vgg16,vit", platform="kirin990", contention=out)
    assert problem.tables.losses.sliced == (True, True)
    assert dict(presenter_of(problem).facts(problem))["slowdown"] == "slowdown by slice of vgg16, vit"


def test_an_estimate_without_parts_is_by_network(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "slow.json"
    run = cli("costs", "contention", "vgg16", "--platform", "kirin990", "--out", str(out))
    assert run.code == 0, run.err
    assert load(out, INTERFERENCE) == estimate_contention(["vgg16"], platform="kirin990").interference


def test_every_part_is_high_from_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = measured(WorldBench(), ContentionOptions(rounds=2, parts=2))
    for high_from, words in ((0, {"high"}), (None, {"low"}), (100_000, {"low"})):
        known = replace(found.interference, high_from_permille=high_from)
        console(sys.stdout).print(blocks_view(contention_blocks(replace(found, interference=known))))
        shown = capsys.readouterr().out.partition("Parts of networks")[2].splitlines()
        assert {line.split()[-1] for line in shown if line.strip().endswith(("high", "low"))} == words


def test_everything_that_was_found_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    found = measured(WorldBench(counting=True), ContentionOptions(rounds=2, parts=2))
    console(sys.stdout).print(blocks_view(contention_blocks(found)))
    shown = capsys.readouterr().out
    for text in ("instructions/cycle", "Parts of networks", "ridge regression", "high", "±0.0"):
        assert text in shown, text
