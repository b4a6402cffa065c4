"""What the machine was like while something was measured."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from gapless.executor.machine.cores import usable_cores
from gapless.executor.machine.state import MachineState, MachineWatch, machine_load

CORE = min(usable_cores())


def machine(root: Path, *, busy: int, idle: int, own: int) -> None:
    """Write what a kernel would say."""
    (root / "proc/7").mkdir(parents=True, exist_ok=True)
    (root / "proc/stat").write_text(f"cpu 0 0 0 0\ncpu{CORE} {busy} 0 0 {idle} 0 0 0 0\n")
    fields = ["1"] * 10 + [str(own), "0"] + ["1"] * 10
    (root / "proc/7/stat").write_text(f"7 (a b) S {' '.join(fields)}\n")


def test_others_are_what_is_busy_but_not_ours(tmp_path: Path) -> None:
    machine(tmp_path, busy=100, idle=100, own=10)
    with MachineWatch([7], root=tmp_path) as watch:
        machine(tmp_path, busy=180, idle=120, own=60)
    assert watch.state == MachineState(others=0.3)


def test_what_the_system_does_not_tell_is_none(tmp_path: Path) -> None:
    with MachineWatch([7], root=tmp_path) as watch:
        pass
    assert watch.state == MachineState()
    machine(tmp_path, busy=100, idle=100, own=10)
    with MachineWatch([7, 8], root=tmp_path) as watch:  # 8 was replaced
        machine(tmp_path, busy=180, idle=120, own=60)
    assert watch.state.others is None


def test_clocks_and_temperatures_where_they_are_told(tmp_path: Path) -> None:
    clock = tmp_path / f"sys/devices/system/cpu/cpu{CORE}/cpufreq/scaling_cur_freq"
    clock.parent.mkdir(parents=True)
    clock.write_text("1800000\n")
    for number, text in enumerate(("45000", "61500", "-274000", "absurd")):
        zone = tmp_path / f"sys/class/thermal/thermal_zone{number}/temp"
        zone.parent.mkdir(parents=True)
        zone.write_text(text)
    with MachineWatch([], root=tmp_path) as watch:
        pass
    assert (watch.state.mhz, watch.state.celsius) == (1800, 61.5)


def test_our_own_work_is_not_that_of_others() -> None:
    if machine_load(interval_s=0.05) is None:
        pytest.skip("this system does not tell")
    code = "import time\nend = time.monotonic() + 0.6\nwhile time.monotonic() < end: pass"
    child = subprocess.Popen([sys.executable, "-c", code])
    with MachineWatch([child.pid]) as ours, MachineWatch([]) as everything:
        time.sleep(0.4)
    child.wait()
    assert ours.state.others is not None
    assert everything.state.others is not None
    assert ours.state.others < everything.state.others
