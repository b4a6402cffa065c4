"""Training: the forward pass orders the parts; gradients go with their layers, whichever way edges point."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest

from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.partitions import GraphNode, graph_problem
from gapless.formulations.problem import Problem
from gapless.profiler.placement_files import import_placement
from gapless.solvers.session import solve

Edges = set[tuple[str, str]]
EXACT = ("cpsat", "z3", "pulp")


def training(
    nodes: dict[str, tuple[int, str | None]],
    edges: Iterable[tuple[str, str]],
    *,
    sends: int = 0,
    units: int = 2,
) -> Problem:
    """Return a graph of (time, colour) by name on equal units; names of gradients end with a stroke."""
    return graph_problem(
        [
            GraphNode(
                name=name,
                times_us=(time,) * units,
                sends_us=(sends,) * units,
                colour=colour,
                backward=name.endswith("'"),
            )
            for name, (time, colour) in nodes.items()
        ],
        edges,
        [ProcessingUnit(name=f"u{unit}") for unit in range(units)],
    )


def reachable(names: Iterable[str], edges: Edges, groups: Iterable[Iterable[str]]) -> Edges:
    """Return (a, b) if b is a or after it; those of a group are after each other."""
    near = edges | {(name, name) for name in names} | {(a, b) for own in groups for a in own for b in own}
    while True:
        wider = near | {(a, d) for a, b in near for c, d in near if b == c}
        if wider == near:
            return near
        near = wider


def brute_force(problem: Problem) -> int | None:
    """Return the least period, of all ways to place each layer, by what the page says."""
    network, data = problem.network, problem.data
    names, units = network.layer_names, problem.platform.unit_names
    groups = [[names[layer] for layer in own] for own in data.colours]
    backward = {names[layer] for layer in data.backward}
    all_edges = {(names[t.source], names[to]) for t in network.tensors for to in t.targets}
    order = {edge for edge in all_edges if not backward & set(edge)}
    forward = set(names) - backward
    plain = reachable(names, order, groups)
    alone = {name for name in backward if not any((name, f) in plain and (f, name) in plain for f in forward)}
    own = {edge for edge in all_edges if set(edge) <= backward and set(edge) & alone}
    for way in ({(b, a) for a, b in own}, own):
        found = reachable(names, order | way, groups)
        both = {(a, b) for a, b in found if {a, b} <= forward and (b, a) in found}
        if both <= plain:
            order = order | way
            break
    rows = problem.costs.of(network.name).layer_us
    costs = data.tensor_us or ((0,) * len(units),) * len(network.tensors)
    best: int | None = None
    for code in product(range(len(units)), repeat=len(names)):
        at = dict(zip(names, code, strict=True))
        if any(len({at[name] for name in group}) > 1 for group in groups):
            continue
        steps = {(str(at[a]), str(at[b])) for a, b in order if at[a] != at[b]}
        passed = reachable(map(str, range(len(units))), steps, [])
        if any(a != b and (b, a) in passed for a, b in passed):
            continue
        loads = [0] * len(units)
        for layer, unit in enumerate(code):
            loads[unit] += rows[layer][unit] or 0
        for tensor, us in zip(network.tensors, costs, strict=True):
            ends = {code[layer] for layer in (tensor.source, *tensor.targets)}
            for unit in ends if len(ends) > 1 else ():
                loads[unit] += us[unit]
        best = min(loads) if best is None and len(loads) == 1 else best
        best = max(loads) if best is None else min(best, max(loads))
    return best


_CHAIN: dict[str, tuple[int, str | None]] = {
    **{name: (time, name) for name, time in zip("abcd", (1, 2, 3, 4), strict=True)},
    **{f"{name}'": (2 * time, name) for name, time in zip("abcd", (1, 2, 3, 4), strict=True)},
}
_FORWARD = [("a", "b"), ("b", "c"), ("c", "d")]
_AGAINST = [("d'", "c'"), ("c'", "b'"), ("b'", "a'")]
_ALONG = [(b, a) for a, b in _AGAINST]
_UNNAMED = {name.replace("'", "*"): value for name, value in _CHAIN.items()}


def _plain(edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(maker.replace("'", "*"), reader.replace("'", "*")) for maker, reader in edges]


NAMED: dict[str, tuple[Problem, int]] = {
    "against": (training(_CHAIN, [*_FORWARD, *_AGAINST, ("d", "d'")]), 18),
    "along": (training(_CHAIN, [*_FORWARD, *_ALONG]), 18),
    "both ways": (training(_CHAIN, [*_FORWARD, ("b'", "a'"), ("b'", "c'"), ("d'", "c'")]), 18),
    "from each layer to its gradient": (
        training(_CHAIN, [*_FORWARD, *_ALONG, *((n, f"{n}'") for n in "abcd")]),
        18,
    ),
    "along, messages": (training(_CHAIN, [*_FORWARD, *_ALONG], sends=5), 18 + 2 * 5),
    "gradients skip layers": (training(_CHAIN, [*_FORWARD, ("a'", "d'"), ("d'", "b'"), ("c'", "b'")]), 18),
    "no flags, along": (training(_UNNAMED, [*_FORWARD, *_plain(_ALONG)]), 18),
    "no flags, against: one pass, all of it in a circle of colours": (
        training(_UNNAMED, [*_FORWARD, *_plain(_AGAINST)]),
        30,
    ),
    "gradient of two forward layers": (
        training({**_CHAIN, "a": (1, "b"), "a'": (2, "b")}, [*_FORWARD, *_ALONG]),
        18,
    ),
    "forward layers of one colour with another between": (
        training({**_CHAIN, "c": (3, "a"), "c'": (6, "a")}, [*_FORWARD, *_ALONG]),
        18,
    ),
    "gradients without a layer, along": (
        training({**_CHAIN, "c'": (6, None), "b'": (4, None)}, [*_FORWARD, *_ALONG]),
        15,
    ),
    "gradients without a layer, against": (
        training({**_CHAIN, "c'": (6, None), "b'": (4, None)}, [*_FORWARD, *_AGAINST]),
        15,
    ),
    "gradients without a layer, some along and some against": (
        training(
            {**_CHAIN, "x'": (3, None), "y'": (3, None)},
            [*_FORWARD, ("a'", "x'"), ("x'", "b'"), ("d'", "y'"), ("y'", "c'")],
        ),
        18,
    ),
    "only a backward pass": (
        training({"a'": (5, None), "b'": (2, None), "c'": (5, None)}, [("c'", "b'"), ("b'", "a'")]),
        7,
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_gradients_follow_their_layers(name: str) -> None:
    problem, period = NAMED[name]
    assert brute_force(problem) == period
    for backend in ("native", "exhaustive"):
        found = solve(problem, backend)
        assert (found.status.value, found.objective) == ("optimal", period)


def drawn(seed: int) -> Problem:
    """Return a graph of three or four layers with gradients of many kinds, whose edges go either way."""
    rng = random.Random(f"training {seed}")
    layers = "abcd"[: rng.randint(3, 4)]
    colours: dict[str, str | None] = {
        name: rng.choice((name, name, name, layers[0], None)) for name in layers
    }
    colours |= {f"{name}'": rng.choice((colours[name], colours[name], None)) for name in layers}
    nodes = {name: (rng.randint(1, 9), colour) for name, colour in colours.items()}
    forward = {(a, b) for a in layers for b in layers if a < b and rng.random() < 0.5}
    way = rng.choice(("along", "against", "either"))
    edges = set(forward)
    order = list(layers) if way == "along" else list(layers)[::-1]
    if way == "either":
        rng.shuffle(order)
    for a, b in forward:
        first, second = sorted((a, b), key=order.index)
        if rng.random() < 0.9:
            edges.add((f"{first}'", f"{second}'"))
    edges |= {(name, f"{name}'") for name in layers if rng.random() < 0.5}
    return training(nodes, sorted(edges), sends=rng.choice((0, 1, 4)), units=rng.randint(2, 3))


@pytest.mark.parametrize("seed", range(40))
def test_native_and_exhaustive_search_agree_with_brute_force(seed: int) -> None:
    problem = drawn(seed)
    right = brute_force(problem)
    for backend in ("native", "exhaustive"):
        found = solve(problem, backend)
        assert (found.status.value, found.objective) == ("optimal", right)


@pytest.mark.slow
@pytest.mark.parametrize("backend", EXACT)
@pytest.mark.parametrize("problem", [drawn(2), drawn(5), drawn(6), NAMED["along, messages"][0]], ids=range(4))
def test_exact_backends_agree_with_brute_force(problem: Problem, backend: str) -> None:
    found = solve(problem, backend)
    assert (found.status.value, found.objective) == ("optimal", brute_force(problem))


def test_a_file_whose_gradients_point_along(tmp_path: Path) -> None:
    nodes = [
        {
            "id": number + 10 * backward,
            "supportedOnFpga": 1,
            "cpuLatency": 100.0,
            "colorClass": number,
            "size": 1.0,
        }
        | {"fpgaLatency": float(number * (1 + backward)), "isBackwardNode": backward}
        for number in range(1, 5)
        for backward in (0, 1)
    ]
    edges = [
        {"sourceId": first + step, "destId": first + step + 1, "cost": 0.0}
        for first in range(1, 4)
        for step in (0, 10)
    ]
    path = tmp_path / "graph.json"
    path.write_text(
        json.dumps({"maxSizePerFPGA": 1e9, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges})
    )
    found = solve(import_placement(path), "native")
    assert (found.status.value, found.objective) == ("optimal", 18_000_000)
