"""`gapless costs interference`, and its Python functions."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gapless
from gapless.answers.interference import ratio_map, sign
from gapless.api.device import this_device
from gapless.api.execution import profiled_problem
from gapless.api.slowdown.interference import (
    interference_of_tables,
    measure_interference,
    measure_plan_interference,
)
from gapless.executor.measurement import Measurement
from gapless.executor.tuning.result import MEASUREMENT
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump, dump_plan, dump_problem, load, save
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.workload import Request, Workload
from gapless.profiler import records
from gapless.profiler.profile import PROFILE, Profile, ProfileOptions
from gapless.profiler.slowdown.corun import unit_pairs
from gapless.profiler.slowdown.interference.ratios import INTERFERENCE, HeatMap, InterferenceRatios
from gapless.profiler.slowdown.turns import CoRunOptions
from gapless.view.terminal.heat_map import blend, grid_svg

from ..conftest import Cli

pytestmark = pytest.mark.measures

EDGES = f"{Path(__file__).parents[3] / 'docs' / 'examples' / 'edges.py'}:EDGES"
PAIRS = unit_pairs(this_device(engine="callable"))
QUICK = CoRunOptions(rounds=1, seconds_per_item=0.003)
WORDS = ("--rounds", "1", "--seconds", "3ms")

needs_two_units = pytest.mark.skipif(not PAIRS, reason="no two units of this machine can run at once")


def test_a_shipped_platform_is_shown_without_measuring(cli: Cli) -> None:
    run = cli("costs", "interference", "pixel7a")
    assert run.code == 0, run.err
    rows = {line.split()[0]: line.split()[1:] for line in run.out.splitlines() if line.startswith("  ")}
    assert rows["unit"] == ["alexnet-dense", "alexnet-sparse", "octree", "all", "paper"]
    assert rows["Big"][-3:] == ["1.41", "+", "1.40"]
    assert rows["GPU"][:2] == ["0.68", "-"]
    assert rows["Medium"][2:4] == ["1.02", "="]
    assert "not taken from the paper" in " ".join(run.out.split())


def test_what_explains_a_difference_is_said(cli: Cli) -> None:
    assert "the other way round" in " ".join(cli("costs", "interference", "oneplus11").out.split())
    assert "paper" not in cli("costs", "interference", "oneplus11/octree").out.splitlines()[3]


def test_a_shipped_problem_as_json_and_files(cli: Cli, tmp_path: Path) -> None:
    svg, out = tmp_path / "map.svg", tmp_path / "ratios.json"
    run = cli("costs", "interference", "jetson-orin-nano/octree", "--svg", svg, "--out", out, "--json")
    assert run.code == 0, run.err
    (shown,) = run.document["maps"]
    assert shown["rows"] == ["CPU", "GPU"]
    assert shown["columns"] == ["octree"]
    assert load(out, INTERFERENCE) == interference_of_tables("jetson-orin-nano/octree")
    assert {element.tag.rpartition("}")[2] for element in ElementTree.parse(svg).iter()} == {
        "svg", "title", "style", "text", "rect",
    }  # fmt: skip
    again = cli("costs", "interference", out)
    assert again.out == cli("costs", "interference", "jetson-orin-nano/octree").out


@pytest.mark.slow
@needs_two_units
def test_networks_are_measured_and_kept(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "defects", lambda busy: [])  # what is unsteady is measured again
    store, out = tmp_path / "store.sqlite", tmp_path / "ratios.json"
    words = (f"one={EDGES}", "--units", ",".join(PAIRS[0]), *WORDS, "--store", store, "--out", out)
    run = cli("costs", "interference", *words)
    assert run.code == 0, run.err
    assert "one on " in run.out
    first = load(out, INTERFERENCE)
    assert {one.chunk.unit for one in first.ratios} == set(PAIRS[0])
    assert {(receipt.unit, receipt.mismatches) for receipt in first.receipts} == {
        (unit, ()) for unit in PAIRS[0]
    }
    kept = cli("costs", "interference", *words, "--resume")
    assert kept.code == 0, kept.err
    assert load(out, INTERFERENCE).ratios == first.ratios
    one_way = cli("costs", "interference", *words, "--beside", PAIRS[0][0], "--json")
    assert {one["chunk"]["unit"] for one in one_way.document["ratios"]} == {PAIRS[0][1]}


@pytest.mark.slow
@needs_two_units
def test_several_networks_share_one_answer() -> None:
    platform = this_device(units=PAIRS[0], engine="callable")
    found = measure_interference(
        [f"a={EDGES}", gapless.open_model(f"b={EDGES}")], platform=platform, options=QUICK
    )
    assert {one.chunk.network for one in found.ratios} == {"a", "b"}
    for models in ([], [EDGES, EDGES]):
        with pytest.raises(InvalidInputError, match="needs a name of its own"):
            measure_interference(models, platform=platform)


@pytest.fixture(scope="module")
def profile() -> Profile:
    if not PAIRS:
        pytest.skip("no two units of this machine can run at once")
    quick = ProfileOptions(min_repetitions=3, min_seconds_per_item=0.002, retries=0, checks=0, most_far=2.0)
    platform = this_device(units=PAIRS[0], engine="callable")
    return gapless.profile(EDGES, platform=platform, engine="callable", options=quick)


@pytest.fixture
def split(profile: Profile) -> Plan:
    network, units = profile.network, profile.platform.unit_names
    cut, end = network.legal_cuts[0], len(network.layers)
    return Plan(
        chunks=(
            Chunk(network=network.name, start=0, stop=cut, unit=units[0]),
            Chunk(network=network.name, start=cut, stop=end, unit=units[1]),
        )
    )


def measurement(plan: Plan, period_us: float) -> Measurement:
    return Measurement(
        deployment=deploy(plan), period_us=period_us, period_blocks_us=(period_us,), requests=1, seconds=1.0,
        streams=(), chunks=(), units=(),
    )  # fmt: skip


@pytest.mark.slow
def test_the_rest_of_a_plan_makes_load(cli: Cli, profile: Profile, split: Plan, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.json" for name in ("profile", "problem", "plan", "measured", "out")}
    problem = profiled_problem(profile)
    paths["profile"].write_text(dump(profile, PROFILE))
    paths["problem"].write_text(dump_problem(problem))
    paths["plan"].write_text(dump_plan(split, problem))
    paths["measured"].write_text(dump(measurement(split, 123.0), MEASUREMENT))
    words = ("--plan", paths["plan"], "--measured", paths["measured"], *WORDS, "--out", paths["out"])
    run = cli("costs", "interference", paths["profile"], *words)
    assert run.code == 0, run.err
    for text in ("chunks beside the rest", "chunks alone", "interpolated", "measured run", "against the run"):
        assert text in run.out, text
    (one,) = load(paths["out"], INTERFERENCE).plans
    assert one.period_us == 123.0
    for said in one.predicted:
        assert said.period_us == score(profiled_problem(profile, costs=said.by), split).period_us
    assert {"isolated", "heavy", "interpolated"} <= {said.by for said in one.predicted}
    by_problem = cli("costs", "interference", paths["problem"], "--plan", paths["plan"], *WORDS, "--json")
    assert [said["by"] for said in by_problem.document["plans"][0]["predicted"]] == ["heavy"]
    tables = cli("costs", "interference", paths["profile"])
    assert "beside all others" in tables.out
    for more in ((), ("--plan", paths["plan"])):
        refused = cli("costs", "interference", paths["out"], "--svg", tmp_path / "x.svg", *more)
        assert (refused.code, "plans have none" in refused.err) == (2, True)
    wrong = cli("costs", "interference", paths["problem"])
    assert wrong.code == 2
    assert "without --plan, name the profile.json" in wrong.err


@pytest.mark.slow
def test_plans_and_measurements_that_do_not_fit_are_refused(profile: Profile, split: Plan) -> None:
    problem = profiled_problem(profile)
    half = Plan(chunks=split.chunks[:1])
    with pytest.raises(InvalidInputError, match=r"cannot be run on this problem(.|\n)*not covered"):
        measure_plan_interference(problem, [split, half])
    with pytest.raises(InvalidInputError, match="no plan is given"):
        measure_plan_interference(problem, [])
    other = measurement(Plan(chunks=(replace(split.chunks[0], stop=len(profile.network.layers)),)), 1.0)
    with pytest.raises(InvalidInputError, match="of none of the given plans"):
        measure_plan_interference(profile, [split], measured=[other])
    network = profile.network.name
    served = Workload(requests=(Request(name="r", network=network),))
    shared = replace(problem, objective=gapless.Objective.parse("makespan"), data=served)
    with pytest.raises(InvalidInputError, match="without a workload"):
        measure_plan_interference(shared, [split])


@pytest.mark.slow
def test_tables_of_units_that_never_run_at_once_have_no_ratios(profile: Profile) -> None:
    cores = profile.platform.units[0].cores
    clash = replace(
        profile.platform, units=tuple(replace(unit, cores=cores) for unit in profile.platform.units)
    )
    with pytest.raises(InvalidInputError, match="no two units of"):
        interference_of_tables(replace(profile, platform=clash))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pixel7a", "--beside", "Big"], "--beside means nothing for pixel7a, where nothing is measured"),
        (["pixel7a", "oneplus11"], "pixel7a takes one subject"),
        (["kirin990"], "no measured tables of 'kirin990'"),
        (["pixel7b/octree"], "of shipped tables, pixel7a/octree"),
        (["squeezenet", "--resume"], "name it with --store"),
        (["squeezenet", "--measured", "m.json"], "--measured means nothing without --plan"),
        (["x.json", "--plan", "p.json", "--units", "core0"], "--units means nothing with --plan"),
        (["x.json", "y.json", "--plan", "p.json"], "--plan takes one subject"),
        (["nothing.json"], "nothing.json"),
        (["squeezenet", "--beside", "warp"], "there is no unit 'warp'"),
        (["pixel7a", "--svg", "/nowhere/x.svg"], "does not exist"),
    ],
)
def test_bad_input_is_explained(cli: Cli, words: list[str], message: str) -> None:
    run = cli("costs", "interference", *words)
    assert run.code == 2
    assert message in " ".join(run.err.split())


def shade(ratio: float) -> str:
    """Return the colour of a ratio in a heat map."""
    ratios = HeatMap(title="", rows=("a",), columns=("b",), cells=((ratio,),))
    level = ratio_map(ratios).rows[0].cells[0].level
    assert level is not None
    return blend(2 * level - 1)


@given(st.floats(0.05, 20))
def test_red_is_slower_and_green_is_faster(ratio: float) -> None:
    red, green, _ = (int(shade(ratio)[at : at + 2], 16) for at in (1, 3, 5))
    neutral = [int(shade(1.0)[at : at + 2], 16) for at in (1, 3, 5)]
    if ratio >= 1:
        assert red >= green
        assert green <= neutral[1]
    else:
        assert red <= neutral[0]
    assert sign(ratio) == ("+" if ratio > 1.05 else "-" if ratio < 0.95 else "=")
    assert shade(2.0) == shade(max(2.0, ratio))


def test_a_picture_escapes_names_and_marks_what_was_not_measured() -> None:
    heat_map = HeatMap(title="a & <b>", rows=("u<1>",), columns=("x" * 40, "y"), cells=((1.5, None),))
    picture = grid_svg([ratio_map(heat_map)] * 2, ["a note that is not short " * 8])
    root = ElementTree.fromstring(picture)
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert texts.count("a & <b>") == 2
    assert texts.count("1.50") == 2
    assert texts.count("-") == 2
    assert any(text.endswith("…") for text in texts)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", picture)  # it loads nothing
    assert float(root.get("width", "0")) > max(float(e.get("x", "0")) for e in root.iter())


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    found: InterferenceRatios = interference_of_tables("oneplus11")
    save(dump(found, INTERFERENCE), tmp_path / "ratios.json")
    assert load(tmp_path / "ratios.json", INTERFERENCE) == found
