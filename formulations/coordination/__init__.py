"""Requests that come while units work: who asks, how units behave, what policies see, the simulation."""
