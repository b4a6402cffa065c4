"""Prediction against measurement: executed plans, how well cost models predict them, corrections learned."""
