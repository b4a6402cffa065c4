"""Slowdown: how much longer layers take while other units are busy."""
