"""Settings of all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Generator
from fcntl import LOCK_EX, flock
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from gapless.solvers import protocol

from .representatives import BUDGET_MINUTES, MAKE_TEST, REPRESENTATIVES
from .shortened import load_for_children, shorten, wait_for_no_disk

# Programs that tests start are to hear Ctrl-C, also where the tests run in the background, which do not.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests say about tables and colours is about pipes, whatever terminal the tests are run in.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)

# Images of containers often set it; then each of some thousand processes that tests start compiles gapless.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

wait_for_no_disk()

COLLECTED = pytest.StashKey[tuple[pytest.Item, ...]]()
"""All tests that were found, also those that `-m` leaves out."""

_BEGAN = pytest.StashKey[float]()

# Machines are shared and slow at times: how long an example took says nothing about the code.
# Continuous integration draws the same examples each time, so that a failure points at the change.
settings.register_profile(
    "gapless",
    deadline=None,
    derandomize="CI" in os.environ,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("gapless"), max_examples=20)
settings.load_profile("gapless")


def measures(item: pytest.Item) -> bool:
    """Return whether a test measures this machine."""
    return item.get_closest_marker("measures") is not None


# Before pytest looks at `-m`.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what stands for its kind; begin with what measures this machine, which one process has all of."""
    for item in items:
        if item.nodeid in REPRESENTATIVES:
            item.add_marker("representative")
    config.stash[COLLECTED] = tuple(items)
    items.sort(key=measures, reverse=True)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remember when the run began."""
    gc.disable()  # while tests are found, nothing is garbage
    load_for_children()
    session.config.stash[_BEGAN] = time.monotonic()


def pytest_collection_finish() -> None:
    """Let no collection of garbage walk over all tests: a forked child would copy them, too."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what of its budget `make test` has used; a busy machine is no failure."""
    if config.option.markexpr == MAKE_TEST:
        minutes = (time.monotonic() - config.stash[_BEGAN]) / 60
        terminalreporter.write_line(f"{minutes:.1f} min of {BUDGET_MINUTES} (tests/representatives.py)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure one thing at a time on this machine, whichever process and checkout asks for it.

    What measures does so for a moment only, also in fixtures of a module.
    """
    if not measures(item):
        return (yield)
    with (
        (Path(gettempdir()) / f"gapless-measures-{os.getuid()}.lock").open("w") as file,
        pytest.MonkeyPatch.context() as patch,
    ):
        flock(file, LOCK_EX)
        shorten(patch.setattr)
        return (yield)


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time limits of searches count questions instead of seconds.

    Each look at the clock takes 10 ms: a search stops at the same step on every machine, however
    loaded that is. Limits of child processes are still in seconds.
    """
    looks = count()
    monkeypatch.setattr(protocol, "time", SimpleNamespace(monotonic=lambda: next(looks) / 100))
