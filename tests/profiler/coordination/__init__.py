"""Phones and scenarios for requests as they come."""
