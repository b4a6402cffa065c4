"""The HTML report: one self-contained page about plans and their executions."""
