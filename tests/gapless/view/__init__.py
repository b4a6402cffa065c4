"""Tests of what reports are made from."""
