"""Measurements: timings and agreement of backends, printed with what they were measured on."""
