"""What all commands share: how they are registered and answer, the console, progress, exit codes."""
