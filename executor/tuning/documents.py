"""The documents of execution, in the versioned JSON form of `formulations.files`."""

from __future__ import annotations

from ...formulations.files import Schema
from ..measurement import Measurement
from .result import TuningResult
from .trials import Trial

MEASUREMENT = Schema(format="gapless.measurement", version=1, content=Measurement)
TUNING = Schema(format="gapless.tuning", version=1, content=TuningResult)
TRIAL = Schema(format="gapless.trial", version=1, content=Trial)
