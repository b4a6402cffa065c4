"""Sessions that are worth their memory: those on shortest ways, and the loss where memory is short."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from gapless.formulations.coordination.sections import Session, sessions_of
from gapless.formulations.coordination.sessions import loaded_within
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.times import (
    NetworkTimes,
    Times,
    chunk_times,
    shortest_latency_us,
    soonest,
)
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network

CPU, NPU = 0, 1
FIGURE_12 = NetworkTimes(
    sections=3,
    chunk_us={
        (0, 1, NPU): 40,
        (1, 2, NPU): 30,
        (0, 2, NPU): 50,
        (0, 1, CPU): 90,
        (1, 2, CPU): 90,
        (2, 3, CPU): 50,
        (0, 2, CPU): 170,
        (1, 3, CPU): 120,
        (0, 3, CPU): 200,
    },
)
"""Two units; only the CPU can run the last section."""

BYTES = {session: 100 * (session[1] - session[0]) for session in FIGURE_12.chunk_us}
TIMES = Times(["cpu", "npu"], [FIGURE_12])


def on_shortest_ways() -> set[Session]:
    """Return what requests start with wherever they are, by the program that policies use."""
    found, quarter_us, seen = set(), round((shortest_latency_us(TIMES, 0) or 0) / 4), [0]
    for done in seen:  # grows
        for free in chain(combinations((CPU, NPU), 1), [(CPU, NPU)]):
            for wait_us in (None, quarter_us):
                way = soonest(TIMES, 0, done, [0 if unit in free else wait_us for unit in (CPU, NPU)])
                if way is not None:
                    found.add((done, way[1].stop, way[1].unit))
                    seen += {way[1].stop} - {*seen, 3}
    return found


def test_without_a_limit_what_is_on_no_shortest_way_goes_and_nothing_is_lost() -> None:
    found = loaded_within(FIGURE_12, BYTES)
    assert set(found.sessions) == on_shortest_ways()
    assert set(found.sessions) | set(found.dropped) == set(BYTES)
    assert (0, 2, CPU) in found.dropped  # whoever has the CPU alone runs all of it at once
    assert (found.worst_permille, found.mean_permille, found.lost_sets) == (1000, 1000, 0)
    assert found.bytes == sum(BYTES[session] for session in found.sessions)
    assert found.dropped_bytes == sum(BYTES[session] for session in found.dropped)


def test_sessions_that_are_worth_a_wait_stay() -> None:
    """The NPU alone is best, unless it is free a quarter later: then the CPU begins, and the NPU goes on."""
    free = {(0, 2, CPU): 100, (0, 1, CPU): 40, (1, 2, CPU): 65, (0, 2, NPU): 60, (1, 2, NPU): 25}
    times = NetworkTimes(sections=2, chunk_us=free)
    found = loaded_within(times, dict.fromkeys(free, 1))
    assert set(found.sessions) == {(0, 2, CPU), (0, 2, NPU), (0, 1, CPU), (1, 2, CPU), (1, 2, NPU)}
    without = NetworkTimes(sections=2, chunk_us={**free, (0, 1, CPU): 60})  # 60 + 25 is above 15 + 60
    assert set(loaded_within(without, dict.fromkeys(free, 1)).sessions) == {(0, 2, CPU), (0, 2, NPU)}


def test_a_limit_costs_what_is_said() -> None:
    found = loaded_within(FIGURE_12, BYTES, 300)
    assert found.bytes <= 300
    left = NetworkTimes(sections=3, chunk_us={each: FIGURE_12.chunk_us[each] for each in found.sessions})
    now, before = (shortest_latency_us(Times(["cpu", "npu"], [each]), 0) for each in (left, FIGURE_12))
    assert now is not None
    assert before is not None
    assert found.worst_permille >= 1000 * now / before
    assert found.lost_sets + (found.worst_permille > 1000) > 0


def test_a_network_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"at least \d+ bytes to run at all, the limit is 200"):
        loaded_within(FIGURE_12, BYTES, 200)


def test_what_does_not_fit_into_a_unit_is_no_session() -> None:
    network = Network(
        name="net",
        layers=tuple(Layer(name=str(n), weight_bytes=size) for n, size in enumerate((100, 300, 50))),
    )
    rows = ((1, 1), (1, 1), (1, 1))
    costs = CostTable(units=("cpu", "npu"), networks=(NetworkCosts(network="net", layer_us=rows),))

    def setting(npu_bytes: int, cpu_bytes: int | None = None) -> Setting:
        units = (
            ProcessingUnit(name="cpu", memory_bytes=cpu_bytes),
            ProcessingUnit(name="npu", memory_bytes=npu_bytes),
        )
        platform = Platform(name="p", units=units)
        return Setting(platform=platform, networks=(network,), costs=costs, borders={"net": (1, 2)})

    (chain_,), (parts,) = setting(200).chains, setting(200).sections
    found = sessions_of(chain_, parts)
    assert {key for key in found if key[2] == NPU} == {(0, 1, NPU), (2, 3, NPU)}
    assert sum(key[2] == CPU for key in found) == 6
    assert found[0, 2, CPU] >= 400
    assert set(chunk_times(chain_, parts).chunk_us) == set(found)
    with pytest.raises(InvalidInputError, match=r"layers 1 .* none of those that can has the memory"):
        setting(200, cpu_bytes=200)
