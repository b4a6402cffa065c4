"""Files without a name, in memory: they pass bytes to child processes and cannot be left behind."""

from __future__ import annotations

import os

from ..closing import Closing


class NamelessFile(Closing):
    """A file that is gone as soon as no process has it open any more."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("gapless")

    @property
    def path(self) -> str:
        """What to open in this process, and in children that inherit the descriptor."""
        return f"/proc/self/fd/{self.descriptor}"

    def write(self, data: bytes) -> None:
        """Replace the content."""
        os.ftruncate(self.descriptor, 0)
        view, at = memoryview(data), 0
        while at < len(view):
            at += os.pwrite(self.descriptor, view[at:], at)

    def read(self) -> bytes:
        """Return the content."""
        with open(self.path, "rb") as file:
            return file.read()

    def close(self) -> None:
        """Free it. Can be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
