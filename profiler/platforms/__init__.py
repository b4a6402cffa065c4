"""Platform descriptions and measured tables, with their sources."""
