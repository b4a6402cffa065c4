"""Measuring slowdown: contention between networks, interference between units, networks side by side."""
