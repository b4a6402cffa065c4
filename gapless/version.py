"""The version of gapless."""

__version__ = "0.1.0"
