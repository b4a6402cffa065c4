"""What layers cost on a device that never ran them: learned from networks that were measured elsewhere."""
