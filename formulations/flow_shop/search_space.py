"""How large the space of pipelines is: Eqs. 12 to 14 of Hetero2Pipe, corrected (errata 28 and 29).

As printed, the lower limit of Eq. 13, max(1, P' + C - C_b), leaves every sum empty for 4 big and 4 little
cores: only the "+ 1" of each P remains, 9 in all. With max(1, P' - (C - C_b)), and the "+ 1" once instead
of once for each P, it is the published 449. Eq. 14 weighs S_P with the ways to cut a network into P
chunks: 2.99e8 for MobileNetV2 (28 layers), or 2.91e8 with the "+ 1" once. The published "3.6B" is
449 x sum over P of C(27, P - 1) = 3.678e9: the two sums multiplied, a twelvefold over-count.

Neither the order of the requests nor skipped units are in these numbers; `count_plans` of the exhaustive
backend counts what gapless searches.
"""

from __future__ import annotations

from math import comb

from ..errors import InvalidInputError


def pipelines(big: int, little: int) -> int:
    """Return the number of processor pipelines of a device with a GPU and an NPU (Eq. 12, all P).

    A cluster of cores may be split into consecutive groups. The formula counts the pipelines of one
    cluster alone once for each number of groups of the other, so the distinct ones are fewer (323
    instead of 449 for 4 and 4); it is kept because the paper's numbers come from it.

    Parameters
    ----------
    big, little
        Cores of each cluster, at least 1: C_b and C - C_b.

    Raises
    ------
    InvalidInputError
        A number is too small.
    """
    depths = _depths(big, little)
    return sum(_of_depth(big, little, depth) for depth in depths) - (len(depths) - 1)


def split_points(layers: int, big: int, little: int) -> int:
    """Return the number of ways to cut one network for all these pipelines (Eq. 14).

    The counts of several networks multiply.

    Parameters
    ----------
    layers
        Layers n of the network, at least 1.
    big, little
        As in `pipelines`.

    Raises
    ------
    InvalidInputError
        A number is too small.
    """
    if layers < 1:
        raise InvalidInputError(f"layers is {layers}, must be at least 1")
    depths = _depths(big, little)
    return sum(comb(layers - 1, depth - 1) * _of_depth(big, little, depth) for depth in depths)


def _depths(big: int, little: int) -> range:
    """Return the depths P: two for GPU and NPU, and as many as there are cores."""
    for name, cores in (("big", big), ("little", little)):
        if cores < 1:
            raise InvalidInputError(f"{name} is {cores}, must be at least 1")
    return range(2, big + little + 3)


def _of_depth(big: int, little: int, depth: int) -> int:
    """Return S_P of Eq. 12: P' = P - 2 groups of cores, P_b of them big."""
    groups = depth - 2
    total = 1
    for of_big in range(max(1, groups - little), min(big, groups - 1) + 1):
        ways_big, ways_little = comb(big - 1, of_big - 1), comb(little - 1, groups - of_big - 1)
        total += 4 * ways_big * ways_little + 3 * ways_big + 3 * ways_little
    return total
