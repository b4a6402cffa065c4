"""What a coordinator holds of a network whose units have different engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gapless.executor.coordination.held import chain_of, hold, offer_of
from gapless.executor.engine import Artifact
from gapless.executor.model import Piece
from tests.executor.graph.models import load, node, value
from tests.executor.graph.models import model as onnx_model
from tests.executor.pipeline.fakes import FakeEngine, chain, platform


class Other(FakeEngine):
    """Another engine, which counts what it prepares."""

    def __init__(self) -> None:
        self.prepared: list[str] = []

    @property
    def name(self) -> str:
        return "other"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        self.prepared += [piece.name for piece in pieces]
        return tuple(replace(made, engine=self.name) for made in super().prepare(pieces, folder=folder))


def test_each_unit_holds_its_chunks_by_its_own_engine() -> None:
    units, model = platform("a", "b"), chain(("add", 1.0), ("scale", 2.0), ("add", 3.0))
    usual, other = FakeEngine(), Other()
    held = hold(model, (usual, other), offer_of(model, chain_of(model, units, None, {})))
    engines = {
        unit: {s.artifact.engine for key, specs in held.sessions.items() if key[2] == index for s in specs}
        for index, unit in enumerate(units.unit_names)
    }
    assert engines == {"a": {usual.name}, "b": {"other"}}
    assert len(other.prepared) == len(set(other.prepared))
    assert set(held.sessions) == held.keys


def test_models_that_differ_in_their_outputs_alone_are_not_the_same(tmp_path: Path) -> None:
    """One of them hands its input on, too, of which no chunk knows."""
    offers = []
    for outputs in ("y", "yx", "xy"):
        values = [value(name, [4]) for name in outputs]
        opened = load(onnx_model([node("Relu", "x", "y")], [value("x", [4])], values), tmp_path)
        offers.append(offer_of(opened, chain_of(opened, platform("a"), None, {})))
    assert len({offer.content for offer in offers}) == 3
