"""CONTRIBUTING names files that there are, and the way of a call is the one that it takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from gapless.cli.main import main

from .documents import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
FILES = re.compile(r"`((?:gapless|formulations|solvers|profiler|executor|tests|docs)/[\w/.-]+)`")


def test_its_files_are_there() -> None:
    for name in FILES.findall(TEXT):
        assert (ROOT / name).exists(), name


def test_a_call_goes_the_way_that_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Each file of the list is entered, and first entered after those before it."""
    steps = re.search(r"\*\*The way of one call.*?(?=\n\nIn Python)", TEXT, re.DOTALL)
    assert steps is not None
    shown = [name for name in FILES.findall(steps[0]) if name.endswith(".py")]
    assert len(shown) > 10
    call = re.search(r"`gapless ([^`]+)`", steps[0])
    assert call is not None
    main(call[1].split())  # what is loaded is loaded
    entered: dict[str, None] = {}

    def noted(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.setdefault(frame.f_code.co_filename)

    sys.setprofile(noted)
    try:
        main(call[1].split())
    finally:
        sys.setprofile(None)
    capsys.readouterr()
    order = [str(Path(name).resolve().relative_to(ROOT)) for name in entered if name.startswith(str(ROOT))]
    assert [name for name in order if name in shown] == shown
