"""Convex parts: how soon each backend proves the optimum, against cuts of one order; and whether all agree.

python -m benchmarks.partition                        # graphs like the public inputs
python -m benchmarks.partition --graphs harder large  # more accelerators, two kinds, 10,000 nodes
python -m benchmarks.partition --agree 500            # random small graphs against brute force
"""

from __future__ import annotations

import random
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from time import perf_counter

from rich.console import Console
from rich.table import Table

from benchmarks.partition_graphs import HARDER, LARGE, PUBLIC_LIKE, Instance
from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.judge import check, score
from gapless.formulations.partition.tables import graph_of, partition_of
from gapless.formulations.partitions import GraphNode, graph_problem
from gapless.formulations.problem import Problem
from gapless.solvers.partition.line import best_cuts, build_arrays
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus
from gapless.solvers.registry import get_backend
from gapless.solvers.sandbox import call_in_child
from gapless.solvers.session import solve

GRAPHS = {"public": PUBLIC_LIKE, "harder": HARDER, "large": LARGE}
AGREEING = ("exhaustive", "native", "cpsat", "z3", "pulp")


def main() -> int:
    """Print the tables; return 1 if two answers contradict each other."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=["public"])
    parser.add_argument("--backends", nargs="+", default=["native", "cpsat"])
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of each solve")
    parser.add_argument("--agree", type=int, metavar="N", help="compare N random small graphs instead")
    options = parser.parse_args()
    if options.agree is not None:
        return _agree(options.agree)
    return _race([one for name in options.graphs for one in GRAPHS[name]], options.backends, options.seconds)


def _race(instances: list[Instance], backends: list[str], seconds: float) -> int:
    table = Table(title="Period in us; * proved, with the seconds of the whole call")
    for column in ("graph", "layers", "blocks", "given order", "bound", *backends):
        table.add_column(column, justify="left" if column == "graph" else "right")
    wrong = 0
    for instance in instances:
        problem = instance.problem()
        graph = graph_of(problem)
        row, proved, bound = [], set(), 0
        for backend in backends:
            began = perf_counter()
            result = solve(problem, backend, SolveOptions(time_limit_s=seconds), explain=False)
            took = perf_counter() - began
            done = result.objective is not None and result.objective == result.bound
            proved |= {result.objective} if done else set()
            bound = max(bound, result.bound or 0)
            row.append(f"{result.objective}{'*' if done else ''} {took:.2f} s")
        wrong += len(proved) > 1
        counts = (str(graph.layer_count), str(graph.condensed.blocks.count))
        table.add_row(instance.name, *counts, _given_order(problem), str(bound), *row)
    Console(width=150).print(table)
    return int(wrong > 0)


def _given_order(problem: Problem) -> str:
    """Return the period of the best cuts of the given order: what planning a chain comes to."""
    graph = graph_of(problem).condensed
    if graph.blocks.count > 1_500:
        return "-"
    line = best_cuts(build_arrays(problem, graph), list(range(graph.blocks.count)))
    return "none" if line is None else str(line.value)


# Agreement


def _agree(count: int) -> int:
    """Compare all backends with brute force over chains of down-sets on random small graphs."""
    problems = [small_graph(seed) for seed in range(count)]
    bests = [brute_force(problem) for problem in problems]
    tally = Counter("no plan" if best is None else "a plan" for best in bests)
    differences = 0
    for backend in AGREEING:
        claims = _answers(backend, problems)
        for seed, (problem, best, claim) in enumerate(zip(problems, bests, claims, strict=True)):
            value = score(problem, claim.plans[0]).value("period") if claim.plans else None
            proved = SolveStatus.INFEASIBLE if best is None else SolveStatus.OPTIMAL
            bad = bool(claim.plans) and bool(check(problem, claim.plans[0]))
            # The native search proves less where no plan is found; what it says has to be right.
            silent = backend == "native" and claim.status is SolveStatus.NO_SOLUTION and best is None
            if bad or value != best or not (claim.status is proved or silent):
                differences += 1
                print(f"seed {seed}: {backend} says {value} ({claim.status}), not {best}")
    print(f"{count} graphs ({dict(tally)}), {len(AGREEING)} backends: {differences} differences")
    return int(differences > 0)


def _answers(backend: str, problems: list[Problem]) -> list[Claim]:
    """Return what a backend claims of each problem; third-party solvers run in one process of their own."""
    worker = get_backend(backend)

    def answer() -> list[Claim]:
        return [worker.solve(problem, SolveOptions()) for problem in problems]

    return call_in_child(answer, backend) if worker.capabilities.isolated else answer()


def small_graph(seed: int) -> Problem:
    """Return a random graph of 4 to 8 nodes on 2 or 3 units: memory, kinds, colours, support, outputs.

    Every third one has a backward pass, most of whose nodes have the colour of their forward ones.
    """
    rng = random.Random(f"small {seed}")
    training = seed % 3 == 2
    size, units = rng.randint(2, 4) if training else rng.randint(4, 7), rng.choice((2, 2, 3))
    alike, room = rng.random() < 0.4, rng.choice((None, 40, 70))
    nodes = []
    for number in range(size):
        time_us = rng.choice((0, *[rng.randint(5, 60)] * 6))
        times: list[int | None] = [
            time_us if alike or not time_us else rng.randint(5, 60) for _ in range(units)
        ]
        if rng.random() < 0.2:
            times[rng.randrange(units)] = None
        sends = rng.randint(0, 25)
        nodes.append(
            GraphNode(
                name=f"n{number}",
                times_us=tuple(times),
                sends_us=tuple(sends if alike else rng.randint(0, 25) for _ in range(units)),
                bytes=rng.randint(1, 20),
                colour="red" if rng.random() < 0.25 else None,
            )
        )
    chance = rng.uniform(0.2, 0.6)
    edges = [(f"n{a}", f"n{b}") for b in range(size) for a in range(b) if rng.random() < chance]
    if training:
        for number, node in enumerate(nodes[:size]):
            colour = node.colour or (f"c{number}" if rng.random() < 0.8 else None)
            nodes[number] = replace(node, colour=colour)
            again = tuple(None if time is None else rng.randint(1, 60) for time in node.times_us)
            nodes.append(replace(nodes[number], name=f"n{number}b", times_us=again, backward=True))
        edges += [(f"{b}b", f"{a}b") for a, b in edges]
        edges += [(f"n{number}", f"n{number}b") for number in range(size)]
        size *= 2
    problem = graph_problem(
        nodes, edges, [ProcessingUnit(name=f"u{unit}", memory_bytes=room) for unit in range(units)]
    )
    tensors = tuple(
        replace(tensor, targets=(*tensor.targets, size)) if rng.random() < 0.15 else tensor
        for tensor in problem.network.tensors
    )
    return replace(problem, networks=(replace(problem.network, tensors=tensors),))


def brute_force(problem: Problem) -> int | None:
    """Return the least period over all chains of down-sets on all orders of units; None: there is no plan.

    Nothing of the formulation but the judge is used: the graph is read from the tensors of the network.
    """
    count = len(problem.network.layers)
    before = [0] * count
    backward = set(partition_of(problem).backward)
    for tensor in problem.network.tensors:
        for target in tensor.targets:
            if tensor.source >= 0 and target < count:
                if {tensor.source, target} <= backward:
                    before[tensor.source] |= 1 << target
                elif target not in backward:
                    before[target] |= 1 << tensor.source
    down = [
        one
        for one in range(1 << count)
        if all(not one >> n & 1 or before[n] & ~one == 0 for n in range(count))
    ]
    best: int | None = None
    for chain in _chains(down, 0, (1 << count) - 1, len(problem.platform.units)):
        for units in permutations(range(len(problem.platform.units)), len(chain)):
            code = [0] * count
            for part, unit in zip(chain, units, strict=True):
                for layer in range(count):
                    if part >> layer & 1:
                        code[layer] = unit
            judged = score(problem, problem.formulation.plan(problem, tuple(code)))
            if judged.valid and (best is None or judged.value("period") < best):
                best = judged.value("period")
    return best


def _chains(down: list[int], start: int, full: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the parts of all chains of down-sets from one to all nodes, with so many parts at most."""
    if start == full:
        yield ()
    elif most:
        for following in down:
            if following != start and following & start == start:
                for rest in _chains(down, following, full, most - 1):
                    yield (following & ~start, *rest)


if __name__ == "__main__":
    sys.exit(main())
