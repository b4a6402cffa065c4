"""The program of a worker process (`python -m gapless.executor.worker_process`); see `workers`."""

from __future__ import annotations

import sys

from .workers import run_worker

if __name__ == "__main__":
    sys.exit(run_worker(sys.argv[1:]))
