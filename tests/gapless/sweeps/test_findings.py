from __future__ import annotations

import pytest

from gapless.sweeps.findings import RATE, contests, disagreements, growths, records

from .rows import row


def test_each_platform_stands_with_its_best_plan_and_its_price() -> None:
    rows = [
        row(task=1, platform="a", value=1000, price=100.0),
        row(task=2, platform="a", value=800, price=100.0, backend="cpsat"),
        row(task=3, platform="b", value=500, price=400.0),
        row(task=4, platform="c", value=1600),
        row(task=5, platform="d", value=None, per_second=None, status="infeasible"),
    ]
    (found,) = contests(rows)
    assert (found.topic.model, found.topic.goal) == ("net", RATE)
    assert [(one.row.task, one.share, one.for_price) for one in found.standings] == [
        (3, 1.0, pytest.approx(0.4)),
        (2, pytest.approx(0.625), 1.0),
        (4, pytest.approx(0.3125), None),
    ]


def test_what_differs_in_price_can_be_bought_apart() -> None:
    rows = [
        row(task=1, devices="pi=1", price=50.0, value=1000),
        row(task=2, devices="pi=2", price=100.0, value=800),
        row(task=3, devices="pi=2", price=100.0, value=900),
    ]
    (found,) = contests(rows)
    assert [(one.row.task, one.for_price) for one in found.standings] == [(2, pytest.approx(0.625)), (1, 1.0)]


def test_times_are_compared_for_one_batch_and_rates_for_all() -> None:
    rows = [
        row(task=1, platform="a", batch=8, per_second=2.0, term="throughput"),
        row(task=2, platform="b", batch=1, per_second=1.0, term="throughput"),
        row(task=3, platform="a", batch=8, value=8, term="latency"),
        row(task=4, platform="b", batch=1, value=1, term="latency"),
        row(task=5, platform="c", batch=1, value=4, term="latency"),
    ]
    rates, times = contests(rows)
    assert [one.row.task for one in rates.standings] == [1, 2]
    assert [(one.row.task, one.share) for one in times.standings] == [(4, 1.0), (5, 0.25)]


def test_models_limits_and_goals_are_never_mixed() -> None:
    rows = [
        row(platform=platform, model=model, limits=limits, term=term)
        for platform in "ab"
        for model in ("one", "two")
        for limits in ("", "small")
        for term in ("period", "latency")
    ]
    assert len(contests(rows)) == 8
    assert contests([row(platform="a"), row(platform="a")]) == (), "nothing to compare"


def test_a_value_of_nothing_is_the_best_there_is() -> None:
    rows = [row(task=1, platform="a", term="gapness", value=0, per_second=None)]
    rows.append(row(task=2, platform="b", term="gapness", value=5, per_second=None))
    (found,) = contests(rows)
    assert [(one.row.task, one.share) for one in found.standings] == [(1, 1.0), (2, 0.0)]


def test_what_one_more_device_brings() -> None:
    rows = [
        row(task=1, available=1, value=1000),
        row(task=2, available=2, value=500),
        row(task=3, available=2, value=400, devices="better"),
        row(task=4, available=4, value=800),
    ]
    (found,) = growths(rows)
    assert [(stage.row.task, stage.gain) for stage in found.stages] == [
        (1, None),
        (3, pytest.approx(1.5)),
        (4, pytest.approx(-0.5)),
    ]
    assert growths(rows[:1]) == ()


def test_who_proves_what() -> None:
    rows = [
        row(backend="a", runtime_s=1.0, layers=10, units=4),
        row(backend="a", runtime_s=3.0, status="infeasible", value=None, layers=20, units=4),
        row(backend="a", status="feasible", bound=500, gap=0.5),
        row(backend="a", status="feasible", bound=None, gap=None),
        row(backend="b", status="failed", value=None, error="no"),
        row(backend="", status="failed", value=None, error="no"),
    ]
    first, second = records(rows)
    assert (first.backend, first.tasks, first.proved, first.gap, first.proof_s, first.largest) == (
        "a",
        4,
        2,
        0.5,
        2.0,
        80,
    )
    assert (second.tasks, second.proved, second.proof_s, second.largest) == (1, 0, None, 0)


def test_proofs_that_contradict_each_other() -> None:
    rows = [
        row(task=1, value=1000, bound=900, backend="a"),
        row(task=2, value=1100, bound=1050, backend="b"),
        row(task=3, value=None, bound=None, status="infeasible", backend="c"),
        row(task=4, value=1, fingerprint="another"),
    ]
    first, second = disagreements(rows)
    assert first.startswith("task 2: b proves that period is at least 1050, but a has the valid plan")
    assert second.startswith("task 3: c proves that none is valid, but a")
    assert disagreements(rows[:1]) == ()
