"""Tests of the views for people."""
