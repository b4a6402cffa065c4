"""Layers, overhead and copies, fitted to what was measured."""

from __future__ import annotations

import pytest

from gapless.formulations.errors import ProfilingError
from gapless.profiler.isolated import ProbeTiming, RawTimes, unit_costs
from gapless.profiler.transfers import Load

from .test_sampling import summed


def probe(start: int, stop: int, run_us: float) -> ProbeTiming:
    load = Load(tensors=1, bytes=0)
    timing = summed([round(1000 * run_us)] * 30)
    return ProbeTiming(span=(start, stop), load_in=load, load_out=load, timing=timing)


def raw(*layer_us: float | None, whole_us: float | None = None) -> RawTimes:
    wholes = () if whole_us is None else (probe(0, len(layer_us), whole_us),)
    return RawTimes(layer_us=layer_us, wholes=wholes)


def test_layers_fit_the_whole_and_short_chunks_tell_the_overhead() -> None:
    """True layers of 100, 200, 300 and 2 us and 10 us for a session; the operators took half as long."""
    groups = [probe(0, 2, 310), probe(2, 4, 312)]
    found = unit_costs("u", raw(50, 100, 150, 1, whole_us=612), groups, [probe(3, 4, 12)])
    assert found.layer_us == pytest.approx((100, 200, 300, 2), rel=0.001)
    assert found.factor == pytest.approx(2, rel=0.001)
    assert found.overhead_us == pytest.approx(10, abs=0.1)
    assert found.copy_out.per_tensor_us == pytest.approx(5)


def test_a_layer_counts_between_the_whole_and_its_group() -> None:
    groups = [probe(0, 1, 100), probe(1, 2, 25)]  # the second one finds its weights in the cache
    found = unit_costs("u", raw(100, 100, whole_us=125), groups, [])
    # fitted to the whole: 62.5 each; groups: 100 and 25
    assert found.layer_us == pytest.approx(((62.5 * 100) ** 0.5, (62.5 * 25) ** 0.5))


def test_where_the_whole_cannot_run_layers_stay_as_they_were_measured() -> None:
    found = unit_costs("u", raw(100, None, 50), [probe(0, 1, 100)], [])
    assert found.layer_us == (100, None, 50)
    assert found.factor == 1


def test_layers_without_any_time_are_refused() -> None:
    with pytest.raises(ProfilingError, match="took no time on unit 'u'"):
        unit_costs("u", raw(0, 0, whole_us=10), [probe(0, 2, 10)], [])
