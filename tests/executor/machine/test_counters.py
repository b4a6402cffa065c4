"""Counting: what the kernel counts in software shows that the mechanism works where no hardware does."""

from __future__ import annotations

import os
import threading

import pytest

from gapless.executor.machine.counters import (
    CYCLES,
    INSTRUCTIONS,
    CounterEvent,
    Counters,
    counters_availability,
)
from gapless.formulations.errors import ProfilingError

TASK_CLOCK = CounterEvent(name="nanoseconds at work", kind=1, number=1)
NO_EVENT = CounterEvent(name="unicorns", kind=1, number=4711)

needs_software = pytest.mark.skipif(
    not counters_availability([TASK_CLOCK]).ok, reason="this system does not let processes count at all"
)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def work() -> None:
    sum(range(400_000))


def threads() -> None:
    running = [threading.Thread(target=work) for _ in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


@needs_software
def test_work_is_counted_also_in_threads_that_start_later() -> None:
    with Counters([TASK_CLOCK]) as counters:
        once, nothing, thrice = (counters.count(what)[TASK_CLOCK] for what in (work, lambda: None, threads))
    assert once > 10 * nothing
    assert thrice > 1.5 * once


@needs_software
def test_counters_close_also_when_one_of_them_cannot_be_had() -> None:
    before = descriptors()
    Counters([TASK_CLOCK]).close()
    with pytest.raises(ProfilingError, match=r"unicorns cannot be counted: .*ENOENT"):
        Counters([TASK_CLOCK, NO_EVENT])
    assert descriptors() == before


@needs_software
def test_an_event_that_never_ran_is_told_and_one_that_took_turns_is_extrapolated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([(0, 0, 0), (30, 100, 25), (0, 0, 0), (0, 100, 0)])
    with Counters([TASK_CLOCK]) as counters:
        monkeypatch.setattr(Counters, "_read", lambda self: {TASK_CLOCK: next(readings)})
        assert counters.count(lambda: None)[TASK_CLOCK] == 120
        with pytest.raises(ProfilingError, match="never counted"):
            counters.count(lambda: None)


@pytest.mark.skipif(not counters_availability().ok, reason="this machine hides its hardware counters")
def test_instructions_and_cycles_are_counted() -> None:
    with Counters([CYCLES, INSTRUCTIONS]) as counters:
        counts = counters.count(work)
    assert counts[INSTRUCTIONS] > 400_000
    assert counts[CYCLES] > 0
