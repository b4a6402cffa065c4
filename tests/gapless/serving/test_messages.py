"""Bodies of messages in memory."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
from gapless.serving.messages import keep_memory
if sys.argv[1] == "kept":
    keep_memory()
def bodies(count):
    for _ in range(count):
        parts = [b"x" * 65_536 for _ in range(10)]
        bytes(memoryview(b"".join(parts)))
bodies(5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
bodies(20)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 20)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_bodies_reuse_memory_that_the_server_keeps() -> None:
    kept, usual = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True).stdout)
        for how in ("kept", "usual")
    )
    assert kept < 10 < usual  # pages that are new for each body; a body has 160
