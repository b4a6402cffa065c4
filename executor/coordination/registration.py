"""Registration: a network is opened on one unit after the other, and measured there if nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from ...formulations.coordination.expected import Key, estimated_times
from ...formulations.coordination.times import NetworkTimes
from ...formulations.costs import NetworkCosts
from ...formulations.errors import (
    ExecutionError,
    OutputMismatchError,
    QueueFullError,
    RefusedRequestError,
)
from ...formulations.hardware import Platform, ProcessingUnit
from ..engine import PlacementReceipt, parse_receipt
from ..gathering import SEEDS, Gathered
from ..model import Model, allowed_of
from ..pipeline.verify import receipt_words
from ..runner import UNCHECKED, Verification, told
from ..workers import Message
from .held import Cannot, HeldNetwork, Offer, Routes, TaskSlots
from .loop import Loop
from .outstanding import OpenNetwork, Place
from .seat import Opened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]


class Comparison:
    """The right numbers of every tensor that crosses a cut, and what was found of the chunks so far.

    `tensors` are those of the task slot in which chunks are tried.
    """

    def __init__(self, held: HeldNetwork, tensors: Tensors) -> None:
        self._held = held
        self._tensors = tensors
        self._gathered = Gathered("tensor")
        names = {name for specs in held.sessions.values() for spec in specs for name in spec.outputs}
        self._right = self._gathered.right(held.model, names)

    @property
    def verification(self) -> Verification:
        """What came of it."""
        return self._gathered.verification()

    def check(
        self,
        index: int,
        unit: ProcessingUnit,
        receipts: Sequence[PlacementReceipt],
        run: Callable[[Key], object],
    ) -> list[PlacementReceipt]:
        """Run all chunks of a unit on right inputs, compare what they make, and return receipts that say so.

        Raises OutputMismatchError: numbers differ; the message names the first chunk that is wrong.
        """
        keys = sorted(key for key in self._held.keys if key[2] == index) if self._right else []
        compared = {piece for key in keys for piece in self._compared(key, unit, receipts, run)}
        return [replace(receipt, compared=receipt.piece in compared) for receipt in receipts]

    def _compared(
        self,
        key: Key,
        unit: ProcessingUnit,
        receipts: Sequence[PlacementReceipt],
        run: Callable[[Key], object],
    ) -> Iterator[str]:
        """Compare what a chunk makes; yield the pieces of which something could be compared."""
        specs = self._held.sessions[key]
        made = {name: spec.artifact.piece for spec in specs for name in spec.outputs}
        taken = {name for spec in specs for name in spec.inputs} - made.keys()
        allowed = allowed_of(self._held.model.network, [unit.engine.precision])
        for sample, (name, piece) in self._ran(key, taken, made, run):
            difference = self._right[name].compare(self._tensors[name], sample, allowed)
            self._gathered.add(difference, name)
            if not difference.agrees:
                start, stop = self._held.layers(*key[:2])
                granted = "; ".join(receipt_words(one) for one in receipts if one.piece == piece)
                raise OutputMismatchError(
                    f"{self._held.name!r} gives wrong numbers. The first wrong tensor is {name!r}, made by "
                    f"{self._held.name!r} (layers {start} to {stop - 1}) on unit {unit.name!r}: "
                    f"{difference.details}. What that unit was granted: {granted}. Leave this unit or engine "
                    "out, or take what it gives unchecked (--unchecked, check=False)"
                )
            if difference.compared:
                yield piece

    def _ran(
        self, key: Key, taken: Collection[str], made: Mapping[str, str], run: Callable[[Key], object]
    ) -> Iterator[tuple[int, tuple[str, str]]]:
        """Run a chunk on each sample; yield the number of the sample with each tensor that it makes."""
        for sample, _ in enumerate(SEEDS):
            for name in taken:
                self._tensors[name][...] = self._right[name].arrays[sample]
            for name in made:  # an engine that writes nothing must not find the numbers of another one
                self._tensors[name][...] = 0
            run(key)
            for each in made.items():
                yield sample, each


_MEASURED_RUNS = 20
_MEASURING_NS = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A model as it can be asked for."""

    name: str
    network: int  # index of its network: the same network registered twice is held once
    held: HeldNetwork  # its network
    deadline_us: int | None  # by when after their arrival requests have to be done; None: no deadline
    states: Mapping[str, str]  # by input that takes a state, the output that gives the next one
    verification: Verification | None
    """What came of comparing its numbers with those of the uncut model; None: that was not asked for."""

    @property
    def compared(self) -> bool:
        """Whether its numbers were compared, and agreed."""
        return self.verification is not None and self.verification.compared

    @property
    def numbers(self) -> str:
        """What is known of its numbers, in words."""
        return UNCHECKED if self.verification is None else self.verification.words

    @property
    def sessions(self) -> str:
        """Which of its sessions are loaded, and what the others would be worth, in words."""
        if self.held.loaded is not None:
            return self.held.loaded.words
        planned, count = self.held.offer.planned, len(self.held.keys)
        if count == 1:
            return "the plan's one session is loaded" if planned else "its one session is loaded"
        return ("the plan's" if planned else "all") + f" {count:,} sessions are loaded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a model is registered with, kept to load it again; see `Coordinator.register`."""

    model: Model
    name: str
    deadline_us: int | None
    costs: NetworkCosts | None
    cannot: Cannot
    borders: Collection[int]
    routes: Routes
    states: Mapping[str, str]


def index_of(loop: Loop, offer: Offer) -> int | None:
    """Return the index of a network that is held alike, or was: the same pieces on the same units."""
    return next((i for i, known in enumerate(loop.networks) if known.held.offer == offer), None)


def measured_times(loop: Loop, platform: Platform, held: HeldNetwork) -> NetworkTimes:
    """Return the times of all chunks that are on offer, by those that are held; nothing stays open.

    `held`: the largest chunk of each unit, which is measured. All others are estimated.
    """
    slots, index = TaskSlots(held.layout, 1, certain=1), len(loop.networks)
    try:
        sample = slots.take()
        slots.fill(sample, held.model.sample_inputs(0))
        measured_us = {}
        for unit, key in held.largest(platform).items():
            message = loop.workers.opening(held, index, unit, slots)
            loop.errand(unit, message).result()
            measured_us[key] = _measured(loop, platform.units[unit], _probe(index, key, sample), unit)
            loop.errand(unit, {"kind": "shut", "network": index}).result()
    finally:
        slots.close()
    return estimated_times(held.model.network, held.sections, held.offer.bytes, platform.units, measured_us)


def _probe(network: int, key: Key, slot: int) -> Message:
    """Return what has a worker run a chunk once."""
    message = {"kind": "measure", "network": network, "start": key[0], "stop": key[1], "slot": slot}
    return message | {"runs": 1, "limit_ns": 0}


def _measured(loop: Loop, unit: ProcessingUnit, probe: Message, index: int) -> float:
    """Return how long the chunk of a probe takes, microseconds."""
    task = {**probe, "runs": _MEASURED_RUNS, "limit_ns": _MEASURING_NS}
    took_us = loop.errand(index, task).result()["took_us"]
    # A quota limits time, not speed: only the mean tells (`executor.machine.quota`).
    return float((fmean if unit.emulated else median)(took_us))


def open_network(
    loop: Loop,
    platform: Platform,
    held: HeldNetwork,
    known: NetworkTimes | None,
    *,
    queue: int,
    check: bool,
    again: int | None = None,
) -> tuple[int, list[PlacementReceipt]]:
    """Open a network on all its units, one after the other.

    `known`: what its chunks take; None: the largest chunk of each unit is measured, the others are estimated.
    `check`: whether every chunk of every unit is compared with the uncut model.
    `again`: the index of a network that was closed, whose times are known; None: it is a new one.
    Raises OutputMismatchError: numbers differ.
    Returns its index, and what was granted for its sessions.
    """
    units = platform.units
    # Beyond the requests: one for samples, and one for each unit that is taken away and still works.
    slots = TaskSlots(held.layout, queue + 1 + len(units), certain=2 * len(units))
    index, measured_us, receipts = len(loop.networks), {}, list[PlacementReceipt]()
    index = index if again is None else again
    comparison: Comparison | None = None
    try:
        sample = slots.take()
        slots.fill(sample, held.model.sample_inputs(0))
        for unit, key in held.largest(platform).items():
            message = loop.workers.opening(held, index, unit, slots)
            probe = _probe(index, key, sample)
            loop.remember(unit, index, Opened(message, probe))  # first: a worker may be replaced meanwhile
            opening = loop.errand(unit, message)
            if check and comparison is None:  # the uncut model runs while the first unit opens its sessions
                comparison = Comparison(held, slots.tensors(sample))
            opened = [parse_receipt(found) for found in opening.result()["receipts"]]
            if comparison is not None:
                opened = comparison.check(unit, units[unit], opened, partial(_run, loop, probe))
            receipts += opened if comparison else told(None, opened)
            if known is None and again is None:
                measured_us[key] = _measured(loop, units[unit], probe, unit)
        verification = None if comparison is None else comparison.verification
        network = OpenNetwork(held, slots, verification)
        if again is not None:
            loop.add_again(index, network)
        else:
            times = known or estimated_times(held.model.network, held.sections, held.keys, units, measured_us)
            ways = {key: time_us for key, time_us in times.chunk_us.items() if key in held.offer.bytes}
            loop.add(network, replace(times, chunk_us=ways, loaded=held.keys))
    except BaseException:
        loop.forget(index)
        slots.close()
        raise
    return index, receipts


def _run(loop: Loop, probe: Message, key: Key) -> None:
    """Have a unit run a chunk of a network that is not served yet, once."""
    loop.errand(key[2], {**probe, "kind": "run", "start": key[0], "stop": key[1]}).result()


def full_words(name: str, queue: int) -> str:
    """Return why a request of a model is not taken where as many wait as may."""
    return (
        f"a request of {name!r} is not taken: {queue} requests wait for their answers, and no more are "
        "allowed; try again later"
    )


def not_unloaded(name: str, patience_s: float) -> ExecutionError:
    """Return the error that a model is not unloaded, because its requests were not answered in time."""
    return ExecutionError(
        f"{name!r} is not unloaded: its requests were not answered in {patience_s:g} s; "
        "it takes requests again"
    )


def admit(loop: Loop, known: Registered, queue: int, *, is_open: bool, places: Sequence[Place] = ()) -> None:
    """Count a request of a model that will be submitted; `places`: of what it answers, already counted."""
    refused = f"a request of {known.name!r} is not taken:"
    if not is_open:
        raise RefusedRequestError(f"{refused} the coordinator is closed")
    if not loop.can_serve(known.network):
        gone = ", ".join(repr(seat.unit.name) for seat in loop.seats if seat.reasons)
        raise RefusedRequestError(f"{refused} without the units {gone} nothing can run it")
    if not loop.requests.admit(queue, known.network, places):
        raise QueueFullError(full_words(known.name, queue))
