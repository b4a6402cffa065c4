"""Policies: who decides, while requests come, what runs next and where."""
