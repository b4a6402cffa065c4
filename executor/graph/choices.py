"""What a user chooses of how a model file is opened, and the step of it that may be left out."""

from __future__ import annotations

from enum import StrEnum

COMPARING = "comparing the simplified model with the file"
"""Where it ends the process, or meets a limit, the file is opened again without it."""


class Simplification(StrEnum):
    """How far a model file is simplified when it is opened."""

    AUTO = "auto"
    """As far as its numbers stay."""
    OFF = "off"
    """Not at all: its operators are those of the file."""
