"""Clusters: what networks cost on devices that are described by a few numbers, and the shipped ones."""
