"""Typos on the command line: what is wrong, what was meant, what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"
CASES = [
    (("pln",), "no command 'pln'; did you mean plan?"),
    (("solve", SPARSE), "no command 'solve'; did you mean plan?"),
    (("bench",), "did you mean device bench?"),
    (("fly",), "no command 'fly'; `gapless --help` lists the commands"),
    (("plan", SPARSE, "--backnd", "z3"), "no option --backnd; did you mean --backend? See `gapless plan"),
    (("plan", SPARSE, "--out"), "Option '--out' requires an argument. See `gapless plan --help`."),
    (("device", "detect", "--out"), "requires an argument. See `gapless device detect --help`."),
    (("plan", "--groups", "--out", "x"), "--groups needs a value, but --out follows; if --out is the value"),
    (("serve", "none.onnx", "--control", "no/such/f"), "--control is 'no/such/f', but there is no folder"),
    (("plan", SPARSE, "--stream", "--order", "fixed"), "--order is about a workload"),
    (
        ("requests", "coordinate", "small-apps", "--platform", "pixel4", "--noise-times", "1000%"),
        "at most 100%",
    ),
    (
        ("plan", SPARSE, "--pipelines", "many", "--objective", "paper"),
        "devices, energy, traffic, peak_memory\n",
    ),
    (("plan", SPARSE, "--zzz"), "no option --zzz; it is none of this command. See `gapless plan --help`."),
    (
        ("plan", "--workload", "bert", "--platform", "kirin990", "--mode", "stream"),
        "no option --mode; it is now --stream. See `gapless plan --help`.",
    ),
    (
        ("plan", SPARSE, "--max-latency-us", "5"),
        "it is now --max-latency, and its value has a unit, e.g. --max-latency 30ms.",
    ),
    (
        ("requests", "coordinate", "small-apps", "--platform", "pixel4", "--policy", ","),
        "--policy is ',', must",
    ),
    (
        ("requests", "coordinate", "small-apps", "--platform", "pixel4", "--policy", ""),
        "--policy is '', must",
    ),
    (("device", "detect", "--units", ","), "--units is ',', must be one name"),
    (("device", "detect", "--engine", "mnn,"), "engine is 'mnn,', must be one name"),
    (("tune", "squeezenet", "--backends", ""), "--backends is '', must be one name"),
    (("compare", SPARSE, "--backends", ","), "--backends is ',', must be one name"),
    (("plan", SPARSE, "--pareto", "period,"), "pareto is 'period,', must be one name"),
    (("--jsn", "plan"), "no option --jsn; did you mean --json?"),
    (("plan", SPARSE, "--backend", "cpsta"), "no backend 'cpsta'; did you mean cpsat?"),
    (("compare", SPARSE, "--backends", "native,pulpcbc"), "no backend 'pulpcbc'; did you mean pulp-cbc"),
    (("plan", "pixel7a/alexnet-spase"), "did you mean pixel7a/alexnet-sparse"),
    (("plan", "pixel7a"), "did you mean pixel7a/alexnet-dense, pixel7a/alexnet-sparse or pixel7a/octree?"),
    (("plan", "sqeezenet"), "did you mean squeezenet?"),
    (
        ("plan", "squeezenet"),
        "'squeezenet' is a built-in network, not a problem: `gapless profile squeezenet`",
    ),
    (
        ("plan", "pixel4"),
        "'pixel4' is a phone for requests as they come, not a problem: `gapless requests coordinate",
    ),
    (("plan", "kirin990"), "'kirin990' is a platform for workloads, not a problem: --workload"),
    (("plan", "--workload", "bert", "--platform", "kirin99"), "did you mean kirin990?"),
    (("plan", "--workload", "bret", "--platform", "kirin990"), "did you mean bert?"),
    (("plan", SPARSE, "--costs", "isolate"), "did you mean isolated?"),
    (("plan", SPARSE, "--objective", "perod,idle"), "'perod' is not known; did you mean period"),
    (("plan", SPARSE, "--objective", "latenc,gapnes"), "did you mean latency?; 'gapnes' is not known; did"),
    (("tune", SPARSE), f"`gapless tune {SPARSE} --engine simulated` tunes it"),
    (("tune", "sqeezenet"), "neither a file nor a built-in network; did you mean squeezenet?"),
    (("serve", "my model=squeezenet"), "neither a file nor a built-in network; a name before '=' has"),
    (("serve", "net:0=squeezenet"), "may end with a version from 1 on (ocr:2=ocr.onnx)"),
    (("tune", "squeezenet", "--noise", "5%"), "--noise is about --engine simulated"),
    (("profile", "squeezenet", "--engine", "onnx"), "no engine 'onnx'; did you mean onnxruntime?"),
    (("device detect", "--units", "cor0"), "'cor0'; did you mean core0"),
    (("device detect", "--emulate", "cor0=50%"), "'cor0'; did you mean core0"),
    (("costs interference", "pixel7"), "of shipped tables, pixel7a"),
    (("tools inspect",), "MODEL is missing: an ONNX file"),
    *(((name,), "PLAN is missing: a plan or a list") for name in ("simulate", "explain", "tools check")),
    (("tools inspect",), "Example: `gapless tools inspect squeezenet`."),
    (("plan", SPARSE, "--order", "fix"), "--order is 'fix'; did you mean fixed?"),
    (("tools completion", "csh"), "'csh' is not one of 'bash', 'zsh', 'fish'"),
]


@pytest.mark.parametrize(("words", "said"), CASES)
def test_typos_are_understood(cli: Cli, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    run = cli(*words, *(("--out", tmp_path) if words[0] in {"tune", "profile"} else ()))
    assert (run.code, run.out) == (2, "")
    assert said in run.err
    assert len(run.err) < 400


@pytest.mark.parametrize(
    ("value", "said"),
    [("0", ("it must be at least 1.", "1<=x")), ("many", ("it is no whole number.", "not a valid integer"))],
)
def test_wrong_numbers_in_plain_words(cli: Cli, value: str, said: tuple[str, ...]) -> None:
    """Old generations of typer have their own words, new ones those of another library."""
    run = cli("simulate", SPARSE, "--requests", value)
    assert run.err.startswith("error: Invalid value for '--requests': ")
    assert run.err.endswith(". See `gapless simulate --help`.\n")
    assert any(words in run.err for words in said)


RULES = {
    "from gapless.rules import pinn\n": "line 1: ImportError: cannot import name 'pinn'",
    "x = avod('GPU')\n": "NameError",
    "def r(view):\n    return view.usess('GPU')\n": "has no attribute 'usess'; did you mean uses?",
    "from gapless.rules import *\nx = avod('GPU')\n": "name 'avod' is not defined; did you mean avoid?",
    "def r(view):\n    return view.uses('Bigg')\n": "no unit 'Bigg'; did you mean Big?",
}


@pytest.mark.parametrize("source", RULES)
def test_typos_in_rules_are_understood(cli: Cli, tmp_path: Path, source: str) -> None:
    path = tmp_path / "rules.py"
    path.write_text(source)
    run = cli("plan", SPARSE, "--rules", path)
    assert run.code == 2
    assert RULES[source] in run.err
