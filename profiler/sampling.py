"""How often to run something, and what every single run took: the part that runs inside a worker."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any

from ..executor.engine import Session
from ..formulations.validation import FileContent

if TYPE_CHECKING:
    from numpy.typing import NDArray

Clock = Callable[[], int]
"""Nanoseconds of a clock that never goes back."""


class TimeBase(StrEnum):
    """Which clock times a run.

    WALL
        The time that passes.
    BUSY
        The time for which the cores worked on this process: waiting for memory is part of it, what other
        programs take of a core is not. Threads add up, so only its ratios mean something.
    """

    WALL = "wall"
    BUSY = "busy"


_CLOCKS: dict[TimeBase, Clock] = {TimeBase.WALL: time.perf_counter_ns, TimeBase.BUSY: time.process_time_ns}

MAX_REPETITIONS = 4_000
"""Enough for any median; keeps the answer of a worker short for layers of a few microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort(FileContent):
    """How long to measure one thing.

    Runs are repeated until both minima are reached, or the maximum.
    """

    min_repetitions: int = 30
    min_seconds: float = 0.06
    """Least number of runs, and least time."""
    max_seconds: float = 1.0
    """Where it ends in any case, once there are `FEWEST_REPETITIONS`."""
    warm_up_repetitions: int = 3
    """Runs before, not counted; a run longer than `max_seconds` is enough of a warm-up."""
    time_base: TimeBase = TimeBase.WALL
    """Which clock times them."""
    steady: bool = False
    """Whether it is warmed up further, until its times stop drifting: frequencies and temperatures have
    settled then (Hetero2Pipe, Appendix B)."""

    def enough(self, runs: int, elapsed_ns: int) -> bool:
        """Return whether to stop after some runs."""
        if runs >= MAX_REPETITIONS:
            return True
        if elapsed_ns >= self.max_seconds * 1e9:
            return runs >= min(FEWEST_REPETITIONS, self.min_repetitions)
        return runs >= self.min_repetitions and elapsed_ns >= self.min_seconds * 1e9


SETTLING_S = 0.25
"""Length of the spans of which medians are compared until times stop drifting."""

MOST_DRIFT = 0.02
"""Largest difference between the medians of three spans in a row that counts as no drift."""

MOST_SETTLING_S = 5.0
"""Where warming up ends in any case: a profile has many layers, and they keep the device warm."""

FEWEST_REPETITIONS = 3
"""Runs of something so slow that even these take longer than the longest time allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Nanoseconds of consecutive runs, one entry a run."""

    copy_in_ns: tuple[int, ...]
    run_ns: tuple[int, ...]
    copy_out_ns: tuple[int, ...]

    @property
    def busy_ns(self) -> tuple[int, ...]:
        """Copies and run together."""
        return tuple(map(sum, zip(self.copy_in_ns, self.run_ns, self.copy_out_ns, strict=True)))


def collect(
    session: Session,
    inputs: Sequence[NDArray[Any]],
    outputs: Sequence[NDArray[Any]],
    effort: Effort,
    *,
    clock: Clock | None = None,
) -> Samples:
    """Warm a session up and run it; inputs are copied in before every run, because a run may destroy them.

    The clock is that of the effort, unless another one is given.
    """
    clock = clock or _CLOCKS[TimeBase(effort.time_base)]
    _warm_up(session, inputs, outputs, effort, clock)
    if effort.steady:
        _settle(session, inputs, outputs, clock)
    rows: list[tuple[int, int, int]] = []
    gc.disable()
    try:
        begin = clock()
        while not rows or not effort.enough(len(rows), clock() - begin):
            rows.append(_timed_run(session, inputs, outputs, clock))
    finally:
        gc.enable()
    copies_in, runs, copies_out = zip(*rows, strict=True)
    return Samples(copy_in_ns=copies_in, run_ns=runs, copy_out_ns=copies_out)


def run_once(session: Session, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
    """Copy in, run, copy out."""
    session.copy_in(inputs)
    session.run()
    session.copy_out(outputs)


def _timed_run(
    session: Session, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]], clock: Clock
) -> tuple[int, int, int]:
    start = clock()
    session.copy_in(inputs)
    copied = clock()
    session.run()
    done = clock()
    session.copy_out(outputs)
    return copied - start, done - copied, clock() - done


def _warm_up(
    session: Session,
    inputs: Sequence[NDArray[Any]],
    outputs: Sequence[NDArray[Any]],
    effort: Effort,
    clock: Clock,
) -> None:
    begin = clock()
    for _ in range(max(1, effort.warm_up_repetitions)):
        run_once(session, inputs, outputs)
        if clock() - begin >= effort.max_seconds * 1e9:
            break


def _settle(
    session: Session, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]], clock: Clock
) -> None:
    """Run until the medians of three spans in a row are alike, or the time is up."""
    begin, medians = clock(), list[float]()
    while clock() - begin < MOST_SETTLING_S * 1e9:
        start, times = clock(), list[int]()
        while len(times) < FEWEST_REPETITIONS or clock() - start < SETTLING_S * 1e9:
            times.append(sum(_timed_run(session, inputs, outputs, clock)))
        medians.append(median(times))
        last = medians[-3:]
        if len(last) == 3 and max(last) <= (1 + MOST_DRIFT) * min(last):
            return
