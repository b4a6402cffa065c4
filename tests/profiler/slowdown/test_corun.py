"""Who runs beside whom, and which chunks are worth it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.costs import Provenance
from gapless.formulations.errors import NoisyMeasurementError, ProfilingError
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.profiler.isolated import ProbeTiming, UnitCosts
from gapless.profiler.probes import blocks, choose_checks, choose_groups
from gapless.profiler.reduce import reduce
from gapless.profiler.slowdown.corun import companions, heavy_costs
from gapless.profiler.summary import compare_references
from gapless.profiler.transfers import CopyModel, Load

from ..fakes import FakeModel
from ..test_sampling import summary, summed

FREE = CopyModel(per_tensor_us=0.0, per_mebibyte_us=0.0, error=0.0, copies=1)


def unit(name: str, *cores: int) -> ProcessingUnit:
    return ProcessingUnit(name=name, cores=cores)


PHONE = Platform(
    name="phone",
    units=(
        unit("core4", 4),
        unit("little", 0, 1, 2, 3),
        unit("big", 4, 5),
        unit("core5", 5),
        unit("all", *range(6)),
        ProcessingUnit(name="gpu", kind=UnitKind.GPU),
    ),
)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ("little", ("big", "gpu")),
        ("big", ("little", "gpu")),
        ("core4", ("little", "core5", "gpu")),
        ("all", ("gpu",)),
        ("gpu", ("all",)),
    ],
)
def test_as_many_cores_as_possible_are_busy_and_none_twice(measured: str, expected: tuple[str, ...]) -> None:
    assert companions(PHONE, measured, able=PHONE.unit_names) == expected


def test_units_that_cannot_run_it_make_no_load() -> None:
    assert companions(PHONE, "little", able=("little", "core4", "gpu")) == ("core4", "gpu")
    assert companions(PHONE, "gpu", able=()) == ()


def probe(start: int, stop: int, run_us: int) -> ProbeTiming:
    load = Load(tensors=1, bytes=0)
    return ProbeTiming(span=(start, stop), load_in=load, load_out=load, timing=summed([1000 * run_us] * 30))


def costs(*layer_us: float | None) -> UnitCosts:
    return UnitCosts(unit="u", layer_us=layer_us, overhead_us=10, copy_in=FREE, copy_out=FREE, factor=1)


def test_a_ratio_is_shared_by_the_layers_of_its_group() -> None:
    alone = [probe(0, 2, 100), probe(2, 3, 100), probe(4, 5, 100)]
    beside = [probe(0, 2, 150), probe(2, 3, 90), probe(4, 5, 2000)]
    heavy, notes = heavy_costs(costs(10, 20, 30, None, 50), alone, beside)
    assert heavy.layer_us == pytest.approx((15, 30, 27, None, 500))  # 20 is no slowdown but a mistake
    assert heavy.overhead_us == pytest.approx(15)
    assert notes == ("unit 'u', layers 4 to 4: the ratio 20.00 was taken as 10",)


def test_every_layer_of_a_group_gets_its_ratio_and_not_the_median() -> None:
    alone = [probe(0, 2, 100), probe(2, 3, 100), probe(3, 4, 100)]
    beside = [probe(0, 2, 300), probe(2, 3, 120), probe(3, 4, 140)]
    heavy, _ = heavy_costs(costs(10, 20, 30, 40), alone, beside)
    assert heavy.layer_us == pytest.approx((30, 60, 36, 56))


def test_layers_between_the_groups_get_the_median_ratio() -> None:
    heavy, _ = heavy_costs(costs(10, 10, 10), [probe(0, 1, 100)], [probe(0, 1, 130)])
    assert heavy.layer_us == pytest.approx((13, 13, 13))


def test_groups_are_long_enough_and_cover_the_network() -> None:
    network = FakeModel([1] * 21, forbidden=[7]).network
    groups = choose_groups(network, [200.0] * 20, [10])
    assert [start for start, _ in groups] == [0, *(stop for _, stop in groups[:-1])]
    assert groups[-1][1] == 20
    stops = {stop for _, stop in groups}
    assert 10 in stops  # a seam
    assert 7 not in stops
    assert all(200 * (stop - start) >= 400 for start, stop in groups)
    assert len(choose_groups(network, [1.0] * 20, [])) == 4
    assert len(choose_groups(network, [9e6] * 20, [])) <= 16


def test_the_shortest_chunks_lie_between_legal_cuts() -> None:
    assert blocks(FakeModel([1] * 6, forbidden=[2, 4]).network) == ((0, 1), (1, 3), (3, 5))


def test_checks_are_random_but_repeatable() -> None:
    network = FakeModel([1] * 31).network
    chosen = [
        choose_checks(network, count=8, seed=seed, wanted=lambda span: span[0] > 0) for seed in (1, 1, 2)
    ]
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(set(chosen[0])) == 8
    assert all(0 < start < stop for start, stop in chosen[0])
    assert len({stop - start for start, stop in chosen[0]}) > 3
    assert choose_checks(network, count=3, seed=0, wanted=lambda span: False) == []


def test_references_are_compared() -> None:
    def compare(*times_us: float) -> tuple[str, ...]:
        return compare_references("u", [summary(typical_us=time_us) for time_us in times_us])

    assert compare(100, 105, 96) == ()
    (warning,) = compare(100, 120, 100, 100, 100)
    assert "100 to 120 us, usually 100, in 5 measurements" in warning
    assert len(compare(300, 100, 100, 100, 100)) == 1  # one disturbance is not the end
    assert len(compare(300, 100, 100, 220, 100)) == 1  # nor two: units of several threads have them
    for times_us in [(100, 201), (300, 100, 700, 100, 1500), (100, 49)]:
        with pytest.raises(NoisyMeasurementError, match="end what else runs"):
            compare(*times_us)


def test_times_are_rounded_once_and_never_to_nothing() -> None:
    network = FakeModel([4, 4, 4]).network
    table = reduce(
        network,
        [costs(0.2, 1.5), replace(costs(None, 2.49), unit="v")],
        [range(2)],
        Provenance(method="isolated"),
    )
    assert table.of("fake").layer_us == ((1, None), (2, 2))
    assert table.of("fake").transfer_in_us == ((10, 10), (10, 10), (0, 0))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_numbers_that_are_none_are_refused_with_their_row(wrong: float) -> None:
    network = FakeModel([4, 4, 4]).network
    bad = replace(costs(1.0, wrong), unit="gpu")
    with pytest.raises(ProfilingError, match=r"'fake' was measured wrongly: layer_us\[1\] on 'gpu' is"):
        reduce(network, [costs(1, 1), bad], [range(2)], Provenance())
