"""What each device opens, and which tensors travel."""

from __future__ import annotations

import pytest

from gapless.executor.cluster.routes import Route, route_of
from gapless.executor.workers import unit_data
from gapless.formulations.hardware import ProcessingUnit
from tests.executor.cluster.devices import over
from tests.executor.pipeline.fakes import FakeLayer, FakeModel

UNITS = {name: unit_data(ProcessingUnit(name=name)) for name in "abc"}


@pytest.fixture
def model() -> FakeModel:
    """Layers 0 and 1 in a line; layer 2 takes the input and what layer 0 made, and so does the output."""
    layers = [
        FakeLayer(does="add", takes=("x",), makes="t0"),
        FakeLayer(does="add", takes=("t0",), makes="t1"),
        FakeLayer(does="add", takes=("x", "t0", "t1"), makes="t2"),
    ]
    return FakeModel("skip", layers, outputs=["t2", "t0"])


def route(model: FakeModel, only: int | None = None) -> Route:
    stream = over(model, (1, "a"), (1, "b"), (1, "c"))
    return route_of(stream, model, UNITS, number=5, task=2, engine="e", only=only)


def test_tensors_pass_by_chunks_that_do_not_need_them(model: FakeModel) -> None:
    found = route(model)
    first, second, third = found.stations
    assert [spec.name for spec in second.takes] == ["t0"]
    assert set(first.sends) == {"x", "t0"}
    assert set(second.sends) == {"x", "t0", "t1"}
    assert set(third.sends) == {"t0", "t2"}
    assert [station.target for station in found.stations] == ["b", "c", ""]
    assert [station.is_last for station in found.stations] == [False, False, True]
    assert found.bytes_in == (64, 128, 192)
    assert all((station.route, station.task) == (5, 2) for station in found.stations)


def test_a_chunk_alone_gives_all_that_it_makes(model: FakeModel) -> None:
    found = route(model, only=1)
    (station,) = found.stations
    assert (found.devices, station.target, station.is_last) == (("b",), "", True)
    assert (station.takes[0].name, station.sends) == ("t0", ("t1",))
