"""What is measured beside load, in which order, and whether the load ran all the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from gapless.executor.progress import Step
from gapless.profiler.measuring import PreparedPiece
from gapless.profiler.probes import Probe
from gapless.profiler.records import ALONE, MeasuringProgress, RecordedBench
from gapless.profiler.slowdown.turns import Job, measure_jobs
from gapless.profiler.summary import Timing

from ..fakes import FakeEngine, FakeModel
from ..test_sampling import summed


def probe(start: int, stop: int) -> Probe:
    (piece,) = FakeModel([1] * 9).pieces(start, stop)
    (artifact,) = FakeEngine().prepare([piece])
    return Probe(span=(start, stop), prepared=PreparedPiece(piece=piece, artifact=artifact))


@dataclass
class Scripted:
    """Each measurement takes 10 us more than the one before; loads have shares of their cores in turn."""

    shares: Mapping[str, list[float]] = field(default_factory=dict)
    asked: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    progress: MeasuringProgress = field(default_factory=lambda: MeasuringProgress(report=lambda step: None))

    def timing(
        self, unit: str, probe: Probe, *, beside: Mapping[str, Probe] = ALONE, occasion: str = ""
    ) -> Timing:
        self.asked.append((unit, tuple(beside), occasion))
        self.progress.advance(occasion)
        shares = tuple(self.shares[other].pop(0) for other in beside if other in self.shares)
        return replace(summed([10_000 * len(self.asked)] * 3), load_shares=shares)

    def measure(self, *jobs: Job, rounds: int = 1, turns: int = 1) -> tuple[str, ...]:
        return measure_jobs(cast(RecordedBench, self), jobs, rounds=rounds, turns=turns)


def job(**loads: tuple[str, ...]) -> Job:
    return Job(
        unit="a",
        probes=[probe(0, 1)],
        loads={name: {unit: probe(1, 2) for unit in units} for name, units in loads.items()},
        occasion="it",
    )


def test_each_measurement_beside_load_lies_between_two_alone() -> None:
    bench, one = Scripted(), job(b=("b",), both=("b", "c"))
    steps: list[Step] = []
    bench.progress.report = steps.append
    bench.measure(one, rounds=2, turns=2)
    loads = [load for _, load, _ in bench.asked]
    assert loads[:9] == [(), ("b",), (), ("b",), (), ("b", "c"), (), ("b", "c"), ()]
    assert loads[9:] == loads[:9]
    assert len({occasion for *_, occasion in bench.asked}) == len(bench.asked)
    times = one.times["both"]
    assert times.alone_us[0] == times.beside_us[0] == 65.0  # the mean of 55 and 75: what drifts cancels
    assert [len(one.times[name].alone_us) for name in one.loads] == [4, 4]
    assert one.receipt is not None
    assert steps[-1].done == steps[-1].total == 18


def test_load_ran_as_much_as_the_unit_that_ran_least_against_the_most_that_it_ever_did() -> None:
    bench, both = Scripted(shares={"b": [0.8, 0.8, 0.2], "c": [0.5, 0.4, 0.02]}), job(both=("b", "c"))
    (warning,) = bench.measure(both, rounds=3)
    assert both.times["both"].shares == pytest.approx([1.0, 0.8, 0.1])  # 0.04 is too little to count with
    assert "took 20% of the cores of what ran in a loop" in warning


def test_load_of_which_nothing_is_known_counts_as_if_it_always_ran() -> None:
    bench, one = Scripted(), job(b=("b",))
    assert bench.measure(one) == ()
    assert one.times["b"].shares == []
    idle = Scripted(shares={"b": [0.0]})
    one = job(b=("b",))
    assert idle.measure(one) == ()  # the processor does nothing for a device that works by itself
    assert one.times["b"].shares == []
