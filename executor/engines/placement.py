"""Placement: which cores the threads of this process may use, and receipts that are refused or kept."""

from __future__ import annotations

from collections.abc import Sequence

from ...formulations.errors import PlacementError
from ...formulations.hardware import ProcessingUnit
from ..engine import PlacementReceipt
from ..machine.cores import threads_of_process


def receipt_of(
    unit: ProcessingUnit,
    piece: str,
    engine: str,
    *,
    granted_backend: str,
    granted_threads: int | None,
) -> PlacementReceipt:
    """Return the receipt of a session that has just been opened in this process.

    `unit`: what was asked; `piece`, `engine`: name of the piece; name and version of the engine;
    `granted_backend`, `granted_threads`: what the engine says that it granted.
    """
    return PlacementReceipt(
        unit=unit.name,
        piece=piece,
        engine=engine,
        asked_backend=unit.engine.backend,
        granted_backend=granted_backend,
        asked_threads=unit.threads,
        granted_threads=granted_threads,
        asked_cores=unit.cores,
        granted_cores=granted_cores(unit.cores),
        precision=unit.engine.precision.value,
        memory=unit.engine.memory.value,
        quota_permille=unit.quota_permille,
    )


def require_match(receipt: PlacementReceipt) -> None:
    """Refuse a receipt that grants something else than was asked.

    Raises PlacementError: they differ.
    """
    if receipt.mismatches:
        raise PlacementError(
            f"{receipt.engine} did not place {receipt.piece!r} on unit {receipt.unit!r} as asked: "
            f"{'; '.join(receipt.mismatches)}. Ask for what this device has: `gapless doctor` lists the "
            "backends of each engine, `gapless device detect` builds units that fit"
        )


def granted_cores(asked: Sequence[int]) -> tuple[int, ...] | None:
    """Return the cores that every thread of this process may use; None where the system does not tell.

    Where threads differ, the answer is that of one that is not as asked.
    """
    found = set(threads_of_process().values())
    if not found:
        return None
    odd = found - {tuple(sorted(asked))}
    return min(odd) if odd else tuple(asked)


def thread_count() -> int | None:
    """Return the number of threads of this process; None where the system does not tell."""
    return len(threads_of_process()) or None
