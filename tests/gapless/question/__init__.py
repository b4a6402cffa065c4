"""Tests of what users ask."""
