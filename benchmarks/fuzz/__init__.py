"""Damaged and hostile files: `python -m benchmarks.fuzz`, `python -m benchmarks.fuzz.hostile`."""
