"""Platforms with their sources, and what networks cost on them: measured, or computed and marked so."""
