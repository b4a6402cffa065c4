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


class Granularity(StrEnum):
    """How finely a model is divided into layers."""

    AUTO = "auto"
    """Layers, or blocks where there are too many layers that are too small (`usual_grouping`)."""
    OPERATOR = "operator"
    """Every operator of the simplified model is a layer."""
    LAYER = "layer"
    """What a runtime fuses is a layer: a convolution with its activation, and everything of no cost."""
    BLOCK = "block"
    """Cuts only where the fewest tensors, or locally the fewest bytes, are alive: for very deep models."""
    PIECE = "piece"
    """Pieces of a chain that add few operations when their maps are computed in tiles (PICO 4)."""
