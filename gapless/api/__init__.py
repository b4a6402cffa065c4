"""The Python interface: what users do with gapless, one function for each task."""
