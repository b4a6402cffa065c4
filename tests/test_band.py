"""Band's figures and tables recomputed: small numbers, and the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.band import __main__ as command
from benchmarks.band import beyond, deadlines, estimates, families, frames, units
from benchmarks.band.playing import PIXEL, Study, frames_of, of_units, phone, plain, scenario_for
from benchmarks.phone_platforms.behaviours import TABLE_1_MS
from benchmarks.printing import Part
from gapless.formulations.coordination.simulation import Late
from gapless.profiler.platforms.workloads import phone_names, random_workloads

SMALL = Study(bound_s=0.1, simulated_s=1.0, runs=1, combinations=1)


def test_mobilenet_gets_the_npu_that_efficientdet_leaves() -> None:
    """Band, Fig. 6: the NPU is left around 7 ms, and MobileNetV1 need not wait for the fallback."""
    before, after = frames.fallbacks()
    assert next(ran.end_us for ran in before.ran if ran.request == 0) == pytest.approx(7_000, rel=0.1)
    assert [after.units[ran.unit] for ran in after.ran if ran.request == 1] == ["npu"]
    assert (after.requests[1].end_us or 0) < 0.6 * (before.requests[1].end_us or 0)


def test_table_1_is_what_was_printed_but_for_tails() -> None:
    for unit, name in (("gpu", "Adreno 650"), ("npu", "HTA")):
        for count, printed in zip((1, 2, 4), TABLE_1_MS[name], strict=True):
            assert units.at_once("galaxy-s20", unit, count, 1.0) == pytest.approx(printed, rel=0.06)


def test_cold_units_are_slow_and_accelerators_have_tails() -> None:
    cold, warm = (units.latencies(SMALL, "gpu", how)[5] for how in ("fixed", "consecutive"))
    assert cold / warm == pytest.approx(2.61, rel=0.01)
    found = units.latencies(SMALL, "npu", "consecutive")
    assert found[-1] / found[0] == pytest.approx(1.53, rel=0.01)


def test_variants_of_what_the_paper_leaves_open() -> None:
    scenario, _ = deadlines.variant(SMALL, "all begin at once")
    assert {each.arrivals.phase_us for each in scenario.applications} == {0}
    _, setting = deadlines.variant(SMALL, "units take turns")
    assert [unit.shared_permille(4) for unit in setting.behaviours] == [4000] * 5
    shares = deadlines.shares(SMALL, "as shipped", "lst", Late.KEEP)
    assert shares == tuple(sorted(shares))


def test_estimates_from_the_largest_chunk() -> None:
    setting = phone(PIXEL, scenario_for(SMALL, "eagleeye"))
    every, largest = estimates.profiling_ms(setting)
    assert every > 5 * largest
    known = setting.network_times(estimates.Told())
    for made, table in zip(estimates.estimates(setting), known, strict=True):
        assert made.chunk_us.keys() == table.chunk_us.keys()
        assert sum(made.chunk_us[key] == table.chunk_us[key] for key in table.chunk_us) >= 5
    assert (
        sorted(estimates.profiled(SMALL, "static, offline")[1])[-1] <= 1.001
    )  # nothing is faster than alone


def test_some_units_only() -> None:
    whole = phone(PIXEL, frames_of({"mobilenetv1": 1}, 1.0))
    some = of_units(plain(whole), ("npu", "cpu0"))
    assert some.platform.unit_names == ("npu", "cpu0")
    assert some.network_times(estimates.Told())[0].chunk_us == {(0, 1, 0): 4121, (0, 1, 1): 14654}


def test_useful_sessions_are_few_and_cost_little() -> None:
    count, useful, size, useful_size, sel, _ = beyond.loaded(SMALL, "distream", PIXEL)
    assert (count, useful) == ("1,011", "34")
    assert 5 * int(useful_size) < int(size.replace(",", ""))
    every, few = map(float, sel.split(" / "))
    assert few == pytest.approx(every, rel=0.03)


def test_with_the_mapping_of_the_paper_the_baseline_is_slower() -> None:
    ours, papers, sel = beyond.mapped(SMALL, "eagleeye")
    assert papers[1] < 0.8 * ours[1]
    assert 2 < sel / papers[1] < 3


def test_counts_that_are_drawn_together_make_larger_frames(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--parts", "crowds", "--simulated", "1", "--runs", "1"]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if " % " in line and "|" in line]
    large = [int(row[6]) for row in rows if row[1].strip() in ("0 %", "50 %", "100 %")]
    assert large == sorted(large)
    assert large[0] < large[-1]


def test_what_accelerators_lack_is_counted_by_operators() -> None:
    assert beyond.runs("fsrnet", PIXEL, "gpu") == 1
    assert 0.9 < beyond.runs("fsrnet", PIXEL, "npu") < 1
    assert beyond.runs("mobilenetv1", PIXEL, "npu") == 1


def test_the_more_networks_cost_each_other_the_later_the_baseline() -> None:
    (four, lst, table_1), (turns, _, late) = (deadlines._swept(SMALL, permille) for permille in (0, 1000))
    assert four == pytest.approx(2252, abs=1)
    assert turns == 4000
    assert late < table_1 < lst


def test_plans_that_are_played_take_what_the_judge_says() -> None:
    name = phone_names()[0]
    found = families.outcomes(name, random_workloads(name, 1, seed=0)[0])
    assert set(found) == {*families.BACKENDS, *families.POLICIES}
    for plan in families.BACKENDS:
        assert found[plan].makespan_us == pytest.approx(found[plan].judged_us, rel=0.002)


def test_the_command_prints_and_is_told_what_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["--parts", "6,table1", "--simulated", "1", "--runs", "1", "--seconds", "0.1"]
    assert command.main([*words, "--pictures", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "on estimated phones" in printed
    assert "* Paper: EfficientDet leaves the NPU around 7 ms (Fig. 6). Here: 6.7 ms. Agrees." in printed
    assert "| Edge TPU (pixel4)" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["band-6.png"]
    for wrong in (["--parts", "99"], ["--runs", "0"], ["--pictures", str(tmp_path / "none")]):
        with pytest.raises(SystemExit) as ended:
            command.main(wrong)
        assert ended.value.code == 2

    def stopped(study: Study) -> Iterator[Part]:
        raise KeyboardInterrupt

    monkeypatch.setitem(command.PARTS, "7", stopped)
    assert command.main(["--parts", "7"]) == 130
    assert "interrupted" in capsys.readouterr().err
