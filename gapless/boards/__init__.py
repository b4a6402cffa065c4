"""Boards over ssh: commands that run there, with their files taken there and their results brought back."""
