"""File formats: their JSON Schemas."""
