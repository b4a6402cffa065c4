"""Contention: how much networks on different units slow each other down through the memory they share."""
