"""What differs between two runs, in words and numbers, and whether that is more than noise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gapless
from gapless.executor.measurement import Spread
from gapless.files.runs import Noise, noise_of, run_differences
from gapless.formulations.files import dump_problem, load_problem

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"


def spread(*samples: float) -> Spread:
    return Spread.of(samples)


@pytest.mark.parametrize(
    ("first", "second", "noise"),
    [
        (spread(1, 2, 3, 4), spread(5, 6, 7, 8), Noise.BEYOND),
        (spread(5, 6, 7, 8), spread(1, 2, 3, 4), Noise.BEYOND),
        (spread(1, 2, 3, 5), spread(5, 6, 7, 8), Noise.WITHIN),
        (spread(1, 2, 3), spread(4, 5, 6), Noise.FEW),  # by chance in every tenth case
        (spread(1, 2, 3), spread(4, 5, 6, 7), Noise.FEW),  # in 2 of 35
        (spread(1, 2), spread(*range(10, 17)), Noise.FEW),
        (spread(1, 2), spread(*range(10, 18)), Noise.BEYOND),  # in 2 of 45
        (spread(1), spread(9), Noise.FEW),
    ],
)
def test_what_lies_apart_by_chance_is_no_difference(first: Spread, second: Spread, noise: Noise) -> None:
    assert noise_of(first, second) is noise


def run(place: Path, *, truth: str = "heavy", name: str = SPARSE, noise: int = 10) -> Path:
    problem = gapless.load_problem(name)
    obeyed = gapless.load_problem(name, costs=truth)
    tuned = gapless.tuning.tune_simulated(problem, obeyed, top=3, noise_permille=noise)
    gapless.running.save_run(tuned, place)
    return place


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of the same plans on two simulated devices."""
    place = tmp_path_factory.mktemp("runs")
    return run(place / "one"), run(place / "two", truth="isolated")


def test_two_runs_side_by_side(folders: tuple[Path, Path]) -> None:
    found = run_differences(*folders)
    differing = {fact.name: (fact.first, fact.second) for fact in found.facts}
    assert differing["device"] == ("simulated pixel7a (costs: heavy)", "simulated pixel7a (costs: isolated)")
    assert {"networks", "units", "engine", "gapless", "problem"} <= set(found.same)
    assert found.best is not None
    assert found.best.percent == pytest.approx(
        100 * (found.second.period_us.median / found.first.period_us.median - 1)  # type: ignore[union-attr]
    )
    apart = {one.what for one in found.shared if one.noise is Noise.BEYOND and one.percent > 50}
    assert "0-8 Little || 0-0 Big | 1-3 GPU | 4-8 Medium" in apart


def test_what_changed_is_named(folders: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in folders[0].glob("*.json"):
        (other / path.name).write_text(path.read_text())
    problem = load_problem(other / "problem.json").with_objective("latency")
    (other / "problem.json").write_text(dump_problem(problem))
    tree = json.loads((other / "run.json").read_text())
    tree |= {"gapless": "0.0.9", "engine": "mnn 2.0", "units": ["a"]}
    (other / "run.json").write_text(json.dumps(tree))
    found = run_differences(folders[0], other)
    changed = {fact.name: fact.second for fact in found.facts}
    assert changed.items() >= {
        ("gapless", "0.0.9"),
        ("engine", "mnn 2.0"),
        ("units", "a"),
        ("objective", "latency"),
    }
    assert found.best is not None
    assert (found.best.percent, found.best.noise) == (0, Noise.WITHIN)


def test_times_of_other_networks_are_not_compared(folders: tuple[Path, Path], tmp_path: Path) -> None:
    found = run_differences(folders[0], run(tmp_path / "octree", name="pixel7a/octree"))
    assert found.best is not None
    assert (found.best.noise, found.shared) == (Noise.OTHER, ())


@pytest.mark.slow
def test_a_report_of_two_runs_shows_the_differences(
    cli: Cli, folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    words = ("--backends", "none", "--no-explain", "--out", page)
    done = cli("report", *folders, *words, "--json")
    assert done.code == 0
    (pair,) = done.document["runs"]
    assert next(fact["name"] for fact in pair["facts"]) == "device"
    monkeypatch.setenv("COLUMNS", "200")
    shown = cli("report", *folders, *words).out
    assert "beyond the noise" in shown
    assert "The same in both: networks" in shown
    text = page.read_text()
    for word in ("Two runs:", "What differs", "beyond the noise", "simulated pixel7a (costs: isolated)"):
        assert word in text
    assert cli("report", folders[0], *words).code == 0
    assert "Two runs:" not in page.read_text()
