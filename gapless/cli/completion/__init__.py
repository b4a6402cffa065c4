"""What a shell may complete."""
