"""Phones that serve requests as they come (Band): networks, costs, behaviour at work, and scenarios."""
