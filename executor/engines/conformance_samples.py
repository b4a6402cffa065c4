"""What engines are tried with: small pieces whose right numbers numpy knows, and pieces that none can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ...formulations.errors import InvalidInputError
from ..comparing import Decision, Reference
from ..model import Piece, TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

WORK = "work"
"""Name of the sample that takes long enough to see who computes: some milliseconds."""

FIRST = {"onnx": "convolution", "callable": "product"}
"""The samples that every engine for a kind of content has to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A piece, and what it computes.

    `decision`, `behind`: how its only output is decided, and function from its inputs to the values that
    decide.
    """

    piece: Piece  # what is run
    right: Callable[..., Sequence[Array]]
    """Function from its inputs to its outputs, in the order of the piece."""
    least: float = -2.0  # least number of its inputs, where they are floating point; the largest is 2
    decision: Decision | None = None
    behind: Callable[..., Array] | None = None

    def references(self, seeds: Sequence[int]) -> list[Reference]:
        """Return what each output should hold, with a sample for each seed."""
        given = [self.inputs(seed) for seed in seeds]
        right = zip(*(map(_array, self.right(*inputs)) for inputs in given), strict=True)
        if self.decision is None or self.behind is None:
            return [Reference.of(arrays) for arrays in right]
        behind = [Reference.of([self.behind(*inputs) for inputs in given])]
        return [Reference.of(arrays, decision=self.decision, behind=behind) for arrays in right]

    def inputs(self, seed: int) -> list[Array]:
        """Return random inputs; the same for the same seed."""
        import numpy as np

        random = np.random.default_rng(seed)
        drawn = [
            random.uniform(self.least, 2, spec.shape)
            if spec.dtype.startswith("float")
            else random.integers(0, 7, spec.shape)
            for spec in self.piece.inputs
        ]
        return [array.astype(spec.dtype) for array, spec in zip(drawn, self.piece.inputs, strict=True)]


def samples(kind: str) -> Mapping[str, Sample]:
    """Return the samples of a kind of content ("onnx", "callable"), by name."""
    makers = {"onnx": _onnx_samples, "callable": _callable_samples}
    if kind not in makers:
        raise InvalidInputError(f"there are no samples of kind {kind!r}, only of {', '.join(makers)}")
    return makers[kind]()


def bad_pieces(kind: str) -> Mapping[str, Piece]:
    """Return pieces that must be refused, by what is wrong with them."""
    good = samples(kind)[FIRST[kind]].piece
    from ..graph.small_models import OWN_DOMAIN, SmallOperator, piece_of_bytes, small_piece

    def damaged(what: str, data: bytes) -> Piece:
        made = piece_of_bytes(f"with {what}", data, good.inputs, good.outputs)
        return made if kind == "onnx" else replace(made, content=_Damaged(kind=kind, data=data))

    data = good.content.read()
    bad = {
        "garbage": damaged("garbage", b"garbage" * 100),
        "half of its bytes": damaged("half of its bytes", data[: len(data) // 2]),
        "nothing in it": damaged("nothing in it", b""),
    }
    if kind != "onnx":
        return bad
    ends = ((_spec("x", 2, 3),), (_spec("y", 2, 3),))
    unknown = SmallOperator(kind="Frobnicate", inputs=("x",), outputs=("y",), domain=OWN_DOMAIN)
    add = SmallOperator(kind="Add", inputs=("x", "w"), outputs=("y",))
    weights = {"w": _random(2, 3)}
    other = small_piece("with another output", [add], *ends, weights)
    return {
        **bad,
        "an unknown operator": small_piece("with an unknown operator", [unknown], *ends),
        "lost weights": small_piece("with lost weights", [add], *ends, weights, weights_file="gone.bin"),
        "another output": replace(other, outputs=(_spec("z", 2, 3),)),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Damaged:
    kind: str
    data: bytes

    def read(self) -> bytes:
        return self.data


def _spec(name: str, *shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(name=name, shape=shape, dtype=dtype)


def _random(*shape: int) -> Array:
    import numpy as np

    return np.random.default_rng(7).normal(0, 0.2, shape).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Case:
    """Operators (type, takes, gives, attributes), borders, constants, and the right numbers."""

    operators: Sequence[tuple[Any, ...]]
    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]
    weights: Mapping[str, Array]
    right: Callable[..., Sequence[Array]]
    least: float = -2.0
    decision: Decision | None = None
    behind: Callable[..., Array] | None = None


@cache
def _onnx_samples() -> Mapping[str, Sample]:
    import numpy as np

    small, large, bias, table = _random(8, 3, 3, 3), _random(64, 64, 3, 3), _random(5), _random(7, 4)
    cases = {
        "convolution": _Case(
            [("Conv", "x w", "y", {"pads": [1, 1, 1, 1]}), ("Relu", "y", "z")],
            [_spec("x", 1, 3, 16, 16)],
            [_spec("z", 1, 8, 16, 16), _spec("y", 1, 8, 16, 16)],
            {"w": small},
            lambda x: (np.maximum(_convolved(x, small), 0), _convolved(x, small)),
        ),
        "product": _Case(
            [("MatMul", "b a", "p"), ("Add", "p w", "y")],
            [_spec("a", 6, 5), _spec("b", 4, 6)],
            [_spec("y", 4, 5)],
            {"w": bias},
            lambda a, b: (b @ a + bias,),
        ),
        "softmax": _Case(
            [("Transpose", "x", "t", {"perm": [0, 2, 1]}), ("Softmax", "t", "y", {"axis": -1})],
            [_spec("x", 2, 3, 5)],
            [_spec("y", 2, 5, 3)],
            {},
            lambda x: (_softmax(x.transpose(0, 2, 1)),),
        ),
        "lookup": _Case(
            [("Gather", "w i", "y")],
            [_spec("i", 3, dtype="int64")],
            [_spec("y", 3, 4)],
            {"w": table},
            lambda i: (table[i],),
        ),
        WORK: _Case(
            [("Conv", "x w", "y", {"pads": [1, 1, 1, 1]})],
            [_spec("x", 1, 64, 56, 56)],
            [_spec("y", 1, 64, 56, 56)],
            {"w": large},
            lambda x: (_convolved(x, large),),
            # As after an activation. MNN's fast convolutions of 64 channels and more are off by 1.2e-3 where
            # inputs have both signs (by 5e-4 here); whole networks of the zoo show at most 1e-4.
            least=0.0,
        ),
    }
    return {name: _onnx_sample(name, case) for name, case in {**cases, **_scales(), **_other_types()}.items()}


def _scales() -> dict[str, _Case]:
    """Return cases in which one norm for a tensor would not see what is wrong."""
    import numpy as np

    size, weights = np.array(640, np.float32), _random(6, 4, 1, 1)
    tied = weights.copy()
    tied[5] = tied[0]  # where one of these classes wins, either index is right

    def scores(x: Array, weights: Array = weights) -> Array:
        return np.tensordot(weights[:, :, 0, 0], x, axes=(1, 1)).transpose(1, 0, 2, 3)

    def boxes_and_scores(x: Array) -> tuple[Array]:
        found = np.concatenate([640 * _sigmoid(x), _sigmoid(scores(x))], axis=1)
        return (found.astype(np.float32),)

    return {
        "boxes and scores": _Case(
            [
                ("Sigmoid", "x", "s"),
                ("Mul", "s size", "boxes"),
                ("Conv", "x w", "c"),
                ("Sigmoid", "c", "scores"),
                ("Concat", "boxes scores", "y", {"axis": 1}),
            ],
            [_spec("x", 1, 4, 8, 8)],
            [_spec("y", 1, 10, 8, 8)],
            {"size": size, "w": weights},
            boxes_and_scores,
        ),
        "classes": _Case(
            [("Conv", "x w", "c"), ("ArgMax", "c", "y", {"axis": 1})],
            [_spec("x", 1, 4, 8, 8)],
            [_spec("y", 1, 1, 8, 8, dtype="int64")],
            {"w": tied},
            lambda x: (scores(x, tied).argmax(axis=1)[:, None],),
            decision=Decision("largest", ("c",), axis=1),
            behind=lambda x: scores(x, tied),
        ),
    }


def _other_types() -> dict[str, _Case]:
    import numpy as np

    ones, half = np.array([1, -2, 3]), np.array(0.5, np.float32)
    return {
        "integers": _Case(
            [("Add", "x w", "y")],
            [_spec("x", 3, dtype="int64")],
            [_spec("y", 3, dtype="int64")],
            {"w": ones},
            lambda x: (x + ones,),
        ),
        "comparison": _Case(
            [("Greater", "x w", "y")],
            [_spec("x", 2, 3)],
            [_spec("y", 2, 3, dtype="bool")],
            {"w": half},
            lambda x: (x > half,),
        ),
        "scalar": _Case(
            [("ReduceSum", "x", "y", {"keepdims": 0})],
            [_spec("x", 2, 3)],
            [_spec("y")],
            {},
            lambda x: (np.asarray(x.sum(dtype=np.float32)),),
        ),
        "half precision": _Case(
            [("Cast", "x", "y", {"to": 1})],
            [_spec("x", 2, 3, dtype="float16")],
            [_spec("y", 2, 3)],
            {},
            lambda x: (x.astype(np.float32),),
        ),
    }


def _onnx_sample(name: str, case: _Case) -> Sample:
    from ..graph.small_models import SmallOperator, small_piece

    made = [
        SmallOperator(
            kind=kind,
            inputs=tuple(takes.split()),
            outputs=(gives,),
            attributes=attributes[0] if attributes else {},
        )
        for kind, takes, gives, *attributes in case.operators
    ]
    piece = small_piece(name, made, case.inputs, case.outputs, case.weights)
    return Sample(piece=piece, right=case.right, least=case.least, decision=case.decision, behind=case.behind)


@cache
def _callable_samples() -> Mapping[str, Sample]:
    from ..callables import load_callable
    from . import conformance_layers as layers

    def right(a: Array, b: Array) -> tuple[Array, Array]:
        made = layers.product(a, b)
        return layers.shifted(made, b), layers.marked(made)

    found = {}
    for attribute, declared in (("PRODUCT", layers.PRODUCT), ("WORK", layers.WORK)):
        (piece,) = load_callable(f"{layers.__name__}:{attribute}").pieces(0, len(declared.layers))
        found[declared.name] = Sample(piece=replace(piece, name=declared.name), right=right)
    return found


def _convolved(x: Array, w: Array) -> Array:
    import numpy as np

    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    return np.tensordot(windows, w, axes=([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)


def _array(array: Array) -> Array:
    import numpy as np

    return np.asarray(array)


def _sigmoid(x: Array) -> Array:
    import numpy as np

    return np.asarray(1 / (1 + np.exp(-x)))


def _softmax(x: Array) -> Array:
    import numpy as np

    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
