"""States that requests of a stream leave behind: which cuts they close, who knows them, what plans get."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError, InvalidProblemError
from gapless.formulations.network import Layer, Network, State, Tensor
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.requests import with_states
from gapless.solvers.protocol import SolveStatus


def recurrent(layers: int, reads: int, makes: int) -> Network:
    """Return a chain of layers; one reads the state `h`, one makes `g`, which is what `h` is next time."""
    tensors = [Tensor(name="x", bytes=4, source=-1, targets=(0,))]
    tensors += [Tensor(name=f"t{at}", bytes=4, source=at, targets=(at + 1,)) for at in range(layers)]
    tensors += [Tensor(name="h", bytes=8, source=-1, targets=(reads,))]
    tensors += [Tensor(name="g", bytes=8, source=makes, targets=(layers,))]
    return Network(
        name="net", layers=tuple(Layer(name=f"l{at}") for at in range(layers)), tensors=tuple(tensors)
    )


def drawn(seed: int, passage: str) -> tuple[Problem, Problem]:
    """Return a problem without states, and with one that a part of its layers reads and makes."""
    rng = random.Random(seed)
    layers, units = rng.randint(3, 6), rng.randint(2, 3)
    ends = sorted(rng.choices(range(layers), k=2), reverse=rng.random() < 0.5)
    network = recurrent(layers, *ends)
    names = ["npu", "gpu", "cpu"][:units]
    rows = {f"l{at}": [rng.randint(1, 9) * 1.0 for _ in names] for at in range(layers)}
    table = gapless.table_problem(rows, names, network="net")
    free = gapless.with_passage(replace(table, networks=(network,)), passage)
    return free, with_states(free, {"h": "g"})


def plan_of(problem: Problem) -> Plan:
    found = gapless.plan(problem).plan
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("reads", "makes", "cuts"), [(1, 3, (2, 3)), (3, 1, (2, 3)), (2, 2, ()), (0, 4, (1, 2, 3, 4))]
)
def test_what_reads_and_what_makes_a_state_stay_together(
    reads: int, makes: int, cuts: tuple[int, ...]
) -> None:
    network = recurrent(5, reads, makes)
    found = network.with_states([State(input="h", output="g")])
    assert found.state_cuts == found.forbidden_cuts == cuts
    assert network.state_cuts == ()
    shut = replace(network, forbidden_cuts=(4,)).with_states(found.states)
    assert shut.forbidden_cuts == tuple(sorted({*cuts, 4}))
    if cuts:
        with pytest.raises(InvalidProblemError, match="must be forbidden: they part what reads a state"):
            replace(network, states=found.states)


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"hh": "g"}, "state hh=g: it has no input 'hh'; did you mean h"),
        ({"h": "t1"}, "state h=t1: it has no output 't1'"),
        ({"h": "x"}, "state h=x: it has no output 'x'"),
        ({"x": "g"}, "state x=g: the input has 4 bytes, the output 8"),
        ({"h": "g", "x": "g"}, "outputs of states must be unique"),
        ("h=g", "like {'h': 'h_out'}, not 'h=g'"),
        ({"h": 1}, "like {'h': 'h_out'}, not {'h': 1}"),
    ],
)
def test_states_that_a_network_does_not_have_are_refused(states: dict[str, str], words: str) -> None:
    problem, _ = drawn(0, "once")
    with pytest.raises(InvalidInputError, match=words):
        with_states(problem, states)


def test_who_knows_nothing_of_states_refuses_them_by_name() -> None:
    _, problem = drawn(1, "once")
    words = r"network 'net' keeps states \(--state h=g\), of which .* know nothing"
    with pytest.raises(InvalidInputError, match=words):
        gapless.plan(problem, pipelines="many")
    with pytest.raises(InvalidInputError, match=words):
        gapless.plan(problem, layer_order="free")
    operation = problem.formulation.operation
    assert operation is not None
    sets = [("npu",), ("npu", "gpu")]
    assert [name for name, _ in operation.baselines(problem, sets)] == ["serial on npu"]  # and no replicas
    assert [rival.formulation.name for rival in operation.rivals(problem)] == ["passage"]  # none side by side
    assert operation.deploy(problem, plan_of(problem)).streams[0].states == problem.network.states


@pytest.mark.parametrize("passage", ["once", "any"])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_plans_do_not_cut_a_recurrence_and_promise_no_overlap_of_it(seed: int, passage: str) -> None:
    free, problem = drawn(seed, passage)
    best = gapless.plan(problem, backend="exhaustive")
    found = gapless.plan(problem)
    assert problem.plan_class == f"{free.plan_class}, that cut no recurrence"
    assert best.status is found.status is SolveStatus.OPTIMAL
    assert best.objective == found.objective
    for backend in ("cpsat", "pulp"):
        assert gapless.plan(problem, backend=backend).objective == best.objective
    least = gapless.plan(free, backend="exhaustive").objective
    assert best.objective is not None
    assert least is not None
    assert best.objective >= least
    (score,) = [candidate.score for candidate in found.candidates]
    plan = found.plan
    assert plan is not None
    tensors = {tensor.name: tensor for tensor in problem.network.tensors}
    span = sorted([tensors["h"].targets[0], tensors["g"].source])
    between = [
        problem.tables.busy_us(*part)
        for part in problem.formulation.code(problem, plan)
        if part[0] <= span[1] and span[0] < part[1]
    ]
    assert len(between) == 1  # from what reads the state to what makes it
    assert score.period_us >= sum(between)


def test_a_plan_that_cuts_a_recurrence_is_not_valid() -> None:
    free, problem = drawn(3, "once")
    cut = problem.network.state_cuts[0]
    plan = gapless.plan(free, rules=[lambda view: view.cut_after(f"l{cut - 1}")]).plan
    assert plan is not None
    assert not gapless.check(free, plan)
    assert {violation.rule for violation in gapless.check(problem, plan)} == {"cut"}


def test_a_better_order_of_the_layers_keeps_a_recurrence_together() -> None:
    tensors = [
        Tensor(name="x", bytes=4, source=-1, targets=(0, 2, 4)),
        Tensor(name="h", bytes=4, source=-1, targets=(2,)),
        Tensor(name="g", bytes=4, source=3, targets=(5,)),
        *(Tensor(name=f"t{at}", bytes=4, source=at, targets=(at + 1,)) for at in (0, 2)),
        *(Tensor(name=f"t{at}", bytes=4, source=at, targets=(5,)) for at in (1, 4)),
    ]
    network = Network(
        name="net", layers=tuple(Layer(name=f"l{at}") for at in range(5)), tensors=tuple(tensors)
    )
    rows = {"l0": [1.0, 9.0], "l1": [9.0, 1.0], "l2": [1.0, 9.0], "l3": [1.0, 9.0], "l4": [9.0, 1.0]}
    free = replace(gapless.table_problem(rows, ["npu", "gpu"], network="net"), networks=(network,))
    problem = with_states(free, {"h": "g"})
    better = gapless.graphs.with_layer_order(problem, "best")
    assert better.network.states == problem.network.states
    found, given = gapless.plan(better), gapless.plan(problem)
    assert found.objective is not None
    assert given.objective is not None
    assert found.objective < given.objective
    assert found.plan is not None
    names = better.network.layer_names
    (whole,) = [chunk for chunk in found.plan.chunks if "l2" in names[chunk.start : chunk.stop]]
    assert "l3" in names[whole.start : whole.stop]
