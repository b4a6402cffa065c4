"""Pieces by CP-SAT: a model whose size does not depend on the width of the network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from importlib import util
from typing import Any

from ...formulations.errors import BackendUnavailableError
from ..protocol import Deadline
from ..sandbox import call_in_child
from .contraction import Contraction
from .methods import Found


def by_cpsat(graph: Contraction, start: Found, deadline: Deadline, threads: int) -> Found:
    """Return the best chain that CP-SAT finds, in a child process.

    Three searches, one for each objective, the later ones within what the earlier ones have proven.

    Raises BackendFailedError: the child ended without an answer.
    """
    if util.find_spec("ortools") is None:
        raise BackendUnavailableError("OR-Tools is not installed: pip install 'gapless[cpsat]'")
    return call_in_child(partial(_solved, graph, start, deadline, threads), "cpsat")


def _solved(graph: Contraction, start: Found, deadline: Deadline, threads: int) -> Found:
    model = _Model(graph, start.labels)
    best, bound = list(start.labels), start.bound
    for goal, sense in ((model.largest, 1), (model.last, -1), (model.total, 1)):
        model.start_from(best)
        model.cp.minimize(sense * goal)
        solver = model.solver(deadline, threads)
        status = solver.solve(model.cp)
        if status in (model.module.OPTIMAL, model.module.FEASIBLE):
            best = [solver.value(label) for label in model.labels]
        if goal is model.largest:
            bound = max(bound, model.unit * math.ceil(solver.best_objective_bound - 1e-6))
        if status != model.module.OPTIMAL:
            return Found(labels=best, bound=bound)
        model.cp.add(goal == solver.value(goal))
    return Found(labels=best, bound=bound, proven=True)


class _Model:
    """Labels, halos inside pieces, and what they cost.

    Halos and costs are bounded from below only: every objective and limit presses them down.
    """

    def __init__(self, graph: Contraction, start: Sequence[int]) -> None:
        from ortools.sat.python import cp_model

        self.module = cp_model
        self.cp = cp_model.CpModel()
        self.unit = math.gcd(*graph.share) or 1
        self._graph = graph
        self._worst = max(graph.costs(start)) // self.unit
        highest = graph.highest()
        self.labels = [self._number(high) for high in highest]
        self.last, self.largest = self._number(max(highest)), self._number(self._worst)
        self.cp.add_max_equality(self.last, self.labels)
        most = self._most_halos()
        self._halos = [(self._number(rows), self._number(columns)) for rows, columns in most]
        self._follow()
        extras = [self._extra(vertex) if any(most[vertex]) else None for vertex in range(len(highest))]
        self._levels(highest, extras)
        self.total = self._number(self._worst * (max(highest) + 1))
        self.cp.add(self.total >= sum(extra for extra in extras if extra is not None))

    def start_from(self, labels: Sequence[int]) -> None:
        """Give the solver a chain that is known."""
        self.cp.clear_hints()  # type: ignore[no-untyped-call]
        for variable, label in zip(self.labels, labels, strict=True):
            self.cp.add_hint(variable, label)

    def solver(self, deadline: Deadline, threads: int) -> Any:
        """Return a solver for one objective."""
        solver = self.module.CpSolver()
        solver.parameters.num_workers = threads
        # CP-SAT 9.15 can claim a false optimum with this presolve step (or-tools issue 5293).
        solver.parameters.presolve_inclusion_work_limit = 0
        if deadline.left_s is not None:
            solver.parameters.max_time_in_seconds = max(deadline.left_s, 0.001)
        return solver

    def _number(self, most: int) -> Any:
        return self.cp.new_int_var(0, most, "")

    def _most_halos(self) -> list[tuple[int, int]]:
        """Return bounds of halos: what one piece of everything needs, or the largest cost allows."""
        graph, most = self._graph, dict[int, tuple[int, int]]()
        for vertex in reversed(range(len(graph.members))):
            asked = [graph.halo(vertex, windows, most[reader]) for reader, windows in graph.readers[vertex]]
            rows, columns = (max((halo[axis] for halo in asked), default=0) for axis in (0, 1))
            (height, width), share = graph.size[vertex], graph.share[vertex] // self.unit
            if share:
                rows, columns = (
                    min(rows, self._worst // (share * width)),
                    min(columns, self._worst // (share * height)),
                )
            most[vertex] = rows, columns
        return [most[vertex] for vertex in range(len(most))]

    def _follow(self) -> None:
        """Tie labels along edges, and halos where both ends are in one piece."""
        for vertex, readers in enumerate(self._graph.readers):
            together = {reader: self.cp.new_bool_var("") for reader, _ in readers}
            for reader, same in together.items():
                self.cp.add(self.labels[reader] - self.labels[vertex] + same == 1)
            for reader, windows in readers:
                for axis, (stride, slack, up) in enumerate(self._graph.factors(vertex, windows)):
                    halo, beyond = self._halos[vertex][axis], self._halos[reader][axis]
                    self.cp.add(up * halo >= stride * beyond + slack).only_enforce_if(together[reader])

    def _extra(self, vertex: int) -> Any:
        """Return the cost of a vertex; None where it has none."""
        share = self._graph.share[vertex] // self.unit
        (rows, columns), (height, width) = self._halos[vertex], self._graph.size[vertex]
        if not share:
            return None
        area = self._number(height * width + self._worst // share)
        self.cp.add_multiplication_equality(area, [rows + height, columns + width])
        return share * area - share * height * width

    def _levels(self, highest: Sequence[int], extras: Sequence[Any]) -> None:
        """Bound the cost of each piece, and leave none empty up to the last."""
        within: list[list[Any]] = [[] for _ in range(max(highest) + 1)]
        costs: list[list[Any]] = [[] for _ in within]
        for vertex, extra in enumerate(extras):
            there = [self.cp.new_bool_var("") for _ in range(highest[vertex] + 1)]
            self.cp.add_exactly_one(there)
            self.cp.add(self.labels[vertex] == sum(level * here for level, here in enumerate(there)))
            for level, chosen in enumerate(there):
                within[level].append(chosen)
                if extra is not None:
                    cost = self._number(self._worst)
                    self.cp.add(cost >= extra).only_enforce_if(chosen)
                    costs[level].append(cost)
        for level, (here, spent) in enumerate(zip(within, costs, strict=True)):
            self.cp.add(sum(spent) <= self.largest)
            reached = self.cp.new_bool_var("")
            self.cp.add(self.last < level).only_enforce_if(~reached)
            self.cp.add_bool_or(here).only_enforce_if(reached)
