"""What the table of a sweep says: which platform is best, what one more device brings, who proves what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TypeVar

from ..formulations.terms import PERIOD
from ..solvers.protocol import SolveStatus
from .table import SweepRow

T = TypeVar("T")

RATE = "per_second"
"""The goal of plans that are made for many inferences a second; that of all others is their first term."""

_RATES = (PERIOD, "throughput")
FAILED = "failed"


def goal_of(row: SweepRow) -> str:
    """Return by what plans are compared: `RATE` (the more the better), or a term (the less the better)."""
    return RATE if row.term in _RATES and row.per_second is not None else row.term


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What is comparable: plans of one model, by one goal, that have to keep the same.

    Rates count inferences, whatever the batch; other terms are compared for one batch only.
    """

    model: str
    goal: str
    limits: str
    batch: int = 1

    def amount(self, row: SweepRow) -> float | None:
        """Return what a plan reaches of the goal."""
        return row.per_second if self.goal == RATE else row.value

    def order(self, row: SweepRow) -> float:
        """Return what is the less the better the plan."""
        found = self.amount(row) or 0.0
        return -found if self.goal == RATE else found

    def share(self, row: SweepRow, best: SweepRow) -> float:
        """Return how good a plan is, as a share of the best: twice the time is half as good."""
        found, most = self.amount(row) or 0.0, self.amount(best) or 0.0
        less, more = (found, most) if self.goal == RATE else (most, found)
        return less / more if more else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A platform, or a set of devices, with its best plan."""

    row: SweepRow  # the plan
    share: float  # how good it is, as a share of the best
    for_price: float | None  # the same for its price, as a share of the best; None: not all prices are known


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The platforms of one topic, the best first."""

    topic: Topic
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The best plan with this number of devices."""

    row: SweepRow  # the plan; its `available` is the number of devices
    gain: float | None
    """What it has more of the goal than with the next smaller number, as a share; None: it is the first. Less
    than 0: it is worse, e.g. because not all devices are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What more devices of one platform bring."""

    topic: Topic
    platform: str
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRecord:
    """What one backend proved."""

    backend: str
    counts: Mapping[str, int]  # number of tasks by status; "failed" among them
    gap: float | None  # median gap of the plans that it did not prove; None: there is none with a bound
    proof_s: float | None  # median seconds of the tasks that it proved; None: it proved none
    largest: int  # layers x units of the largest problem of which it proved something; 0: none

    @property
    def tasks(self) -> int:
        """How many tasks it had."""
        return sum(self.counts.values())

    @property
    def proved(self) -> int:
        """Of how many it proved that no valid plan of the class is better, or that there is none."""
        return sum(self.counts.get(status, 0) for status in _PROOFS)


_PROOFS = (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)


def is_proof(row: SweepRow) -> bool:
    """Return whether a row is a proof."""
    return row.status in _PROOFS


def size_of(row: SweepRow) -> int:
    """Return how large a problem is: layers x units."""
    return row.layers * row.units


def contests(rows: Sequence[SweepRow]) -> tuple[Contest, ...]:
    """Return who is best, by topic; topics with one platform only are left out.

    Numbers of devices with different prices are different platforms: what can be bought.
    """
    found = []
    for topic, planned in _by_topic(rows):
        best = [_best(topic, each) for each in _grouped(planned, _bought).values()]
        if len(best) > 1:
            found.append(Contest(topic=topic, standings=_standings(topic, best)))
    return tuple(found)


def _bought(row: SweepRow) -> tuple[str, float | None]:
    return row.platform, row.price


def _standings(topic: Topic, rows: list[SweepRow]) -> tuple[Standing, ...]:
    rows.sort(key=topic.order)
    worth = {row.task: topic.share(row, rows[0]) / row.price for row in rows if row.price}
    most = max(worth.values(), default=0.0)
    return tuple(
        Standing(
            row=row,
            share=topic.share(row, rows[0]),
            for_price=worth[row.task] / most if row.task in worth else None,
        )
        for row in rows
    )


def growths(rows: Sequence[SweepRow]) -> tuple[Growth, ...]:
    """Return what more devices bring, by topic and platform; platforms with one number are left out."""
    found = []
    for topic, planned in _by_topic(rows):
        for platform, own in _grouped(planned, lambda row: row.platform).items():
            by_number = _grouped(own, lambda row: row.available)
            best = [_best(topic, by_number[number]) for number in sorted(by_number)]
            if len(best) > 1:
                found.append(Growth(topic=topic, platform=platform, stages=tuple(_stages(topic, best))))
    return tuple(found)


def _stages(topic: Topic, rows: Sequence[SweepRow]) -> Iterator[Stage]:
    yield Stage(row=rows[0], gain=None)
    for before, row in pairwise(rows):
        yield Stage(row=row, gain=topic.share(row, before) - 1)


def records(rows: Sequence[SweepRow]) -> tuple[BackendRecord, ...]:
    """Return what each backend proved."""
    return tuple(
        _record(backend, own) for backend, own in _grouped(rows, lambda row: row.backend).items() if backend
    )


def _record(backend: str, rows: Sequence[SweepRow]) -> BackendRecord:
    proofs = [row for row in rows if is_proof(row)]
    gaps = [row.gap for row in rows if row.gap is not None and not is_proof(row)]
    return BackendRecord(
        backend=backend,
        counts=Counter(row.status for row in rows),
        gap=median(gaps) if gaps else None,
        proof_s=median(row.runtime_s for row in proofs) if proofs else None,
        largest=max(map(size_of, proofs), default=0),
    )


def disagreements(rows: Sequence[SweepRow]) -> tuple[str, ...]:
    """Return the proofs that contradict each other, in words: any of them is a bug in a backend."""
    found = []
    for same in _grouped([row for row in rows if row.fingerprint], lambda row: row.fingerprint).values():
        least = min(
            (row for row in same if row.value is not None), key=lambda row: row.value or 0, default=None
        )
        for row in same:
            if least is not None and least.value is not None:
                if row.status == SolveStatus.INFEASIBLE:
                    claim = "proves that none is valid"
                elif row.bound is not None and row.bound > least.value:
                    claim = f"proves that {row.term} is at least {row.bound}"
                else:
                    continue
                found.append(
                    f"task {row.task}: {row.backend} {claim}, but {least.backend} has the valid plan "
                    f"[{least.plan}] with {least.value} (task {least.task})"
                )
    return tuple(found)


def _by_topic(rows: Sequence[SweepRow]) -> Iterator[tuple[Topic, list[SweepRow]]]:
    planned = [row for row in rows if row.value is not None]
    yield from _grouped(planned, _topic_of).items()


def _topic_of(row: SweepRow) -> Topic:
    goal = goal_of(row)
    return Topic(model=row.model, goal=goal, limits=row.limits, batch=1 if goal == RATE else row.batch)


def _best(topic: Topic, rows: Iterable[SweepRow]) -> SweepRow:
    """Return the best plan; of equals, one that is proved, and on fewest devices."""
    return min(rows, key=lambda row: (topic.order(row), not is_proof(row), row.available, row.price or 0))


def _grouped(rows: Iterable[SweepRow], key: Callable[[SweepRow], T]) -> dict[T, list[SweepRow]]:
    """Return rows by a key, in the order in which keys are met."""
    found: dict[T, list[SweepRow]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
