"""Dynamic batching: requests of a model that wait are put together where a batch is measured to pay."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from ..executor.coordination.coordinator import Coordinator
from ..executor.coordination.outstanding import Place
from ..executor.coordination.registration import Registered
from ..executor.coordination.requests import Served
from ..executor.coordination.tally import Fate
from ..formulations.errors import (
    DroppedRequestError,
    ExecutionError,
    InvalidInputError,
    OutputMismatchError,
    RefusedRequestError,
)
from .parameters import Wishes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = dict[str, NDArray[Any]]

_NAME = re.compile(r"(.+)\*([1-9][0-9]{0,4})", re.ASCII)
_ROUNDS = 5
_PAYS = 0.9
"""A batch pays if one inference in it takes at most this share of what it takes in the next smaller one."""

_ALLOWED = 1e-3
"""How much a number may differ in a batch, relative to the largest of its output."""

_log = logging.getLogger(__name__)

Submit = Callable[[str, "Tensors", Wishes, Sequence[Place]], Awaitable[Served]]
"""Has a model run, by the name by which the coordinator knows it; the inputs are emptied."""


def variants_of(models: Mapping[str, Registered]) -> dict[str, dict[int, str]]:
    """Return, by model, the names of its batches by size: "net*4" is a batch of 4 of "net"."""
    found: dict[str, dict[int, str]] = {}
    for key in models:
        named = _NAME.fullmatch(key)
        if named is not None and named[1] in models:
            found.setdefault(named[1], {})[int(named[2])] = key
    return found


class Sizes(NamedTuple):
    """Sizes of batches."""

    used: dict[int, str]  # those that pay, and 1, with the names of their models
    each_us: dict[int, float]  # by size, used or not, what one inference takes


def worthwhile(coordinator: Coordinator, base: str, variants: Mapping[int, str]) -> Sizes:
    """Return the sizes of batches that pay.

    All are run on the same samples: what a batch gives has to be what the model gives alone.
    Raises InvalidInputError: a model is no batch of the other one. OutputMismatchError: its numbers differ.
    """
    import numpy as np

    models = coordinator.registered
    alone, found = models[base], {1: base}
    for size, key in variants.items():
        _check_shapes(alone, models[key], size)
    samples = [alone.held.model.sample_inputs(seed) for seed in range(max(variants))]
    right = [coordinator.run(base, sample).outputs for sample in samples]
    best_us = _busy_us(coordinator, base, samples[0])
    each_us = {1: best_us}
    for size, key in sorted(variants.items()):
        inputs = {name: np.concatenate([sample[name] for sample in samples[:size]]) for name in samples[0]}
        made = coordinator.run(key, inputs).outputs
        for name, array in made.items():
            wanted = np.concatenate([outputs[name] for outputs in right[:size]])
            limit = _ALLOWED * max(1e-6, float(np.abs(np.nan_to_num(wanted)).max(initial=0)))
            if not np.allclose(array, wanted, rtol=0, atol=limit, equal_nan=True):
                raise OutputMismatchError(
                    f"{base!r} gives other numbers in a batch of {size} than alone: output {name!r} differs "
                    f"by more than {limit:.2g}. It mixes the inferences of a batch: leave --max-batch out"
                )
        each_us[size] = _busy_us(coordinator, key, inputs) / size
        if each_us[size] <= _PAYS * best_us:
            found[size], best_us = key, each_us[size]
    words = ", ".join(f"{size}: {time_us / 1000:.3g} ms" for size, time_us in sorted(each_us.items()))
    used = ", ".join(map(str, sorted(found)[1:])) or "none, so requests run alone"
    _log.info("%s: an inference takes, by size of its batch, %s; used are %s", base, words, used)
    return Sizes(found, each_us)


def _check_shapes(alone: Registered, batch: Registered, size: int) -> None:
    one, many = alone.held.model, batch.held.model
    for what, first, second in (("input", one.inputs, many.inputs), ("output", one.outputs, many.outputs)):
        for spec in first:
            wanted = (spec.name, (size, *spec.shape[1:]), spec.dtype)
            if spec.shape[:1] != (1,) or wanted not in {(s.name, s.shape, s.dtype) for s in second}:
                raise InvalidInputError(
                    f"{batch.name!r} is no batch of {size} of {alone.name!r}: {what} {spec.name!r} has the "
                    f"shape {list(spec.shape)} there; its first dimension must be 1, and {size} in the batch"
                )


def _busy_us(coordinator: Coordinator, key: str, inputs: Mapping[str, NDArray[Any]]) -> float:
    """Return how long units work on a request: the shortest of some rounds."""
    return min(
        sum(chunk.times_ns[-1] - chunk.times_ns[0] for chunk in coordinator.run(key, inputs).chunks) / 1000
        for _ in range(_ROUNDS)
    )


@dataclass(slots=True, eq=False)
class _Pending:
    """A request that waits to be put together with others."""

    inputs: Tensors
    wishes: Wishes
    copied: Callable[[], None]
    place: Place
    answer: asyncio.Future[Served]
    patience_s: float  # how long it waits for others
    ready_ns: int = field(default_factory=monotonic_ns)  # since when

    @property
    def arrival_ns(self) -> int:
        """When it arrived."""
        return self.ready_ns if self.wishes.arrival_ns is None else self.wishes.arrival_ns

    @property
    def begin_ns(self) -> int:
        """When it waits for others no longer."""
        return self.ready_ns + round(1e9 * self.patience_s)

    def left_us(self) -> int | None:
        """How long it has left until its deadline; None: it has none."""
        deadline_us = self.wishes.deadline_us
        return None if deadline_us is None else deadline_us - (monotonic_ns() - self.arrival_ns) // 1000


class Batcher:
    """Puts requests of one model together; all in one event loop.

    While fewer batches run than there are units, a request waits at most `delay_s` for others, and at most
    half of what its deadline leaves it; while more would only wait for units, they gather here. Only requests
    of one priority go together. One that a batch would answer too late does not go with it: it runs alone, if
    it still can.

    `sizes`: what pays, with the names of the models; `units`: how many batches run at the same
    time; `deadline_us`: of requests that have none of their own; `took_us`: by size, how long a batch takes.

    `fates`, `failed_ns`: of requests that have no answers, and how long they were there.
    """

    def __init__(
        self,
        sizes: Mapping[int, str],
        submit: Submit,
        *,
        delay_s: float,
        units: int,
        deadline_us: int | None = None,
        took_us: Mapping[int, float] | None = None,
    ) -> None:
        self.sizes = dict(sorted(sizes.items()))
        self.fates = Counter[str]()
        self.failed_ns = 0
        self._took_us = took_us or {}
        self.delay_s = delay_s
        self._submit = submit
        self._units, self._deadline_us = units, deadline_us
        self._groups: dict[tuple[int, bool], list[_Pending]] = {}
        self._running = 0
        self._held = 0
        self._idle = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def served(
        self, inputs: Tensors, wishes: Wishes, place: Place, copied: Callable[[], None]
    ) -> Served:
        """Return the answer to a request; `inputs` is emptied, and `copied` called, when they are copied."""
        if wishes.deadline_us is None:
            wishes = replace(wishes, deadline_us=self._deadline_us)
        loop = asyncio.get_running_loop()
        pending = _Pending(inputs, wishes, copied, place, loop.create_future(), self._patience_s(wishes))
        group = self._groups.setdefault((wishes.priority, wishes.expires), [])
        group.append(pending)
        self._held += 1
        loop.call_later(pending.patience_s, self._look)
        self._look()
        try:
            return await pending.answer
        except BaseException as error:
            self.fates[_fate(error)] += 1
            self.failed_ns += monotonic_ns() - pending.arrival_ns
            raise
        finally:
            self._held -= 1
            if not self._held:
                self._idle.set()
            if pending in group:  # its client has left
                group.remove(pending)

    async def drained(self) -> None:
        """Wait until no request waits or runs."""
        while self._held:
            self._idle.clear()
            await self._idle.wait()

    def _patience_s(self, wishes: Wishes) -> float:
        if wishes.deadline_us is None:
            return self.delay_s
        left_us = wishes.deadline_us - max(self._took_us.values(), default=0.0)
        return min(self.delay_s, max(0.0, left_us / 2e6))

    def _look(self) -> None:
        """Start what is to start: groups of smaller priority numbers first."""
        for _, group in sorted(self._groups.items()):
            while group and self._running < self._units:
                first_ns = min(each.begin_ns for each in group)
                if len(group) < max(self.sizes) and monotonic_ns() < first_ns:
                    break
                batch = self._chosen(group)
                for each in batch:
                    group.remove(each)
                self._running += 1
                task = asyncio.ensure_future(self._run(batch))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _chosen(self, group: Sequence[_Pending]) -> Sequence[_Pending]:
        """Return what runs next: as many as pay, or one alone that would be too late with the others."""
        size = max(size for size in self.sizes if size <= len(group))
        batch = sorted(group, key=lambda each: each.begin_ns)[:size]
        took_us = self._took_us.get(size, 0.0)
        late = [each for each in batch if each.wishes.expires and (each.left_us() or 0) < took_us]
        return late[:1] or batch

    async def _run(self, batch: Sequence[_Pending]) -> None:
        try:
            await self._answer(batch)
        finally:
            self._running -= 1
            self._look()

    async def _answer(self, batch: Sequence[_Pending]) -> None:
        size = len(batch)
        try:
            places = [each.place for each in batch]
            served = await self._submit(self.sizes[size], _joined(batch), _together(batch), places)
        except RefusedRequestError as error:
            _fail(batch, error)
        except ExecutionError as error:
            for each in batch:
                if size > 1 and not each.answer.done():
                    each.place.again()
            if size == 1:
                _fail(batch, error)
            elif isinstance(error, DroppedRequestError):  # one has less time: the others wait without it
                tightest = min(batch, key=lambda each: each.left_us() or 0)
                group = self._groups[tightest.wishes.priority, tightest.wishes.expires]
                group[:0] = [each for each in batch if each is not tightest and not each.answer.done()]
                await self._answer([tightest])
            else:  # one of them may be to blame: the others are answered
                for each in batch:
                    if not each.answer.done():
                        await self._answer([each])
        except Exception as error:
            _fail(batch, error)
        else:
            for index, each in enumerate(batch):
                each.inputs.clear()
                each.copied()
                if not each.answer.done():
                    each.answer.set_result(_part(served, each, index, size))


def _fate(error: BaseException) -> Fate:
    """Return what became of a request that ended with an error."""
    if isinstance(error, asyncio.CancelledError):
        return Fate.LEFT
    if isinstance(error, DroppedRequestError):
        return Fate.DROPPED
    return Fate.REFUSED if isinstance(error, RefusedRequestError) else Fate.FAILED


def _joined(batch: Sequence[_Pending]) -> Tensors:
    """Return the inputs of requests together; those of a request are kept, should it have to run alone."""
    import numpy as np

    if len(batch) == 1:
        return dict(batch[0].inputs)
    return {name: np.concatenate([each.inputs[name] for each in batch]) for name in batch[0].inputs}


def _together(batch: Sequence[_Pending]) -> Wishes:
    """Return what a batch asks for: it has to be done when the first of its requests has to be."""
    left_us = [left for each in batch if (left := each.left_us()) is not None]
    deadline_us = max(1, min(left_us)) if left_us else None
    return replace(batch[0].wishes, deadline_us=deadline_us, arrival_ns=None)


def _part(served: Served, each: _Pending, index: int, size: int) -> Served:
    outputs = (
        served.outputs
        if size == 1
        else {name: array[index : index + 1] for name, array in served.outputs.items()}
    )
    deadline_us = each.wishes.deadline_us
    return replace(served, outputs=outputs, arrival_ns=each.arrival_ns, deadline_us=deadline_us)


def _fail(batch: Sequence[_Pending], error: Exception) -> None:
    for each in batch:
        if not each.answer.done():
            each.answer.set_exception(error)
