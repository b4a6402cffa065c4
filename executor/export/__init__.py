"""Plans for other runtimes: sliced models, a manifest, and a runner that needs only the engine."""
