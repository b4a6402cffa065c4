"""What workers do in the tests of quotas."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gapless.executor.workers import Link


def burn(link: Link, settings: Mapping[str, Any]) -> None:
    """Use as much processor time as there is for a while, and say which share that was."""
    link.send({"kind": "ready"})
    while (message := link.receive()) is not None:
        start, start_cpu = time.perf_counter(), time.process_time()
        while (elapsed := time.perf_counter() - start) < message["seconds"]:
            pass
        share = (time.process_time() - start_cpu) / elapsed
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        link.send({"kind": "done", "share": share, "groups": groups})
