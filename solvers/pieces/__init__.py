"""Pieces of networks whose maps can be computed in tiles: a chain of sets of operators that adds few operations."""
