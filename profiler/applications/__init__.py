"""Pipelines that are no neural network files: the applications of BetterTogether, as Python functions."""
