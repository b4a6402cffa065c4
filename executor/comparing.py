"""Whether a tensor is as its reference says: the one place that decides what counts as equal.

    right = Reference.of([model.reference(model.sample_inputs(seed))["y"] for seed in seeds])
    difference = right.compare(found, sample=0, allowed=Allowed(error=1e-3))
    if not difference.agrees:
        raise OutputMismatchError(difference.said_of("output 'y'"))

`Reference.of` takes the right arrays of *several* samples: what is small in one of them may be large in
another. `allowed_of(network, precisions)` in `executor.model` says what a network is allowed on its units,
and `references(model, seeds)` there makes the references of a model, with what it knows of its decisions.

Floats are related to the scale of the block that they are in, not to the largest number of the tensor: an
output with boxes up to 640 and scores up to 1 has two scales. Blocks are positions along an axis, runs of
them, or what comes in turn. Numbers that are *decided* (the index of the
largest value, a comparison, a rounded number) are right if the values behind them, moved by no more than is
allowed, give them. That also excuses results of sigmoid and softmax, whose relative error is the absolute
error of what is behind. Of other integers and booleans a share may differ.

Nothing of gapless is imported, because exported folders contain this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

LEAST_SCALE = 2.0**-11
"""Magnitude below which errors are absolute: functions such as sigmoid are exact to some units in the last
place of *one*, however small their result (ONNX Runtime's gives 0 for 1e-8), so even the reference is not."""

APART = 2.0**-3
"""A block has a scale of its own if its largest number is smaller than this part of the tensor's. Above that,
the norm of the tensor still sees the block: a block that is lost is off by more than any tolerance."""

APART_ROUNDED = 2.0**-8
"""The same in networks that are rounded to eight bits: a block that is not smaller than one step of the
tensor may have been rounded together with the rest, and is off by a step of the rest."""

APART_ERROR = 1e-2
"""What a block apart is allowed at least, relative to its own scale. It equals what `APART` and 1e-3 give
just above the border; fast convolutions (Winograd) are off by up to 1e-3 of the largest numbers of a
tensor."""

NOISE = 2.0**-8
"""What leaks from the largest numbers of a tensor into a block apart, in units of what is allowed: sums of
large products that cancel are small, but their rounding errors are those of the products."""

DEAD = 2.0**-20
"""A block that is smaller than this part of the tensor is empty: cut off by a ReLU, or the rounding errors of
sums that cancel in single precision."""

DEAD_SCALE = 2.0**-5
"""What an empty block is related to, as a part of the tensor's scale: whether ReLU cuts a sum off that is
almost zero depends on its rounding error, which is that of the large numbers in the sum."""

UNIT = 32.0
"""Results of sigmoid and softmax are shares of one. Where they are small their relative error is the absolute
error of an exponent, which grows with what is allowed: below `UNIT` times that, errors count as absolute."""

FEWEST = 64
"""Values of a block, over all samples: fewer say little about its scale, because each single number may be
small by chance and carry the rounding errors of the sum that it comes from."""

MOST_PERIOD, LEAST_TURNS = 256, 16
"""Along an axis scales may come in turn: with which periods they are looked for, and how often they come."""

FILLED = 2.0**16
"""Numbers that are so much larger than all others, and equal, are no results but fill values, such as -1e9 in
a mask: no rounding errors of theirs are in the others."""


@dataclass(frozen=True)
class Allowed:
    """What counts as equal: the largest relative error, and whether the network rounds to eight bits."""

    error: float
    quantised: bool = False


@dataclass(frozen=True)
class Difference:
    """How far a tensor is from its reference."""

    error: float
    """The largest error, relative to the scale of its block (for a decision: of the values behind it; for
    other integers and booleans: the share of entries that differ). Infinite: the shape is another one, or a
    number is not finite on one side only."""
    allowed: float
    share: float = 0.0
    """Share of the elements that are off by more; of what is decided or counted: of those that differ."""
    where: str = ""  # which they are, in words, e.g. "channels 4 to 83 of axis 1"; "": everywhere, or none
    words: str = ""  # the error in words
    compared: bool = True
    """Whether it says anything: not of what is random, nor where most of the right numbers are not finite
    and the tensor is as they are."""

    @property
    def agrees(self) -> bool:
        """Whether the tensor counts as equal."""
        return self.error <= self.allowed

    @property
    def details(self) -> str:
        """Where it is off and by how much, in words."""
        return f"{self.where}: {self.words}" if self.where else self.words

    def said_of(self, what: str) -> str:
        """Return what is wrong with a tensor, in words: "output 'y', channels 4 to 83 of axis 1: ..."."""
        return f"{what}{', ' if self.where else ': '}{self.details}"


def worst_of(differences: Iterable[Difference]) -> Difference | None:
    """Return the one that is furthest beyond what is allowed; None where there are none."""
    return max(differences, key=lambda each: (not each.agrees, each.error), default=None)


@dataclass(frozen=True)
class Decision:
    """How a tensor was decided from others.

    `step`, `zero`: of a rounded number: what is rounded is `behind / step`, and `zero` is added.
    """

    kind: str
    """"largest" or "smallest" (an index along an axis), "comparison" (of two tensors, or of one with
    numbers), "truncated", "floor", "ceil" or "nearest" (a rounded number), "sigmoid" or "softmax", or
    "random" (drawn again in every run)."""
    behind: tuple[str, ...]  # names of the tensors that decide
    axis: int = 0  # of an index
    ranked: bool = False
    """Of an index: whether it has the axis, along which the indices differ (TopK), or has lost it or has 1
    there (ArgMax)."""
    against: Any = None  # of a comparison of one tensor: the numbers that it is compared with
    step: float = 1.0
    zero: float = 0.0
    undo: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """What leads from the tensor to what was decided: shapes to give it, and permutations of its axes."""


class Part(Protocol):
    """Some positions of a tensor along one axis (see `executor.model.TensorPart`)."""

    def of(self, array: Array) -> Array:
        """Return this part of a tensor, as a view."""
        ...


@dataclass(frozen=True, eq=False)
class Scales:
    """Magnitudes of a tensor: the largest, and that of each position along axes where they differ widely."""

    shape: tuple[int, ...]
    largest: float
    along: tuple[tuple[int, Array], ...] = ()

    @classmethod
    def of(cls, samples: Sequence[Array]) -> Scales:
        """Return those of a tensor, from what it holds for several inputs."""
        import numpy as np

        magnitudes = [_magnitudes(array) for array in samples]
        shape = magnitudes[0].shape
        largest = _largest(magnitudes)
        along = []
        for axis, length in enumerate(shape):
            others = tuple(other for other in range(len(shape)) if other != axis)
            found = np.zeros(length)
            for each in magnitudes:
                held = np.where(each <= largest, each, 0.0) if _exceeds(each, largest) else each
                found = np.maximum(found, held.max(axis=others, initial=0.0))
            values = sum(each.size for each in magnitudes)
            along += [(axis, own) for own in _blocks(found, values) if (own < APART * largest).any()]
        return cls(shape, largest, tuple(along))

    def related(self, allowed: Allowed) -> Array:
        """Return what the error of each element is divided by; its shape broadcasts to the tensor's."""
        import numpy as np

        scale = np.full((1,) * len(self.shape), max(self.largest, LEAST_SCALE))
        for axis, magnitudes in self.along:
            own = _scale_of(magnitudes, self.largest, allowed)
            shape = [1] * len(self.shape)
            shape[axis] = -1
            scale = np.minimum(scale, own.reshape(shape))
        return np.asarray(np.maximum(scale, LEAST_SCALE))


def _scale_of(magnitudes: Array, largest: float, allowed: Allowed) -> Array:
    """Return what blocks of some magnitudes are related to, in a tensor whose largest number is known."""
    import numpy as np

    floor = min(1.0, largest) * min(1.0, UNIT * allowed.error)
    own = max(1.0, APART_ERROR / allowed.error) * np.maximum(magnitudes, floor) + NOISE * largest
    empty = largest if allowed.quantised else DEAD_SCALE * largest
    own = np.where(magnitudes < DEAD * largest, empty, own)
    border = APART_ROUNDED if allowed.quantised else APART
    return np.where(magnitudes < border * largest, np.minimum(own, largest), largest)


def _magnitudes(array: Array) -> Array:
    """Return absolute values, 0 for what is not finite."""
    import numpy as np

    found = np.abs(array.astype(np.float64))
    return np.where(np.isfinite(found), found, 0.0)


def _largest(magnitudes: Sequence[Array]) -> float:
    """Return the largest magnitude that is no fill value."""
    most = max((float(each.max(initial=0.0)) for each in magnitudes), default=0.0)
    filled = sum(int((each == most).sum()) for each in magnitudes)
    rest = max((float(each[each < most].max(initial=0.0)) for each in magnitudes), default=0.0)
    return rest if filled > 1 and most > FILLED * max(rest, LEAST_SCALE) and rest > 0 else most


def _exceeds(magnitudes: Array, largest: float) -> bool:
    return bool((magnitudes > largest).any())


def _blocks(magnitudes: Array, values: int) -> Iterator[Array]:
    """Yield the largest magnitude of the block that each position of an axis is in, of enough values.

    A block is a position or, where that has too few values, a run of positions; and there also what comes
    again with a period, such as the scores among boxes and scores in turn.
    """
    import numpy as np

    length = len(magnitudes)
    size = -(-FEWEST * length // max(values, 1))
    if size <= 1 or not length:
        yield magnitudes
        return
    starts = np.arange(0, max(length - size, 0) + 1, size)
    runs = np.maximum.reduceat(magnitudes, starts)
    yield np.repeat(runs, np.diff([*starts, length]))
    for period in range(2, min(MOST_PERIOD, length // max(size, LEAST_TURNS)) + 1):
        if length % period == 0 and (largest := _in_turns(magnitudes.reshape(-1, period))) is not None:
            yield np.tile(largest, length // period)
            return


def _in_turns(turns: Array) -> Array | None:
    """Return the largest magnitude of each column, if some columns are of another scale than the others.

    That holds if the largest number of the small ones is far below what is usual in each of the others.
    Where numbers do not depend on the column, that never happens, however widely they are spread.
    """
    import numpy as np

    largest: Array = turns.max(axis=0)
    small = largest < APART * largest.max()
    if not small.any() or (largest[small].max() >= APART * np.median(turns[:, ~small], axis=0)).any():
        return None
    return largest


@dataclass(frozen=True, eq=False)
class Reference:
    """What a tensor should hold, for each of several inputs."""

    arrays: tuple[Array, ...]  # the right numbers, one array for each sample
    scales: Scales  # their magnitudes
    decision: Decision | None = None
    """How it was decided from other tensors; None: it is computed, or nothing is known."""
    behind: tuple[Reference, ...] = ()  # the references of those tensors, for the same samples

    @classmethod
    def of(
        cls,
        arrays: Sequence[Array],
        *,
        decision: Decision | None = None,
        behind: Sequence[Reference] = (),
    ) -> Reference:
        """Return the reference of a tensor from its right arrays for several samples."""
        return cls(tuple(arrays), Scales.of(arrays), decision, tuple(behind))

    @property
    def verifiable(self) -> bool:
        """Whether more than half of the right numbers are finite; NaN would equal any NaN."""
        return is_mostly_finite(self.arrays)

    def compare(self, found: Array, sample: int, allowed: Allowed, *, part: Part | None = None) -> Difference:
        """Return how far a tensor is from what is right for a sample.

        `found`: the whole tensor; `sample`: which of the arrays it should equal; `allowed`: what counts as
        equal; `part`: only this part of it counts; None: all of it.
        """
        import numpy as np

        right = self.arrays[sample]
        if found.shape != right.shape:
            what = f"its shape is {list(found.shape)}, must be {list(right.shape)}"
            return Difference(float("inf"), allowed.error, 1.0, "", what)
        if self.decision is not None and self.decision.kind == RANDOM:
            return Difference(0.0, allowed.error, words=AT_RANDOM, compared=False)
        if self.decision is not None and self.decision.kind not in SHARES:
            errors = self._decided(found, sample, allowed)
            summary = _summary(errors, allowed, _DECIDED, part)
            differing = ~_same(found, right)
            return replace(summary, share=float((differing if part is None else part.of(differing)).mean()))
        if right.dtype.kind in "iub" and not (allowed.quantised and right.dtype.itemsize == 1):
            errors = np.where(found == right, 0.0, np.inf)
            kind = _ENTRIES
        else:
            errors = _errors(found, right, self.scales.related(allowed))
            kind = _NUMBERS
            if self.decision is not None:
                errors = np.minimum(errors, self._moved(found, sample, allowed))
            if not self.verifiable:  # which of NaN and infinity comes out of an overflow is chance
                errors = np.where(np.isfinite(found) | np.isfinite(right), errors, 0.0)
        summary = _summary(errors, allowed, kind, part)
        return replace(summary, compared=self.verifiable or not summary.agrees)

    def _decided(self, found: Array, sample: int, allowed: Allowed) -> Array:
        """Return by how much the values behind each entry would have to move to give what was found."""
        import numpy as np

        assert self.decision is not None
        same = _same(found, self.arrays[sample])
        if same.all():
            return np.zeros(found.shape)
        undone, right = (_undone(array, self.decision) for array in (found, self.arrays[sample]))
        values = [each.arrays[sample] for each in self.behind]
        scales = [each.scales.related(allowed) for each in self.behind]
        errors = _distances(self.decision, undone, right, values, scales)
        return np.where(same, 0.0, _redone(errors, found.shape, self.decision))

    def _moved(self, found: Array, sample: int, allowed: Allowed) -> Array:
        """Return by how much the values behind shares of one would have to move to give what was found."""
        import numpy as np

        assert self.decision is not None
        undone, right = (_undone(array, self.decision) for array in (found, self.arrays[sample]))
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.abs(_behind(self.decision.kind, undone) - _behind(self.decision.kind, right))
            errors = _finite(moved / self.behind[0].scales.related(allowed), undone.shape)
        return _redone(errors, found.shape, self.decision)


RANDOM = "random"
"""Kind of what random operators make, or what is made of it: no two runs agree."""

AT_RANDOM = "random operators give other numbers in every run"

SHARES = ("sigmoid", "softmax")
"""Kinds of decisions that are numbers: shares of one."""


def _behind(kind: str, shares: Array) -> Array:
    """Return what the values behind shares are, but for a constant of a softmax."""
    import numpy as np

    values = np.log(shares.astype(np.float64))
    # If no logit moves by more than a number, no share of a softmax does by more than twice as much.
    return values / 2 if kind == "softmax" else values - np.log1p(-shares.astype(np.float64))


_NUMBERS, _ENTRIES, _DECIDED = "numbers", "entries", "decided"


def is_mostly_finite(arrays: Iterable[Array]) -> bool:
    """Return whether more than half of the numbers of some arrays are finite, or there are none.

    What is compared with an array of NaN or infinite numbers is not verified: they are equal whatever was
    computed before.
    """
    import numpy as np

    counts = [(array.size, int(np.isfinite(array).sum())) for array in arrays]
    return 2 * sum(finite for _, finite in counts) > sum(size for size, _ in counts) or not any(
        size for size, _ in counts
    )


def _same(found: Array, right: Array) -> Array:
    import numpy as np

    if right.dtype.kind != "f":
        return np.asarray(found == right)
    return np.asarray((found == right) | (np.isnan(found) & np.isnan(right)))


def _errors(found: Array, right: Array, scale: Array) -> Array:
    """Return the relative error of each element; infinite where one side only is not finite."""
    import numpy as np

    a, b = found.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(a - b) / scale
        # A fill value is larger than the scale of its tensor: its own size is its scale.
        large = np.isfinite(b) & (np.abs(b) > scale * FILLED)
        errors = np.where(large, np.abs(a - b) / np.abs(np.where(large, b, 1.0)), errors)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    return np.where(_same(a, b), 0.0, errors)


def _summary(errors: Array, allowed: Allowed, kind: str, part: Part | None) -> Difference:
    """Return what the errors of all elements come to."""
    import numpy as np

    counted = errors if part is None else part.of(errors)
    if counted.size == 0:
        return Difference(0.0, allowed.error)
    off = counted > allowed.error
    share = float(off.mean())
    error = share if kind == _ENTRIES else float(counted.max())
    marked = np.zeros(errors.shape, dtype=bool)
    (marked if part is None else part.of(marked))[...] = off
    where = _where(marked) if error > allowed.error else ""
    return Difference(error, allowed.error, share, where, _words(error, allowed, share, kind))


def _words(error: float, allowed: Allowed, share: float, kind: str) -> str:
    elements = f"{percent(share)} of the elements are off"
    if kind == _ENTRIES:
        return f"{percent(share)} of the entries differ, allowed is {percent(allowed.error)}"
    if kind == _DECIDED:
        far = "beyond all bounds" if error == float("inf") else f"by {error:.2g}"
        return (
            f"{percent(share)} of the entries differ although the values behind them are not tied: "
            f"they would have to move {far} of their scale, allowed is {allowed.error:g}"
        )
    if error == float("inf"):
        return "it holds numbers that are not finite"
    text = f"relative error {error:.2g}, allowed is {allowed.error:g}"
    return f"{text} ({elements})" if error > allowed.error else text


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


_MOST_RUNS = 3


def _where(off: Array) -> str:
    """Return which elements are off in words, along the axis that tells most; "" where it is everywhere."""
    import numpy as np

    if off.size == 1 or off.all():
        return ""
    if off.sum() == 1:
        return f"at {[int(index) for index in np.argwhere(off)[0]]}"
    kept = []
    for axis, length in enumerate(off.shape):
        others = tuple(other for other in range(off.ndim) if other != axis)
        hit = off.any(axis=others)
        kept.append((float(hit.sum()) / length, axis, hit))
    part, axis, hit = min(kept, key=lambda each: each[:2])
    if part == 1:
        return ""
    noun = "channel" if axis == 1 and off.ndim > 2 else "position"
    runs = list(_runs([int(index) for index in np.flatnonzero(hit)]))
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in runs[:_MOST_RUNS]]
    more = f" and {sum(last - first + 1 for first, last in runs[_MOST_RUNS:])} more" * (
        len(runs) > _MOST_RUNS
    )
    return f"{noun}{'s' * (int(hit.sum()) > 1)} {', '.join(texts)}{more} of axis {axis}"


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of each run of consecutive numbers."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def _undone(array: Array, decision: Decision) -> Array:
    """Return what was decided, from the tensor that was made of it by moving elements."""
    for what, numbers in decision.undo:
        array = array.reshape(numbers) if what == "shape" else array.transpose(numbers)
    return array


def _redone(array: Array, shape: Sequence[int], decision: Decision) -> Array:
    """Return the opposite of `_undone`: the errors of entries where the entries are in the tensor."""
    import numpy as np

    places = _undone(np.arange(array.size).reshape(shape), decision)
    found = np.empty(array.size)
    found[places.reshape(-1)] = array.reshape(-1)
    return found.reshape(shape)


def _distances(
    decision: Decision, found: Array, right: Array, values: Sequence[Array], scales: Sequence[Array]
) -> Array:
    import numpy as np

    if decision.kind in ("largest", "smallest"):
        return _index_distances(
            decision, found, right, values[0], np.broadcast_to(scales[0], values[0].shape)
        )
    first = values[0].astype(np.float64)
    with np.errstate(invalid="ignore"):
        if decision.kind == "comparison":
            second = values[1] if len(values) > 1 else decision.against
            scale = scales[0] + scales[1] if len(scales) > 1 else scales[0]
            return _finite(np.abs(first - np.asarray(second).astype(np.float64)) / scale, found.shape)
        return _finite(_rounded_distances(decision, found, first) / scales[0], found.shape)


def _index_distances(decision: Decision, found: Array, right: Array, values: Array, scales: Array) -> Array:
    """Return how far the value at the index that was found is from the one at the right index."""
    import numpy as np

    axis, length = decision.axis, values.shape[decision.axis]
    shape = found.shape
    if not decision.ranked:
        shape = (*values.shape[:axis], 1, *values.shape[axis + 1 :])
    a, b = found.reshape(shape).astype(np.int64), right.reshape(shape).astype(np.int64)
    able = (a >= -length) & (a < length) & (found.reshape(shape) == a)
    if decision.ranked:  # no index comes twice
        ordered = np.sort(a, axis=axis)
        able &= ~(np.diff(ordered, axis=axis) == 0).any(axis=axis, keepdims=True)
    a, b = np.where(able, a, 0) % length, b % length
    taken = [np.take_along_axis(values, each, axis).astype(np.float64) for each in (a, b)]
    scale = sum(np.take_along_axis(scales, each, axis) for each in (a, b))
    with np.errstate(invalid="ignore"):
        distances = np.abs(taken[0] - taken[1]) / scale
    return _finite(np.where(able, distances, np.inf), found.shape)


def _rounded_distances(decision: Decision, found: Array, values: Array) -> Array:
    """Return how far values are from those that are rounded to what was found."""
    import numpy as np

    number = found.astype(np.float64) - decision.zero
    value = values / decision.step
    low, high = {
        "nearest": (number - 0.5, number + 0.5),
        "floor": (number, number + 1),
        "ceil": (number - 1, number),
        "truncated": (number - (number <= 0), number + (number >= 0)),
    }[decision.kind]
    return np.maximum(np.maximum(low - value, value - high), 0.0) * abs(decision.step)


def _finite(distances: Array, shape: Sequence[int]) -> Array:
    import numpy as np

    return np.where(np.isfinite(distances), distances, np.inf).reshape(shape)
