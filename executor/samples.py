"""What a model is tried with: inputs of the user, used in turn, or random numbers in a range."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..formulations.errors import InvalidInputError
from ..formulations.validation import read_number
from .model import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .model import Arrays

Range = tuple[float, float]
"""Random numbers of an input lie in [low, high)."""

SUFFIX = ".npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What a model is tried with.

    Attributes
    ----------
    ranges
        By input: random numbers are drawn from [low, high), evenly.
    given
        Inputs of requests, used in turn instead of random numbers; empty: there are none. Before they are
        `fitted` to a model, each entry holds the arrays of a file, and perhaps several requests.
    """

    ranges: Mapping[str, Range] = field(default_factory=dict)
    given: tuple[Arrays, ...] = field(default=(), repr=False)

    @property
    def names(self) -> frozenset[str]:
        """Names of all inputs that they say something of."""
        return frozenset(self.ranges).union(*self.given)

    def inputs(self, specs: Sequence[TensorSpec], seed: int) -> dict[str, NDArray[Any]]:
        """Return inputs for a seed: the given ones in turn, else random ones (see `random_inputs`)."""
        if self.given:
            own = self.given[seed % len(self.given)]
            return {spec.name: own[spec.name] for spec in specs}
        return random_inputs(specs, seed, self.ranges)

    def over(
        self, usual: Callable[[int], dict[str, NDArray[Any]]], specs: Sequence[TensorSpec], seed: int
    ) -> dict[str, NDArray[Any]]:
        """Return inputs for a seed: given ones in turn, else usual ones, random where there is a range."""
        if self.given:
            return self.inputs(specs, seed)
        return {**usual(seed), **self.inputs([spec for spec in specs if spec.name in self.ranges], seed)}

    def fitted(self, specs: Sequence[TensorSpec], *, ignored: Collection[str] = ()) -> Samples:
        """Return them for a model with these inputs: request by request, in the types of the inputs.

        Arrays of exactly the shapes of the inputs are one request; with one more dimension in front, that
        counts the requests.

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
        requests: list[dict[str, NDArray[Any]]] = []
        for number, arrays in enumerate(self.given):
            found, wrong = _fitted(arrays, known, ignored)
            defects += [f"file {number}: {text}" if len(self.given) > 1 else text for text in wrong]
            requests += found
        if self.given and not requests and not defects:
            defects.append("they hold no request: the first dimension counts them, and it is 0")
        if defects:
            raise InvalidInputError("the inputs do not fit the model:", _shortened(defects))
        return Samples(ranges=self.ranges, given=tuple(requests))

    def of(self, prefix: str) -> Samples:
        """Return those of one of several models: of names with a prefix, without it."""
        given = (_without(prefix, arrays) for arrays in self.given)
        return Samples(ranges=_without(prefix, self.ranges), given=tuple(filter(None, given)))


def random_inputs(
    specs: Sequence[TensorSpec], seed: int, ranges: Mapping[str, Range] = MappingProxyType({})
) -> dict[str, NDArray[Any]]:
    """Return random inputs; the same for the same seed.

    Floats are normally distributed with mean 0 and variance 1, as normalised images and sounds are: on
    inputs of one sign, real networks tend to saturate, and then equal numbers prove nothing. Whole numbers
    and Booleans are 0 or 1. Both unless there is a range. One that stands alone may choose between branches:
    of two neighbouring seeds one has 0 and the other 1, in turn for several such inputs.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    switches = [spec.name for spec in specs if "float" not in spec.dtype and prod(spec.shape) == 1]

    def numbers(spec: TensorSpec) -> NDArray[Any]:
        is_float = "float" in spec.dtype
        if spec.name in ranges:
            low, high = ranges[spec.name]
            if is_float:
                return random.uniform(low, high, spec.shape)
            return random.integers(int(low), int(high), spec.shape)
        if spec.name in switches:
            return np.full(spec.shape, (seed + switches.index(spec.name)) % 2)
        return random.standard_normal(spec.shape) if is_float else random.integers(0, 2, spec.shape)

    return {spec.name: np.asarray(numbers(spec)).astype(spec.dtype) for spec in specs}


def parse_ranges(texts: Sequence[str]) -> dict[str, Range]:
    """Return ranges from texts such as "ids=0:30000"."""
    ranges: dict[str, Range] = {}
    defects = []
    for text in texts:
        name, _, limits = text.rpartition("=")
        low, _, high = limits.partition(":")
        first, end = read_number(low), read_number(high)
        if not name or first is None or end is None or first >= end:
            defects.append(f"--input-range {text!r}: expected INPUT=LOW:HIGH, e.g. ids=0:30000")
        elif name in ranges:
            defects.append(f"--input-range {text!r}: the input {name!r} is given twice")
        else:
            ranges[name] = first, end
    if defects:
        raise InvalidInputError("ranges of inputs cannot be read:", defects)
    return ranges


def read_samples(path: str | Path | None, ranges: Mapping[str, Range] | None = None) -> Samples:
    """Return the arrays of an .npz file, or of all such files in a folder, in the order of their names.

    Each file holds one array for each input of the model.

    Parameters
    ----------
    path
        The file or folder; None: inputs are random.
    ranges
        Those of `Samples`.

    Raises
    ------
    InvalidInputError
        A file cannot be read, or there is none; all defects at once.
    """
    given, defects = [], []
    for file in _files(path):
        arrays = _read(file)
        if isinstance(arrays, str):
            defects.append(f"{file}: {arrays}")
        else:
            given.append(arrays)
    if defects:
        raise InvalidInputError(f"inputs cannot be read from {SUFFIX} files:", _shortened(defects))
    return Samples(ranges=ranges or {}, given=tuple(given))


def _files(path: str | Path | None) -> list[Path]:
    if path is None or not Path(path).is_dir():
        return [] if path is None else [Path(path)]
    files = sorted(Path(path).glob(f"*{SUFFIX}"))
    if not files:
        raise InvalidInputError(f"the folder {path} holds no {SUFFIX} file with inputs")
    return files


def _read(file: Path) -> dict[str, NDArray[Any]] | str:
    """Return the arrays of a file, or why it cannot be read."""
    import numpy as np

    try:
        found = np.load(file, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return "it holds one array without a name: write it with numpy.savez(file, INPUT=array)"
        with found:
            return {name: found[name] for name in found.files} or "it holds no array"
    except OSError as error:
        return error.strerror or str(error)
    except Exception as error:  # zipfile and numpy raise classes of their own for damaged files
        return " ".join(str(error).split())[:300]


def _fitted(
    arrays: Arrays, known: Mapping[str, TensorSpec], ignored: Collection[str]
) -> tuple[list[dict[str, NDArray[Any]]], list[str]]:
    """Return the requests of a file in the types of the inputs, and what does not fit."""
    import numpy as np

    defects = [f"input {name!r} is missing" for name in known if name not in arrays]
    found: dict[str, NDArray[Any]] = {}
    counts: dict[str, int | None] = {}
    for name, array in arrays.items():
        if name in ignored:
            continue
        spec = known.get(name)
        if spec is None:
            defects.append(f"the model has no input {name!r}; it has {', '.join(known)}")
        elif spec.shape not in (array.shape, array.shape[1:]):
            defects.append(
                f"input {name!r} has the shape {list(array.shape)}, must be {list(spec.shape)}, or have one "
                "more dimension in front that counts requests"
            )
        elif not np.can_cast(array.dtype, spec.dtype, "same_kind"):
            defects.append(f"input {name!r} holds {array.dtype}, must be {spec.dtype}")
        else:
            found[name] = array.astype(spec.dtype)
            counts[name] = None if array.shape == spec.shape else len(array)
    if len(set(counts.values())) > 1:
        words = ", ".join(f"{name} {list(found[name].shape)}" for name in counts)
        defects.append(f"the first dimensions must count the same requests, got {words}")
    if defects or not counts:
        return [], defects
    number = next(iter(counts.values()))
    if number is None:
        return [found], []
    return [{name: found[name][index, ...] for name in found} for index in range(number)], []


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
