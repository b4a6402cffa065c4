"""The files of coordination: who asks for what, and how units behave at work."""

from __future__ import annotations

from ..json_files import Schema
from .behaviour import Behaviour
from .scenario import Scenario

SCENARIO = Schema(format="gapless.scenario", version=1, content=Scenario)
BEHAVIOUR = Schema(format="gapless.behaviour", version=1, content=Behaviour)
