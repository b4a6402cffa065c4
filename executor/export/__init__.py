"""Plans for other runtimes: sliced models, session settings, core masks, and a runner of its own."""
