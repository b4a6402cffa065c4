"""Batches: what their rounds took, from the beginning of each round to its last output."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..measurement import Measurement, Spread
from .evidence import Evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray


def by_round(found: Measurement, evidence: Evidence, *, blocks: int) -> Measurement:
    """Return a measurement of a batch with what its rounds took, without the pauses between them.

    `evidence`: what the run has left behind; rounds count as far as time stamps are kept of them. `blocks`:
    into how many blocks the rounds are divided, where there are as many.
    """
    import numpy as np

    rounds = _Rounds(evidence)
    makespans_us = rounds.makespans_us
    return replace(
        found,
        period_us=float(makespans_us.mean()),
        period_blocks_us=tuple(
            float(block.mean()) for block in np.array_split(makespans_us, min(blocks, len(makespans_us)))
        ),
        makespan_us=Spread.of(makespans_us.tolist()),
        streams=tuple(
            replace(times, latency_us=rounds.latency_us(index)) for index, times in enumerate(found.streams)
        ),
        units=tuple(replace(use, bubble_us=rounds.bubble_us(use.unit)) for use in found.units),
    )


class _Rounds:
    """Time stamps by round; of all streams the same, latest rounds."""

    def __init__(self, evidence: Evidence) -> None:
        import numpy as np

        streams = evidence.deployment.streams
        self._evidence = evidence
        self._stamps = {
            (index, chunk): evidence.rows((index, chunk))
            for index, stream in enumerate(streams)
            for chunk in range(len(stream.chunks))
        }
        self._kept = min(map(len, self._stamps.values()))
        self._begins_ns = np.asarray(evidence.begins_ns[-self._kept :])

    def _column_ns(self, task: tuple[int, int], column: int) -> NDArray[Any]:
        return self._stamps[task][-self._kept :, column]

    def _ends_ns(self, stream: int) -> NDArray[Any]:
        ends_ns: NDArray[Any] = self._evidence.ends_ns(stream)[-self._kept :]
        return ends_ns

    @property
    def makespans_us(self) -> NDArray[Any]:
        """Beginning of the round to its last output."""
        import numpy as np

        streams = range(len(self._evidence.deployment.streams))
        ends_ns = np.max([self._ends_ns(index) for index in streams], axis=0)
        makespans_us: NDArray[Any] = (ends_ns - self._begins_ns) / _NS
        return makespans_us

    def latency_us(self, stream: int) -> Spread:
        """Return the arrival to exit of a request."""
        rounds = self._evidence.deployment.rounds
        assert rounds is not None
        waits_ns = self._ends_ns(stream) - self._begins_ns
        return Spread.of((waits_ns / _NS - rounds.arrivals_us[stream]).tolist())

    def bubble_us(self, unit: str) -> float:
        """Return the idle time of a unit between its first start and its last end of a round, mean."""
        import numpy as np

        tasks = list(self._evidence.on(unit))
        starts_ns, ends_ns = (
            np.array([self._column_ns(task, column) for task in tasks]) for column in (0, 3)
        )
        idle_ns = ends_ns.max(axis=0) - starts_ns.min(axis=0) - (ends_ns - starts_ns).sum(axis=0)
        return float(idle_ns.mean()) / _NS
