"""Messages are measured over the connections that requests take; devices live in this process."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from gapless.executor.cluster.endpoint import LinkRate
from gapless.executor.progress import Step
from gapless.formulations.errors import InvalidInputError, UnitLostError
from gapless.formulations.json_files import dump, parse
from gapless.profiler.links import measure
from gapless.profiler.links.fitting import fit_link
from gapless.profiler.links.measure import LinkOptions, measure_messages
from gapless.profiler.links.samples import LINKS, Load, MessageSample, Purpose
from tests.executor.cluster.devices import own_cluster
from tests.profiler.links.messages import links

RATE = 50_000_000


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send small messages only."""
    monkeypatch.setattr(measure, "FIT_SIZES", (1 << 10, 1 << 16, 1 << 20))
    monkeypatch.setattr(measure, "CHECK_SIZES", (1 << 15,))


@pytest.mark.slow
@pytest.mark.measures
def test_each_pair_is_measured_alone_and_beside_others(quick: None) -> None:
    steps: list[Step] = []
    with own_cluster("a", "b", a=LinkRate(bytes_per_second=RATE, latency_us=2000)) as (cluster, _):
        found = measure_messages(
            cluster, [100_000, 200_000, 300_000], options=LinkOptions(rounds=3), report=steps.append
        )
    assert [(one.source, one.target) for one in found] == [("a", "b"), ("b", "a")]
    assert [step.done for step in steps] == list(range(len(steps)))
    assert steps[-1].done == steps[-1].total
    slow = found[0]
    assert {one.load for one in slow.samples} == set(Load)
    assert [len(one.of(Purpose.SHARD)) for one in found] == [2, 1]
    for one in slow.samples:  # an emulated link is never quicker than asked
        assert one.latency_us >= 2000 + one.size / RATE * 1e6
    alone, beside = (
        median(one.latency_us for one in slow.of(Purpose.FIT, load) if one.size == 1 << 10)
        for load in (Load.IDLE, Load.LINK)
    )
    assert beside > alone
    assert all(one.traffic_bytes == 0 for one in slow.of(Purpose.FIT, Load.IDLE))
    assert {one.traffic_bytes for one in slow.of(Purpose.FIT, Load.LINK)} <= {0, 1 << 16, 1 << 20}
    assert 2 * slow.clock_error_us < 100_000
    assert slow.round_trip_us >= 2000
    assert fit_link(slow).link().bytes_per_second < 1.2 * RATE


@pytest.mark.slow
def test_a_device_that_is_lost_is_named(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with own_cluster("a", "b") as (cluster, _):
        do = cluster.do

        def lose(name: str, *arguments: Any) -> Any:
            if name == "b":
                raise UnitLostError("device 'b' is gone: its power was cut")
            return do(name, *arguments)

        monkeypatch.setattr(cluster, "do", lose)
        with pytest.raises(UnitLostError, match="device 'b' is gone: its power was cut"):
            measure_messages(cluster, options=LinkOptions(rounds=2))


def test_one_device_has_no_links() -> None:
    with own_cluster("a") as (cluster, _), pytest.raises(InvalidInputError, match="only one device, a"):
        measure_messages(cluster)


def test_files_keep_everything() -> None:
    found = links("a", "b")
    assert parse(dump(found, LINKS).encode(), LINKS, name="links") == found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('"latency_us": -1', "latency_us is -1.0, must be above 0"),
        ('"source": "c"', "a link joins c and b; there are a, b"),
        ('"size": -5', "size is -5"),
    ],
)
def test_files_that_contradict_themselves_are_refused(change: str, words: str) -> None:
    text = dump(links("a", "b"), LINKS)
    key = change.partition(":")[0]
    at = text.index(key)
    broken = text[:at] + change + text[min(text.index(end, at) for end in ",}\n") :]
    with pytest.raises(InvalidInputError, match="links") as refused:
        parse(broken.encode(), LINKS, name="links")
    assert words in str(refused.value)


def test_options_are_checked() -> None:
    with pytest.raises(InvalidInputError) as refused:
        LinkOptions(rounds=1, shards=-1)
    assert "rounds" in str(refused.value)
    assert "shards" in str(refused.value)
    assert MessageSample(size=0, latency_us=1.0).queue_us == 0
