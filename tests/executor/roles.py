"""Roles that worker processes play in the tests."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from gapless.executor.workers import Link
from gapless.formulations.errors import PlacementError


def echo(link: Link, settings: Mapping[str, Any]) -> None:
    """Repeat what comes, until told otherwise."""
    link.send({"kind": "ready", "cores": sorted(os.sched_getaffinity(0)), "settings": settings})
    while (message := link.receive()) is not None:
        match message["kind"]:
            case "refuse":
                raise PlacementError("granted something else")
            case "crash":
                raise RuntimeError("oh no")
            case "leave":
                print("a last word", flush=True)  # noqa: T201
                os._exit(3)
            case "hang":
                time.sleep(60)
            case _:
                link.send(message)


def imports(link: Link, settings: Mapping[str, Any]) -> None:
    """Import modules, and tell where they lie."""
    files = [str(import_module(name).__file__) for name in settings["modules"]]
    link.send({"kind": "ready", "files": files})


def show(link: Link, settings: Mapping[str, Any]) -> None:
    """Tell what it is in, and what it is."""
    import numpy as np

    told = Path("/proc/self/status").read_text().splitlines()
    signals = [line for line in told if line.startswith(("SigBlk:", "SigIgn:"))]
    link.send(
        {
            "kind": "ready",
            "pid": os.getpid(),
            "parent": os.getppid(),
            "session": os.getsid(0),
            "folder": os.getcwd(),
            "cores": sorted(os.sched_getaffinity(0)),
            "threads": len(os.listdir("/proc/self/task")),
            "environment": dict(os.environ),
            "descriptors": sorted(os.listdir("/proc/self/fd")),
            "signals": signals,
            "modules": sorted(sys.modules),
            "path": sys.path,
            "drawn": float(np.random.random()),
        }
    )
