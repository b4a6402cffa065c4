"""The program of worker processes (`python -m gapless.executor.worker_process`), and of what forks them."""

from __future__ import annotations

import sys

from .fork_server import serve
from .workers import run_worker

if __name__ == "__main__":
    words = sys.argv[1:]
    if words[0] == "fork":
        words = list(serve(*words[1:]))  # in each fork
    sys.exit(run_worker(words))
