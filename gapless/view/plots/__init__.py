"""Pictures with matplotlib: what `gapless.plots` offers, by subject."""
