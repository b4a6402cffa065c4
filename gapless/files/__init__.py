"""The files that gapless writes, and their JSON Schemas."""
