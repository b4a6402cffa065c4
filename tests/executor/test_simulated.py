"""The simulated device: what it says equals the judge, and what it cannot do it refuses."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import gapless
from gapless.api.problems import load_problem, table_problem
from gapless.executor.runner import Budget
from gapless.executor.simulated import BLOCKS, SimulatedRunner
from gapless.executor.tuning.candidates import baselines, predicted
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.deployment import Deployment, Mode, Rounds, replicas
from gapless.formulations.errors import ExecutionError, InvalidInputError
from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.streams import Stream

SPARSE = load_problem("pixel7a/alexnet-sparse")
BEST = gapless.plan(SPARSE).candidates[0].plan


def small() -> Problem:
    problem = table_problem([[2, 4], [6, 3]], ["a", "b"], network="net")
    costs = problem.costs.networks[0]
    moved = replace(
        costs, transfer_in_us=((0, 0), (0, 500), (0, 0)), transfer_out_us=((0, 0), (250, 0), (0, 0))
    )
    return replace(problem, costs=replace(problem.costs, networks=(moved,)))


TWO = deploy(
    Plan(
        chunks=(
            Chunk(network="net", start=0, stop=1, unit="a"),
            Chunk(network="net", start=1, stop=2, unit="b"),
        )
    )
)


def test_period_and_busy_times_are_those_of_the_judge() -> None:
    score = gapless.score(SPARSE, BEST)
    found = SimulatedRunner(SPARSE).measure(deploy(BEST), Budget(seconds=1.0))
    assert found.period_us == pytest.approx(score.period_us)
    assert found.period_blocks_us == pytest.approx([score.period_us] * BLOCKS)
    assert found.seconds == pytest.approx(1.0, abs=0.01)
    assert found.requests == -(-1_000_000 // score.period_us)
    busy = dict(zip(SPARSE.platform.unit_names, score.busy_us, strict=True))
    assert {use.unit: use.busy_us for use in found.units} == pytest.approx(busy)
    assert {use.unit: use.bubble_us for use in found.units} == pytest.approx(
        {unit: score.period_us - time_us for unit, time_us in busy.items() if time_us is not None}
    )
    assert found.device == "simulated pixel7a (costs: heavy)"
    assert {receipt.engine for receipt in found.receipts} == {"simulated"}
    assert all(receipt.mismatches == () for receipt in found.receipts)


def test_copies_are_told_from_running() -> None:
    found = SimulatedRunner(small()).measure(TWO, Budget(requests=10))
    assert found.requests == 10
    first, second = found.chunks
    assert (first.copy_in_us.median, first.run_us.median, first.copy_out_us.median) == (0, 2000, 250)
    assert (second.copy_in_us.median, second.run_us.median, second.copy_out_us.median) == (500, 3000, 0)
    assert second.busy_us.median == found.period_us == 3500


def test_few_task_slots_make_the_pipeline_wait() -> None:
    alone = Deployment(streams=(replace(TWO.streams[0], task_slots=1),))
    found = SimulatedRunner(small()).measure(alone, Budget(requests=5))
    assert found.period_us == found.latency_us.median == 2250 + 3500


def test_rates_of_replicas_add_up() -> None:
    found = SimulatedRunner(small()).measure(replicas("net", 2, ("a", "b")), Budget(seconds=0.5))
    assert [stream.period_us for stream in found.streams] == [8000, 7000]
    assert found.period_us == pytest.approx(1 / (1 / 8000 + 1 / 7000))
    assert found.latency_us.median == 8000
    assert {use.unit: round(use.bubble_us, 6) for use in found.units} == {"a": 0, "b": 0}


def test_noise_repeats_for_a_seed_and_differs_between_visits() -> None:
    def periods(seed: int) -> list[float]:
        runner = SimulatedRunner(SPARSE, noise_permille=30, seed=seed)
        return [runner.measure(deploy(BEST), Budget(requests=20)).period_us for _ in range(3)]

    assert periods(1) == periods(1)
    assert len({*periods(1), *periods(2)}) == 6
    truth = gapless.score(SPARSE, BEST).period_us
    assert all(0.8 * truth < period < 1.25 * truth for period in periods(1))


@pytest.mark.parametrize(
    ("deployment", "words"),
    [
        (replicas("net", 2, ("a", "c")), "no such unit"),
        (replicas("other", 2, ("a",)), "network 'other'"),
        (replicas("net", 1, ("a",)), "layers 1 to 1 are not covered"),
        (replicas("net", 2, ("gpu",)), "cannot run layers"),
        (replicas("net", 2, ("a", "ab")), "need the same cores"),
        (
            Deployment(
                streams=(Stream(name="x", chunks=TWO.streams[0].chunks), *replicas("net", 2, ("b",)).streams)
            ),
            "streams 'x' and 'net@b' need the same cores",
        ),
        (
            replace(replicas("net", 2, ("a",)), rounds=Rounds(mode=Mode.BATCH, arrivals_us=(0,))),
            "serves a workload, the problem has none",
        ),
    ],
)
def test_what_the_device_cannot_run_is_an_execution_error(deployment: Deployment, words: str) -> None:
    units: list[str | ProcessingUnit] = [
        ProcessingUnit(name="a", cores=(0,)),
        ProcessingUnit(name="b", cores=(1,)),
        ProcessingUnit(name="ab", cores=(0, 1)),
        "gpu",
    ]
    problem = table_problem([[2, 4, 1, 1], [6, 3, 1, None]], units, network="net")
    with pytest.raises(ExecutionError, match=words):
        SimulatedRunner(problem).measure(deployment, Budget(requests=1))


def test_units_that_share_cores_are_refused_within_a_stream_too() -> None:
    units = [ProcessingUnit(name="a", cores=(0,)), ProcessingUnit(name="b", cores=(0, 1))]
    problem = table_problem([[2, 4], [6, 3]], units, network="net")
    with pytest.raises(ExecutionError, match="'a' and 'b' share cores"):
        SimulatedRunner(problem).trace(TWO, requests=2)


def test_the_trace_is_the_simulation_in_nanoseconds() -> None:
    trace = SimulatedRunner(small(), noise_permille=100).trace(TWO, requests=3)
    assert len(trace.events) == 6
    first = trace.events[0]
    assert first.parts_ns == ((0, 0), (0, 2_000_000), (2_000_000, 2_250_000))
    for unit in ("a", "b"):
        events = [event for event in trace.events if event.unit == unit]
        assert [event.request for event in events] == [0, 1, 2]
        assert all(one.end_ns <= other.start_ns for one, other in pairwise(events))
    assert all(start <= end for event in trace.events for start, end in event.parts_ns)


def test_real_time_takes_the_time_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("gapless.executor.simulated.time.sleep", slept.append)
    runner = SimulatedRunner(small(), real_time=True)
    runner.measure(TWO, Budget(requests=10, warm_up_requests=2))
    assert slept == [pytest.approx(12 * 0.0035)]
    assert runner.verify(TWO) is None
    runner.close()


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="noise_permille is 900"):
        SimulatedRunner(small(), noise_permille=900)
    problem = small()
    other = replace(problem.networks[0], name="other")
    costs = replace(
        problem.costs, networks=(*problem.costs.networks, replace(problem.costs.networks[0], network="other"))
    )
    with pytest.raises(InvalidInputError, match="plays one network, the problem has 2"):
        SimulatedRunner(replace(problem, networks=(problem.networks[0], other), costs=costs))


def test_replicas_keep_each_other_company() -> None:
    """With co-run costs all units of a deployment count, not those of each stream by itself."""
    shared = load_problem("pixel7a/alexnet-sparse", costs="interpolated")
    whole = replicas(shared.network.name, len(shared.network.layers), shared.platform.unit_names)
    heavy = SimulatedRunner(SPARSE).measure(whole, Budget(seconds=0.1))
    found = SimulatedRunner(shared).measure(whole, Budget(seconds=0.1))
    assert found.period_us == pytest.approx(heavy.period_us)
    (candidate,) = [
        predicted(one, {"interpolated": shared})
        for one in baselines(shared)
        if len(one.deployment.streams) == len(shared.platform.units)
    ]
    assert candidate.predicted("interpolated") == pytest.approx(found.period_us, abs=1)
