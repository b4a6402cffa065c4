"""Which cores the threads of a process may use."""

from __future__ import annotations

import os

import pytest

from gapless.executor.engines import placement
from gapless.executor.engines.placement import granted_cores, thread_count

USABLE = tuple(sorted(os.sched_getaffinity(0)))


def test_this_process_is_where_it_is() -> None:
    assert granted_cores(USABLE) == USABLE
    assert granted_cores(USABLE[::-1]) == USABLE[::-1]
    assert granted_cores((4000,)) == USABLE
    assert granted_cores(()) == USABLE
    assert thread_count() is not None


@pytest.mark.parametrize(
    ("threads", "granted"),
    [
        ([(4, 5, 6, 9), (4, 5, 6, 9)], (4, 5, 6, 9)),
        ([(4, 5, 6, 9), tuple(range(16))], tuple(range(16))),
        ([(4, 5, 6, 9), (4,)], (4,)),
        ([], None),
    ],
)
def test_the_odd_thread_counts(
    threads: list[tuple[int, ...]], granted: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "threads_of_process", lambda: dict(enumerate(threads)))
    assert granted_cores((4, 5, 6, 9)) == granted
    assert thread_count() == (len(threads) or None)
