"""Prediction against measurement: executed plans, how well cost models foretell them, corrections learned."""
