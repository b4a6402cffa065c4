"""What a `with` block closes at its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closing(ABC):
    """Something that is closed at the end of a `with` block, whatever ends it."""

    @abstractmethod
    def close(self) -> None:
        """Close it. Can be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
