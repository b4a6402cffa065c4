"""BetterTogether's own encoding of chunking (section III-D), for comparison with `chunking.py`.

With x[i,c] "layer i runs on unit c", t[i,c] its time, Tmax and Tmin:

- (C1) sum over c of x[i,c] = 1 for every layer i;
- (C2) x[i,c] and x[k,c] imply x[j,c], for all i < j < k;
- (C3a) if layers i..j all run on c, the sum of t[k,c] over k = i..j is at most Tmax;
- (C3b) if i..j is a chunk on c, that sum is at least Tmin;
- (C5) each plan that was found is barred: sum over i of x[i, plan(i)] <= N - 1.

Erratum: the paper writes (C3b) with y[c,i,j] = "all of i..j on c", which holds for every sub-segment of
a chunk as well; Tmin would be the shortest *layer*. It says that y marks maximal chunks, and so it is
done here: y also demands that i-1 and j+1 do not run on c.

Only layers that a unit cannot run are handled beyond that: no transfers, memory, limits or rules.
"""

from __future__ import annotations

from itertools import combinations, pairwise

from ..chain import Chain
from ..expr import BoolExpr, BoolVar, Const, Expr, IntVar, VariableKey, all_of, any_of, count, linear, max_of
from ..model import Constraint, Encoded, Model, Values
from ..problem import Problem
from ..terms import Quantity
from .encoding import Parts, chunk_digits
from .tables import chain_of


def encode_paper(problem: Problem) -> Encoded[Parts]:
    """Return the paper's encoding; (C5) is `Encoded.exclude`."""
    return _Paper(chain_of(problem)).encoded()


class _Paper:
    """The variables of one chain, and what is said about them."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.layers, self.units = range(chain.layer_count), range(chain.unit_count)
        self.x = {(i, c): BoolVar("x", (i, c)) for i in self.layers for c in self.units}
        self.most = max(chain.most_busy_us(unit) for unit in self.units)
        self.t_max = IntVar("t_max", (), 0, self.most)
        self.t_min = IntVar("t_min", (), 0, self.most)

    def encoded(self) -> Encoded[Parts]:
        """Return the whole encoding."""
        groups = {
            "C1": [count(self.x[i, c] for c in self.units) == 1 for i in self.layers],
            "C2": self._contiguity(),
            "C3": self._chunk_times(),
            "support": self._support(),
        }
        constraints = tuple(Constraint(name=name, expr=e) for name, group in groups.items() for e in group)
        return Encoded(
            name="paper",
            model=Model(constraints=constraints, definitions=self._definitions()),
            digits=chunk_digits(self.chain, tuple(self._symbol(i) for i in self.layers)),
            decode=self._decode,
            exclude=self._exclude,
        )

    def _contiguity(self) -> list[BoolExpr]:
        return [
            (self.x[i, c] & self.x[k, c]).implies(self.x[j, c])
            for c in self.units
            for i, j, k in combinations(self.layers, 3)
        ]

    def _chunk_times(self) -> list[BoolExpr]:
        found = []
        for c in self.units:
            for i in self.layers:
                for j in self.layers[i:]:
                    inside = all_of(self.x[k, c] for k in range(i, j + 1))
                    outside = [~self.x[k, c] for k in (i - 1, j + 1) if k in self.layers]
                    time_us = self.chain.prefix_us[c][j + 1] - self.chain.prefix_us[c][i]
                    found.append(inside.implies(self.t_max >= time_us))
                    found.append(all_of([inside, *outside]).implies(self.t_min <= time_us))
        return found

    def _support(self) -> list[BoolExpr]:
        rows = self.chain.layer_us
        return [~self.x[i, c] for i in self.layers for c in self.units if rows[i][c] is None]

    def _definitions(self) -> dict[VariableKey, Expr]:
        """Return the quantities that order plans in the paper's mode; Tmax and Tmin settle at the loads."""
        used = [any_of(self.x[i, c] for i in self.layers) for c in self.units]
        load_us = linear((self.chain.layer_us[i][c] or 0, x) for (i, c), x in self.x.items())
        paper_gapness = self.t_max - self.t_min
        lonely = linear([(1, self.t_max), (-self.most, count(used))], self.most)
        gapness = max_of([paper_gapness, lonely]) if len(self.units) > 1 else paper_gapness
        found: dict[VariableKey, Expr] = {
            (Quantity.PERIOD, ()): self.t_max,
            (Quantity.PAPER_GAPNESS, ()): paper_gapness,
            (Quantity.GAPNESS, ()): gapness,
            (Quantity.LATENCY, ()): load_us,
        }
        return found

    def _symbol(self, layer: int) -> Expr:
        """Return the unit whose chunk ends at a layer, or the number of units."""
        last = layer == self.chain.layer_count - 1
        terms: list[tuple[int, Expr]] = []
        for c in self.units:
            ends = self.x[layer, c] if last else self.x[layer, c] & ~self.x[layer + 1, c]
            terms.append((c - self.chain.unit_count, ends))
        return linear(terms, self.chain.unit_count)

    def _decode(self, values: Values) -> Parts:
        units = [next(c for c in self.units if values(self.x[i, c])) for i in self.layers]
        edges = [i for i in self.layers[1:] if units[i] != units[i - 1]]
        bounds = [0, *edges, self.chain.layer_count]
        return tuple((i, j, units[i]) for i, j in pairwise(bounds))

    def _exclude(self, parts: Parts) -> BoolExpr:
        chosen = count(self.x[i, c] for start, stop, c in parts for i in range(start, stop))
        return chosen <= Const(self.chain.layer_count - 1)
