"""Tests of profiler/applications."""
