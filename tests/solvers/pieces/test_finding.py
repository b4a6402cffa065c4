"""Pieces: every method against all labellings of small networks, and what the paper shows."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.spatial import SAME, SpatialNetwork, SpatialNode, Window, check_pieces
from gapless.formulations.tiles import halos
from gapless.solvers.pieces.contraction import contract
from gapless.solvers.pieces.finding import PieceMethod, find_pieces
from gapless.solvers.pieces.methods import Found, exact, score
from gapless.solvers.pieces.search import Effort
from gapless.solvers.protocol import NEVER, Deadline
from gapless.solvers.sandbox import call_in_child

from .networks import chains, random_network
from .networks import score as score_of

SMALL = (Window(extent=3, before=1), Window(extent=3, before=1))
ROW, COLUMN = (SAME, Window(extent=7, before=3)), (Window(extent=7, before=3), SAME)
POINT = (SAME, SAME)


def network(**layers: tuple[str, tuple[Window, Window]]) -> SpatialNetwork:
    """Return operators by name: what each reads, with names separated by spaces, and through which window."""
    nodes = [SpatialNode(name="image", op_type="Input", size=(17, 17))]
    places = {"image": 0}
    for name, (reads, windows) in layers.items():
        sources = tuple(places[source] for source in reads.split())
        places[name] = len(nodes)
        nodes.append(
            SpatialNode(
                name=name,
                op_type="Concat" if len(sources) > 1 else "Conv",
                sources=sources,
                windows=(windows,) * len(sources),
                size=(17, 17),
                flops=17 * 17 * (len(sources) == 1) * 1000,
            )
        )
    return SpatialNetwork(name="block", nodes=tuple(nodes), outputs=(len(nodes) - 1,))


@pytest.mark.slow
def test_the_exact_search_finds_the_best_of_all_chains() -> None:
    compared = 0
    for seed in range(300):
        small = random_network(seed, most=9)
        contracted = contract(small).members
        allowed = (
            labels
            for labels in chains(small)
            if all(labels[index] == labels[group[0]] for group in contracted for index in group)
        )
        found = find_pieces(small)
        assert found.proven
        assert not list(check_pieces(small, found.labels))
        scores = [score_of(small, labels) for labels in allowed]
        assert found.score == score_of(small, found.labels) == min(scores), small.name
        assert found.bound == found.largest
        compared += len(set(scores)) > 1
    assert compared > 150


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ortools") is None, reason="OR-Tools is not installed")
def test_cpsat_finds_the_same() -> None:
    from gapless.solvers.pieces.cpsat import _solved

    graphs = [contract(random_network(seed, most=14)) for seed in range(30)]

    def solved() -> list[tuple[bool, tuple[int, int, int]]]:
        found = [_solved(graph, Found(labels=graph.finest()), Deadline(60), 1) for graph in graphs]
        return [(one.proven, score(graph, one.labels)) for one, graph in zip(found, graphs, strict=True)]

    right = [score(graph, exact(graph, Effort(deadline=NEVER)).labels) for graph in graphs]
    assert call_in_child(solved, "cpsat") == [(True, best) for best in right]


@pytest.mark.parametrize("method", [method for method in PieceMethod if method is not PieceMethod.CPSAT])
def test_every_method_gives_chains_and_none_beats_the_exact_one(method: PieceMethod) -> None:
    for seed in range(40):
        small = random_network(seed, most=9)
        found, best = find_pieces(small, method=method), find_pieces(small)
        assert not list(check_pieces(small, found.labels))
        assert found.score >= best.score
        assert found.bound <= best.largest
        if method is PieceMethod.LAYERS:
            assert found.count >= best.count
        if method is PieceMethod.PAPER:  # five edges are as long as the paths of these networks are
            assert found.largest == best.largest


def inception_c() -> SpatialNetwork:
    """Return the block of PICO's figure 11 behind one layer: four branches, ten layers."""
    return network(
        before=("image", POINT),
        a1=("before", POINT),
        b1=("before", POINT),
        b2=("b1", ROW),
        b3=("b2", COLUMN),
        c1=("before", POINT),
        c2=("c1", COLUMN),
        c3=("c2", ROW),
        c4=("c3", COLUMN),
        c5=("c4", ROW),
        d1=("before", SMALL),
        d2=("d1", POINT),
        concat=("a1 b3 c5 d2", POINT),
    )


def test_the_block_of_the_paper() -> None:
    """PICO 6.2.1: fused, rows and columns of 13 pixels are read for one; in three pieces at most 7."""
    block = inception_c()
    assert max(halos(block, block.operators).values()) == (13 - 1, 13 - 1)
    found = find_pieces(block)
    assert found.count == 3
    widest = [max(halos(block, found.members(piece)).values()) for piece in range(3)]
    assert max(max(halo) for halo in widest) == 7 - 1
    assert sum(min(halo) == 0 for halo in widest) >= 2  # rows or columns only
    assert found.proven


def test_the_paper_cannot_have_more_than_thirty_pieces_of_inception() -> None:
    """A branch of one layer beside others: two cuts at most between the ends of the block (errata)."""
    most = max(max(labels) + 1 for labels in chains(inception_c()))
    assert most == find_pieces(inception_c(), method="layers").count == 3


def test_what_algorithm_1_says_literally_gives_no_chain() -> None:
    """Line 6 takes only what is directly connected; what reads that has to come along (errata)."""
    crossed = network(a=("image", POINT), b=("a", SMALL), c=("b", SMALL), d=("a c", POINT), e=("d", SMALL))
    literal = {
        "e": 3,
        "d": 2,
        "a": 1,
        "c": 1,
        "b": 0,
    }  # d reads a and c: both next; b, which reads a, is left
    labels = tuple(literal.get(node.name, -1) for node in crossed.nodes)
    assert any("'a' to 'b'" in defect for defect in check_pieces(crossed, labels))
    assert not list(check_pieces(crossed, find_pieces(crossed, method="paper").labels))


def test_the_limit_of_the_paper_costs_operations() -> None:
    """Paths longer than d are forbidden by the paper where they have to be, or where they cost least."""
    long = network(a=("image", POINT), **{f"p{i}": ("a" if not i else f"p{i - 1}", POINT) for i in range(4)})
    assert find_pieces(long, method="paper", diameter=0).largest == find_pieces(long).largest == 0


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="must be one of exact, cpsat, paper"):
        find_pieces(inception_c(), method="magic")
    with pytest.raises(InvalidInputError, match="did not end in time"):
        find_pieces(inception_c(), method="paper", time_limit_s=0.0)
    only = SpatialNetwork(name="empty", nodes=(SpatialNode(name="x", op_type="Input"),), outputs=(0,))
    with pytest.raises(InvalidInputError, match="no operator"):
        find_pieces(only)


def test_out_of_time_a_chain_comes_without_proof() -> None:
    found = find_pieces(inception_c(), time_limit_s=0.0)
    assert not list(check_pieces(inception_c(), found.labels))
    assert not found.proven
    assert found.bound <= find_pieces(inception_c()).largest <= found.largest
