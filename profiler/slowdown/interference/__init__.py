"""Interference: how much a layer takes longer, or less, while chosen other units are busy."""
