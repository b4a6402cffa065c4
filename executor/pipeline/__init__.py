"""The pipeline runtime: one worker process a unit, tensors in shared memory."""
