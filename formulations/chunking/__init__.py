"""Chunking: one network, an endless stream of requests, at most one chunk on each unit (BetterTogether)."""
