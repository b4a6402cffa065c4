"""Random weights of the built-in networks: how large, so that activations stay of order one.

Weights are uniform, and scaled by their fan-in and by what they are applied to (He et al., "Delving Deep
into Rectifiers", 2015). They are drawn from numpy's frozen generator (`RandomState`): the same bytes on
every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, prod, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

CENTRED = 0.5
DEEP, DEEPER = 0.2, 0.1
"""How much of its mean is taken off each filter.

What passes a ReLU has a mean that hardly depends on the image. Passed on in full (0), it drowns what does:
all images give nearly the same numbers. Taken off in full (1), small errors grow a hundredfold
through a deep network, and correct engines seem to disagree. Many convolutions of 3 x 3 on large maps, with
no sums past them, need less: engines compute those with errors near 0.001 (MNN 3.6.1, by Winograd's method).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """How weights are drawn, by what they are applied to, so that what they give has variance 1."""

    gain: float  # variance of a weight, times its fan-in, before filters are centred
    centred: float = CENTRED  # share of its mean that is taken off each filter

    def times(self, factor: float) -> After:
        """Return the same for weights that give numbers that many times as large."""
        return After(gain=self.gain * factor**2, centred=self.centred)


def _after(mean: float, variance: float, *, centred: float = CENTRED) -> After:
    """Describe what an activation makes of mean 0 and variance 1: this mean and this variance."""
    return After(gain=1.0 / (variance + ((1.0 - centred) * mean) ** 2), centred=centred)


IMAGE = After(gain=12.0, centred=1.0)
"""After pixels: uniform in [0, 1], of variance 1/12; the mean of an image is no feature."""

LINEAR = After(gain=1.0)
"""After what has mean 0 and variance 1."""

_RELU = (1.0 / sqrt(2.0 * pi), (1.0 - 1.0 / pi) / 2.0)
RECTIFIED, RECTIFIED_DEEP = _after(*_RELU), _after(*_RELU, centred=DEEP)
LEAKY = _after(0.9 / sqrt(2.0 * pi), 0.505 - 0.405 / pi, centred=DEEPER)
MISH = _after(0.2404, 0.3945, centred=DEEPER)
HARD_SWISH = _after(0.1662, 0.3039)
GELU = _after(0.2821, 0.3456)
PRELU = _after(0.75 / sqrt(2.0 * pi), 0.53125 - 0.28125 / pi)
"""After activations, by the mean and variance that they leave; a leaky ReLU has the slope 0.1, PReLU 0.25."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A weight that is not drawn yet: shapes alone are enough to count parameters and work."""

    shape: tuple[int, ...]
    draw: Callable[[np.random.RandomState], Array]  # returns its numbers, from a generator


def filters(shape: tuple[int, ...], after: After) -> Weight:
    """Return weights of a shape (outputs, inputs, ...)."""
    return Weight(shape=shape, draw=lambda random: _centred(random, shape, after))


def matrix(inputs: int, outputs: int, after: After) -> Weight:
    """Return weights of the shape (inputs, outputs)."""
    return Weight(
        shape=(inputs, outputs),
        draw=lambda random: np.ascontiguousarray(_centred(random, (outputs, inputs), after).T),
    )


def lookup_table(shape: tuple[int, ...], *, variance: float) -> Weight:
    """Return weights of mean 0, of which rows are looked up."""
    bound = sqrt(3.0 * variance)
    return Weight(shape=shape, draw=lambda random: random.uniform(-bound, bound, shape).astype(np.float32))


def around(centre: float, count: int) -> Weight:
    """Return one weight for each channel, all near the same number."""
    return Weight(
        shape=(count,),
        draw=lambda random: random.uniform(centre - 0.1, centre + 0.1, count).astype(np.float32),
    )


def slopes(count: int) -> Weight:
    """Return the slopes of a PReLU below zero, one for each channel, all near where training begins."""
    return Weight(
        shape=(count, 1, 1), draw=lambda random: around(0.25, count).draw(random).reshape(count, 1, 1)
    )


def _centred(random: np.random.RandomState, shape: tuple[int, ...], after: After) -> Array:
    bound = sqrt(3.0 * after.gain / prod(shape[1:]))
    drawn = np.empty(shape, np.float32)
    for chosen in drawn:  # one filter after the other: all of them in double precision would be gigabytes
        weights = random.uniform(-bound, bound, chosen.shape)
        chosen[...] = weights - after.centred * weights.mean()
    return drawn
