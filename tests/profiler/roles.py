"""A measuring worker whose sessions only pretend."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gapless.executor.engine import Artifact
from gapless.executor.workers import Link
from gapless.formulations.errors import PlacementError
from gapless.formulations.hardware import ProcessingUnit
from gapless.profiler.worker import answer

from .fakes import FakeSession


def open_fake(artifact: Artifact, unit: ProcessingUnit) -> FakeSession:
    """Open a fake session; three pieces have a bad end."""
    match artifact.path:
        case "0:2":
            raise PlacementError("fake[0:2) is not for this unit")
        case "0:3":
            os._exit(9)
        case "1:2":
            raise ZeroDivisionError("a mistake")
    return FakeSession(artifact, unit)


def serve_fake(link: Link, settings: Mapping[str, Any]) -> None:
    """Serve as a measuring worker does."""
    answer(link, settings["descriptor"], open_fake)
