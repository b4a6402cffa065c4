"""PICO's Algorithms 2 and 3 with and without repair, and the schemes that they are compared with."""

from __future__ import annotations

import pytest

from benchmarks.group_instances import chain_problem, unlike_speeds
from benchmarks.group_schemes import SCHEMES, scheme
from gapless.formulations.chunking.rules import latency_cap
from gapless.formulations.cooperation.tables import groups_of
from gapless.solvers.cooperation.pico import given_out
from gapless.solvers.session import solve


@pytest.mark.parametrize("interstage", [True, False])
def test_on_like_devices_the_repaired_text_is_exact(interstage: bool) -> None:
    problem = chain_problem(7, [1.0] * 5, types=["pi"] * 5, interstage=interstage)
    best = solve(problem, "native", explain=False)
    assert solve(problem, "pico", explain=False).values == best.values


def test_as_printed_limits_on_the_latency_make_plans_worse() -> None:
    problem = chain_problem(7, [1.0] * 6, types=["pi"] * 6, interstage=False)
    best = solve(problem, "native", explain=False).best
    alone = solve(problem.with_objective("latency"), "native", explain=False).best
    assert best is not None
    assert alone is not None
    most, least = best.score.value("latency"), alone.score.value("latency")
    for share in (2, 5, 8):
        limited = problem.with_rules(latency_cap(most_us=least + (most - least) * share // 10))
        exact = solve(limited, "native", explain=False).values
        assert exact is not None
        assert solve(limited, "pico", explain=False).values == exact
        printed = solve(limited, "pico-literal", explain=False).values
        assert printed is None or printed > exact


def test_fast_devices_go_where_most_is_needed() -> None:
    problem = chain_problem(6, [1.0, 4.0, 2.0])
    groups, stages = groups_of(problem), [(0, 4, 1), (4, 6, 2)]
    chunks = given_out(groups, stages)
    assert [part[:2] for part in chunks] == [(0, 4), (4, 6)]
    first, second = (part[2] for part in chunks)
    assert {*first, *second} == {0, 1, 2}
    assert given_out(groups, stages, printed=True) != chunks


@pytest.mark.parametrize("name", SCHEMES)
def test_with_one_device_every_scheme_is_that_device(name: str) -> None:
    groups = groups_of(chain_problem(5, [2.0]))
    found = scheme(groups, name)
    assert found is not None
    assert found.period_us == groups.chain.busy_us(0, 5, 0)
    assert found.utilisation == (1.0,)
    assert found.extra_permille == (0,)
    assert found.weight_bytes == (groups.weight_bytes(0, 5),)
    assert found.memory_bytes == (max(groups.memory_bytes(0, 5, (groups.segments.of(0, 5).rows,))),)


def test_schemes_on_unlike_devices() -> None:
    groups = groups_of(chain_problem(12, unlike_speeds(6), mbit_per_second=50.0))
    found = {name: scheme(groups, name) for name in SCHEMES}
    period = {name: one.period_us for name, one in found.items() if one is not None}
    assert len(period) == len(SCHEMES)
    # Blocks of one layer are blocks, too; halos that neighbours exchange are less than whole maps.
    assert period["ofl"] <= period["lw"]
    assert period["ce"] < period["lw"]
    evenly = {name: scheme(groups, name, even=True) for name in SCHEMES}
    for name, one in evenly.items():  # even parts are what slow devices hold up
        assert one is not None
        assert one.period_us == period[name] if name == "ce" else one.period_us > period[name]
    # Layers that are fused compute halos twice; one by one they do not.
    for name, one in found.items():
        assert one is not None
        assert all(0 < share <= 1 for share in one.utilisation)
        assert (max(one.extra_permille) > 0) == (name in {"efl", "ofl"})
