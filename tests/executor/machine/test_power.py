"""The power that a machine says it draws: counters that begin again, sensors, machines that say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless.executor.machine.state import MachineWatch, PowerMeter, power_source
from tests.executor.machine.machines import write


def add_zone(root: Path, number: int, *, name: str = "package-0", spent: int = 0, most: int = 10**9) -> Path:
    """Write a zone of RAPL; return its counter."""
    zone = root / f"sys/class/powercap/intel-rapl:{number}"
    write(zone / "name", name)
    write(zone / "max_energy_range_uj", most)
    write(zone / "energy_uj", spent)
    return zone / "energy_uj"


def meter(root: Path, times: Iterator[float]) -> PowerMeter:
    source = power_source(root)
    assert source is not None
    return PowerMeter(source, clock=lambda: next(times))


def test_packages_are_added_up_and_counters_begin_again(tmp_path: Path) -> None:
    one, other = add_zone(tmp_path, 0, spent=999_000_000), add_zone(tmp_path, 1, name="package-1")
    add_zone(tmp_path, 2, name="psys", spent=5)
    found = meter(tmp_path, iter([0.0, 1.0, 3.0]))
    found.look()
    write(one, 4_000_000)  # over the end: 1 J to it and 4 J on
    write(other, 2_000_000)
    found.look()
    write(one, 6_000_000)
    found.look()
    assert found.watts == pytest.approx((5 + 2 + 2) / 3)
    source = power_source(tmp_path)
    assert source is not None
    assert source.name == "RAPL, package-0, package-1"


def test_counters_of_hwmon(tmp_path: Path) -> None:
    write(tmp_path / "sys/class/hwmon/hwmon3/name", "amd_energy")
    counter = tmp_path / "sys/class/hwmon/hwmon3/energy1_input"
    write(counter, 100)
    found = meter(tmp_path, iter([0.0, 2.0]))
    found.look()
    write(counter, 100 + 8_000_000)
    found.look()
    assert found.watts == 4


def test_the_largest_sensor_is_the_supply(tmp_path: Path) -> None:
    write(tmp_path / "sys/class/hwmon/hwmon0/name", "ina3221")
    write(tmp_path / "sys/class/hwmon/hwmon0/power1_input", 6_000_000)
    write(tmp_path / "sys/class/hwmon/hwmon0/power2_input", 2_000_000)
    found = meter(tmp_path, iter([0.0, 1.0]))
    found.look()
    assert found.watts is None
    write(tmp_path / "sys/class/hwmon/hwmon0/power1_input", 8_000_000)
    found.look()
    assert found.watts == 7


def test_machines_that_say_nothing(tmp_path: Path) -> None:
    assert power_source(tmp_path) is None
    zone = add_zone(tmp_path, 0)
    zone.unlink()  # as where only root may read it
    assert power_source(tmp_path) is None
    with MachineWatch([], root=tmp_path) as watch:
        pass
    assert (watch.state.watts, watch.state.watts_by) == (None, "")


def test_a_source_that_is_taken_away(tmp_path: Path) -> None:
    counter = add_zone(tmp_path, 0)
    found = meter(tmp_path, iter([0.0, 1.0, 2.0]))
    found.look()
    write(counter, 3_000_000)
    found.look()
    counter.unlink()
    found.look()
    assert found.watts == 3


def test_the_watch_says_power_and_source(tmp_path: Path) -> None:
    add_zone(tmp_path, 0)
    with MachineWatch([], root=tmp_path) as watch:
        write(tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj", 1_000_000)
    assert watch.state.watts is not None
    assert watch.state.watts_by == "RAPL, package-0"
