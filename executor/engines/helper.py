"""Helper processes: work that may crash, hang or print is done in a child that can be replaced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self

from ...formulations.errors import UnitLostError
from ...formulations.hardware import ProcessingUnit
from ..workers import Message, Role, Worker


class Helper:
    """A child process that answers one question at a time; where one kills it, the next finds a new one.

    `role`, `settings`, `descriptors`, `engines`: as for `Worker`; the role answers each message by exactly
    one. It is not pinned.
    """

    def __init__(
        self,
        name: str,
        role: Role | str,
        settings: Mapping[str, Any],
        *,
        descriptors: Sequence[int] = (),
        engines: Collection[str] | None = None,
    ) -> None:
        self._unit = ProcessingUnit(name=name)
        self._role = role
        self._settings = settings
        self._descriptors = descriptors
        self._engines = engines
        self._worker: Worker | None = None

    def ask(self, question: Message, *, limit_s: float) -> Message:
        """Return the answer to a question.

        Raises GaplessError: what the child raised.
        """
        try:
            if self._worker is None:
                self._worker = Worker(
                    self._unit,
                    self._role,
                    self._settings,
                    descriptors=self._descriptors,
                    engines=self._engines,
                )
            self._worker.send(question)
            answer = self._worker.receive(limit_s)
            if answer is None:
                raise UnitLostError(f"no answer within {limit_s:g} s; the process was ended")
        except BaseException:
            self.close()
            raise
        return answer

    def close(self) -> None:
        """End the child. Can be called twice."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
