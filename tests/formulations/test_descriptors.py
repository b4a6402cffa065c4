"""Waiting for descriptors, also for those with large numbers."""

from __future__ import annotations

import os

from gapless.formulations.processes import readable
from tests.processes import many_descriptors


def test_what_can_be_read_is_told() -> None:
    (empty, into_empty), (full, into_full), (ended, into_ended) = (os.pipe() for _ in range(3))
    os.write(into_full, b"word")
    os.close(into_ended)
    assert sorted(readable([empty, full, ended], 0.0)) == sorted([full, ended])
    assert readable([empty], 0.0) == readable([empty], -1.0) == readable([], 0.0) == []
    assert readable([full], None) == [full]
    for descriptor in (empty, into_empty, full, into_full, ended):
        os.close(descriptor)


def test_descriptors_may_have_large_numbers() -> None:
    with many_descriptors():
        reading, writing = os.pipe()
        assert reading > 1024
        os.write(writing, b"word")
        assert readable([reading], None) == [reading]
        os.close(reading)
        os.close(writing)
