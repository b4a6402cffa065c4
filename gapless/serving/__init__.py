"""Serving models to other programs by the Open Inference Protocol."""
