"""Tests of profiler/prediction."""
