"""Running plans: model files, engines, the pipeline runtime, the autotuner."""
