"""The shipped clusters: what the paper prints stands in them, and every number says where it is from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from gapless.formulations.cluster_platform import CLUSTER
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump
from gapless.profiler.clusters.catalog import cluster_names, load_cluster, shipped_cluster

GB, MBPS = 10**9, 125_000
TABLE_2 = {
    1: [("agx", 16, 1000)] * 3 + [("nx", 8, 1000)] * 3,
    2: [(kind, memory, 1000) for kind in ("agx", "nx") for memory in (4, 2, 1)],
    3: [(kind, memory, 1000) for kind in ("agx", "nx") for memory in (4, 2, 1)],
    4: [(k, memory, mbps) for k in ("agx", "nx") for memory, mbps in ((4, 1000), (2, 100), (1, 10))],
}
"""Family, memory in GB and bandwidth in Mbps of each device, as printed."""


@pytest.mark.parametrize("case", TABLE_2)
def test_the_cases_are_those_of_table_2(case: int) -> None:
    cluster = shipped_cluster(f"epipe-case-{case}")
    found = [
        (one.name.partition("-")[0], one.memory_bytes, one.port_bytes_per_second)
        for one in cluster.types
        for _ in range(one.count)
    ]
    assert found == [(kind, memory * GB, mbps * MBPS) for kind, memory, mbps in TABLE_2[case]]
    assert (cluster.in_slots, cluster.out_slots) == (1, 1)


def test_less_power_is_less_speed() -> None:
    speeds = [one.speed.flops_per_second for one in shipped_cluster("epipe-case-3").types if one.speed]
    assert speeds[0] > speeds[1] > speeds[2]
    assert speeds[3] == speeds[4] > speeds[5]


@pytest.mark.parametrize("name", cluster_names())
def test_every_cluster_says_where_its_numbers_are_from(name: str) -> None:
    cluster = shipped_cluster(name)
    assert cluster.name == name
    assert cluster.source
    assert all("estimate" in one.source or "derived" in one.source for one in cluster.types)
    assert cluster.pipelines().power_mw


def test_there_are_boards_of_several_kinds() -> None:
    kinds = Counter(name.partition("-")[0] for name in cluster_names())
    assert kinds == {"epipe": 4, "raspberry": 1, "jetsons": 1, "pico": 1}
    assert any(one.units for one in shipped_cluster("jetsons-and-laptop").types)


def test_a_file_wins_over_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("raspberry-pis").write_text(dump(shipped_cluster("epipe-case-2"), CLUSTER))
    assert load_cluster("raspberry-pis").name == "epipe-case-2"


def test_unknown_names_get_near_ones() -> None:
    with pytest.raises(
        InvalidInputError, match="neither a cluster file nor a shipped cluster; did you mean epip"
    ):
        load_cluster("epipe-case1")
