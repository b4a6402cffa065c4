"""Tests of the clusters."""
