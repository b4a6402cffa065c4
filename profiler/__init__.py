"""Measuring or estimating what things cost; shipped platforms and tables."""
