"""Cluster files: strict reading, names of devices, and what joins them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gapless.formulations.cluster import Link
from gapless.formulations.cluster_platform import (
    CLUSTER,
    ClusterPlatform,
    DeviceType,
    InnerUnit,
    Speed,
    parse_counts,
)
from gapless.formulations.errors import InvalidInputError, InvalidProblemError, SchemaVersionError
from gapless.formulations.files import dump, load

SPEED = Speed(flops_per_second=10**11, memory_bytes_per_second=10**10, launch_us=5)
PI = DeviceType(name="pi", count=2, memory_bytes=4 * 10**9, speed=SPEED, port_bytes_per_second=100 * 10**6)
NANO = DeviceType(name="nano", speed=SPEED, port_bytes_per_second=50 * 10**6, power_mw=9000)
LAB = ClusterPlatform(name="lab", types=(PI, NANO), port_latency_us=7)


def document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(dump(LAB, CLUSTER)), **changes}


def written(path: Path, **changes: Any) -> Path:
    file = path / "lab.json"
    file.write_text(json.dumps(document(**changes)))
    return file


def test_devices_are_called_like_their_type() -> None:
    assert LAB.devices == ("pi-1", "pi-2", "nano")
    assert LAB.platform.unit_names == LAB.devices
    assert [unit.memory_bytes for unit in LAB.platform.units] == [4 * 10**9, 4 * 10**9, None]
    assert LAB.pipelines().types == ("pi", "pi", "nano")


def test_ports_send_as_fast_as_the_slower_one() -> None:
    found = {(link.source, link.target): link for link in LAB.pipelines().links}
    assert set(found) == {("pi", "pi"), ("pi", "nano"), ("nano", "pi")}  # there is only one nano
    assert found["pi", "pi"].bytes_per_second == 100 * 10**6
    assert found["pi", "nano"].bytes_per_second == found["nano", "pi"].bytes_per_second == 50 * 10**6
    assert {link.latency_us for link in found.values()} == {7}


def test_a_link_holds_in_both_directions_and_comes_before_ports() -> None:
    cable = Link(source="pi", target="nano", bytes_per_second=9)
    one = Link(source="pi-1", target="nano", bytes_per_second=5)
    back = Link(source="nano", target="pi-1", bytes_per_second=4)
    found = replace(LAB, links=(cable, one, back)).pipelines()
    link_of = found.linker(LAB.devices)

    def speed(source: str, target: str) -> int:
        link = link_of(source, target)
        assert link is not None
        return link.bytes_per_second

    assert (speed("pi-1", "nano"), speed("nano", "pi-1")) == (5, 4)
    assert (speed("pi-2", "nano"), speed("nano", "pi-2")) == (9, 9)
    assert speed("pi-1", "pi-2") == 100 * 10**6


def test_powers_count_only_where_all_are_known() -> None:
    assert LAB.pipelines().power_mw == ()
    both = replace(LAB, types=(replace(PI, power_mw=6000), NANO))
    assert both.pipelines().power_mw == (6000, 6000, 9000)
    assert both.idle_mw == ()
    rests = replace(both, types=(replace(both.types[0], idle_mw=2700), replace(NANO, idle_mw=0)))
    assert rests.idle_mw == (2700, 2700, 0)
    with pytest.raises(InvalidProblemError, match="idle_mw is 6001, needs a power_mw of at least that"):
        replace(both.types[0], idle_mw=6001)


def test_what_is_asked_of_the_devices_becomes_the_data() -> None:
    cluster = replace(
        LAB,
        host="nano",
        overlap=False,
        in_slots=0,
        out_slots=3,
        resident_bytes=11,
        switch_bytes_per_second=99,
    )
    data = cluster.pipelines()
    assert (data.host, data.overlap, data.in_slots, data.out_slots) == ("nano", False, 0, 3)
    assert (data.resident_bytes, data.switch_bytes_per_second, data.most) == (11, 99, None)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    inner = DeviceType(name="box", units=(InnerUnit(name="gpu", speed=SPEED, copy_us=3),))
    link = Link(source="box", target="nano", bytes_per_second=10)
    cluster = replace(LAB, types=(*LAB.types, inner), links=(link,), source="here")
    file = tmp_path / "lab.json"
    file.write_text(dump(cluster, CLUSTER))
    assert load(file, CLUSTER) == cluster


FAST = {"flops_per_second": 10**9}

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"wifi": 1}, "wifi: unknown key"),
    "no type": ({"types": []}, "types are missing"),
    "stray link": (
        {"links": [{"source": "pi", "target": "tx2", "bytes_per_second": 1}]},
        "a link names 'tx2', which is no device and no type; there are pi, pi-1, pi-2, nano",
    ),
    "stray host": ({"host": "pi"}, "the host 'pi' is no device; there are pi-1, pi-2, nano"),
    "negative latency": ({"port_latency_us": -1}, "port_latency_us is -1, must be at least 0"),
    "negative slots": ({"in_slots": -1}, "in_slots is -1"),
    "too many": (
        {"types": [{"name": "a", "count": 65, "speed": {"flops_per_second": 10**9}}]},
        "count is 65, at most 64 devices",
    ),
    "no speed": ({"types": [{"name": "a"}]}, "needs either a speed or inner units"),
    "many units": (
        {"types": [{"name": "a", "units": [{"name": f"u{n}", "speed": FAST} for n in range(7)]}]},
        "it has 7 inner units, at most 6",
    ),
    "slow": (
        {"types": [{"name": "a", "speed": {"flops_per_second": 10}}]},
        "flops_per_second is 10, must be a whole number from 1000000",
    ),
    "fraction": ({"types": [{"name": "a", "speed": {"flops_per_second": 1.5e9}}]}, "flops_per_second"),
    "names": (
        {
            "types": [
                {"name": "a", "count": 2, "speed": {"flops_per_second": 10**9}, "port_bytes_per_second": 1},
                {"name": "a-1", "speed": {"flops_per_second": 10**9}},
            ]
        },
        "stand for several devices or types: a-1",
    ),
    "alone": (
        {"types": [{"name": "a", "count": 2, "speed": {"flops_per_second": 10**9}}]},
        "nothing joins the devices: say port_bytes_per_second",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_files_are_refused_with_what_is_wrong(case: str, tmp_path: Path) -> None:
    changes, message = WRONG[case]
    with pytest.raises(InvalidInputError) as caught:
        load(written(tmp_path, **changes), CLUSTER)
    assert message in str(caught.value)
    assert "lab.json is not a valid gapless.cluster file" in str(caught.value)


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaVersionError, match=r"version 2 of gapless\.cluster"):
        load(written(tmp_path, version=2), CLUSTER)


def test_other_numbers_of_devices_keep_the_links_that_are_left() -> None:
    between = Link(source="pi", target="nano", bytes_per_second=9)
    single = Link(source="pi-2", target="pi-1", bytes_per_second=5)
    alike = Link(source="pi", target="pi", bytes_per_second=7)
    lab = replace(LAB, links=(between, single, alike), host="pi-1")
    fewer = lab.with_counts({"pi": 1})
    assert (fewer.devices, fewer.links, fewer.host) == (("pi", "nano"), (between,), "pi")
    more = lab.with_counts({"pi": 3, "nano": 0})
    assert more.devices == ("pi-1", "pi-2", "pi-3")
    assert (more.links, more.host) == ((single, alike), "pi-1")
    assert more.name == "lab pi=3,nano=0"
    assert lab.with_counts({}).links == lab.links


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"pie": 1}, "no devices of the type 'pie'; its types are pi, nano"),
        ({"pi": -1}, "less than 0"),
        ({"pi": 0, "nano": 0}, "no device left"),
        ({"nano": 0}, "the host 'nano' of cluster 'lab' is not among"),
        ({"pi": 65}, "at most 64 devices"),
    ],
)
def test_numbers_of_devices_that_cannot_be(counts: dict[str, int], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        replace(LAB, host="nano").with_counts(counts)


def test_numbers_of_devices_as_text() -> None:
    assert parse_counts("pi=2, nano=0") == {"pi": 2, "nano": 0}
    for text in ("", "pi", "pi=", "=2", "pi=-1", "pi=x", "pi=2,", "pi=99999", "pi=1,pi=2"):
        with pytest.raises(InvalidInputError):
            parse_counts(text)
