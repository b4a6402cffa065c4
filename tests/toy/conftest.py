"""The formulation of this folder, known to the process while its tests run."""

from __future__ import annotations

import pytest

from gapless.formulations import registry

from .family import TOY


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests look at all formulations that there are.
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry.register_formulation(TOY)
