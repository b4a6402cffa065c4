from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gapless.executor.comparing import Allowed, Decision, Difference, Reference, worst_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

HIGH, LOW, ROUNDED = Allowed(1e-3), Allowed(3e-2), Allowed(4 / 127, quantised=True)
RANDOM = np.random.default_rng(0)


def _head() -> Array:
    boxes, scores = RANDOM.uniform(0, 640, (1, 4, 256)), RANDOM.uniform(0, 1, (1, 6, 256))
    return np.concatenate([boxes, scores], axis=1).astype(np.float32)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "channels": lambda a: a,
    "last axis": lambda a: a.transpose(0, 2, 1),
    "no batch": lambda a: a[0],
    "contiguous rows": lambda a: a.reshape(1, -1),
    "anchors": lambda a: a.reshape(1, 10, 16, 16)[:, None],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("allowed", [HIGH, LOW, ROUNDED])
def test_scores_beside_boxes_have_a_scale_of_their_own(layout: str, allowed: Allowed) -> None:
    """One norm for all would let scores be 0.64 wrong."""
    arrays = [_head() for _ in range(3)]
    right = Reference.of([LAYOUTS[layout](array) for array in arrays])
    constant, one = arrays[0].copy(), arrays[0].copy()
    constant[:, 4:] = 0.5
    one[0, 6, 17] += 0.4
    noisy = arrays[0] * (1 + RANDOM.normal(0, allowed.error / 8, arrays[0].shape))
    for wrong in (constant, one):
        assert not right.compare(LAYOUTS[layout](wrong), 0, allowed).agrees
    assert right.compare(LAYOUTS[layout](noisy), 0, allowed).agrees


def test_what_is_wrong_is_named() -> None:
    arrays = [_head() for _ in range(3)]
    wrong = arrays[1].copy()
    wrong[:, 4:] = 0.5
    found = Reference.of(arrays).compare(wrong, 1, HIGH)
    assert found.said_of("output 'y'").startswith("output 'y', channels 4 to 9 of axis 1: relative error 0.0")
    assert 0.5 < found.share < 0.6


def test_an_empty_block_may_hold_rounding_errors_of_the_rest() -> None:
    """A ReLU cuts off what is almost zero, or not."""
    arrays = [np.maximum(RANDOM.normal(0, 1, (1, 8, 16, 16)), 0) for _ in range(3)]
    for array in arrays:
        array[:, 3] = 0
    right, found = Reference.of(arrays), arrays[0].copy()
    found[:, 3] = 3e-5
    assert right.compare(found, 0, HIGH).agrees
    found[:, 3] = 1e-2
    assert right.compare(found, 0, HIGH).where == "channel 3 of axis 1"


def test_single_small_numbers_are_related_to_the_tensor() -> None:
    arrays = [RANDOM.normal(0, 1, (1, 10)) for _ in range(3)]
    arrays[0][0, 4] = 1e-6
    assert Reference.of(arrays).compare(arrays[0] + 1e-5, 0, HIGH).agrees


def test_small_probabilities_are_shares_of_one() -> None:
    """At low precision the exponent is some percent off."""
    arrays = [RANDOM.uniform(0, 1, (1, 4, 32, 32)) for _ in range(3)]
    for array in arrays:
        array[:, 1] *= 1e-3
    off = arrays[0].copy()
    off[:, 1] *= 1.2
    assert Reference.of(arrays).compare(off, 0, LOW).agrees


def test_fill_values_of_a_mask_are_no_scale() -> None:
    arrays = [np.where(np.tri(32) > 0, RANDOM.normal(size=(1, 2, 32, 32)), -1e9) for _ in range(3)]
    lost = np.where(arrays[0] > -1e8, 0, arrays[0])
    right = Reference.of(arrays)
    assert not right.compare(lost, 0, HIGH).agrees
    assert right.compare(arrays[0] * (1 + 1e-5), 0, HIGH).agrees


def test_numbers_that_are_not_finite() -> None:
    right = Reference.of([np.array([1.0, np.nan, np.inf])])
    assert right.compare(np.array([1.0, np.nan, np.inf]), 0, HIGH).error == 0
    assert right.compare(np.array([1.0, 2.0, np.inf]), 0, HIGH).error == float("inf")
    assert not right.compare(np.array([np.nan, np.nan, np.inf]), 0, HIGH).agrees
    assert not Reference.of([np.full(3, np.nan)]).verifiable


def test_what_is_not_finite_on_both_sides_says_nothing_and_on_one_side_is_wrong() -> None:
    right = Reference.of([np.array([np.nan, np.nan, np.inf, 1.0])])
    blind = right.compare(np.array([np.nan, np.inf, -np.inf, 1.0]), 0, HIGH)
    assert (blind.agrees, blind.compared) == (True, False)
    for found in ([0.0, np.nan, np.inf, 1.0], [np.nan, np.nan, np.inf, np.nan], [0.0, 0.0, 0.0, 1.0]):
        wrong = right.compare(np.array(found), 0, HIGH)
        assert (wrong.agrees, wrong.compared, wrong.error) == (False, True, float("inf"))
    off = right.compare(np.array([np.nan, np.nan, np.inf, 2.0]), 0, HIGH)  # what is finite counts
    assert (off.agrees, off.compared) == (False, True)
    finite = Reference.of([np.array([1.0, 2.0])]).compare(np.full(2, np.nan), 0, HIGH)
    assert (finite.agrees, finite.compared, finite.error) == (False, True, float("inf"))


def test_another_shape() -> None:
    found = Reference.of([np.zeros((2, 3))]).compare(np.zeros((3, 2)), 0, HIGH)
    assert not found.agrees
    assert found.words == "its shape is [3, 2], must be [2, 3]"


def _classes(values: Array) -> Reference:
    behind = Reference.of([values])
    decision = Decision("largest", ("v",), axis=1)
    return Reference.of([values.argmax(axis=1)], decision=decision, behind=[behind])


def test_a_class_index_is_right_if_the_values_behind_are_tied() -> None:
    values = RANDOM.normal(0, 1, (1, 5, 192, 192))
    values[0, :2, 7, 9] = [9, 9 + 1e-4]
    right = _classes(values)
    tied = right.arrays[0].copy()
    tied[0, 7, 9] = 0
    found = right.compare(tied, 0, HIGH)
    assert found.agrees
    assert found.share == 1 / 36_864
    wrong = right.arrays[0].copy()
    wrong[0, 7, 9] = 2
    assert "at [0, 7, 9]: 0.0027 % of the entries differ" in right.compare(wrong, 0, HIGH).said_of("labels")
    wrong[0, 7, 9] = 17
    assert right.compare(wrong, 0, HIGH).error == float("inf")


def test_ranks_may_change_where_values_are_tied() -> None:
    values = np.array([[3.0, 1.0, 3.00001, 2.0]])
    decision = Decision("largest", ("v",), axis=1, ranked=True)
    right = Reference.of([np.array([[2, 0, 3]])], decision=decision, behind=[Reference.of([values])])
    assert right.compare(np.array([[0, 2, 3]]), 0, HIGH).agrees
    assert not right.compare(np.array([[0, 0, 3]]), 0, HIGH).agrees
    assert not right.compare(np.array([[2, 3, 0]]), 0, HIGH).agrees


def test_comparisons_and_rounded_numbers() -> None:
    values = Reference.of([np.array([0.5001, 2.0, -1.2, 3.49995])])
    above = Decision("comparison", ("v",), against=np.float32(0.5))
    flags = Reference.of([values.arrays[0] > 0.5], decision=above, behind=[values])
    assert flags.compare(np.array([False, True, False, True]), 0, HIGH).agrees
    assert not flags.compare(np.array([True, False, False, True]), 0, HIGH).agrees
    nearest = Decision("nearest", ("v",))
    rounded = Reference.of([np.array([1, 2, -1, 3])], decision=nearest, behind=[values])
    assert rounded.compare(np.array([0, 2, -1, 4]), 0, HIGH).agrees
    assert not rounded.compare(np.array([1, 3, -1, 3]), 0, HIGH).agrees
    cut = Reference.of([np.array([0, 2, -1, 3])], decision=Decision("truncated", ("v",)), behind=[values])
    assert cut.compare(np.array([0, 1, -1, 3]), 0, HIGH).agrees
    assert not cut.compare(np.array([0, 3, -1, 3]), 0, HIGH).agrees


def test_of_other_integers_a_share_may_differ() -> None:
    right = Reference.of([np.arange(4_000)])
    found = right.arrays[0].copy()
    found[5] = 7
    assert right.compare(found, 0, HIGH).agrees
    found[:8] = 99
    assert right.compare(found, 0, HIGH).words == "0.2 % of the entries differ, allowed is 0.1 %"
    assert not Reference.of([np.array([3])]).compare(np.array([4]), 0, HIGH).agrees


def test_the_worst_comes_first() -> None:
    some = [Difference(0.5, 1.0), Difference(0.2, 0.1), Difference(0.1, 1.0)]
    assert worst_of(some) is some[1]
    assert worst_of([]) is None


@pytest.mark.parametrize("columns", [(4, 1), (4, 2), (4, 80), (1, 1)])
@pytest.mark.parametrize("allowed", [HIGH, LOW, ROUNDED])
def test_scales_that_come_in_turn(columns: tuple[int, int], allowed: Allowed) -> None:
    """Boxes and scores in one row: a score among them may not be wrong because boxes are large."""
    boxes, scores = columns

    def row() -> Array:
        numbers = [RANDOM.uniform(0, 640, (300, boxes)), RANDOM.uniform(0, 1, (300, scores))]
        return np.concatenate(numbers, axis=1).reshape(1, -1)

    arrays = [row() for _ in range(3)]
    right, wrong = Reference.of(arrays), arrays[0].copy()
    wrong.reshape(300, -1)[:, boxes:] = 0.5
    assert not right.compare(wrong, 0, allowed).agrees
    assert right.compare(
        arrays[0] * (1 + RANDOM.normal(0, allowed.error / 8, arrays[0].shape)), 0, allowed
    ).agrees


@pytest.mark.parametrize("spread", ["normal", "relu", "heavy", "outliers", "softmax", "sorted"])
def test_no_scale_in_turn_is_seen_where_there_is_none(spread: str) -> None:
    rng = np.random.default_rng(7)
    drawn: dict[str, Callable[[], Array]] = {
        "normal": lambda: rng.normal(size=(1, 1680)),
        "relu": lambda: np.maximum(rng.normal(-1, 1, (1, 1680)), 0),
        "heavy": lambda: rng.standard_cauchy((1, 1680)),
        "outliers": lambda: rng.normal(size=(1, 1680)) * np.where(rng.uniform(size=1680) < 0.002, 1e4, 1),
        "softmax": lambda: rng.dirichlet(np.full(1680, 0.01))[None],
        "sorted": lambda: np.sort(rng.pareto(0.5, (1, 1680))),
    }
    for _ in range(40):
        scales = Reference.of([drawn[spread]() for _ in range(3)]).scales
        turns = [own for _, own in scales.along if any((own == np.roll(own, p)).all() for p in range(2, 257))]
        assert not turns


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Array) -> Array:
    return np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("kind", "share"), [("sigmoid", _sigmoid), ("softmax", _softmax)])
@pytest.mark.parametrize("allowed", [HIGH, LOW])
def test_a_share_is_as_exact_as_the_values_behind_it(
    kind: str, share: Callable[[Array], Array], allowed: Allowed
) -> None:
    """A map of text with at most 0.118 was refused at 1.9e-3 of that; its logits were right to 1e-3."""
    values = [RANDOM.uniform(-11, -2, (1, 40, 8, 8)) for _ in range(3)]
    right = Reference.of(
        [share(each).transpose(0, 2, 3, 1) for each in values],
        decision=Decision(kind, ("x",), undo=(("permutation", (0, 3, 1, 2)),)),
        behind=[Reference.of(values)],
    )

    def agrees(logits: Array) -> bool:
        return right.compare(share(logits).transpose(0, 2, 3, 1), 0, allowed).agrees

    off = RANDOM.choice([-0.9, 0.9], values[0].shape) * allowed.error * 11
    assert agrees(values[0] + off)
    assert (
        not Reference.of(right.arrays).compare(share(values[0] + off).transpose(0, 2, 3, 1), 0, HIGH).agrees
    )
    assert not agrees(values[0] + 3 * off)
    assert not agrees(values[0].mean(keepdims=True) * np.ones_like(values[0]))
    lost = right.arrays[0].copy()
    lost[0, 0, 0, 0] = np.nan
    assert not right.compare(lost, 0, allowed).agrees


def test_shares_at_their_ends_are_compared_as_they_are() -> None:
    values = np.array([[-200.0, 200.0, 0.0, 40.0]])
    decision, behind = Decision("sigmoid", ("x",)), [Reference.of([values])]
    right = Reference.of([_sigmoid(values).astype(np.float32)], decision=decision, behind=behind)
    assert right.compare(np.float32([[0, 1, 0.5, 1]]), 0, HIGH).agrees
    for place, wrong in ((0, 0.1), (1, 0.9), (2, 0.6), (3, 0.99)):
        found = right.arrays[0].copy()
        found[0, place] = wrong
        assert not right.compare(found, 0, HIGH).agrees
