"""Ratios, heat maps of them, and what the paper prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf, log
from statistics import geometric_mean, mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump, parse
from gapless.formulations.plan import Chunk, Plan
from gapless.profiler.platforms.catalog import network_names, shipped_platform, shipped_problem
from gapless.profiler.slowdown.interference.paper import PRINTED
from gapless.profiler.slowdown.interference.ratios import (
    ALL_OTHERS,
    INTERFERENCE,
    InterferenceRatios,
    PlanInterference,
    PredictedPeriod,
    heat_maps,
    table_ratios,
)
from gapless.profiler.slowdown.turns import CoRunOptions, CoRunRatio
from tests.profiler.fakes import PLATFORM

US = st.floats(1e-2, 1e9)


def ratio(
    unit: str, load: str, *beside_us: float, network: str = "net", layer: int = 0, alone_us: float = 100.0
) -> CoRunRatio:
    return CoRunRatio(
        chunk=Chunk(network=network, start=layer, stop=layer + 1, unit=unit),
        load=load,
        beside=(load,),
        alone_us=(alone_us,) * len(beside_us),
        beside_us=beside_us,
    )


def test_a_ratio_is_the_median_over_the_rounds() -> None:
    one = ratio("big", "little", 110.0, 500.0, 120.0)
    assert one.ratio == pytest.approx(1.2)
    assert one.spread == pytest.approx(3.9 / 1.2)


@given(alone=st.lists(US, min_size=1, max_size=5), factor=st.floats(0.1, 10))
def test_the_same_change_in_every_round_is_the_ratio(alone: list[float], factor: float) -> None:
    one = CoRunRatio(
        chunk=Chunk(network="net", start=0, stop=1, unit="big"),
        load="little",
        beside=("little",),
        alone_us=tuple(alone),
        beside_us=tuple(factor * time_us for time_us in alone),
    )
    assert one.ratio == pytest.approx(factor)
    assert one.spread == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("beside_us", [(), (0.0,), (-1.0,), (inf,), (float("nan"),)])
def test_times_have_to_be_times(beside_us: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"layers \[0, 1\) on 'big' beside little"):
        ratio("big", "little", *beside_us)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"rounds": 1001}, {"seconds_per_item": 0.0}])
def test_options_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        CoRunOptions(**wrong)


def test_one_load_is_shown_by_network() -> None:
    found = InterferenceRatios(
        platform=PLATFORM,
        ratios=(
            ratio("big", ALL_OTHERS, 150.0, network="a"),
            ratio("big", ALL_OTHERS, 110.0, network="b"),
            ratio("big", ALL_OTHERS, 130.0, network="b", layer=1),
            ratio("little", ALL_OTHERS, 90.0, network="a"),
        ),
    )
    (heat_map,) = heat_maps(found)
    assert heat_map.rows == ("big", "little")
    assert heat_map.columns == ("a", "b", "all")
    assert heat_map.cells[0] == pytest.approx((1.5, 1.2, 1.3))  # "all" is the mean over all groups
    assert heat_map.cells[1] == (0.9, None, 0.9)


def test_several_loads_are_shown_network_by_network() -> None:
    found = InterferenceRatios(
        platform=PLATFORM,
        ratios=(
            ratio("big", "little", 150.0),
            ratio("big", ALL_OTHERS, 160.0),
            ratio("little", "big", 90.0),
            ratio("big", "little", 110.0, network="other"),
        ),
    )
    first, second = heat_maps(found)
    assert first.columns == ("big", "little", ALL_OTHERS)  # units in the order of the platform
    assert first.cells == ((None, 1.5, 1.6), (0.9, None, None))
    assert second.title.startswith("other on two")
    assert second.rows == ("big",)
    assert heat_maps(InterferenceRatios(platform=PLATFORM)) == ()


def test_a_table_has_a_ratio_for_what_runs_on_units_that_have_others_beside_them() -> None:
    rows = {"alone": ((10, 20, 5), (8, None, 4)), "busy": ((15, 10, 5), (4, None, 4))}
    alone, busy = (
        CostTable(units=PLATFORM.unit_names, networks=(NetworkCosts(network="net", layer_us=layer_us),))
        for layer_us in rows.values()
    )
    found = table_ratios(PLATFORM, alone, busy)
    assert [(one.chunk.start, one.chunk.unit, one.ratio) for one in found] == [
        (0, "big", 1.5),
        (0, "little", 0.5),
        (1, "big", 0.5),
    ]


def test_a_plan_says_the_time_of_its_longest_chunk() -> None:
    chunks = (
        ratio("big", "rest", 150.0, 170.0, 150.0),
        ratio("little", "rest", 90.0, alone_us=120.0, layer=1),
    )
    one = PlanInterference(
        plan=Plan(chunks=tuple(chunk.chunk for chunk in chunks)),
        chunks=chunks,
        predicted=(PredictedPeriod(by="heavy", period_us=140.0),),
    )
    assert [(said.by, said.period_us) for said in one.periods] == [
        ("chunks beside the rest", 150.0),
        ("chunks alone", 120.0),
        ("heavy", 140.0),
    ]
    found = InterferenceRatios(platform=PLATFORM, ratios=chunks, plans=(one,), options=CoRunOptions())
    assert parse(dump(found, INTERFERENCE).encode(), INTERFERENCE, name="it") == found


Average = Callable[[Sequence[Sequence[tuple[float, float]]]], float]

AVERAGES: dict[str, Average] = {
    "mean over all layers": lambda nets: mean(h / i for net in nets for i, h in net),
    "mean of the networks' means": lambda nets: mean(mean(h / i for i, h in net) for net in nets),
    "geometric mean over all layers": lambda nets: geometric_mean([h / i for net in nets for i, h in net]),
    "mean of the networks' geometric means": lambda nets: mean(
        geometric_mean([h / i for i, h in net]) for net in nets
    ),
    "mean of the networks' ratios of sums": lambda nets: mean(
        sum(h for _, h in net) / sum(i for i, _ in net) for net in nets
    ),
    "ratio of sums": lambda nets: (
        sum(h for net in nets for _, h in net) / sum(i for net in nets for i, _ in net)
    ),
}

SWAPPED = {("oneplus11", "Little"): "Big", ("oneplus11", "Big"): "Little"}
"""Units that the paper's text has the other way round than the authors' published tables."""

UNEXPLAINED = {("jetson-orin-nano", "GPU"), ("jetson-orin-nano-lp", "GPU")}
"""Printed as 1.19 and 1.74, and nobody knows which is which."""


def averages(average: Average, platform: str) -> dict[str, float]:
    """Return the average heavy / isolated ratio of all shipped networks of a platform, by unit."""
    units = shipped_platform(platform).unit_names
    tables = [
        [
            shipped_problem(f"{platform}/{name}", method=method).costs.of(name).layer_us
            for name in network_names(platform)
        ]
        for method in ("isolated", "heavy")
    ]
    return {
        unit: average(
            [
                [(i[u] or 0, h[u] or 0) for i, h in zip(isolated, heavy, strict=True)]
                for isolated, heavy in zip(*tables, strict=True)
            ]
        )
        for u, unit in enumerate(units)
    }


def worst_difference(average: Average) -> float:
    """Return the largest |log(ours / printed)| over what is comparable."""
    return max(
        abs(log(averages(average, platform)[SWAPPED.get((platform, unit), unit)] / printed))
        for platform, ratios in PRINTED.items()
        for unit, printed in ratios.items()
        if (platform, unit) not in UNEXPLAINED
    )


def test_the_mean_over_all_layers_is_nearest_to_what_the_paper_prints() -> None:
    found = {name: worst_difference(average) for name, average in AVERAGES.items()}
    ranked = sorted(found, key=found.__getitem__)
    assert ranked[0] == "mean over all layers"
    assert found[ranked[0]] < 0.07  # 10 of 12 within 7 %
    assert found["ratio of sums"] > 0.2


@pytest.mark.parametrize("platform", PRINTED)
def test_the_heat_map_of_a_platform_is_that_of_its_tables(platform: str) -> None:
    ratios = tuple(
        one
        for name in network_names(platform)
        for one in table_ratios(
            shipped_platform(platform),
            *(shipped_problem(f"{platform}/{name}", method=method).costs for method in ("isolated", "heavy")),
        )
    )
    (heat_map,) = heat_maps(InterferenceRatios(platform=shipped_platform(platform), ratios=ratios))
    ours = dict(zip(heat_map.rows, (row[-1] for row in heat_map.cells), strict=True))
    assert ours == pytest.approx(averages(AVERAGES["mean over all layers"], platform))
    assert set(ours) == set(PRINTED[platform])


def test_the_gpu_of_the_jetson_is_told_apart_by_no_average() -> None:
    for average in AVERAGES.values():
        for platform, _ in UNEXPLAINED:
            assert averages(average, platform)["GPU"] < 1.3  # 1.74 is printed


def test_named_the_other_way_round_the_oneplus_disagrees_by_far() -> None:
    ours = averages(AVERAGES["mean over all layers"], "oneplus11")
    for unit, other in pairwise(("Little", "Big", "Little")):
        printed = PRINTED["oneplus11"][unit]
        assert abs(log(ours[other] / printed)) < 0.07
        assert abs(log(ours[unit] / printed)) > 0.7
