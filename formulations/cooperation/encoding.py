"""Groups as a model: one literal for each chunk with each group that may serve it.

    x[i, j, G]   the group G serves the layers [i, j)

The chosen chunks are a path from boundary 0 to n, and each device is in one chosen group at most. How a group
splits its rows and who leads it is known beforehand, so that every quantity is a sum over the literals; only
what a leader sends to the next one depends on two of them, and is bounded from below by each pair. All rows
are linear: one model serves CP-SAT, MILP and Z3 (cooperation, section 4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from ..expr import BoolExpr, BoolVar, Const, Expr, VariableKey, linear, max_of
from ..limits import limit_rows
from ..model import Constraint, Encoded, Model, Values
from ..problem import Problem
from ..scores import clashes
from ..terms import Quantity as Q
from .plans import Parts
from .service import Part, Service
from .tables import groups_of


def encode_groups(problem: Problem) -> Encoded[Parts]:
    """Return the model of a problem; every valid plan is a solution."""
    return _Columns(problem).encoded()


class _Columns:
    """The model of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.groups = problem, groups_of(problem)
        groups = self.groups
        self.cuts, self.devices = groups.chain.cuts, range(groups.device_count)
        self.services: dict[Part, Service] = {}
        for part in groups.possible():
            service = groups.service(part)
            assert service is not None
            if self._fits(service):
                self.services[part] = service
        self.chosen = {part: BoolVar("x", (*part[:2], *part[2])) for part in self.services}
        self.begin: defaultdict[tuple[int, int], list[Part]] = defaultdict(list)
        self.end: defaultdict[tuple[int, int], list[Part]] = defaultdict(list)
        self.of: defaultdict[int, list[Part]] = defaultdict(list)
        for part, service in self.services.items():
            self.begin[service.leader, part[0]].append(part)
            self.end[service.leader, part[1]].append(part)
            for device in part[2]:
                self.of[device].append(part)

    def _fits(self, service: Service) -> bool:
        groups, (start, stop, group) = self.groups, service.part
        last = self.cuts[-1]
        sizes = zip(group, service.memory_bytes, strict=True)
        capacities = groups.chain.unit_memory
        return (
            all(size <= capacity for d, size in sizes if (capacity := capacities[d]) is not None)
            and (start > 0 or groups.enter_us[service.leader] is not None)
            and (stop < last or groups.leave_us[service.leader] is not None)
        )

    def encoded(self) -> Encoded[Parts]:
        """Return the whole encoding."""
        rows = {
            "structure": self._structure(),
            "link": self._missing_links(),
            "conflict": self._conflicts(),
        } | self._demands()
        constraints = [Constraint(name=name, expr=expr) for name, found in rows.items() for expr in found]
        constraints += (Constraint(name=r.name, expr=r.expr) for r in self.problem.expression_rules)
        return Encoded(
            name="groups",
            model=Model(constraints=tuple(constraints), definitions=self._definitions()),
            decode=self._decode,
            exclude=self._exclude,
        )

    def _sum(self, parts: list[Part], amount: Callable[[Part], int] = lambda _: 1) -> Expr:
        return linear((amount(part), self.chosen[part]) for part in parts)

    def _at(self, table: dict[tuple[int, int], list[Part]], cut: int) -> list[Part]:
        return [part for leader in self.devices for part in table.get((leader, cut), ())]

    def _structure(self) -> list[BoolExpr]:
        rows: list[BoolExpr] = [self._sum(self.of[device]) <= 1 for device in self.devices]
        rows.append(self._sum(self._at(self.begin, 0)) == 1)
        inner = self.cuts[1:-1]
        rows += [self._sum(self._at(self.end, cut)) == self._sum(self._at(self.begin, cut)) for cut in inner]
        return rows

    def _missing_links(self) -> list[BoolExpr]:
        groups = self.groups
        return [
            self._sum(self.end[one, cut]) + self._sum(self.begin[other, cut]) <= 1
            for one in self.devices
            for other in self.devices
            if one != other and groups.send_us(one, other, 0) is None
            for cut in self.cuts[1:-1]
            if self.end[one, cut] and self.begin[other, cut]
        ]

    def _conflicts(self) -> list[BoolExpr]:
        pairs = clashes(self.groups.chain.exclusive)
        return [self._sum(self.of[device]) + self._sum(self.of[other]) <= 1 for device, other in pairs]

    # What a request takes

    def _sent(self, cut: int) -> Expr:
        """Return how long the result of what ends at a cut takes to the next leader; 0: there is none."""
        groups = self.groups
        pairs = {
            (one, other): groups.between_us(one, other, cut) or 0
            for one in self.devices
            if self.end[one, cut]
            for other in self.devices
            if other != one and self.begin[other, cut]
        }
        times = set(pairs.values())
        if len(times) <= 1:
            return self._sum(self._at(self.end, cut), lambda _: max(times, default=0))
        most = max(times)
        choices: list[Expr] = [Const(0)]
        for one in self.devices:
            if self.end[one, cut]:
                there = linear(
                    (time, self._sum(self.begin[other, cut]))
                    for (source, other), time in pairs.items()
                    if source == one
                )
                choices.append(linear([(1, there), (most, self._sum(self.end[one, cut]))], -most))
        return max_of(choices)

    @cached_property
    def _sends(self) -> dict[int, Expr]:
        """What leaders send at each cut but the first: to the next one, or to the host."""
        found = {cut: self._sent(cut) for cut in self.cuts[1:-1]}
        last = self.cuts[-1]
        found[last] = self._sum(
            self._at(self.end, last), lambda part: self.groups.leave_us[self._leader(part)] or 0
        )
        return found

    def _leader(self, part: Part) -> int:
        return self.services[part].leader

    def _received(self, part: Part) -> int:
        return (self.groups.enter_us[self._leader(part)] or 0) if part[0] == 0 else 0

    @cached_property
    def _stages(self) -> list[Expr]:
        """What a request takes of the chunk that ends at each cut; 0 where none does."""
        found = []
        for cut, sends in self._sends.items():
            ended = self._at(self.end, cut)
            own = self._sum(
                ended, lambda part: self.groups.stage_us(self.services[part], self._received(part))
            )
            found.append(max_of([own, sends]) if self.groups.data.devices.overlap else own + sends)
        return found

    def _definitions(self) -> dict[VariableKey, Expr]:
        parts, services = list(self.services), self.services
        found = self._of_devices()
        for layer in range(self.groups.chain.layer_count):
            covering = [part for part in parts if part[0] <= layer < part[1]]
            found[Q.SIZE, (layer,)] = self._sum(covering, lambda part: len(part[2]))
        found[Q.CHUNKS, ()] = self._sum(parts)
        found[Q.DEVICES, ()] = self._sum(parts, lambda part: len(part[2]))
        found[Q.PERIOD, ()] = period = max_of(self._stages)
        own = self._sum(
            parts,
            lambda part: services[part].time_us + services[part].message_us + self._received(part),
        )
        found[Q.LATENCY, ()] = linear([(1, own), *((1, sends) for sends in self._sends.values())])
        energy = self._sum(parts, lambda part: services[part].energy_nj)
        found[Q.ENERGY, ()] = linear([(1, energy), (sum(self.groups.idle_mw), period)])
        found[Q.REDUNDANCY, ()] = self._sum(parts, lambda part: services[part].extra_flops)
        found[Q.PEAK, ()] = self._sum(parts, lambda part: sum(services[part].memory_bytes))
        return found

    def _of_devices(self) -> dict[VariableKey, Expr]:
        found: dict[VariableKey, Expr] = {}
        numbers = {Q.BUSY: "compute_us", Q.EXTRA: "extra_permille", Q.MEMORY: "memory_bytes"}
        for device in self.devices:
            own = self.of[device]
            for layer in range(self.groups.chain.layer_count):
                found[Q.ON, (layer, device)] = self._sum([p for p in own if p[0] <= layer < p[1]])
            found[Q.USES, (device,)] = self._sum(own)
            found[Q.LEADS, (device,)] = self._sum([p for p in own if self._leader(p) == device])
            for quantity, name in numbers.items():
                found[quantity, (device,)] = linear(
                    (getattr(self.services[p], name)[p[2].index(device)], self.chosen[p]) for p in own
                )
            for other in self.devices:
                if other > device:
                    found[Q.TOGETHER, (device, other)] = self._sum([p for p in own if other in p[2]])
        return found

    # What is demanded

    def _demands(self) -> dict[str, list[BoolExpr]]:
        limits, quantities = self.problem.limits, self.problem.formulation.variables(self.problem)
        rows = limit_rows(limits, quantities.number, quantities.number(Q.DEVICES))
        found, capacity = {name: [row] for name, row in rows}, self.groups.chain.device_memory
        if capacity is not None:
            found["device_memory"] = [quantities.number(Q.PEAK) <= capacity]
        return found

    def _decode(self, values: Values) -> Parts:
        return tuple(sorted(part for part, literal in self.chosen.items() if values(literal)))

    def _exclude(self, parts: Parts) -> BoolExpr:
        # A plan that has all these chunks and one more is another plan; there is none, as devices are taken.
        known = [self.chosen[part] for part in parts if part in self.chosen]
        return linear((1, literal) for literal in known) <= len(known) - 1
