"""Who is told what the opening of a model file does: nobody, or the process that limits it."""

from __future__ import annotations


class Watch:
    """Is told of the steps of opening a file; this one ignores them."""

    def step(self, name: str) -> None:
        """Hear that a step begins; its name is the subject of a sentence."""

    def size(self, count: int) -> None:
        """Hear how many bytes the model holds, those in other files included."""
