"""gapless."""
