"""What plans of groups are worth: numbers that were worked out by hand, and what groups of one have to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.chunking.rules import latency_cap
from gapless.formulations.cluster import Link, Pipelines
from gapless.formulations.cooperation.rules import (
    largest_group,
    never_together,
    redundancy_cap,
    serves,
    some_group,
)
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidProblemError, MalformedPlanError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.groups import Cooperation
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.judge import check, score
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.spatial import SpatialNetwork, SpatialNode, Window
from gapless.formulations.terms import Objective
from gapless.solvers.session import solve
from tests.cooperation_instances import drawn_problem

NAMES = ("a", "b", "c")


def two_convolutions(**data: object) -> Problem:
    """Return two 3 x 3 convolutions over 10 rows of 100 bytes; b is twice as fast as a and c; 1 byte a us."""
    window = Window(extent=3, before=1)
    nodes = (
        SpatialNode(name="in", op_type="Input", size=(10, 10), bytes=1000),
        *(
            SpatialNode(
                name=f"c{number}", op_type="Conv", sources=(number,), windows=((window, window),),
                size=(10, 10), bytes=1000, flops=1000,
            )
            for number in range(2)
        ),
    )  # fmt: skip
    links = tuple(
        Link(source=one, target=other, bytes_per_second=1_000_000)
        for one in NAMES
        for other in NAMES
        if one != other
    )
    costs = NetworkCosts(network="net", layer_us=((4000, 2000, 4000),) * 2)
    tensors = [("in", -1, 0), ("t", 0, 1), ("out", 1, 2)]
    given = {
        "devices": Pipelines(links=links, overlap=False, power_mw=(3, 5, 3)),
        "idle_mw": (1, 1, 1),
        **data,
    }
    return Problem(
        platform=Platform(name="three", units=tuple(ProcessingUnit(name=name) for name in NAMES)),
        networks=(
            Network(
                name="net",
                layers=(Layer(name="c0", weight_bytes=7), Layer(name="c1", weight_bytes=9)),
                tensors=tuple(Tensor(name=n, bytes=1000, source=s, targets=(t,)) for n, s, t in tensors),
            ),
        ),
        costs=CostTable(units=NAMES, networks=(costs,)),
        objective=Objective(terms=("period",)),
        data=Cooperation(
            spatial=SpatialNetwork(name="net", nodes=nodes, outputs=(2,)),
            pieces=(-1, 0, 1),
            **given,  # type: ignore[arg-type]
        ),
    )


def plan(*parts: tuple[int, int, str]) -> Plan:
    """Return chunks with their groups, "a+b"."""
    return Plan(
        chunks=tuple(
            Chunk(network="net", start=start, stop=stop, unit=unit)
            for start, stop, group in parts
            for unit in group.split("+")
        )
    )


def test_a_group_of_two_by_hand() -> None:
    problem = two_convolutions()
    judged = score(problem, plan((0, 1, "a+b"), (1, 2, "c")))
    # b leads: r rows take 200 r us there and 400 r on a, which reads r + 1 rows and sends r, 100 us each.
    # With 7, 8 or 9 rows on b that is 2100 in all; of equally good splits it is that with least computing.
    assert judged.columns["rows"] == (3, 7, 10)
    assert judged.columns["busy_us"] == (1200, 1400, 4000)
    assert judged.columns["stage_us"] == (3100, 3100, 4000)  # with 1000 us to send the result to c
    assert judged.value("period") == 4000
    assert judged.value("latency") == 1400 + 700 + 1000 + 4000
    assert judged.value("redundancy") == 0  # one convolution computes nothing twice
    assert judged.value("energy") == 1200 * 2 + 1400 * 4 + 4000 * 2 + 3 * 4000
    assert judged.columns["computing_nj"] == (1200 * 3, 1400 * 5, 4000 * 3)
    assert judged.columns["standby_nj"] == (2800, 2600, 0)
    assert judged.columns["weight_bytes"] == (7, 7, 9)
    assert not judged.violations


def test_chunks_of_several_layers_compute_halos_twice() -> None:
    judged = score(two_convolutions(), plan((0, 2, "a+b")))
    rows, extra = judged.columns["rows"], judged.columns["extra_permille"]
    assert rows[:2] in [(n, 10 - n) for n in range(1, 10)]
    assert judged.value("redundancy") == 2 * 100  # a row of the first convolution on each side
    assert extra[0] == -(-1000 * 100 // (200 * rows[0] + 100))  # type: ignore[operator]
    assert extra[2] is None


def test_transfers_between_groups_can_be_left_out() -> None:
    parts = plan((0, 1, "a+b"), (1, 2, "c"))
    judged = score(two_convolutions(interstage=False), parts)
    assert judged.columns["stage_us"] == (2100, 2100, 4000)


def test_computing_and_messages_may_overlap() -> None:
    problem = two_convolutions()
    devices = replace(problem.data.devices, overlap=True)
    overlapped = score(replace(problem, data=replace(problem.data, devices=devices)), plan((0, 2, "a+b")))
    assert overlapped.value("period") < score(problem, plan((0, 2, "a+b"))).value("period")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([(0, 1, "a+b"), (1, 2, "b")], "'b' is in a group already"),
        ([(0, 1, "a+b")], "layers 1 to 1 are not covered"),
        ([(0, 2, "d")], "no such device"),
        ([(0, 3, "a")], "only 2 layers"),
    ],
)
def test_plans_without_numbers(parts: list[tuple[int, int, str]], words: str) -> None:
    with pytest.raises(MalformedPlanError) as refused:
        score(two_convolutions(), plan(*parts))
    assert words in str(refused.value)


def test_groups_have_limits() -> None:
    problem = two_convolutions(most_group=2)
    (broken,) = check(problem, plan((0, 2, "a+b+c")))
    assert "at most 2 devices may be in a group" in broken.message
    data = problem.data
    last = replace(data.spatial.nodes[2], splits=(False, True))
    spatial = replace(data.spatial, nodes=(*data.spatial.nodes[:2], last))
    (broken,) = check(replace(problem, data=replace(data, spatial=spatial)), plan((0, 2, "a+b")))
    assert "these layers cannot be split" in broken.message
    by_columns = replace(problem, data=replace(data, spatial=spatial, axis="columns"))
    assert not check(by_columns, plan((0, 2, "a+b")))
    alone = replace(data, devices=replace(data.devices, links=data.devices.links[:1]))
    (broken,) = check(replace(problem, data=alone), plan((0, 2, "a+b")))
    assert "no device of the group is linked with all others, both ways" in broken.message


@pytest.mark.parametrize(
    ("rule", "keeps"),
    [
        (serves(0, "a"), True),
        (serves("c1", "a"), False),
        (largest_group(1), False),
        (some_group(2), True),
        (some_group(3), False),
        (never_together("a", "b"), False),
        (never_together("a", "c"), True),
        (redundancy_cap("a", most_permille=0), True),
        (latency_cap(most_us=7100), True),
        (latency_cap(most_us=7099), False),
    ],
)
def test_ready_made_rules(rule: object, keeps: bool) -> None:
    problem = two_convolutions().with_rules(rule)  # type: ignore[arg-type]
    assert (not check(problem, plan((0, 1, "a+b"), (1, 2, "c")))) is keeps


def test_groups_of_one_are_a_pipeline() -> None:
    tried = 0
    for seed in range(40):
        problem = replace(drawn_problem(seed).with_objective("period"), rules=())
        data = problem.data
        if data.devices.overlap:
            continue
        alone = replace(problem, data=replace(data, interstage=True, most_group=1))
        line = replace(problem, data=replace(data.devices, most=1))
        one, other = (solve(p, "exhaustive", explain=False) for p in (alone, line))
        assert one.status is other.status
        if one.best is not None and other.best is not None:
            tried += 1
            assert one.best.score.value("period") == other.best.score.value("period")
            assert one.best.score.value("latency") == other.best.score.value("latency")
    assert tried > 15


def test_problems_are_kept_in_files() -> None:
    problem = two_convolutions()
    again = parse_problem(dump_problem(problem).encode(), name="again")
    assert again == problem
    assert again.fingerprint == problem.fingerprint


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(InvalidProblemError) as refused:
        two_convolutions(idle_mw=(1,), fixed_us=((1, 2, 3),))
    assert "idle_mw has 1 entries for 3 devices" in str(refused.value)
    assert "fixed_us must have 2 rows of 3 times" in str(refused.value)
    with pytest.raises(InvalidProblemError, match="axis is 'depth'"):
        two_convolutions(axis="depth")
