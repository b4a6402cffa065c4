"""Requests that come while units work, on this machine: workers that run any chunk, and who decides."""
