"""Every test has a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that is the cache of the user during a test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GAPLESS_CACHE", str(folder))
    return folder
