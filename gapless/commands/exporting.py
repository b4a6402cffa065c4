"""Plans for other runtimes."""
