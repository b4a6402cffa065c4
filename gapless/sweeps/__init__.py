"""Sweeps: many plans, over models, platforms, numbers of devices, objectives, limits and backends."""
