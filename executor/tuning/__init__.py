"""The autotuner: candidates and baselines measured side by side, and the records of it."""
