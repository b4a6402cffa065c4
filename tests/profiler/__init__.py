"""Tests of shipped platforms and tables."""
