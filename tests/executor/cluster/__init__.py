"""Tests of plans over the devices of a cluster, at work."""
