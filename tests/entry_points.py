"""An installed package with entry points, as `pip install` leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, group: str, targets: Mapping[str, str], **modules: str
) -> None:
    """Make entry points known while a test runs.

    Parameters
    ----------
    monkeypatch, folder
        Of the test; the folder is put at the front of the path of Python.
    group, targets
        Group of the entry points, and "module:NAME" by name.
    **modules
        Source code of modules of the package.
    """
    site = folder / "site-packages"
    info = site / "somebodys_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys-package\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {target}" for name, target in targets.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for name, source in modules.items():
        (site / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(site))
