"""Table II of Hetero2Pipe from its own numbers."""

from __future__ import annotations

import pytest

from gapless.profiler.slowdown.contention.paper import (
    paper_contention,
    paper_interference,
    paper_rank_one,
    table_ii,
)
from gapless.profiler.slowdown.contention.rank_one import fit_rank_one


def test_recomputed_slowdowns_differ_from_the_printed_ones_twice() -> None:
    recomputed = [round(100 * one.slowdown, 2) for one in table_ii()]
    printed = [row.printed_percent for row in paper_contention().table_ii]
    assert recomputed == [26.45, 11.19, 21.01, 12.16, 11.29, 5.6, 10.77, 9.38]
    assert [(p, r) for p, r in zip(printed, recomputed, strict=True) if p != r] == [
        (26.43, 26.45),
        (11.22, 11.19),
    ]


def test_the_slowdown_is_not_the_same_in_both_directions() -> None:
    """Observation 1 of the paper says it is; its own table has ratios of 1.2 to 2.4."""
    slowdowns = [one.slowdown for one in table_ii()]
    ratios = [a / b for a, b in zip(slowdowns[::2], slowdowns[1::2], strict=True)]
    assert max(ratios) > 2
    assert min(ratios) > 1.1


def test_the_rank_one_model_fits_all_eight_within_21_percent() -> None:
    model = fit_rank_one(table_ii())
    assert 0.19 < (model.worst_ratio or 0) < 0.215
    assert (model.explained or 0) > 0.93
    causes = [model.of(name).intensity for name in ("squeezenet", "bert", "vit")]
    assert causes == sorted(causes, reverse=True)  # Observation 3: the lightest one presses most


def test_what_the_table_does_not_tell_is_left_alike() -> None:
    """BERT takes part in each co-run: its intensity can be shifted against those of the others."""
    model = fit_rank_one(table_ii())
    names = ("squeezenet", "bert", "vit")
    assert sum((model.of(name).intensity - 1) ** 2 for name in names) < 0.3
    shifted = [
        (one.slowdown, model.slowdown(one.victim, one.victim_unit, one.aggressor, one.aggressor_unit))
        for one in table_ii()
    ]
    assert all("bert" in (one.victim, one.aggressor) for one in table_ii())
    assert all(abs(a - b) / a < 0.21 for a, b in shifted)


def test_the_npu_interferes_by_the_ratios_of_the_text() -> None:
    base = {(pair.victim, pair.aggressor): pair.slowdown for pair in paper_rank_one().pairs}
    both = (base["cpu_big", "gpu"] * base["gpu", "cpu_big"]) ** 0.5
    assert base["cpu_big", "npu"] == base["npu", "cpu_big"]
    assert base["cpu_big", "npu"] / both == pytest.approx((3.0 * 4.5 / (18.0 * 21.0)) ** 0.5)
    assert base["gpu", "npu"] / both == pytest.approx((2.0 * 2.3 / (18.0 * 21.0)) ** 0.5)


def test_the_interference_is_marked_as_estimated() -> None:
    found = paper_interference(("npu", "cpu_big", "gpu", "cpu_little"))
    assert found.provenance.estimated
    assert "Table II" in found.provenance.source
    assert found.slowdown_permille[1][2] > found.slowdown_permille[2][1] > found.slowdown_permille[0][1] > 0
    assert found.slowdown_permille[3] == (0, 0, 0, 0)
    assert {entry.network for entry in found.networks} == {"squeezenet", "bert", "vit"}
