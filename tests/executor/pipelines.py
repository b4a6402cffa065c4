"""Files with pipelines of Python functions, for the tests."""

from __future__ import annotations

from pathlib import Path

HEAD = """
import numpy as np
from gapless.executor.callable_layers import CallableLayer, CallableModel
from gapless.executor.model import TensorSpec

X = TensorSpec(name="x", shape=(2, 3))
"""

FIRST_LINE = HEAD.count("\n") + 1
"""Where the body of a file begins."""

TWO = """
def double(x):
    return 2 * x

def split(x, doubled):
    return x + doubled, doubled.sum(axis=1)

P = CallableModel(
    name="two",
    inputs=(X,),
    layers=(
        CallableLayer(name="doubled", variants={"*": double}),
        CallableLayer(name="split", variants={"*": split}, inputs=("x", "doubled"), outputs=("sum", "rows")),
    ),
)
"""


def write(folder: Path, body: str = TWO, *, name: str = "pipeline.py") -> str:
    """Write a file that begins with `HEAD`, and return the locator of its pipeline P."""
    path = folder / name
    path.write_text(HEAD + body)
    return f"{path}:P"


def one_layer(function: str, *, outputs: str = "()", more: str = "") -> str:
    """Return the source of a pipeline with one layer, whose function is given as source too."""
    return (
        f"{function}\n"
        f"P = CallableModel(name='p', inputs=(X,), {more}\n"
        f"    layers=(CallableLayer(name='only', variants={{'*': f}}, outputs={outputs}),))\n"
    )
