"""Problems with their layers in another order: the same costs, boundaries by their bytes, orders in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.errors import InvalidInputError, InvalidProblemError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.judge import score
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.reordering import order_words, parse_order, reordered
from tests.branch_instances import chain_problem, orders_of, random_network

DIAMOND = Network(
    name="diamond",
    layers=tuple(Layer(name=name) for name in ("stem", "left", "right", "sum")),
    tensors=(
        Tensor(name="x", bytes=4000, source=-1, targets=(0,)),
        Tensor(name="s", bytes=6000, source=0, targets=(1, 2)),
        Tensor(name="l", bytes=1000, source=1, targets=(3,)),
        Tensor(name="r", bytes=3000, source=2, targets=(3,)),
        Tensor(name="y", bytes=2000, source=3, targets=(4,)),
    ),
)
SWAPPED = (0, 2, 1, 3)


def test_a_plan_costs_what_its_layers_and_boundaries_cost() -> None:
    problem = chain_problem(DIAMOND, 0)
    moved = reordered(problem, SWAPPED)
    assert moved.network.layer_names == ("stem", "right", "left", "sum")
    assert moved.network.boundary_bytes == (4000, 6000, 9000, 4000, 2000)
    plan = Plan(
        chunks=(
            Chunk(network="diamond", start=0, stop=2, unit="unit0"),
            Chunk(network="diamond", start=2, stop=4, unit="unit1"),
        )
    )
    us = [[time or 0 for time in row] for row in problem.costs.of("diamond").layer_us]
    # In: 5 us and 2 us for each 1000 bytes; out: 5 and 3.
    first = 5 + 2 * 4 + us[0][0] + us[2][0] + 5 + 3 * 9
    second = 5 + 2 * 9 + us[1][1] + us[3][1] + 5 + 3 * 2
    assert score(moved, plan).value("period") == max(first, second)


def test_boundaries_that_are_as_before_keep_what_was_measured() -> None:
    problem = chain_problem(DIAMOND, 0)
    (costs,) = problem.costs.networks
    measured = tuple((1000 + row,) * 3 for row in (0, 7, 90, 1, 5))
    odd = problem.with_costs(replace(problem.costs, networks=(replace(costs, transfer_in_us=measured),)))
    rows = reordered(odd, SWAPPED).costs.of("diamond").transfer_in_us
    assert [rows[boundary] for boundary in (0, 1, 3, 4)] == [measured[boundary] for boundary in (0, 1, 3, 4)]
    assert rows[2] != measured[2]


def test_copies_that_are_shorter_for_more_bytes_are_of_the_mean() -> None:
    problem = chain_problem(DIAMOND, 0)
    (costs,) = problem.costs.networks
    falling = tuple((10_000 - size,) * 3 for size in DIAMOND.boundary_bytes)
    odd = problem.with_costs(replace(problem.costs, networks=(replace(costs, transfer_in_us=falling),)))
    mean = round(sum(row[0] for row in falling) / 5)
    assert reordered(odd, SWAPPED).costs.of("diamond").transfer_in_us[2] == (mean,) * 3


def test_there_and_back_is_the_same_problem() -> None:
    problem = chain_problem(DIAMOND, 0)
    moved = reordered(problem, SWAPPED)
    assert moved.network.order == SWAPPED
    assert moved.fingerprint != problem.fingerprint
    assert reordered(moved, SWAPPED) == problem
    assert parse_problem(dump_problem(moved).encode(), name="moved") == moved


def test_forbidden_cuts_keep_their_layers_together() -> None:
    network = replace(DIAMOND, forbidden_cuts=(2,))
    assert network.reordered(SWAPPED).forbidden_cuts == (2,)


def test_a_layer_does_not_come_before_what_it_reads_from() -> None:
    with pytest.raises(InvalidProblemError, match="does not come after its source"):
        reordered(chain_problem(DIAMOND, 0), (1, 0, 2, 3))


@pytest.mark.parametrize("seed", range(5))
def test_every_order_has_words(seed: int) -> None:
    network = random_network(seed)
    for order in orders_of(network):
        assert parse_order(order_words(order), network) == order


def test_words_are_of_the_order_that_was_first() -> None:
    assert order_words(range(4)) == "0-3"
    assert order_words((0, 2, 1, 3)) == "0,2,1,3"
    moved = DIAMOND.reordered(SWAPPED)
    assert parse_order("0-3", moved) == SWAPPED
    assert moved.reordered(parse_order("0-3", moved)) == DIAMOND


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0-2", "each of the layers 0 to 3 of 'diamond' once"),
        ("0,0,1,2,3", "once"),
        ("0-4", "once"),
        ("0-999999", "once"),
        ("3-0", "once"),
        ("0,,1", "numbers and ranges"),
        ("a-b", "numbers and ranges"),
        ("0-1-2", "numbers and ranges"),
        ("1,0,2,3", r"layer 1 \(left\) before layer 0 \(stem\)"),
        ("1" * 400, "numbers and ranges"),
    ],
)
def test_what_is_no_order_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as caught:
        parse_order(text, DIAMOND)
    assert len(str(caught.value)) < 300


def test_a_network_with_an_order_names_each_layer_once() -> None:
    with pytest.raises(InvalidProblemError, match="each of the layers 0 to 3 once"):
        replace(DIAMOND, order=(0, 1, 1, 2))
