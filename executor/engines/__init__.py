"""Engines: who runs a piece of a model, and what they granted."""
