"""Whose time is it."""

from __future__ import annotations

from gapless.executor.engine import OperatorTime
from gapless.profiler.isolated import attribute, without_callbacks

from .fakes import FakeModel

MODEL = FakeModel([4] * 5)


def operators(**times: float) -> list[OperatorTime]:
    return [OperatorTime(output=name, kind="?", time_us=time_us) for name, time_us in times.items()]


def test_operators_belong_to_the_layer_of_their_output() -> None:
    found = attribute(operators(t1=5, t2=7, t3=1, t4=2), MODEL.layer_of, layers=range(4))
    assert found == [5, 7, 1, 2]


def test_fused_and_added_operators_join_the_next_known_one() -> None:
    ran = operators(layout=1, t2=7, raster=2, cast=3, t4=2, back=4)
    assert attribute(ran, MODEL.layer_of, layers=range(4)) == [0, 8, 0, 11]


def test_what_an_engine_appends_to_a_name_does_not_hide_it() -> None:
    ran = operators(t1=1, t2_raster_0=2, t2__matmul_converted_raster_1=4, t2__matmul_converted=8, Softmax7=16)
    ran += operators(t4_raster_3=32)
    assert attribute(ran, MODEL.layer_of, layers=range(4)) == [1, 14, 0, 48]


def test_callbacks_are_taken_out_evenly_and_within_reason() -> None:
    ran = operators(a=3, b=12, c=102)
    assert [one.time_us for one in without_callbacks(ran, 111)] == [1, 10, 100]
    assert [one.time_us for one in without_callbacks(ran, 120)] == [3, 12, 102]
    assert [one.time_us for one in without_callbacks(ran, 10)] == [0, 2, 92]


def test_inner_names_need_a_model_that_knows_them() -> None:
    ran = [OperatorTime(output="t2.conv", kind="?", time_us=3), *operators(t3=2, t4=1)]
    assert attribute(ran, MODEL.layer_of, layers=range(4)) == [0, 3, 2, 1]


def test_layers_of_another_model_in_the_network_are_not_meant() -> None:
    ran = [OperatorTime(output=name, kind="?", time_us=1) for name in ("3", "1", "4")]
    assert attribute(ran, MODEL.layer_of, layers=range(2, 4), prefix="t") == [1, 2]


def test_where_nothing_matches_the_operators_tell_nothing() -> None:
    assert attribute(operators(x=1, y=2), MODEL.layer_of, layers=range(4)) is None
