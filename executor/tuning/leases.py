"""Who holds a tuning run: a process that can be told from a later one with the same number."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..machine.kernel_files import boot_id, started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process.

    Attributes
    ----------
    pid
        Its number, which the system gives to another process one day.
    boot
        Identity of the boot of the system it runs on; None where the system does not say.
    started
        When it was started, in clock ticks since that boot; None where the system does not say.
    """

    pid: int
    boot: str | None
    started: int | None

    @property
    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        return self == _holder(self.pid) and self.started is not None


def this_process() -> Holder:
    """Return the process that asks."""
    return _holder(os.getpid())


def _holder(pid: int) -> Holder:
    return Holder(pid=pid, boot=boot_id(), started=started_at(pid))
