"""Coordinators and typed models of the fake engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.network import Layer
from gapless.solvers.coordination.dynamic import LeastSlack
from tests.executor.pipeline.fakes import FakeEngine, FakeModel, platform


def coordinator(*units: str, **options: Any) -> Coordinator:
    """Return a coordinator of some units, with Band's policy."""
    return Coordinator(platform(*units), FakeEngine(), LeastSlack(), **options)


def typed(model: FakeModel, *kinds: str) -> FakeModel:
    """Return a model whose layers are of these operator types."""
    layers = tuple(Layer(name=str(index), op_types=(kind,)) for index, kind in enumerate(kinds))
    model._network = replace(model.network, layers=layers)
    return model
