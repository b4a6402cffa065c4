"""Pictures with matplotlib: the rooms of `gapless.plots`."""
