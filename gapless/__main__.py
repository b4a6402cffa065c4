"""`python -m gapless` and the script `gapless`: the command line.

Ctrl-C waits while the program is loaded, a few tenths of a second: imports that it cuts off print
tracebacks, or swallow it. A second one does not wait.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # not signal, which first loads what Ctrl-C can cut off
import os
import sys


class _Loading:
    """Ctrl-C that waits until everything is loaded."""

    def __init__(self) -> None:
        self._pressed = False
        usual = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
        self._before = _signal.signal(_signal.SIGINT, self._note) if usual else None

    def _note(self, *_: object) -> None:
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True

    def done(self) -> None:
        """Have Ctrl-C work as usual; raises KeyboardInterrupt if it was pressed."""
        if self._before is not None:
            _signal.signal(_signal.SIGINT, self._before)
        if self._pressed:
            raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Put /dev/null in the place of closed standard streams; other files would get their numbers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)  # noqa: FBT003 - it has no keyword
    os.close(opened)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def main() -> int:
    """Run the command line of this process; return the exit code."""
    _open_closed_streams()
    loading = _Loading()
    try:
        from .cli.main import main as run

        return run(loaded=loading.done)
    except KeyboardInterrupt:  # pressed again, or while the program ended
        sys.stderr.write("error: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
