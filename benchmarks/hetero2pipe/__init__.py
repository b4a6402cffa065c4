"""Hetero2Pipe's figures recomputed; see `__main__`."""
