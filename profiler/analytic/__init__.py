"""Costs of networks on devices that nobody measured: computed from operations and bytes, and marked so."""
