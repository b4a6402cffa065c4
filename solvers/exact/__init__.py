"""Exact search with third-party solvers: one model and one search, a port for each solver."""
