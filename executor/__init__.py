"""Running plans: model files, engines, autotuning (from part 2 on)."""
