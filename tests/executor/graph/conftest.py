"""What the tests of models share."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

MORE_BYTES = 2**29


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Let this process take half a gigabyte more than it has: what needs gigabytes on the way fails."""
    sizes = Path("/proc/self/statm")
    if not sizes.exists():
        yield
        return
    used = int(sizes.read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
