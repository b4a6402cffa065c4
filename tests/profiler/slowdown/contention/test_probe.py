"""The memory probe: how large it is, where it runs, and that it leaves nothing behind."""

from __future__ import annotations

import os
import threading

import pytest

from gapless.executor.machine.cores import Core, CoreCache, Topology, read_topology
from gapless.formulations.errors import PlacementError
from gapless.formulations.hardware import ProcessingUnit
from gapless.profiler.slowdown.contention.probe import (
    ARRAYS,
    CACHES,
    PROBE,
    UNKNOWN_CACHE_BYTES,
    ProbeSession,
    can_probe,
    probe_piece,
    sweep_bytes,
)
from gapless.profiler.worker import open_artifact

MIB = 2**20
ITEM = 8 * ARRAYS
PLENTY = 2**40


@pytest.fixture
def pinned() -> tuple[int, ...]:
    """All usable cores; a process that opens the probe stands on those of its unit."""
    return tuple(sorted(os.sched_getaffinity(0)))


def with_cache(size: int | None) -> Topology:
    cache = CoreCache(level=3, kind="unified", size_bytes=size, cores=(0,))
    found = read_topology()
    return type(found)(cores=(Core(number=0, caches=(cache,)),), clusters=found.clusters)


def test_the_arrays_are_much_larger_than_the_last_cache() -> None:
    found = sweep_bytes(topology=with_cache(8 * MIB), memory_bytes=PLENTY)
    assert CACHES * 8 * MIB - ITEM < found <= CACHES * 8 * MIB
    assert found % ITEM == 0


def test_an_unknown_cache_is_taken_for_a_large_one() -> None:
    found = sweep_bytes(topology=with_cache(None), memory_bytes=PLENTY)
    assert found == pytest.approx(CACHES * UNKNOWN_CACHE_BYTES, abs=ITEM)


def test_small_memories_are_not_filled() -> None:
    assert sweep_bytes(topology=with_cache(64 * MIB), memory_bytes=512 * MIB) <= 32 * MIB
    assert sweep_bytes(topology=with_cache(64 * MIB), memory_bytes=1) == ITEM


@pytest.mark.parametrize("threads", [1, 3])
def test_a_sweep_adds_all_of_the_arrays(threads: int, pinned: tuple[int, ...]) -> None:
    unit = ProcessingUnit(name="here", cores=pinned, threads=threads)
    before = threading.active_count()
    session = ProbeSession(probe_piece().artifact, unit, bytes_a_sweep=ITEM * 1001)
    parts = session._parts
    assert sum(len(result) for _, _, result in parts) == 1001
    for first, _, _ in parts:
        first[...] = 4.0
    session.copy_in([])
    session.run()
    session.copy_out([])
    assert all((result == 5.0).all() for _, _, result in parts)
    assert session.operator_times([], repetitions=1) is None
    assert session.receipt.granted_threads == threads
    session.close()
    assert threading.active_count() == before


def test_it_refuses_a_process_that_stands_elsewhere() -> None:
    unit = ProcessingUnit(name="far", cores=(4000,), threads=1)
    with pytest.raises(PlacementError, match="'memory probe' on unit 'far'"):
        ProbeSession(probe_piece().artifact, unit, bytes_a_sweep=ITEM)


def test_only_cores_can_be_probed() -> None:
    assert can_probe(ProcessingUnit(name="core", cores=(0,)))
    assert not can_probe(ProcessingUnit(name="gpu"))


def test_the_probe_is_a_piece_without_inputs(
    pinned: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gapless.profiler.slowdown.contention.probe.sweep_bytes", lambda: ITEM)
    prepared = probe_piece()
    assert prepared.piece.inputs == prepared.piece.outputs == ()
    session = open_artifact(prepared.artifact, ProcessingUnit(name="here", cores=pinned, threads=1))
    assert session.artifact.piece == PROBE
    session.close()
