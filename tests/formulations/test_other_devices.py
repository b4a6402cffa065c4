"""Problems with fewer devices, and with one more of each kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.judge import check, score
from gapless.formulations.pipelines.tables import cluster_of
from gapless.formulations.remaining import one_more, other_devices
from gapless.formulations.rules import named
from tests.cooperation_instances import drawn_problem as drawn_groups
from tests.pipeline_boards import TWO, one_board, six_devices
from tests.pipeline_instances import drawn_problem


def test_each_number_and_each_kind_is_asked_for_once() -> None:
    names = [text for text, _ in other_devices(six_devices())]
    assert names == [
        "at most 1 device",
        *(f"at most {number} devices" for number in range(2, 6)),
        "one more like xavier",
        "one more like nano-1",
        "one more like pi-1",
    ]
    assert [text for text, _ in other_devices(one_board())] == ["at most 1 unit", "at most 2 units"]
    limited = six_devices().with_limits(min_units=2, max_units=3)
    assert [text for text, _ in other_devices(limited)][:2] == ["at most 2 devices", "one more like xavier"]


def test_a_twin_is_like_its_device() -> None:
    problem = six_devices()
    larger = one_more(problem, 1)
    cluster = cluster_of(larger)
    assert cluster.devices == (*problem.platform.unit_names, "nano-3")
    assert cluster.kinds == (0, 1, 1, 2, 2, 2, 1), "to swap it with another of its kind changes nothing"
    assert score(larger, TWO).terms["interval_ns"] == score(problem, TWO).terms["interval_ns"]
    twin = replace(
        TWO, chunks=tuple(replace(c, unit="nano-3" if c.unit == "nano-1" else c.unit) for c in TWO.chunks)
    )
    assert score(larger, twin).terms == score(larger, TWO).terms


def test_rules_stay_what_they_are() -> None:
    problem = six_devices()
    kept = problem.with_rules(named("no xavier", "xavier is not used", lambda view: ~view.uses("xavier")))
    larger = one_more(kept, 5)
    assert [violation.rule for violation in check(larger, TWO)] == ["no xavier"]


@pytest.mark.parametrize("seed", [0, 2, 9])
def test_one_more_device_is_never_worse_for_groups(seed: int) -> None:
    problem = drawn_groups(seed, layers=3, devices=2).with_objective("period")
    alone = gapless.plan(problem, backend="exhaustive").objective
    assert alone is not None
    tried = 0
    for text, variant in other_devices(problem):
        found = gapless.plan(variant, backend="exhaustive").objective
        assert found is None or found >= alone or text.startswith("one more")
        if text.startswith("one more"):
            assert found is not None
            assert found <= alone
            tried += 1
    assert tried or not problem.data.devices.links


@pytest.mark.parametrize("seed", [3, 5, 8, 11, 14])
def test_one_more_device_is_never_worse(seed: int) -> None:
    problem = drawn_problem(seed, layers=3, devices=2).with_objective("throughput")
    alone = gapless.plan(problem, backend="exhaustive")
    for text, variant in other_devices(problem):
        found = gapless.plan(variant, backend="exhaustive")
        if alone.objective is None:
            continue
        if text.startswith("one more"):
            assert found.objective is not None
            assert found.objective <= alone.objective
        else:
            assert found.objective is None or found.objective >= alone.objective
