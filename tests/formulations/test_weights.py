"""Weights of some layers: what they share counts once."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.expr import BoolVar, Variable, VariableKey
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.network import Layer, Network, SharedWeights
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.weights import weights_between


def drawn(seed: int) -> tuple[Network, list[dict[str, int]]]:
    """Return a network, and the bytes of the weights of each layer by name."""
    rng = random.Random(f"weights {seed}")
    count = rng.randint(3, 9)
    held: list[dict[str, int]] = [{f"own {layer}": rng.randint(0, 9)} for layer in range(count)]
    shared: dict[tuple[int, ...], int] = {}
    for number in range(rng.randint(0, 5)):
        layers, size = tuple(sorted(rng.sample(range(count), rng.randint(2, 3)))), rng.randint(1, 9)
        shared[layers] = shared.get(layers, 0) + size
        for layer in layers:
            held[layer][f"shared {number}"] = size
    chain = tuple(Layer(name=f"l{at}", weight_bytes=sum(own.values())) for at, own in enumerate(held))
    found = tuple(SharedWeights(bytes=size, layers=own) for own, size in shared.items())
    return Network(name="net", layers=chain, shared=found), held


def bytes_of(held: list[dict[str, int]]) -> int:
    return sum({name: size for own in held for name, size in own.items()}.values())


@pytest.mark.parametrize("seed", range(30))
def test_each_weight_counts_once(seed: int) -> None:
    network, held = drawn(seed)
    count, weights, rng = len(held), network.weights, random.Random(seed)
    assert weights.whole == bytes_of(held)
    assert weights.copied == sum(layer.weight_bytes for layer in network.layers)
    for start in range(count + 1):
        for stop in range(start, count + 1):
            assert weights.between(start, stop) == bytes_of(held[start:stop])
    cuts = np.array([0, *sorted(rng.sample(range(1, count), 2)), count])
    table = weights_between(weights, cuts)
    for i, start in enumerate(cuts.tolist()):
        for j, stop in list(enumerate(cuts.tolist()))[i:]:
            assert table[i, j] == bytes_of(held[start:stop])
    some = rng.sample(range(count), rng.randint(1, count))
    assert weights.of(some) == bytes_of([held[layer] for layer in some])
    assert weights.more(some[0], {*some[1:]}) == weights.of(some) - weights.of(some[1:])
    of = [rng.randrange(3) for _ in held]
    for group in range(3):
        own = [layer for layer, to in enumerate(of) if to == group]
        assert weights.grouped(of, 3).of([group]) == weights.of(own)
    assert weights.grouped(of, 3).whole == weights.whole


def _value(known: dict[VariableKey, int], variable: Variable) -> int:
    return known[variable.key]


@pytest.mark.parametrize("seed", range(10))
def test_solvers_are_told_the_bytes_of_what_is_chosen(seed: int) -> None:
    network, held = drawn(seed)
    weights, rng = network.weights, random.Random(seed)
    chosen = [BoolVar(name="chosen", args=(layer,)) for layer in range(len(held))]
    found = weights.expr(chosen.__getitem__, chosen.__getitem__)
    for _ in range(10):
        some = {layer for layer in range(len(held)) if rng.random() < 0.5}
        known = {variable.key: int(layer in some) for layer, variable in enumerate(chosen)}
        assert found.evaluate(partial(_value, known)) == weights.of(some)


def test_another_order_of_layers_shares_the_same() -> None:
    layers = tuple(Layer(name=name, weight_bytes=10) for name in "abc")
    network = Network(name="net", layers=layers, shared=(SharedWeights(bytes=7, layers=(0, 1)),))
    assert network.weights.between(0, 2) == 13
    moved = network.reordered((0, 2, 1))
    assert moved.shared == (SharedWeights(bytes=7, layers=(0, 2)),)
    assert (moved.weights.between(0, 2), moved.weights.between(0, 3)) == (20, 23)
    assert network.shifted_weights(4) == (SharedWeights(bytes=7, layers=(4, 5)),)


def test_files_keep_what_is_shared_and_old_ones_have_nothing() -> None:
    problem = sample_problem()
    assert '"shared"' not in dump_problem(problem)
    shared = (SharedWeights(bytes=30, layers=(1, 3)),)
    problem = replace(problem, networks=(replace(problem.network, shared=shared),))
    again = parse_problem(dump_problem(problem).encode(), name="again")
    assert again.network.shared == shared
    assert again == problem


@pytest.mark.parametrize(
    ("shared", "match"),
    [
        (({"bytes": 5, "layers": (0, 9)},), "layer 9"),
        (({"bytes": 11, "layers": (0, 1)},), "shares 11 bytes"),
        (({"bytes": 6, "layers": (0, 1)}, {"bytes": 6, "layers": (0, 2)}), "'a' shares 12 bytes"),
        (({"bytes": 5, "layers": (1, 0)},), "ascending"),
        (({"bytes": 5, "layers": (1,)},), "at least two"),
        (({"bytes": 0, "layers": (0, 1)},), "bytes is 0"),
        (({"bytes": 1, "layers": (0, 1)}, {"bytes": 2, "layers": (0, 1)}), "must be unique"),
    ],
)
def test_defects_are_named(shared: tuple[dict[str, object], ...], match: str) -> None:
    layers = tuple(Layer(name=name, weight_bytes=10) for name in "abc")
    with pytest.raises(InvalidProblemError, match=match):
        Network(name="net", layers=layers, shared=tuple(SharedWeights(**each) for each in shared))  # type: ignore[arg-type]
