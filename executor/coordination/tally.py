"""What a coordinator counts: requests by model and by what became of them, work by unit, decisions."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCounts:
    """Requests of one model.

    Attributes
    ----------
    name
        As it is asked for.
    fates
        How many there were, by what became of them.
    buckets
        How many answers had a latency up to each of `BUCKETS_US`, and above the last.
    total_us
        Sum of all latencies.
    p50_us, p90_us, p99_us
        Percentiles of the latencies of the last answers; None: there are none.
    """

    name: str
    fates: dict[str, int]
    buckets: tuple[int, ...]
    total_us: float
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCounts:
    """Work of one unit.

    Attributes
    ----------
    name
        Of the unit.
    available
        Whether it may be used now.
    why
        Why not; empty while it may.
    chunks
        How many it has run.
    busy_us
        How long it has worked.
    losses
        How many times its worker was lost, or could not be started.
    restarts
        How many times its worker was started again.
    rss_bytes
        Most memory that its worker has had when it last opened sessions.
    """

    name: str
    available: bool
    why: tuple[str, ...]
    chunks: int
    busy_us: float
    losses: int
    restarts: int
    rss_bytes: int


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
        self._latencies: dict[str, deque[float]] = {}
        self._recent: deque[Served] = deque(maxlen=RECENT)

    def begin(self, name: str) -> None:
        """Count for a model from now on."""
        with self._lock:
            self._fates[name] = dict.fromkeys(map(str, Fate), 0)
            self._buckets[name] = [0] * (len(BUCKETS_US) + 1)
            self._total_us[name] = 0.0
            self._latencies[name] = deque(maxlen=RECENT)

    def count(self, name: str, fate: Fate) -> None:
        """Count a request that has no answer."""
        with self._lock:
            self._fates[name][fate] += 1

    def answered(self, served: Served) -> None:
        """Count an answer (without its outputs: they are the caller's)."""
        latency_us = served.latency_us
        with self._lock:
            self._fates[served.name][Fate.LATE if served.late else Fate.ANSWERED] += 1
            self._buckets[served.name][bisect_left(BUCKETS_US, latency_us)] += 1
            self._total_us[served.name] += latency_us
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
            p50_us=percentile(known, 500),
            p90_us=percentile(known, 900),
            p99_us=percentile(known, 990),
        )
