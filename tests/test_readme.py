"""The README names what there is. Its blocks are run with those of all pages, in `tests/docs`."""

from __future__ import annotations

from gapless.solvers.registry import backend_names

from .documents import ROOT


def test_every_backend_is_named() -> None:
    text = (ROOT / "README.md").read_text()
    for name in backend_names():
        assert f"`{name}`" in text
