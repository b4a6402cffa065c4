"""The memory probe: something that does nothing but stream through memory, to press on it and to feel it.

It adds two arrays into a third, like the kernels of the STREAM benchmark: two reads and one write for each
addition. The arrays are much larger than the last cache, so what another unit takes of the memory's
bandwidth, and of a cache that both share, shows at once in the time of a sweep. To the profiler the probe is
one more piece: it is timed and run in a loop like any network.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ....executor.engine import Artifact, OperatorTime, PlacementReceipt
from ....executor.engines.placement import receipt_of, require_match
from ....executor.machine.cores import Topology, read_topology
from ....executor.machine.state import usable_bytes
from ....executor.model import Piece
from ....formulations.errors import ExecutionError
from ....formulations.hardware import ProcessingUnit
from ...measuring import PreparedPiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBE = "memory probe"
"""Its name among networks."""

ARRAYS = 3
"""Two that are read and one that is written."""

CACHES = 6
"""Size of all arrays together, in sizes of the last cache: less than a fifth of them can stay in it."""

UNKNOWN_CACHE_BYTES = 32 * 2**20
"""Taken for the last cache where the system does not say: more than phones and boards have."""

MOST_OF_MEMORY = 1 / 16
"""Share of the memory that the arrays of one unit may take."""

_ITEM_BYTES = 8


def sweep_bytes(*, topology: Topology | None = None, memory_bytes: int | None = None) -> int:
    """Return how many bytes one sweep reads and writes; the same in every process of a machine.

    `topology`, `memory_bytes`: its cores and its usable memory; None: as they are found.
    """
    found = read_topology() if topology is None else topology
    sizes = [cache.size_bytes or 0 for core in found.cores for cache in core.caches]
    wanted = CACHES * (max(sizes, default=0) or UNKNOWN_CACHE_BYTES)
    memory = usable_bytes() if memory_bytes is None else memory_bytes
    most = wanted if memory is None else min(wanted, int(memory * MOST_OF_MEMORY))
    return max(1, most // (ARRAYS * _ITEM_BYTES)) * ARRAYS * _ITEM_BYTES


class _Nothing:
    """Content of a piece that no engine makes anything of."""

    kind = PROBE

    def read(self) -> bytes:
        """Return nothing."""
        return b""


def probe_piece() -> PreparedPiece:
    """Return the probe as a piece of a bench."""
    piece = Piece(name=PROBE, digest=PROBE, inputs=(), outputs=(), content=_Nothing())
    artifact = Artifact(engine=PROBE, piece=PROBE, digest=PROBE, path="", inputs=(), outputs=())
    return PreparedPiece(piece=piece, artifact=artifact)


def can_probe(unit: ProcessingUnit) -> bool:
    """Return whether the probe can run on a unit: on processor cores."""
    return bool(unit.cores)


class ProbeSession:
    """The probe, open in this process; see `Session`. One run is one sweep, by all threads of the unit.

    Raises PlacementError: this process is not on the cores of the unit; ExecutionError: there is not enough
    memory.
    """

    def __init__(self, artifact: Artifact, unit: ProcessingUnit, *, bytes_a_sweep: int) -> None:
        import numpy as np

        self.artifact = artifact
        threads = unit.threads or 1
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        try:
            arrays = [np.ones(bytes_a_sweep // (ARRAYS * _ITEM_BYTES)) for _ in range(ARRAYS)]
        except MemoryError:
            raise ExecutionError(
                f"the memory probe needs {bytes_a_sweep} bytes on unit {unit.name!r}, which are not free"
            ) from None
        self._parts = list(zip(*(np.array_split(array, threads) for array in arrays), strict=True))
        self.run()
        self.receipt: PlacementReceipt = receipt_of(
            unit, PROBE, f"numpy {np.__version__}", granted_backend="cpu", granted_threads=threads
        )
        require_match(self.receipt)

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Do nothing: the probe has no inputs."""

    def run(self) -> None:
        """Sweep once."""
        if self._pool is None:
            _add(self._parts[0])
        else:
            list(self._pool.map(_add, self._parts))

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Do nothing: the probe has no outputs."""

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return None: there is nothing to tell apart."""
        return None

    def close(self) -> None:
        """Free the arrays and end the threads."""
        self._parts = []
        if self._pool is not None:
            self._pool.shutdown()


def _add(part: tuple[NDArray[Any], ...]) -> None:
    import numpy as np

    first, second, result = part
    np.add(first, second, out=result)  # releases the interpreter lock
