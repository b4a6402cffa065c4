"""Tables 4, 6 and 7, Figures 17 and 18, devices ever more unlike: planners against the optimum."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from statistics import mean

from gapless.formulations.problem import Problem
from gapless.formulations.spatial import SAME, SpatialNetwork, SpatialNode, Window
from gapless.solvers.pieces.finding import usual_pieces
from gapless.solvers.protocol import TimeIsUpError

from ..group_instances import chain_problem, group_problem, unlike_speeds
from ..groups_planning import median_s, solved_s
from ..pieces import PRINTED, pieces_table
from ..printing import Part, Statement, near, titled
from .graphs import GraphSearch, Optimum
from .testbed import Account, PaperDevices, least_us, planned

GRAPHS = {
    (2, 4, 4): ("< 1", "1.58"),
    (2, 8, 6): ("< 1", "18.23"),
    (3, 12, 4): ("< 1", "718"),
    (3, 12, 6): ("< 1", "2714"),
    (3, 12, 8): ("< 1", "> 1, meant: > 3600"),
    (4, 20, 4): ("< 1", "> 3600"),
    (4, 20, 6): ("< 1", "> 3600"),
}
"""Table 6: (branches, layers, devices) and the paper's seconds for PICO and for its search."""

CHAINS = {
    (4, 4): ("< 1", "< 1"),
    (8, 4): ("< 1", "1.62"),
    (12, 4): ("< 1", "3.84"),
    (16, 4): ("< 1", "11.27"),
    (8, 6): ("< 1", "261"),
    (10, 6): ("< 1", "737"),
    (12, 6): ("< 1", "> 3600"),
    (8, 8): ("< 1", "> 3600"),
}
"""Table 7: (layers, devices), likewise."""

MBIT = 50.0
ROUNDS = 3
RATIOS = (1, 2, 4, 8, 16)


def branching_network(branches: int, layers: int, seed: int = 0) -> SpatialNetwork:
    """Return branches of convolutions with a given number of layers in all, and their sum: as for Table 6."""
    rng, side = random.Random(seed), 56
    nodes = [SpatialNode(name="in", op_type="Input", size=(side, side), bytes=4 * 64 * side * side)]
    ends = [0] * branches
    for layer in range(layers):
        extent = rng.choice([1, 3, 3, 5])
        branch = layer % branches
        nodes.append(
            SpatialNode(
                name=f"conv{layer}",
                op_type="Conv",
                sources=(ends[branch],),
                windows=((Window(extent=extent, before=extent // 2),) * 2,),
                size=(side, side),
                bytes=4 * 64 * side * side,
                flops=2 * extent * extent * 64 * 64 * side * side,
            )
        )
        ends[branch] = len(nodes) - 1
    nodes.append(
        SpatialNode(
            name="sum",
            op_type="Add",
            sources=tuple(ends),
            windows=((SAME, SAME),) * branches,
            size=(side, side),
            bytes=4 * 64 * side * side,
            flops=branches * 64 * side * side,
        )
    )
    return SpatialNetwork(name="branches", nodes=tuple(nodes), outputs=(len(nodes) - 1,))


def table_4(bed: PaperDevices, seconds: float) -> Iterator[Part]:
    """Yield pieces of networks."""
    yield pieces_table(tuple(PRINTED), ("exact", "paper"), seconds, 1)


def branches_on(bed: PaperDevices, branches: int, layers: int, devices: int, *, charged: bool) -> Problem:
    """Return branches, in pieces, over devices of 1 GHz that are all alike."""
    network = branching_network(branches, layers)
    speeds, types = [bed.operations] * devices, ["pi"] * devices
    pieces = usual_pieces(network).labels
    return group_problem(
        network, pieces, speeds, types=types, mbit_per_second=MBIT, interstage=charged, objective="period"
    )


def over_graph(problem: Problem, bed: PaperDevices, seconds: float) -> Optimum:
    """Return the best chain of groups over the graph of a problem of `branches_on`."""
    data, devices = problem.data, len(problem.platform.units)
    return GraphSearch(
        data.spatial,
        bed.operations,
        devices,
        mbit_per_second=MBIT,
        charged=data.interstage,
        known_us=least_us(problem),
        seconds=seconds,
    ).run()


def table_6(bed: PaperDevices, seconds: float) -> Iterator[Part]:
    """Yield seconds on graphs, and what Algorithm 1 loses."""
    table = titled(
        "Table 6: branches, layers, devices of 1 GHz; seconds; what pieces lose against the graph itself",
        "size", "pieces", "find pieces", "groups, exact", "groups, PICO", "over the graph", "lost",
        "lost, charged", "PICO (paper)", "BFS (paper)",
    )  # fmt: skip
    for (branches, layers, devices), printed in GRAPHS.items():
        problem = branches_on(bed, branches, layers, devices, charged=False)
        network = problem.data.spatial
        found = usual_pieces(network)
        times = [median_s(ROUNDS, lambda network=network: usual_pieces(network))]  # type: ignore[misc]
        times += [solved_s(ROUNDS, problem, name) for name in ("native", "pico")]
        started = time.monotonic()
        lost = _lost(problem, bed, seconds)
        took = f"{time.monotonic() - started:.2f}" if lost else f"> {seconds:g}"
        charged = lost and _lost(branches_on(bed, branches, layers, devices, charged=True), bed, seconds)
        cells = (took, lost or "-", charged or "-")
        table.add_row(f"{branches}, {layers}, {devices}", str(found.count), *times, *cells, *printed)
    yield table


def _lost(problem: Problem, bed: PaperDevices, seconds: float) -> str:
    """Return how much longer the period given the pieces is; empty: that was not found out in time."""
    try:
        best = over_graph(problem, bed, seconds)
    except TimeIsUpError:
        return ""
    return f"{100 * (least_us(problem) / best.period_us - 1):.1f} %"


def table_7(bed: PaperDevices) -> Iterator[Part]:
    """Yield seconds on chains over devices that all differ."""
    table = titled(
        "Table 7: layers, devices all different; seconds",
        "size", "groups, exact", "groups, PICO", "PICO (paper)", "BFS (paper)",
    )  # fmt: skip
    for (layers, devices), printed in CHAINS.items():
        problem = chain_problem(layers, unlike_speeds(devices))
        found = [solved_s(ROUNDS, problem, name) for name in ("native", "pico")]
        table.add_row(f"{layers}, {devices}", *found, *printed)
    yield table


def figure_17(bed: PaperDevices, seconds: float) -> Iterator[Part]:
    """Yield the devices at work on three branches of twelve layers, six devices of 1 GHz."""
    rows, problem = _planners(branches_on(bed, 3, 12, 6, charged=False))
    best = over_graph(problem, bed, seconds)
    busy = [us / best.period_us for service in best.services for us in service.compute_us]
    extra = [each / 1000 for service in best.services for each in service.extra_permille]
    rows["exact over the graph"] = (best.period_us, busy, extra)
    yield from _at_work(
        "Fig. 17: 3 branches, 12 layers, 6 devices of 1 GHz", [f"{n + 1}" for n in range(6)], rows
    )
    own = {name: mean(row[1]) for name, row in rows.items()}
    yield Statement(
        "devices are 95 % busy with the search, about 90 % with PICO",
        f"{100 * own['exact over the graph']:.0f} % and {100 * own['PICO']:.0f} %",
        near(own["exact over the graph"], 0.95) and near(own["PICO"], 0.9),
    )


def figure_18(bed: PaperDevices) -> Iterator[Part]:
    """Yield the devices at work on a chain of ten layers, at 1.2, 0.8 and 0.6 GHz."""
    clocks = (1.2, 1.2, 0.8, 0.8, 0.6, 0.6)
    speeds, types = [bed.operations * ghz for ghz in clocks], [f"{ghz}" for ghz in clocks]
    problem = chain_problem(
        10, speeds, types=types, mbit_per_second=MBIT, interstage=False, objective="period"
    )
    rows, _ = _planners(problem)
    yield from _at_work(
        "Fig. 18: a chain of 10 layers, 6 unlike devices", [f"{ghz} GHz" for ghz in clocks], rows
    )
    exact, pico = rows["exact"][1], rows["PICO"][1]
    yield Statement(
        "busy with the search: up to 99 %, but one with 85 %; with PICO 90 and 95 % for the fastest, 84.5 % "
        "for the others",
        f"{100 * min(exact):.0f} to {100 * max(exact):.0f} %; {100 * pico[0]:.0f} and {100 * pico[1]:.0f} %, "
        f"{100 * mean(pico[2:]):.1f} %",
        near(max(exact), 0.99)
        and near(min(exact), 0.85)
        and near(mean(pico[:2]), 0.925)
        and near(mean(pico[2:]), 0.845),
    )


Row = tuple[int, list[float], list[float]]
"""Period, and by device the busy share and the redundant one."""


def _planners(problem: Problem) -> tuple[dict[str, Row], Problem]:
    names = {"exact": "native", "PICO": "pico"}
    return {name: _row(planned(problem, backend)) for name, backend in names.items()}, problem


def _row(one: Account) -> Row:
    return one.period_us, list(one.busy), list(one.redundant)


def _at_work(title: str, devices: list[str], rows: dict[str, Row]) -> Iterator[Part]:
    table = titled(
        f"{title}: per cent busy (redundant); not charged", "plan", "period ms", *devices, "mean busy"
    )
    for name, (period_us, busy, extra) in rows.items():
        cells = [f"{100 * b:.0f} ({100 * e:.0f})" for b, e in zip(busy, extra, strict=True)]
        cells += ["-"] * (len(devices) - len(cells))
        table.add_row(name, f"{period_us / 1000:,.0f}", *cells, f"{100 * mean(busy):.0f}")
    yield table


def unlike(bed: PaperDevices) -> Iterator[Part]:
    """Yield what becomes of plans when half of the devices are 1 to 16 times as fast as the others."""
    for charged in (True, False):
        table = titled(
            f"6 devices, 3 of them faster; 12 layers like VGG16's; 400 Mbit/s, messages between groups "
            f"{'charged' if charged else 'not charged'}: period, and busy share of each device in per cent",
            "ratio", "plan", "period ms", "over exact", *("fast",) * 3, *("slow",) * 3,
        )  # fmt: skip
        for ratio in RATIOS:
            speeds, types = [2.0 * ratio] * 3 + [2.0] * 3, ["fast"] * 3 + ["slow"] * 3
            problem = chain_problem(12, speeds, types=types, interstage=charged)
            best = least_us(problem)
            for name in ("native", "pico", "pico-literal"):
                one = planned(problem, name)
                shares = (f"{100 * share:.0f}" for share in one.busy)
                over = f"{one.period_us / best:.2f}"
                table.add_row(f"1:{ratio}", name, f"{one.period_us / 1000:,.0f}", over, *shares)
        yield table
