"""Partitions as a model: for each block and part, whether the block is there or later.

    y[b, s]   block b is in part s or a later one; y[b, 0] = 1; x[b, s] = y[b, s] - y[b, s+1]: in part s
    t[s, k]   part s is on a unit of kind k; one each, and not more than there are units of the kind
    h[e, s]   part s holds some pins of tensor e but not all
    n[s]      part s is not empty; only where somebody counts parts

    y[b, s+1] <= y[b, s],  y[a, s] <= y[b, s] for each edge a -> b of the transitive reduction
    h[e, s] >= x[p, s] - x[q, s] and >= x[q, s] - x[p, s] for the maker p of e and each reader q

The load of part s on kind k is linear in x and h; the period is the largest of those that t chooses. What
the first parts hold, and the last ones, makes proofs short, although it follows: no period is less than that
over how fast so many units are at most; and, with a known plan, neither hold more than they can in its
period, messages included (`bounds`). So each block has a window of parts: what has to be before it and after
it needs parts, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import gcd

from ..expr import BoolExpr, BoolVar, Const, Expr, VariableKey, all_of, any_of, count, linear, max_of
from ..limits import limit_rows
from ..model import Constraint, Encoded, Model, Structure, Values
from ..problem import Problem
from ..scores import clashes
from ..terms import Quantity as Q
from ..terms import Term
from ..weights import Weights
from .bounds import PartBounds, bounds_of
from .quantities import PartValues
from .tables import Code, chain_of, graph_to_search


class PartLiterals:
    """The literals of one problem.

    `known`: a valid plan, or None.
    """

    def __init__(self, problem: Problem, *, one: bool, known: Code | None) -> None:
        self.problem, self.one = problem, one
        self._number_in: dict[tuple[int, int], Expr] = {}
        self.graph = graph = graph_to_search(problem, one=one, known=known)
        self.blocks = graph.blocks
        self.kinds = graph.alike() if one else tuple((unit,) for unit in range(graph.unit_count))
        self.kind_of = {unit: kind for kind, units in enumerate(self.kinds) for unit in units}
        self.parts = range(min(graph.unit_count, problem.limits.max_units or graph.unit_count))
        self.times = [[row[units[0]] for units in self.kinds] for row in graph.block_us]
        self.weights, self.pins = graph.block_weights, graph.block_pins
        self.bounds = self._bounds()
        self.known_us = self._known_us(known)
        self.windows = self._windows()
        self.held = {
            (pin, part): BoolVar("h", (pin, part))
            for pin, pins in enumerate(self.pins)
            for part in self.parts
            if any(self.windows[block][0] <= part <= self.windows[block][1] for block in pins.layers)
        }

    def _bounds(self) -> PartBounds:
        return bounds_of(self.graph, len(self.parts))

    def _known_us(self, known: Code | None) -> int | None:
        """Return a period that nothing worse than is wanted, or None."""
        if known is None or not self.one or self.problem.ranking[0] != Term.PERIOD:
            return None
        return PartValues(self.graph, known).period_us

    def _windows(self) -> list[tuple[int, int]]:
        """Return the first and the last part that each block can be in, in plans that are not worse."""
        if self.known_us is None:
            return [(0, self.parts[-1])] * self.blocks.count
        return self.bounds.windows(self.known_us)

    def _later(self, block: int, part: int) -> BoolExpr:
        """Return "the block is in this part or a later one"."""
        first, last = self.windows[block]
        return Const(int(part <= first)) if part <= first or part > last else BoolVar("y", (block, part))

    def _inside(self, block: int, part: int) -> Expr:
        """Return "the block is in this part" as a number."""
        key = block, part
        if key not in self._number_in:
            ends = [(1, self._later(block, part)), (-1, self._later(block, part + 1))]
            self._number_in[key] = linear(ends)
        return self._number_in[key]

    def _bytes(self, part: int, *, step: int = 1) -> Expr:
        """Return the bytes of a part, in units of `step` bytes."""
        return self.weights.expr(
            lambda block: self._inside(block, part), lambda block: self._inside(block, part) >= 1, step=step
        )

    def _kind(self, part: int, kind: int) -> BoolExpr:
        return BoolVar("t", (part, kind)) if len(self.kinds) > 1 else Const(1)

    def _order(self) -> list[BoolExpr]:
        rows: list[BoolExpr] = []
        for block in range(self.blocks.count):
            first, last = self.windows[block]
            inside = range(first + 1, last + 1)
            rows += [self._later(block, part) <= self._later(block, part - 1) for part in inside]
            for other in self.blocks.before[block]:
                rows += [self._later(other, part) <= self._later(block, part) for part in self.parts[1:]]
        return rows

    def _kinds(self) -> list[BoolExpr]:
        if len(self.kinds) == 1:
            return []
        rows = [count(self._kind(part, k) for k in range(len(self.kinds))) == 1 for part in self.parts]
        for kind, units in enumerate(self.kinds):
            total = count(self._kind(part, kind) for part in self.parts)
            rows.append(
                total == len(units) if len(self.parts) == self.graph.unit_count else total <= len(units)
            )
        return rows

    @property
    def _counts(self) -> bool:
        """Whether it matters which parts are empty."""
        limits = self.problem.limits
        counted = Term.UNITS in self.problem.ranking or limits.min_units or any(self.graph.exclusive)
        return bool(counted) or not self.one

    def _used(self, part: int) -> BoolVar:
        return BoolVar("n", (part,))

    def _counting(self) -> list[BoolExpr]:
        """Return what ties n to the blocks; empty parts are the last ones."""
        sinks = [block for block in range(self.blocks.count) if not self.blocks.after[block]]
        rows: list[BoolExpr] = []
        for part in self.parts:
            reached = [self._later(block, part) for block in sinks]
            rows += [each <= self._used(part) for each in reached]
            inside = linear((1, self._inside(block, part)) for block in range(self.blocks.count))
            rows.append(self._used(part) <= inside)
        return rows


_MOST_BYTES = 2**24
"""Bytes are counted in larger units where capacities are beyond this; plans are judged in bytes."""

_WORK_BITS = 14
"""Work is counted in units such that all of it is a number of about so many bits.

Rounded so, rows say a little less, but solvers reason faster with small numbers: with 30 bits Z3 took half as
long again for 334 layers, and CP-SAT a third longer for 332 on 16 accelerators.
"""


def encode_parts(problem: Problem, *, top: int = 1, known: Code | None = None) -> Encoded[Code]:
    """Return the model of a problem.

    Where one plan is wanted and no rule tells units apart, units that are alike have one kind, and a known
    plan limits where blocks can be; otherwise every valid plan is a solution.
    """
    return OrderEncoding(problem, one=top == 1 and not problem.rules, known=known).encoded()


class OrderEncoding(PartLiterals):
    """The model of one problem (parameters: see `PartLiterals`)."""

    name = "convex parts"

    def encoded(self) -> Encoded[Code]:
        """Return the whole encoding."""
        rows = {
            "structure": [*self._order(), *self._kinds()],
            "work": self._work(),
            "transfers": self._transfers(),
            "support": self._support(),
            "unit_memory": self._memory(),
            "device_memory": self._device_memory(),
            "conflict": self._conflicts(),
            "units": self._counting() if self._counts else [],
        } | self._limits()
        constraints = [Constraint(name=name, expr=expr) for name, found in rows.items() for expr in found]
        constraints += (Constraint(name=r.name, expr=r.expr) for r in self.problem.expression_rules)
        return Encoded(
            name=self.name,
            model=Model(constraints=tuple(constraints), definitions=self._definitions()),
            decode=self._decode,
            exclude=self._exclude,
            structure=Structure.ORDERED,
            complete=not self.one,
            assign=self._assign,
        )

    # Loads

    def _transfers(self) -> list[BoolExpr]:
        exactly = not self.one or bool(self.problem.rules)
        rows: list[BoolExpr] = []
        for (pin, part), literal in self.held.items():
            blocks, outside = self.pins[pin].layers, self.pins[pin].outside
            inside = {block: self._inside(block, part) for block in blocks}
            if outside:
                rows += [each <= literal for each in inside.values()]
            maker, *readers = blocks
            for reader in () if outside else readers:
                rows.append(inside[maker] - inside[reader] <= literal)
                rows.append(inside[reader] - inside[maker] <= literal)
            if exactly:
                pins = linear((1, each) for each in inside.values())
                rows.append(literal <= pins)
                if not outside:
                    rows.append(literal + pins <= len(blocks))
        return rows

    def _compute(self, part: int, kind: int) -> Expr:
        return linear((row[kind] or 0, self._inside(block, part)) for block, row in enumerate(self.times))

    def _messages(self, part: int, kind: int) -> Expr:
        return linear(
            (pins.us[self.kinds[kind][0]], self.held[pin, part])
            for pin, pins in enumerate(self.pins)
            if (pin, part) in self.held
        )

    def _chosen(self, part: int, kind: int, amount: Expr, most: int) -> Expr:
        """Return an amount of a part if its unit is of the kind, otherwise at most 0."""
        if len(self.kinds) == 1:
            return amount
        return linear([(1, amount), (most, self._kind(part, kind))], -most)

    @cached_property
    def _most_messages(self) -> list[int]:
        return [sum(pins.us[units[0]] for pins in self.pins) for units in self.kinds]

    @cached_property
    def _most_compute(self) -> list[int]:
        return [sum(row[kind] or 0 for row in self.times) for kind in range(len(self.kinds))]

    @cached_property
    def _loads(self) -> dict[tuple[int, int], Expr]:
        found = {}
        for part in self.parts:
            for kind in range(len(self.kinds)):
                load = linear([(1, self._compute(part, kind)), (1, self._messages(part, kind))])
                most = self._most_compute[kind] + self._most_messages[kind]
                found[part, kind] = self._chosen(part, kind, load, most)
        return found

    @cached_property
    def _sent(self) -> dict[tuple[int, int], Expr]:
        return {
            (part, kind): self._chosen(part, kind, self._messages(part, kind), self._most_messages[kind])
            for part in self.parts
            for kind in range(len(self.kinds))
        }

    def _work(self) -> list[BoolExpr]:
        """Return that the first parts hold no more work than they can, nor the last, in plans not worse."""
        if self.known_us is None:
            return []
        rows: list[BoolExpr] = []
        work = self.bounds.work
        unit = max(1, work.total >> _WORK_BITS)
        shares = [each // unit for each in work.block]
        ahead, behind = self.bounds.ahead(self.known_us), self.bounds.behind(self.known_us)
        for part in self.parts[1:]:
            later = linear((share, self._later(block, part)) for block, share in enumerate(shares))
            rows.append(later <= behind[len(self.parts) - part] // unit)
            rows.append(linear([(-1, later)], sum(shares)) <= ahead[part] // unit)
        return rows

    def _ends(self) -> list[Expr]:
        """Return what no period is less than: the work of the first parts and of the last, shared out."""
        found: list[Expr] = []
        work = self.bounds.work
        for part in self.parts[1:]:
            behind = linear(
                (each // work.reach[len(self.parts) - part], self._later(block, part))
                for block, each in enumerate(work.block)
            )
            shares = [each // work.reach[part] for each in work.block]
            ahead = linear(
                ((-share, self._later(block, part)) for block, share in enumerate(shares)), sum(shares)
            )
            found += [ahead, behind]
        return found

    # Facts of the device, limits

    def _support(self) -> list[BoolExpr]:
        return [
            linear([(1, self._inside(block, part)), (1, self._kind(part, kind))]) <= 1
            for block, row in enumerate(self.times)
            for kind, time in enumerate(row)
            if time is None
            for part in range(self.windows[block][0], self.windows[block][1] + 1)
        ]

    def _memory(self) -> list[BoolExpr]:
        rows: list[BoolExpr] = []
        for kind, units in enumerate(self.kinds):
            capacity = self.graph.unit_memory[units[0]]
            if capacity is None or capacity >= self.weights.whole:
                continue
            step = max(1, -(-capacity // _MOST_BYTES)) if _large(capacity, self.weights) else 1
            for part in self.parts:
                held = self._bytes(part, step=step) - capacity // step
                rows.append(self._chosen(part, kind, held, self.weights.whole // step) <= 0)
        return rows

    def _device_memory(self) -> list[BoolExpr]:
        capacity = self.graph.device_memory
        if capacity is None or self.weights.copied <= capacity:
            return []
        if self.weights.whole > capacity:
            return [Const(0)]
        return [linear((1, self._bytes(part)) for part in self.parts) <= capacity]

    def _conflicts(self) -> list[BoolExpr]:
        return [~(self._uses(unit) & self._uses(other)) for unit, other in clashes(self.graph.exclusive)]

    def _limits(self) -> dict[str, list[BoolExpr]]:
        limits, variables = self.problem.limits, self.problem.formulation.variables(self.problem)
        rows = limit_rows(
            limits, variables.number, variables.number(Q.UNITS), {"max_units": lambda most: None}
        )
        return {name: [row] for name, row in rows}

    # Quantities

    def _uses(self, unit: int) -> BoolExpr:
        kind = self.kind_of[unit]
        return any_of(self._used(part) & self._kind(part, kind) for part in self.parts)

    def _on(self, block: int, kind: int) -> BoolExpr:
        first, last = self.windows[block]
        return any_of(
            all_of([self._inside(block, part) >= 1, self._kind(part, kind)])
            for part in range(first, last + 1)
        )

    def _definitions(self) -> dict[VariableKey, Expr]:
        def total(of_part: Mapping[tuple[int, int], Expr]) -> Expr:
            kinds = range(len(self.kinds))
            return linear((1, max_of([Const(0), *(of_part[part, k] for k in kinds)])) for part in self.parts)

        found: dict[VariableKey, Expr] = {
            (Q.PERIOD, ()): max_of([*self._loads.values(), *self._ends()]),
            (Q.TRANSFERS, ()): total(self._sent),
            (Q.WORK, ()): total(self._loads),
            (Q.UNITS, ()): count(self._used(part) for part in self.parts),
        }
        return found if self.one else found | self._of_units()

    def _of_units(self) -> dict[VariableKey, Expr]:
        """Return the quantities of single units; each is a kind of its own."""
        found: dict[VariableKey, Expr] = {}
        for kind, (unit,) in enumerate(self.kinds):
            for block, members in enumerate(self.blocks.members):
                on = self._on(block, kind)
                found |= {(Q.ON, (layer, unit)): on for layer in members}
            held = {part: self._bytes(part) for part in self.parts}
            of_part = {
                Q.BUSY: [self._loads[part, kind] for part in self.parts],
                Q.TRANSFER: [self._sent[part, kind] for part in self.parts],
                Q.MEMORY: [self._chosen(part, kind, held[part], self.weights.whole) for part in self.parts],
            }
            found |= {(name, (unit,)): max_of([Const(0), *amounts]) for name, amounts in of_part.items()}
            found[Q.USES, (unit,)] = self._uses(unit)
        return found

    # Solutions

    def _decode(self, values: Values) -> Code:
        left = [list(units) for units in self.kinds]
        kinds = range(len(self.kinds))
        unit_of = [
            left[next(k for k in kinds if self._kind(part, k).evaluate(values))].pop(0) for part in self.parts
        ]
        code = [0] * self.graph.layer_count
        for block, members in enumerate(self.blocks.members):
            part = sum(self._later(block, part).evaluate(values) for part in self.parts[1:])
            for layer in members:
                code[layer] = unit_of[part]
        return tuple(code)

    def _exclude(self, code: Code) -> BoolExpr:
        on = [
            self._on(block, self.kind_of[code[members[0]]])
            for block, members in enumerate(self.blocks.members)
        ]
        return ~all_of(on)

    def _assign(self, code: Code) -> Mapping[VariableKey, int]:
        """Return the value of every variable on a plan: its parts first, then empty ones."""
        chain = chain_of(self.graph, code) or ()
        spare = [unit for unit in range(self.graph.unit_count) if unit not in chain]
        units = [*chain, *spare][: len(self.parts)]
        part_of = [chain.index(code[members[0]]) for members in self.blocks.members]
        found: dict[VariableKey, int] = {}
        for block, (first, last) in enumerate(self.windows):
            found |= {("y", (block, p)): int(part_of[block] >= p) for p in range(first + 1, last + 1)}
        for part in self.parts:
            found |= {
                ("t", (part, kind)): int(self.kind_of[units[part]] == kind) for kind in range(len(self.kinds))
            }
            found["n", (part,)] = int(part < len(chain))
        for pin, part in self.held:
            blocks, outside = self.pins[pin].layers, self.pins[pin].outside
            inside = [part_of[block] == part for block in blocks]
            found["h", (pin, part)] = int(any(inside) and (outside or not all(inside)))
        return found


def _large(capacity: int, weights: Weights) -> bool:
    """Return whether a capacity is large even in the largest unit that all sizes are multiples of."""
    sizes = (*weights.own, *(size for size, _ in weights.shared))
    return capacity // max(1, gcd(*sizes)) > _MOST_BYTES
