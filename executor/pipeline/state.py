"""What the parent shares with its workers: task slots and board, at the places of the blueprint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .blueprint import Blueprint
from .board import Board
from .memory import SharedMemory
from .slots import SlotHeader

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SharedState:
    """The parent's view of the shared memory.

    Raises ExecutionError: there is not enough memory.
    """

    def __init__(self, blueprint: Blueprint) -> None:
        self.memory = SharedMemory.create(blueprint.size, reserved=blueprint.slots_end)  # the memory itself
        # how far everything is
        self.board = Board(self.memory, blueprint.board, stamps_at=blueprint.slots_end)
        # of the task slots, by [stream][slot]
        self.headers = [
            [
                SlotHeader(self.memory, stream.slot_at(slot), stream.stream.waits)
                for slot in range(stream.stream.slots)
            ]
            for stream in blueprint.streams
        ]
        self._tensors = [
            [
                {
                    spec.name: self.memory.array(spec, stream.slot_at(slot) + offset)
                    for spec, offset in zip(stream.layout.tensors, stream.layout.offsets, strict=True)
                }
                for slot in range(stream.stream.slots)
            ]
            for stream in blueprint.streams
        ]

    def tensors(self, stream: int, slot: int) -> dict[str, NDArray[Any]]:
        """Return all tensors of a task slot by name, without a copy."""
        return self._tensors[stream][slot]

    def close(self) -> None:
        """Give the memory back. Can be called twice."""
        self._tensors = []
        self.memory.close()
