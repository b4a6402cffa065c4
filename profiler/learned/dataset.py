"""Data sets: one file for each network and engine, so that what is interrupted goes on where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...formulations.errors import InvalidInputError
from ...formulations.files import dump, load, save
from ...formulations.hardware import Platform, ProcessingUnit
from .device import DEVICE, DeviceDescription

MEASURED = "measured"
"""Folder of a data set inside the folder of a predictor."""

QUOTAS = (500, 250)
"""Shares of the processor time (permille) of the slower devices that are emulated for a data set."""


def data_platform(platform: Platform, quotas: Sequence[int] = QUOTAS) -> Platform:
    """Return a platform whose units are device types: as they are, and the first core with quotas.

    Units of several cores are not emulated: threads that wait for each other lose more than the quota says
    (see `executor.machine.quota`). The units share cores; they are measured one after the other.
    """
    single = next((unit for unit in platform.units if len(unit.cores) == 1), None)
    slow: list[ProcessingUnit] = []
    if single is not None:
        slow = [
            replace(single, name=f"{single.name}-{quota / 10:g}%", quota_permille=quota) for quota in quotas
        ]
    return replace(platform, units=(*platform.units, *slow))


def data_path(folder: Path, network: str, engine: str) -> Path:
    """Return where the times of a network by an engine stand."""
    return folder / MEASURED / f"{network}.{engine}.json"


def keep(found: DeviceDescription, path: Path) -> None:
    """Write one file of a data set; it is there only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    save(dump(found, DEVICE), path)


def load_dataset(folder: Path) -> tuple[DeviceDescription, ...]:
    """Return what was measured, in the order of the files."""
    paths = sorted((folder / MEASURED).glob("*.json"))
    if not paths:
        raise InvalidInputError(f"{folder} holds no data set: `gapless learn-costs {folder}` measures one")
    return tuple(load(path, DEVICE) for path in paths)
