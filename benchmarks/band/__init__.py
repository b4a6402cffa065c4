"""Band's figures and tables recomputed beside its prints: `python -m benchmarks.band`."""
