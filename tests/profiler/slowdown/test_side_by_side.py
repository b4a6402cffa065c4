"""Profiles of several networks: one table of all, and what their heavy tables tell of contention."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.api.slowdown.side_by_side import side_by_side
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network
from gapless.profiler.profile import Method, Profile, ProfileOptions
from gapless.profiler.slowdown.side_by_side import estimated_interference, joint_table

TWO = Platform(name="two", units=tuple(ProcessingUnit(name=f"core{c}", cores=(c,)) for c in range(2)))


def profile(
    name: str, isolated: tuple[int, ...], heavy: tuple[int, ...] | None, *, platform: Platform = TWO
) -> Profile:
    """Return the profile of one layer, from microseconds by unit."""
    rows = {Method.ISOLATED: isolated} | ({} if heavy is None else {Method.HEAVY: heavy})
    return Profile(
        network=Network(name=name, layers=(Layer(name="only"),)),
        platform=platform,
        options=ProfileOptions(),
        tables=tuple(
            CostTable(
                units=platform.unit_names,
                networks=(NetworkCosts(network=name, layer_us=(row,)),),
                provenance=Provenance(source=f"{name}.onnx", method=str(method), engine="fake 1"),
            )
            for method, row in rows.items()
        ),
    )


def test_tables_become_one() -> None:
    profiles = [profile("x", (10, 20), (11, 22)), profile("y", (30, 40), (31, 41))]
    found = joint_table(profiles, Method.HEAVY)
    assert [costs.network for costs in found.networks] == ["x", "y"]
    assert found.of("y").layer_us == ((31, 41),)
    assert found.provenance == Provenance(source="x.onnx; y.onnx", method="heavy", engine="fake 1")
    problem = side_by_side(profiles)
    assert problem.costs == joint_table(profiles, Method.ISOLATED)
    assert workload_of(problem).names == ("x", "y")


def test_contention_is_that_of_the_heavy_over_the_isolated_table() -> None:
    # Beside itself x takes 1.8 times as long on both units, y 1.2 times; both together 1.5 times.
    found = estimated_interference(
        [profile("x", (1000, 2000), (1800, 3600)), profile("y", (1000, 2000), (1200, 2400))]
    )
    assert found.provenance.estimated
    assert found.slowdown_permille == ((0, 500), (500, 0))
    for unit, other in ((0, 1), (1, 0)):
        assert found.slowdown_of("x", unit, "x", other) == pytest.approx(800, abs=2)
        assert found.slowdown_of("y", unit, "y", other) == pytest.approx(200, abs=2)
        assert found.slowdown_of("x", unit, "y", other) == pytest.approx(400, abs=2)  # the geometric mean


def test_what_is_no_slower_beside_others_neither_causes_nor_suffers_contention() -> None:
    found = estimated_interference([profile("x", (1000, 1000), (1500, 1000)), profile("y", (10, 10), (9, 9))])
    assert found.slowdown_permille[1] == (0, 0)
    assert found.of("y").intensity_permille == found.of("y").sensitivity_permille == 0
    assert estimated_interference([profile("x", (7, 7), (5, 5))]).slowdown_permille == ((0, 0), (0, 0))


def test_units_that_share_cores_do_not_slow_each_other_down() -> None:
    board = Platform(
        name="board",
        units=(*TWO.units, ProcessingUnit(name="both", cores=(0, 1)), ProcessingUnit(name="gpu")),
    )
    found = estimated_interference([profile("x", (100,) * 4, (160,) * 4, platform=board)])
    assert found.slowdown_permille == (
        (0, 300, 0, 300),
        (300, 0, 0, 300),
        (0, 0, 0, 600),
        (0, 0, 600, 0),
    )


def test_profiles_that_do_not_belong_together_are_refused() -> None:
    one = profile("x", (1, 1), (1, 1))
    with pytest.raises(InvalidInputError, match=r'ask for several requests of it \("xx2"\)'):
        joint_table([one, one], Method.HEAVY)
    moved = profile("y", (1, 1), (1, 1), platform=replace(TWO, name="other"))
    with pytest.raises(InvalidInputError, match="different platforms"):
        joint_table([one, moved], Method.HEAVY)
    with pytest.raises(InvalidInputError, match="at least one network"):
        side_by_side([])
    with pytest.raises(InvalidInputError, match="no table 'heavy'"):
        estimated_interference([profile("x", (1, 1), None)])
