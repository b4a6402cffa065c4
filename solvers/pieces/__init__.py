"""Pieces of networks whose maps can be computed in tiles: a chain of operators that adds few operations."""
