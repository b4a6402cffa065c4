"""What a coordinator counts: requests by model and by what became of them, work by unit, decisions."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from time import monotonic_ns, time_ns

from ...formulations.coordination.record import percentile
from .requests import Served

BUCKETS_US = (
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
)
"""Upper ends of the classes of latencies that are counted for ever."""

RECENT = 4096
"""Of so many requests the percentiles are, and the history."""


class Fate(StrEnum):
    """What becomes of a request.

    ANSWERED
        In time, or it had no deadline.
    LATE
        Answered behind its deadline.
    DROPPED
        It could not meet its deadline any more.
    LEFT
        Its client has left while it waited.
    FAILED
        An engine failed, or workers were lost, too often; or the coordinator was closed.
    REFUSED
        It was not accepted.
    """

    ANSWERED = "answered"
    LATE = "late"
    DROPPED = "dropped"
    LEFT = "left"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(slots=True, kw_only=True)
class Spent:
    """Where the time of requests went: counts, and sums in nanoseconds."""

    answers: int = 0  # how many
    waited_ns: int = 0  # in which no unit worked on them
    copied_in_ns: int = 0
    ran_ns: int = 0
    copied_out_ns: int = 0
    failed_ns: int = 0  # from arrival to the answer, of those that have no outputs

    def add(self, served: Served) -> None:
        """Count an answer."""
        self.answers += 1
        self.waited_ns += round(1000 * served.waited_us)
        for begin_ns, in_ns, ran_ns, end_ns in (chunk.times_ns for chunk in served.chunks):
            self.copied_in_ns += in_ns - begin_ns
            self.ran_ns += ran_ns - in_ns
            self.copied_out_ns += end_ns - ran_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCounts:
    """Requests of one model.

    `p50_us`, `p90_us`, `p99_us`: percentiles of the latencies of the last answers; None: there are none.
    """

    name: str  # as it is asked for
    fates: dict[str, int]  # how many there were, by what became of them
    buckets: tuple[int, ...]  # how many answers had a latency up to each of `BUCKETS_US`, and above the last
    total_us: float  # sum of all latencies
    spent: Spent  # where the time of all answers went
    last_ms: int  # when the last request came, milliseconds since 1970; 0: none has come
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCounts:
    """Work of one unit."""

    name: str  # of the unit
    available: bool  # whether it may be used now
    why: tuple[str, ...]  # why not; empty while it may
    chunks: int  # how many it has run
    busy_us: float  # how long it has worked
    losses: int  # how many times its worker was lost, or could not be started
    restarts: int  # how many times its worker was started again
    rss_bytes: int  # most memory that its worker has had when it last opened sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What has happened so far.

    Attributes
    ----------
    seconds
        Since the coordinator was opened.
    waiting
        Requests that are accepted and not answered.
    models, units
        By model, and by unit.
    decisions
        How many chunks were started.
    decision_us
        Median time of a decision of the policy, of the last ones; None: there was none.
    """

    seconds: float
    waiting: int
    models: tuple[ModelCounts, ...]
    units: tuple[UnitCounts, ...]
    decisions: int
    decision_us: float | None

    def total(self, fate: Fate) -> int:
        """Return how many requests of all models had a fate."""
        return sum(model.fates[fate] for model in self.models)


class Tally:
    """Counts requests; any thread may."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fates: dict[str, dict[str, int]] = {}
        self._buckets: dict[str, list[int]] = {}
        self._total_us: dict[str, float] = {}
        self._spent: dict[str, Spent] = {}
        self._last_ms: dict[str, int] = {}
        self._latencies: dict[str, deque[float]] = {}
        self._recent: deque[Served] = deque(maxlen=RECENT)

    def begin(self, name: str) -> None:
        """Count for a model from now on, or further on."""
        if name not in self._fates:
            self.restart([name])

    def restart(self, names: Iterable[str]) -> None:
        """Count for models from zero."""
        with self._lock:
            for name in names:
                self._spent[name] = Spent()
                self._last_ms[name] = 0
                self._fates[name] = dict.fromkeys(map(str, Fate), 0)
                self._buckets[name] = [0] * (len(BUCKETS_US) + 1)
                self._total_us[name] = 0.0
                self._latencies[name] = deque(maxlen=RECENT)

    def count(self, name: str, fate: Fate, *, took_ns: int = 0) -> None:
        """Count a request that has no outputs, and how long it was there."""
        with self._lock:
            self._fates[name][fate] += 1
            self._spent[name].failed_ns += took_ns
            self._last_ms[name] = time_ns() // 1_000_000

    def answered(self, served: Served) -> None:
        """Count an answer (without its outputs: they are the caller's)."""
        latency_us = served.latency_us
        with self._lock:
            self._fates[served.name][Fate.LATE if served.late else Fate.ANSWERED] += 1
            self._buckets[served.name][bisect_left(BUCKETS_US, latency_us)] += 1
            self._total_us[served.name] += latency_us
            self._spent[served.name].add(served)
            self._last_ms[served.name] = (time_ns() - (monotonic_ns() - served.arrival_ns)) // 1_000_000
            self._latencies[served.name].append(latency_us)
            self._recent.append(served)

    @property
    def recent(self) -> list[Served]:
        """The last answers, without outputs."""
        with self._lock:
            return list(self._recent)

    def models(self) -> tuple[ModelCounts, ...]:
        """Return the counts by model."""
        with self._lock:
            return tuple(self._counts(name) for name in self._fates)

    def _counts(self, name: str) -> ModelCounts:
        known = sorted(self._latencies[name])
        return ModelCounts(
            name=name,
            fates=dict(self._fates[name]),
            buckets=tuple(self._buckets[name]),
            total_us=self._total_us[name],
            spent=replace(self._spent[name]),
            last_ms=self._last_ms[name],
            p50_us=percentile(known, 500),
            p90_us=percentile(known, 900),
            p99_us=percentile(known, 990),
        )
