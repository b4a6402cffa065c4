"""Tests of profiler/interference."""
