"""The Kirin 990 by groups of cores: split-kirin990."""

from __future__ import annotations

from gapless.formulations.flow_shop.tables import shop_of
from gapless.profiler.platforms.workloads import shipped_workload


def test_groups_of_one_cluster_exclude_each_other_where_they_share_cores() -> None:
    platform = shipped_workload("split-kirin990", "bert").platform
    names = platform.unit_names
    assert names[1:6] == ("cpu_big", "cpu_big-456", "cpu_big-7", "cpu_big-45", "cpu_big-67")
    shared = {names[other] for other in platform.exclusive[names.index("cpu_big-45")]}
    assert shared == {"cpu_big", "cpu_big-456"}
    assert not platform.exclusive[names.index("gpu")]


def test_the_printed_slowdown_holds_inside_a_cluster() -> None:
    """Fig. 10: YOLOv4 beside VGG16 on two groups of big cores, 70 %."""
    problem = shipped_workload("split-kirin990", "yolov4,vgg16")
    units, found = problem.platform.unit_names, problem.interference
    assert found is not None
    pair = units.index("cpu_big-45"), units.index("cpu_big-67")
    assert abs(found.slowdown_of("yolov4", pair[0], "vgg16", pair[1]) - 700) <= 1
    assert found.slowdown_permille[units.index("cpu_big")][pair[0]] == 0
    played = shop_of(problem).losses.least_permille[0][pair[0]][1][pair[1]]
    assert abs(1000 * played / (1000 - played) - 700) <= 2  # it was 255: other groups of cores counted, too
    whole = shipped_workload("kirin990", "yolov4,vgg16").interference
    assert whole is not None
    assert found.slowdown_permille[pair[0]][units.index("gpu")] == whole.slowdown_permille[1][2]


def test_groups_are_slower_than_their_cluster() -> None:
    problem = shipped_workload("split-kirin990", "vgg16,bert")
    units = problem.costs.units
    for costs in problem.costs.networks:
        took = {unit: sum(row[units.index(unit)] or 0 for row in costs.layer_us) for unit in units}
        for cluster in ("cpu_big", "cpu_little"):
            groups = [took[unit] for unit in units if unit.startswith(f"{cluster}-")]
            assert len(groups) == 4
            assert all(took[cluster] < each < 6 * took[cluster] for each in groups)
