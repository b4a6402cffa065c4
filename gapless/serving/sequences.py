"""Recurrent models: what a request leaves behind for the next one of its sequence, which waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..executor.coordination.registration import Registered
from ..formulations.errors import InvalidInputError
from ..formulations.validation import meant, shown
from .messages import Refusal
from .parameters import Wishes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..executor.model import TensorSpec

    Tensors = Mapping[str, NDArray[Any]]

IDLE_S = 60.0
"""A sequence is forgotten after so long without a request."""

DRAIN_S = 30.0
"""How long open sequences may go on when their model is unloaded."""

LOOK_S = 0.05

_MOST, _MOST_BYTES = 1024, 256 * 1024 * 1024
"""Most sequences of a model, and most memory of their states."""

States = Mapping[str, str]
"""By input of a model that takes a state, the output that gives the next one."""


def states_by_model(
    given: Iterable[tuple[str, States]], models: Collection[str]
) -> dict[str, dict[str, str]]:
    """Return states by the names of their models.

    `given`: models and what they keep; what belongs to the model "" is named like "MODEL/INPUT", or is of
    the only model.
    """
    found: dict[str, dict[str, str]] = {}
    for key, pairs in given:
        for taken, output in pairs.items():
            name, own = key, taken
            if not key:
                before, sign, behind = taken.partition("/")
                name, own = (before, behind) if sign and before in models else ("", taken)
            if not name and len(models) == 1:
                (name,) = models
            if not name:
                raise InvalidInputError(
                    f"--state {taken}={output}: say of which model, e.g. {min(models)}/{taken}={output}"
                )
            if name not in models:
                raise InvalidInputError(f"--state names the model {shown(name)}; {meant(name, models)}")
            if (known := found.setdefault(name, {}).setdefault(own, output)) != output:
                raise InvalidInputError(
                    f"input {shown(own)} of {name!r} takes two states, {known} and {output}: give one; a "
                    "plan that was made with --state needs no option"
                )
    return found


def check_states(model: Registered, states: States) -> None:
    """Refuse states that a model does not have, or whose inputs and outputs are not alike."""
    inputs = {spec.name: spec for spec in model.held.model.inputs}
    outputs = {spec.name: spec for spec in model.held.model.outputs}
    for taken, given in states.items():
        where = f"--state {taken}={given}: {model.name!r} has no"
        if taken not in inputs:
            raise InvalidInputError(f"{where} input {shown(taken)}; {meant(taken, inputs)}")
        if given not in outputs:
            raise InvalidInputError(f"{where} output {shown(given)}; {meant(given, outputs)}")
        one, other = inputs[taken], outputs[given]
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            raise InvalidInputError(
                f"--state {taken}={given}: the input of {model.name!r} is {one.dtype} {list(one.shape)}, the "
                f"output {other.dtype} {list(other.shape)}; a state has one type and one shape"
            )
    if len({*states.values()}) < len(states):
        raise InvalidInputError(f"two states of {model.name!r} come from one output; each has its own")


@dataclass(slots=True)
class _Known:
    """The sequences of one name: each start begins one, and ends the one before it.

    `tensors`: what the last request left; None: nothing, or it was the end. `of`: the number of the sequence
    which that belongs to; `newest`: of the one that came last. `last`: the request that came last.
    """

    tensors: Tensors | None = None
    of: int = 0
    newest: int = 0
    last: _Place = field(default_factory=lambda: _Place(0))
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    used_s: float = field(default_factory=monotonic)
    waiting: int = 0

    @property
    def begun(self) -> bool:
        """Whether there is a state for a request that comes now."""
        return self.tensors is not None and self.of == self.newest

    @property
    def is_idle(self) -> bool:
        """Whether it may be forgotten: nothing came for so long."""
        return not self.waiting and monotonic() - self.used_s > IDLE_S


@dataclass(slots=True)
class _Place:
    """A request among those that wait: the number of its sequence, and whether it failed."""

    of: int
    failed: bool = False


class Turn:
    """A request whose turn it is: the state that it begins with, and the one that it leaves, once it has."""

    def __init__(self, before: Tensors) -> None:
        self.before = before
        self.after: Tensors | None = None


class Sequences:
    """The sequences of one model; all in one event loop.

    `states`: what it keeps; `specs`: the inputs of the model.
    """

    def __init__(self, model: str, states: States, specs: Sequence[TensorSpec]) -> None:
        self.states = states
        self._model = model
        self._specs = [spec for spec in specs if spec.name in states]
        size = sum(spec.bytes for spec in self._specs)
        self._most = max(1, min(_MOST, _MOST_BYTES // max(1, size)))
        self._known: dict[str, _Known] = {}
        self.ending = False  # whether those that are open may go on, but none begins

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Let none begin meanwhile."""
        self.ending = True
        try:
            yield
        finally:
            self.ending = False

    @property
    def any_open(self) -> bool:
        """Whether one has begun and not ended; any thread may ask."""
        return any(not known.is_idle for known in list(self._known.values()))

    async def ended(self, patience_s: float) -> None:
        """Wait until all that are open have ended, or as long as they may take."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self.any_open:
                    await asyncio.sleep(LOOK_S)

    def forget(self) -> None:
        """End all sequences."""
        self._known.clear()

    @asynccontextmanager
    async def turn(self, wishes: Wishes) -> AsyncIterator[Turn]:
        """Wait until the request before has left its state; when the block fails, that stays as it is.

        When the first request of a sequence fails, it has not begun, and the one before it is over.

        Raises Refusal: the request is of no sequence, its sequence has not begun, there are too many, or the
        request before it has failed.
        """
        name, known = self._sequence(wishes)
        before = None if known.last.failed else known.last
        known.newest += wishes.starts
        known.last = place = _Place(known.newest)
        known.waiting += 1
        try:
            async with known.turn:
                turn = Turn(self._first() if wishes.starts else self._left(name, known, place, before))
                try:
                    yield turn
                finally:
                    known.used_s = monotonic()
                    place.failed = turn.after is None
                    if turn.after is not None:
                        known.of, known.tensors = place.of, None if wishes.ends else turn.after
        except BaseException:  # also when its client leaves while it waits
            place.failed = True
            raise
        finally:
            known.waiting -= 1
            if not known.begun and not known.waiting and self._known.get(name) is known:
                del self._known[name]

    def _left(self, name: str, known: _Known, place: _Place, before: _Place | None) -> Tensors:
        """Return the state that a request continues with, now that it is its turn."""
        if known.tensors is None or known.of != place.of:
            raise self._not_begun(name)
        if before is not None and before.failed:
            raise Refusal(
                409,
                f"sequence {shown(name)} of {self._model!r}: a request before this one failed, so "
                "this one does not run; the state is as it was before that one",
            )
        return known.tensors

    def _not_begun(self, name: str) -> Refusal:
        return Refusal(
            400,
            f"sequence {shown(name)} of {self._model!r} has not begun, has ended, or had no request "
            f"for {IDLE_S:g} s; begin it with sequence_start",
        )

    def _sequence(self, wishes: Wishes) -> tuple[str, _Known]:
        name = wishes.sequence
        if name is None:
            raise Refusal(
                400,
                f"{self._model!r} keeps a state for each sequence of requests: give sequence_id, and "
                "sequence_start with the first one",
            )
        if self.ending and wishes.starts:
            raise Refusal(
                503,
                f"sequence {shown(name)} of {self._model!r} does not begin: the model is being unloaded, or "
                "the server stops, and only sequences that are open go on",
            )
        found = self._known.get(name)
        if found is not None and found.is_idle:
            del self._known[name]
            found = None
        if found is None:
            if not wishes.starts:
                raise self._not_begun(name)
            self._make_room()
            found = self._known[name] = _Known()
        return name, found

    def _make_room(self) -> None:
        if len(self._known) < self._most:
            return
        for name, known in list(self._known.items()):
            if known.is_idle:
                del self._known[name]
        if len(self._known) >= self._most:
            raise Refusal(
                429,
                f"{self._model!r} has {self._most} sequences, and no more are kept: end some (sequence_end)",
            )

    def _first(self) -> Tensors:
        import numpy as np

        return {spec.name: np.zeros(spec.shape, spec.dtype) for spec in self._specs}
