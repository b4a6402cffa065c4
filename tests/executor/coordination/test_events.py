"""Events that take units away: a file that names them, a zone that is too hot."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gapless.executor.coordination.events import ControlFile, HotZone, ModelledHeat, UnitWatch
from gapless.executor.progress import Step
from gapless.formulations.coordination.behaviour import Behaviour, HeatModel, UnitBehaviour
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Platform, ProcessingUnit
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.processes import soon


def test_units_that_a_file_names_are_away(tmp_path: Path) -> None:
    file, told = tmp_path / "away", list[Step]()
    with coordinator("a", "b") as opened:
        opened.register(chain("add", name="net"))

        def available() -> list[bool]:
            return [unit.available for unit in opened.statistics().units]

        with UnitWatch(opened, [ControlFile(file)], interval_s=0.01, report=told.append):
            assert available() == [True, True]
            file.write_text("a\nghost\n")
            assert soon(lambda: available() == [False, True] and len(told) == 2)
            assert opened.statistics().units[0].why == ("named in the control file",)
            file.unlink()
            assert soon(lambda: available() == [True, True])
    assert [step.text for step in told[:2]] == [
        "unit 'a' is away: named in the control file",
        "named in the control file: no unit 'ghost'; there are a, b",
    ] or "ghost" in told[1].text


def test_a_zone_that_is_too_hot_takes_its_unit_away_until_it_is_cooler(tmp_path: Path) -> None:
    zone = tmp_path / "sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("cpu-big\n")
    (zone / "temp").write_text("50000\n")
    hot = HotZone.of("a", "cpu-big", 80.0, root=tmp_path)
    assert HotZone.of("a", "thermal_zone0", 80.0, root=tmp_path).path == hot.path
    seen = []
    for degrees in (50, 79, 80, 75, 71, 69, 75):
        (zone / "temp").write_text(f"{degrees}000\n")
        seen.append(bool(hot.away()))
    assert seen == [False, False, True, True, True, False, False]
    (zone / "temp").unlink()
    assert hot.away() == set()
    with pytest.raises(InvalidInputError, match="no thermal zone 'x' that tells its temperature"):
        HotZone.of("a", "x", 80.0, root=tmp_path)


def test_zones_of_two_units_do_not_bring_each_other_back(tmp_path: Path) -> None:
    for number, millicelsius in ((0, "90000"), (1, "50000")):
        zone = tmp_path / f"sys/class/thermal/thermal_zone{number}"
        zone.mkdir(parents=True)
        (zone / "temp").write_text(millicelsius)
    zones = [HotZone.of(unit, f"thermal_zone{n}", 80.0, root=tmp_path) for n, unit in enumerate("ab")]
    with coordinator("a", "b") as opened, UnitWatch(opened, zones, interval_s=0.01):
        assert soon(lambda: not opened.statistics().units[0].available)
        for _ in range(20):
            time.sleep(0.01)
            assert [unit.available for unit in opened.statistics().units] == [False, True]


def test_a_unit_of_two_zones_is_back_when_both_are_cool(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one", "other")]
    for file in files:
        file.write_text("90000")
    zones = [HotZone("a", file, 80.0, 70.0) for file in files]

    def available() -> bool:
        return opened.statistics().units[0].available

    with coordinator("a") as opened, UnitWatch(opened, zones, interval_s=0.01):
        for cool, hot in (files, files[::-1]):
            hot.write_text("90000")
            assert soon(lambda: not available())
            cool.write_text("50000")
            for _ in range(20):
                time.sleep(0.01)
                assert not available()
            hot.write_text("50000")
            assert soon(available)


def test_a_unit_rests_below_its_limit_if_asked_to(tmp_path: Path) -> None:
    zone = tmp_path / "sys/class/thermal/thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "temp").write_text("77000")
    lost = HotZone.of("a", "thermal_zone0", 80.0, root=tmp_path)
    rests = HotZone.of("a", "thermal_zone0", 80.0, 5.0, root=tmp_path)
    assert (lost.away(), rests.away()) == (set(), {"a"})
    assert (lost.finish, rests.finish) == (False, True)


class Worked:
    """A coordinator of which only the units, and how long they have worked, are asked for."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.busy_us = [0.0] * len(platform.units)

    def statistics(self) -> Any:
        return SimpleNamespace(units=[SimpleNamespace(busy_us=busy_us) for busy_us in self.busy_us])


def test_temperatures_by_a_model_follow_what_units_work() -> None:
    heat = HeatModel(kelvin_per_w=20, time_s=10, limit_c=70, back_c=60)  # at work 105 degrees in the end
    behaviour = Behaviour(
        platform="p", units=(UnitBehaviour(unit="npu", busy_mw=4000, idle_mw=0, heat=heat),)
    )
    unit = ProcessingUnit(name="npu", workers=2)
    found = Worked(Platform(name="p", units=(unit, ProcessingUnit(name="cpu"))).by_worker())
    times = {"now": 0.0}

    def left_at(rest_kelvin: float | None) -> tuple[int | None, int | None]:
        """Return after how many seconds at work it leaves, and after how many without it is back."""
        times["now"], found.busy_us = 0.0, [0.0] * 3
        model = ModelledHeat(found, behaviour, rest_kelvin, clock=lambda: times["now"])  # type: ignore[arg-type]
        left = back = None
        for second in range(1, 60):
            times["now"] += 1.0
            if left is None:
                found.busy_us[0] += 5e5
                found.busy_us[1] += 5e5
                left = second if model.away() == {"npu"} else None
            elif back is None:
                back = second - left if not model.away() else None
        return left, back

    assert left_at(None) == (
        9,
        4,
    )  # 80 (1 - exp(-t / 10)) is 45 K after 8.3 s; from 47.5 to 35 K it takes 3.05
    assert left_at(5.0)[0] == 7  # 40 K after 6.9 s
