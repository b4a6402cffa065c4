"""What a model is tried with: inputs of the user, used in turn, or random numbers in a range."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..formulations.errors import InvalidInputError
from .model import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .model import Arrays

Range = tuple[float, float]
"""Random numbers of an input lie in [low, high)."""

_SUFFIX = ".npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What a model is tried with.

    Attributes
    ----------
    ranges
        By input: random numbers are drawn from [low, high), evenly.
    given
        Inputs of requests, used in turn instead of random numbers; empty: there are none.
    """

    ranges: Mapping[str, Range] = field(default_factory=dict)
    given: tuple[Arrays, ...] = field(default=(), repr=False)

    def inputs(self, specs: Sequence[TensorSpec], seed: int) -> dict[str, NDArray[Any]]:
        """Return inputs for a seed: the given ones in turn, else random ones (see `random_inputs`)."""
        if self.given:
            own = self.given[seed % len(self.given)]
            return {spec.name: own[spec.name] for spec in specs}
        return random_inputs(specs, seed, self.ranges)

    def checked(self, specs: Sequence[TensorSpec], *, ignored: Collection[str] = ()) -> Samples:
        """Return them for a model with these inputs: arrays converted to their types.

        Parameters
        ----------
        specs
            The inputs.
        ignored
            Names of further inputs, which change nothing.

        Raises
        ------
        InvalidInputError
            Something does not fit; all defects at once.
        """
        known = {spec.name: spec for spec in specs}
        defects = list(_range_defects(self.ranges, known, ignored))
        requests = []
        for number, arrays in enumerate(self.given):
            found, wrong = _fitted(arrays, known, ignored)
            defects += [f"request {number}: {text}" for text in wrong]
            requests.append(found)
        if defects:
            raise InvalidInputError("the inputs do not fit the model:", _shortened(defects))
        return Samples(ranges=self.ranges, given=tuple(requests))

    def of(self, prefix: str) -> Samples:
        """Return those of one of several models: of names with a prefix, without it."""
        return Samples(
            ranges=_without(prefix, self.ranges),
            given=tuple(_without(prefix, arrays) for arrays in self.given),
        )


def random_inputs(
    specs: Sequence[TensorSpec], seed: int, ranges: Mapping[str, Range] = MappingProxyType({})
) -> dict[str, NDArray[Any]]:
    """Return random inputs; the same for the same seed.

    Floats are normally distributed with mean 0 and variance 1, as normalised images and sounds are: on
    inputs of one sign, real networks tend to saturate, and then equal numbers prove nothing. Whole numbers
    and Booleans are 0 or 1. Both unless there is a range.
    """
    import numpy as np

    random = np.random.default_rng(seed)

    def numbers(spec: TensorSpec) -> NDArray[Any]:
        is_float = "float" in spec.dtype
        if spec.name in ranges:
            low, high = ranges[spec.name]
            if is_float:
                return random.uniform(low, high, spec.shape)
            return random.integers(int(low), int(high), spec.shape)
        return random.standard_normal(spec.shape) if is_float else random.integers(0, 2, spec.shape)

    return {spec.name: np.asarray(numbers(spec)).astype(spec.dtype) for spec in specs}


def parse_ranges(texts: Sequence[str]) -> dict[str, Range]:
    """Return ranges from texts such as "ids=0:30000".

    Raises
    ------
    InvalidInputError
        A text is malformed, or an input is given twice; all defects at once.
    """
    ranges: dict[str, Range] = {}
    defects = []
    for text in texts:
        name, _, limits = text.rpartition("=")
        low, _, high = limits.partition(":")
        try:
            found = (float(low), float(high))
        except ValueError:
            found = (0.0, 0.0)
        if not name or not -float("inf") < found[0] < found[1] < float("inf"):
            defects.append(f"--input-range {text!r}: expected INPUT=LOW:HIGH, e.g. ids=0:30000")
        elif name in ranges:
            defects.append(f"--input-range {text!r}: the input {name!r} is given twice")
        ranges[name] = found
    if defects:
        raise InvalidInputError("ranges of inputs cannot be read:", defects)
    return ranges


def read_requests(path: str | Path) -> tuple[dict[str, NDArray[Any]], ...]:
    """Return the arrays of an .npz file, or of all such files in a folder, in the order of their names.

    Each file holds one array for each input of the model. Whether these are one request, or the first
    dimension counts several, is known only with the model: `split_requests`.

    Raises
    ------
    InvalidInputError
        A file cannot be read, or there is none; all defects at once.
    """
    import numpy as np

    place = Path(path)
    files = sorted(place.glob(f"*{_SUFFIX}")) if place.is_dir() else [place]
    if not files:
        raise InvalidInputError(f"the folder {place} holds no {_SUFFIX} file with inputs")
    found, defects = [], []
    for file in files:
        try:
            with np.load(file, allow_pickle=False) as arrays:
                if not hasattr(arrays, "files"):
                    raise ValueError("it holds one array without a name: write it with numpy.savez")
                found.append({name: arrays[name] for name in arrays.files})
            if not found[-1]:
                defects.append(f"{file}: holds no array")
        except OSError as error:
            defects.append(f"{file}: {error.strerror or error}")
        except Exception as error:  # zipfile and numpy raise classes of their own for damaged files
            defects.append(f"{file}: {' '.join(str(error).split())[:300]}")
    if defects:
        raise InvalidInputError(f"cannot read {_SUFFIX} arrays:", _shortened(defects))
    return tuple(found)


def split_requests(
    files: Sequence[Arrays], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, NDArray[Any]], ...]:
    """Return files with arrays as single requests.

    Arrays of exactly the shapes of the inputs are one request; with one more dimension in front, that
    counts the requests.

    Parameters
    ----------
    files
        Arrays by name, file by file.
    shapes
        Those of the inputs.

    Raises
    ------
    InvalidInputError
        The arrays of a file have different numbers of requests; all defects at once.
    """
    requests: list[dict[str, NDArray[Any]]] = []
    defects = []
    for number, arrays in enumerate(files):
        counts = {name: _count(array, shapes.get(name)) for name, array in arrays.items()}
        wanted = {count for count in counts.values() if count is not None}
        if len(wanted) > 1 or (wanted and None in counts.values()):
            words = ", ".join(f"{name} {list(array.shape)}" for name, array in arrays.items())
            defects.append(f"file {number}: the first dimensions must count the same requests, got {words}")
        elif not wanted:
            requests.append(dict(arrays))
        else:
            (count,) = wanted
            requests += [{name: array[index] for name, array in arrays.items()} for index in range(count)]
    if defects:
        raise InvalidInputError("the inputs cannot be divided into requests:", _shortened(defects))
    if files and not requests:
        raise InvalidInputError("the inputs hold no request: the first dimension counts them, and it is 0")
    return tuple(requests)


def _count(array: NDArray[Any], shape: tuple[int, ...] | None) -> int | None:
    """Return how many requests an array holds; None: it is one, without a dimension that counts."""
    if shape is None or array.ndim != len(shape) + 1:
        return None
    return int(array.shape[0])


def _fitted(
    arrays: Arrays, known: Mapping[str, TensorSpec], ignored: Collection[str]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Return the arrays of the inputs in their types, and what does not fit."""
    import numpy as np

    defects = [f"input {name!r} is missing" for name in known if name not in arrays]
    found = {}
    for name, array in arrays.items():
        spec = known.get(name)
        if spec is None:
            if name not in ignored:
                defects.append(f"the model has no input {name!r}; it has {', '.join(known)}")
            continue
        if array.shape != spec.shape:
            defects.append(
                f"input {name!r} has the shape {list(array.shape)}, must be {list(spec.shape)}, or have one "
                "more dimension in front that counts the requests"
            )
        elif not np.can_cast(array.dtype, spec.dtype, "same_kind"):
            defects.append(f"input {name!r} holds {array.dtype}, must be {spec.dtype}")
        else:
            found[name] = np.ascontiguousarray(array, dtype=spec.dtype).reshape(spec.shape)
    return found, defects


def _range_defects(
    ranges: Mapping[str, Range], known: Mapping[str, TensorSpec], ignored: Collection[str]
) -> Iterator[str]:
    import numpy as np

    for name, (low, high) in ranges.items():
        spec = known.get(name)
        if spec is None:
            if name not in ignored:
                yield f"--input-range {name}=...: the model has no such input; it has {', '.join(known)}"
            continue
        if "float" in spec.dtype:
            continue
        limits = (0, 1) if spec.dtype == "bool" else (np.iinfo(spec.dtype).min, np.iinfo(spec.dtype).max)
        if not (low.is_integer() and high.is_integer() and limits[0] <= low and high - 1 <= limits[1]):
            yield f"--input-range {name}={low:g}:{high:g}: must be whole numbers that {spec.dtype} can hold"


def _without(prefix: str, named: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): found for name, found in named.items() if name.startswith(prefix)}


_MOST_DEFECTS = 20


def _shortened(defects: Sequence[str]) -> list[str]:
    more = len(defects) - _MOST_DEFECTS
    return [*defects[:_MOST_DEFECTS], *([f"and {more} more like these"] if more > 0 else [])]
