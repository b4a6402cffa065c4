"""Events that take units away: a file that names them, a zone that is too hot."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.executor.coordination.events import ControlFile, HotZone, UnitWatch
from gapless.executor.progress import Step
from gapless.formulations.errors import InvalidInputError
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
