"""`requests coordinate`: tables, documents, pictures and pages of scenarios under several policies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.api.coordination import read_counts
from gapless.profiler.coordination.catalog import scenario_names
from gapless.solvers.coordination.policies import SHIPPED

from ..conftest import Cli

SHORT = ("--platform", "pixel4", "--seconds", "500ms")


def test_what_there_is(cli: Cli) -> None:
    run = cli("list", "policies")
    assert run.code == 0
    for name in (*scenario_names(), *SHIPPED):
        assert name in run.out
    assert cli("list", "policies", "--json").document["scenarios"] == list(scenario_names())


@pytest.mark.slow
def test_policies_side_by_side_with_picture_and_page(cli: Cli, tmp_path: Path) -> None:
    picture, page = tmp_path / "e.svg", tmp_path / "e.html"
    words = ("--policy", "lst,sel-whole,tflite", "--picture", picture, "--report", page)
    run = cli("requests", "coordinate", "eagleeye", *SHORT, *words)
    assert run.code == 0
    assert "eagleeye on pixel4, 5 units" in run.out
    lines = {line.split()[0]: line.split() for line in run.out.splitlines() if line.strip()}
    rates = {name: float(lines[name][1]) for name in ("lst", "sel-whole", "tflite")}
    assert rates["tflite"] < rates["sel-whole"] < rates["lst"] * 1.2
    drawn = picture.read_text()
    for text in ("sel-whole", "retinaface", "fell back silently"):
        assert text in drawn
    shown = page.read_text()
    for text in ("Frames a second", "Who works when", "arcface-resnet50", "Estimated"):
        assert text in shown
    assert "http://" not in shown.replace("http://www.w3.org", "")


def test_the_document(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    run = cli(
        "requests",
        "coordinate",
        "four-apps",
        *SHORT,
        "--policy",
        "lst,tflite-fastest",
        "--json",
        "--out",
        out,
    )
    found = run.document
    assert found == json.loads(out.read_text())
    (served,) = found["runs"]
    lst, tflite = served["policies"]
    assert lst["requests"] == tflite["requests"] == sum(a["requests"] for a in lst["applications"].values())
    assert lst["in_time"] > tflite["in_time"]
    assert set(lst["utilisation"]) == {"cpu0", "cpu1", "gpu", "dsp", "npu"}
    assert lst["decisions"] >= lst["answered"]


def test_deadlines(cli: Cli, tmp_path: Path) -> None:
    picture = tmp_path / "d.svg"
    words = ("--policy", "lst,tflite-fastest", "--multipliers", "1,3", "--picture", picture)
    run = cli("requests", "coordinate", "four-apps", *SHORT, *words)
    assert "The share of requests in time; x: times" in run.out
    lines = run.out.splitlines()
    assert [line.split()[1:] for line in lines if line.split()[:1] == ["policy"]] == [["x", "1", "x", "3"]]
    (row,) = (line.split() for line in lines if line.split()[:1] == ["lst"])
    assert float(row[1]) <= float(row[3])
    assert "99th percentiles" in picture.read_text()


@pytest.mark.slow
def test_the_bound(cli: Cli, tmp_path: Path) -> None:
    page = tmp_path / "b.html"
    words = ("--policy", "lst,sel", "--bound", "3s", "--bound-frames", "2", "--report", page)
    found = cli("requests", "coordinate", "eagleeye", *SHORT, *words, "--json").document["bound"]
    assert len(found["parts"]) == 2
    for part in (found, *found["parts"]):
        assert 0 < part["bound"] <= part["best"] <= min(part["policies"].values())
    assert "How far from the best" in page.read_text()
    asked = ("overload", "--platform", "pixel4", "--seconds", "200ms")
    late = cli("requests", "coordinate", *asked, "--policy", "lst", "--bound", "500ms")
    assert "With everything known beforehand: the first 23 requests" in late.out
    assert "best known" in late.out


def test_conditions_are_said(cli: Cli) -> None:
    words = ("--late", "drop", "--noise-estimates", "30%", "--noise-times", "10 %", "--smoothing", "0")
    run = cli("requests", "coordinate", "overload", *SHORT, *words, "--power", "8500mW", "--split", "2")
    assert run.code == 0
    for text in ("Late requests are dropped", "wrong by up to 30", "vary by up to 10", "stay as they are"):
        assert text in run.out


def test_costs_of_a_problem(cli: Cli, tmp_path: Path) -> None:
    scenario = tmp_path / "mine.json"
    document = {
        "format": "gapless.scenario",
        "version": 1,
        "name": "mine",
        "duration_us": 100000,
        "applications": [{"name": "a", "network": "octree", "arrivals": {"period_us": 20000}}],
    }
    scenario.write_text(json.dumps(document))
    found = cli("requests", "coordinate", scenario, "--problem", "pixel7a/octree", "--json").document
    assert found["runs"][0]["policies"][0]["requests"] == 5


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("eagleye", "--platform", "pixel4"),
            "is called 'eagleye'; did you mean eagleeye",
        ),
        (("eagleeye",), "say where: --platform PHONE"),
        (("eagleeye", *SHORT, "--policy", "best"), "no policy is called 'best'"),
        (("eagleeye", *SHORT, "--noise-times", "30"), "--noise-times is '30', must be a percentage"),
        (("eagleeye", *SHORT, "--multipliers", "1,2"), "has no applications"),
        (("four-apps", *SHORT, "--multipliers", "0"), "expected numbers above 0"),
        (("eagleeye", *SHORT, "--power", "100mW"), "is too small for 'pixel4'"),
        (("four-apps", "--platform", "galaxy-s20", "--rest", "5K"), "'galaxy-s20' has no model of heat"),
        (("eagleeye", "--platform", "pixel4", "--here"), "--platform is for simulations"),
        (("mine.json", "--platform", "pixel4"), "mine.json"),
    ],
)
def test_bad_input(cli: Cli, words: tuple[str, ...], text: str) -> None:
    run = cli("requests", "coordinate", *words)
    assert run.code == 2
    assert text in run.err.replace("\n", " ")


def test_policies_that_may_start_any_chunk_take_no_limits_of_sessions_and_those_of_plans_none_of_power(
    cli: Cli,
) -> None:
    asked = ("requests coordinate", "eagleeye", "--platform", "pixel4", "--seconds", "100ms")
    refused = cli(*asked, "--policy", "lst,replan", "--session-memory", "190MB")
    assert (refused.code, "policy 'replan' needs all sessions" in refused.err.replace("\n", " ")) == (2, True)
    said = cli(*asked, "--policy", "lst,replan", "--sessions", "useful")
    assert "replan: all sessions are loaded, it may start any chunk" in " ".join(
        (said.out + said.err).split()
    )
    refused = cli(*asked, "--policy", "adaptive", "--power", "7.4W")
    assert (refused.code, "'adaptive' takes no budget of power" in refused.err.replace("\n", " ")) == (
        2,
        True,
    )


def test_useful_sessions_alone_are_loaded_if_asked_for(cli: Cli) -> None:
    run = cli("requests", "coordinate", "eagleeye", *SHORT, "--sessions", "useful")
    assert "fsrnet: 82 of 376 sessions are loaded" in run.err
    assert "arcface-mobilenet: all 5 sessions are loaded" in run.err
    assert "no shortest way has the others" in run.err
    limited = cli("requests", "coordinate", "eagleeye", *SHORT, "--session-memory", "200MB")
    assert "the shortest latency grows by" in limited.err
    assert limited.code == 0
    both = cli("requests", "coordinate", "eagleeye", *SHORT, "--session-memory", "200MB", "--sessions", "all")
    assert both.code == 2
    assert "contradict" in both.err


def test_powers_of_the_units_of_a_problem_count_where_no_file_says_them(cli: Cli, tmp_path: Path) -> None:
    problem = gapless.table_problem({"layer": [0.1, 0.15]}, ["cpu", "npu"], network="net")
    powers = [(2000, 500), (1000, 0)]
    units = tuple(
        replace(unit, power_mw=busy, idle_mw=idle)
        for unit, (busy, idle) in zip(problem.platform.units, powers, strict=True)
    )
    gapless.save(replace(problem, platform=replace(problem.platform, units=units)), tmp_path / "p.json")
    asking = gapless.coordination.Application(
        name="a", network="net", arrivals=gapless.coordination.Arrivals(at_us=(0, 0))
    )
    scenario = gapless.coordination.Scenario(name="two", duration_us=1000, applications=(asking,))
    gapless.save(scenario, tmp_path / "s.json")
    asked = ("requests coordinate", tmp_path / "s.json", "--problem", tmp_path / "p.json", "--json")
    both, one = (cli(*asked, *words).document for words in ((), ("--power", "2100mW")))
    energies = [found["runs"][0]["policies"][0]["energy_mj"] for found in (both, one)]
    assert energies == pytest.approx([(2000 * 100 + 500 * 50 + 1000 * 150) / 1e6, 2000 * 200 / 1e6])


def test_a_unit_may_have_two_workers(cli: Cli) -> None:
    run = cli("requests", "coordinate", "eagleeye", *SHORT, "--workers", "npu=2", "--json")
    (found,) = run.document["runs"][0]["policies"]
    assert list(found["utilisation"])[-2:] == ["npu", "npu.2"]
    for wrong, words in (
        ("npu", "a unit and a number"),
        ("tpu=2", "no unit is called"),
        ("npu=0", "workers"),
    ):
        refused = cli("requests", "coordinate", "eagleeye", *SHORT, "--workers", wrong)
        assert refused.code == 2
        assert words in refused.err


def test_frames_are_as_crowded_as_a_video(cli: Cli, tmp_path: Path) -> None:
    video = tmp_path / "faces.csv"
    video.write_text("video,frame,faces\nA/0,1,3\nA/0,2,0\nB/1,1,9\n")
    assert read_counts(video) == [3, 0, 9]
    run = cli("requests", "coordinate", "eagleeye", *SHORT, "--crowd", video, "--json")
    usual = cli("requests", "coordinate", "eagleeye", *SHORT, "--json")
    one, other = (found.document["runs"][0]["policies"][0]["requests"] for found in (run, usual))
    assert one != other
    video.write_text("A/0,1,3\nA/0,2,many\n")
    refused = cli("requests", "coordinate", "eagleeye", *SHORT, "--crowd", video)
    assert refused.code == 2
    assert "line 2: 'many' is no count" in refused.err
    video.write_text("A/0,1,0\n")
    assert "all 0" in cli("requests", "coordinate", "eagleeye", *SHORT, "--crowd", video).err
    assert "no frames" in cli("requests", "coordinate", "four-apps", *SHORT, "--crowd", video).err
