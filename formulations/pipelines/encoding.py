"""Pipelines as a model: one literal for each chunk on each device in each pipeline.

Pipelines have no names of their own: a pipeline is called by its first device in the order of the platform,
so that a plan has one solution and not one for each numbering. The *slot* s is the pipeline that device s
names; device d can be in the slots up to d.

    a[s, i, j, d]   in slot s, device d runs the layers [i, j)
    b[s, t]         the period of slot s is at most the t-th of all times that a device can take

The chunks of a slot are a path from boundary 0 to n (EPipe's order and cuts in one), each device is on one
arc at most, and the rate of a slot is a sum of steps: R_s = sum over t of (r_t - r_(t+1)) b[s, t] with
r_t = floor(S / T_t). All rows are linear, so one model serves CP-SAT, MILP and Z3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from itertools import pairwise

from ..expr import BoolExpr, BoolVar, Const, Expr, IntVar, VariableKey, all_of, linear, max_of, variables
from ..limits import limit_rows
from ..loads import negated
from ..model import Constraint, Encoded, Model, Values
from ..problem import Problem
from ..scores import clashes
from ..terms import Quantity as Q
from ..terms import Term
from .plans import Pipes, ordered
from .quantities import most_stage_us
from .tables import Cluster, cluster_of

Arc = tuple[int, int, int, int]
"""Slot, start, stop, device."""


def encode_pipelines(problem: Problem) -> Encoded[Pipes]:
    """Return the model of a problem; every valid plan is a solution."""
    return _Arcs(problem).encoded()


class _Arcs:
    """The model of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.cluster = problem, cluster_of(problem)
        cluster = self.cluster
        self.devices = range(cluster.device_count)
        self.cuts = cluster.chain.cuts
        self.many = cluster.most_pipelines > 1
        self.slots = self.devices if self.many else range(1)
        chunks = [
            (start, stop, device)
            for device in self.devices
            for index, start in enumerate(self.cuts)
            for stop in self.cuts[index + 1 :]
            if _possible(cluster, start, stop, device)
        ]
        self.arcs = {
            (slot, *chunk): BoolVar("a", (slot, *chunk))
            for slot in self.slots
            for chunk in chunks
            if not self.many or slot <= chunk[2]
        }
        self.begin: defaultdict[tuple[int, int, int], list[Arc]] = defaultdict(list)
        self.end: defaultdict[tuple[int, int, int], list[Arc]] = defaultdict(list)
        self.of: defaultdict[tuple[int, int], list[Arc]] = defaultdict(list)
        for arc in self.arcs:
            slot, start, stop, device = arc
            self.begin[slot, device, start].append(arc)
            self.end[slot, device, stop].append(arc)
            self.of[slot, device].append(arc)

    def encoded(self) -> Encoded[Pipes]:
        """Return the whole encoding."""
        rows = {
            "structure": self._structure(),
            "link": self._missing_links(),
            "conflict": self._conflicts(),
        } | self._demands()
        rates = self._needs_rate()
        if rates:
            rows["rate"] = self._rate_rows()
        definitions = self._definitions()
        if rates:
            definitions[Q.RATE, ()] = self._rate()
        constraints = [Constraint(name=name, expr=expr) for name, found in rows.items() for expr in found]
        constraints += (Constraint(name=r.name, expr=r.expr) for r in self.problem.expression_rules)
        return Encoded(
            name="pipelines",
            model=Model(constraints=tuple(constraints), definitions=definitions),
            decode=self._decode,
            exclude=self._exclude,
        )

    def _sum(self, arcs: list[Arc]) -> Expr:
        return linear((1, self.arcs[arc]) for arc in arcs)

    def _active(self, slot: int) -> Expr:
        """Return whether there is such a pipeline."""
        return linear((1, self.arcs[arc]) for d in self.devices for arc in self.begin[slot, d, 0])

    def _uses(self, device: int) -> Expr:
        return linear((1, self.arcs[arc]) for slot in self.slots for arc in self.of[slot, device])

    def _structure(self) -> list[BoolExpr]:
        rows: list[BoolExpr] = [self._uses(device) <= 1 for device in self.devices]
        for slot in self.slots:
            rows.append(self._active(slot) <= 1)
            for cut in self.cuts[1:-1]:
                into = [arc for d in self.devices for arc in self.end[slot, d, cut]]
                out = [arc for d in self.devices for arc in self.begin[slot, d, cut]]
                rows.append(self._sum(into) == self._sum(out))
            if self.many:
                rows.append(self._sum(self.of[slot, slot]) == self._active(slot))
        total = linear((1, self._active(slot)) for slot in self.slots)
        return [*rows, total >= 1, total <= self.cluster.most_pipelines]

    def _missing_links(self) -> list[BoolExpr]:
        link = self.cluster.link_us
        return [
            self._sum(self.end[slot, one, cut]) + self._sum(self.begin[slot, other, cut]) <= 1
            for slot in self.slots
            for one in self.devices
            for other in self.devices
            if one != other and link[one][other][0] is None
            for cut in self.cuts[1:-1]
            if self.end[slot, one, cut] and self.begin[slot, other, cut]
        ]

    def _conflicts(self) -> list[BoolExpr]:
        pairs = clashes(self.cluster.chain.exclusive)
        return [self._uses(unit) + self._uses(other) <= 1 for unit, other in pairs]

    # What devices do

    def _compute(self, slot: int, device: int) -> Expr:
        cluster = self.cluster
        return linear((cluster.compute_us(*arc[1:]), self.arcs[arc]) for arc in self.of[slot, device])

    def _sends(self, slot: int, device: int) -> Expr:
        """Return how long a device of a slot sends: the message of the cut at which its chunk ends."""
        link = self.cluster.link_us[device]
        most = max((time or 0 for row in link for time in row), default=0)
        choices: list[Expr] = [Const(0)]
        for cut in self.cuts[1:-1] if most else ():
            if not self.end[slot, device, cut]:
                continue
            message = linear(
                (link[other][cut] or 0, self.arcs[arc])
                for other in self.devices
                if other != device
                for arc in self.begin[slot, other, cut]
            )
            choices.append(linear([(1, message), (most, self._sum(self.end[slot, device, cut]))], -most))
        last = self.cuts[-1]
        leaves = self._sum(self.end[slot, device, last])
        sends = max_of(choices) if len(choices) > 1 else Const(0)
        return linear([(1, sends), (self.cluster.leave_us[device] or 0, leaves)])

    def _receives(self, slot: int, device: int) -> Expr:
        return linear([(self.cluster.enter_us[device] or 0, self._sum(self.begin[slot, device, 0]))])

    @cached_property
    def _messages(self) -> dict[tuple[int, int], tuple[Expr, Expr]]:
        return {key: (self._sends(*key), self._receives(*key)) for key in self.of}

    @cached_property
    def _stages(self) -> dict[tuple[int, int], Expr]:
        """How long one item takes of each device in each slot; 0 where it is not."""
        found = {}
        for key, messages in self._messages.items():
            parts = [self._compute(*key), *messages]
            found[key] = max_of(parts) if self.cluster.data.overlap else linear((1, part) for part in parts)
        return found

    def _period(self, slot: int) -> Expr:
        return max_of(self._stages[slot, device] for device in self.devices if (slot, device) in self.of)

    # Rates

    def _needs_rate(self) -> bool:
        return Term.THROUGHPUT in self.problem.ranking or self._exactly

    @cached_property
    def _exactly(self) -> bool:
        """Whether a rule speaks about the rate: then it must not be understated either."""
        return any((Q.RATE, ()) in variables(rule.expr) for rule in self.problem.expression_rules)

    @cached_property
    def _times(self) -> list[int]:
        """Every time that can be a period, ascending: some device takes it, and no layer needs more."""
        found: set[int] = set()
        fastest: dict[int, int] = {}
        for start, stop, device in {arc[1:] for arc in self.arcs}:
            alone = self._alone(start, stop, device)
            found.update(time for _, time in self._stage_times(start, stop, device))
            found.add(alone)
            for layer in range(start, stop):
                fastest[layer] = min(alone, fastest.get(layer, alone))
        least = max(fastest.values(), default=0)
        return sorted(time for time in found if time >= least)

    def _alone(self, start: int, stop: int, device: int) -> int:
        """Return what a chunk takes without the message to the next device."""
        cluster = self.cluster
        enter = (cluster.enter_us[device] or 0) if start == 0 else 0
        leave = (cluster.leave_us[device] or 0) if stop == self.cuts[-1] else 0
        return cluster.stage_us(cluster.compute_us(start, stop, device), enter, leave)

    def _stage_times(self, start: int, stop: int, device: int) -> list[tuple[int, int]]:
        """Return what a chunk takes with the message to each device, where that is more than without."""
        if stop == self.cuts[-1]:
            return []
        cluster, alone = self.cluster, self._alone(start, stop, device)
        compute, enter = cluster.compute_us(start, stop, device), cluster.enter_us[device] or 0
        times = (
            (other, cluster.stage_us(compute, link[stop] or 0, enter if start == 0 else 0))
            for other, link in enumerate(cluster.link_us[device])
            if other != device and link[stop] is not None
        )
        return [(other, time) for other, time in times if time > alone]

    def _step(self, slot: int, place: int) -> BoolExpr:
        if self._exactly:
            return all_of([self._active(slot) >= 1, self._period(slot) <= self._times[place]])
        return BoolVar("b", (slot, place))

    def _rate_rows(self) -> list[BoolExpr]:
        """Return what keeps steps from being taken: a period is at most T only without what takes longer."""
        times, rows = self._times, []
        if self._exactly or not times:
            return []
        for slot in self.slots:
            steps = [self._step(slot, place) for place in range(len(times))]
            rows += [one <= other for one, other in pairwise(steps)]
            rows.append(steps[-1] <= self._active(slot))
        for arc, literal in self.arcs.items():
            slot, start, stop, device = arc
            place = bisect_left(times, self._alone(start, stop, device))
            if place:
                rows.append(literal + self._step(slot, place - 1) <= 1)
            for other, time in self._stage_times(start, stop, device):
                following = self.begin[slot, other, stop]
                if following and time > times[0]:
                    below = self._step(slot, bisect_left(times, time) - 1)
                    rows.append(literal + self._sum(following) + below <= 2)
        return rows

    def _rate(self) -> Expr:
        rates = [self.cluster.rate(max(1, time)) for time in self._times] + [0]
        return linear(
            (rates[place] - rates[place + 1], self._step(slot, place))
            for slot in self.slots
            for place in range(len(self._times))
        )

    # Quantities

    def _definitions(self) -> dict[VariableKey, Expr]:
        found = self._of_devices()
        found[Q.PIPELINES, ()] = linear((1, self._active(slot)) for slot in self.slots)
        found[Q.DEVICES, ()] = linear((1, self._uses(device)) for device in self.devices)
        found[Q.PERIOD, ()] = max_of(self._stages.values())
        found[Q.LATENCY, ()] = max_of(map(self._latency, self.slots))
        found[Q.GAPNESS, ()] = max_of(map(self._gapness, self.slots))
        found[Q.ENERGY, ()] = max_of(map(self._energy, self.slots))
        found[Q.TRAFFIC, ()] = max_of(map(self._traffic, self.slots))
        found[Q.PEAK, ()] = linear((1, found[Q.MEMORY, (device,)]) for device in self.devices)
        return found

    def _of_devices(self) -> dict[VariableKey, Expr]:
        cluster = self.cluster
        found: dict[VariableKey, Expr] = {}
        for device in self.devices:
            arcs = [arc for slot in self.slots for arc in self.of[slot, device]]
            for layer in range(cluster.chain.layer_count):
                found[Q.ON, (layer, device)] = self._sum([arc for arc in arcs if arc[1] <= layer < arc[2]])
            found[Q.USES, (device,)] = self._uses(device)
            slots = [slot for slot in self.slots if (slot, device) in self.of]
            found[Q.BUSY, (device,)] = linear((1, self._compute(slot, device)) for slot in slots)
            found[Q.STAGE, (device,)] = linear((1, self._stages[slot, device]) for slot in slots)
            found[Q.MEMORY, (device,)] = linear(
                (cluster.memory_bytes(arc[1], arc[2]), self.arcs[arc]) for arc in arcs
            )
            for other in self.devices:
                if other != device:
                    found[Q.SENDS, (device, other)] = self._meets(device, other)
                if other > device:
                    found[Q.WITH, (device, other)] = self._shares(device, other)
        return found

    def _meets(self, one: int, other: int) -> Expr:
        """Return whether the chunk of one device ends where that of another one begins, in one slot."""
        pairs = [
            self._sum(self.end[slot, one, cut]) + self._sum(self.begin[slot, other, cut]) - 1
            for slot in self.slots
            for cut in self.cuts[1:-1]
            if self.end[slot, one, cut] and self.begin[slot, other, cut]
        ]
        return max_of([Const(0), *pairs]) if pairs else Const(0)

    def _shares(self, one: int, other: int) -> Expr:
        """Return whether two devices are in one slot."""
        pairs = [
            self._sum(self.of[slot, one]) + self._sum(self.of[slot, other]) - 1
            for slot in self.slots
            if (slot, one) in self.of and (slot, other) in self.of
        ]
        return max_of([Const(0), *pairs]) if pairs else Const(0)

    def _latency(self, slot: int) -> Expr:
        keys = [key for key in self.of if key[0] == slot]
        messages = [each for key in keys for each in self._messages[key]]
        return linear((1, part) for part in [*(self._compute(*key) for key in keys), *messages])

    def _gapness(self, slot: int) -> Expr:
        devices = [device for device in self.devices if (slot, device) in self.of]
        if not devices:
            return Const(0)
        loads = [self._stages[slot, device] for device in devices]
        uses = [self._sum(self.of[slot, device]) for device in devices]
        most = [most_stage_us(self.cluster, device) for device in devices]
        # Nothing at all runs in a slot that is no pipeline: all loads are 0, and the gap is below 0.
        return max_of([Const(0), max_of(loads) + max_of(negated(loads, uses, [max(most)] * len(most)))])

    def _energy(self, slot: int) -> Expr:
        power = self.cluster.data.power_mw or (0,) * len(self.devices)
        return linear((power[device], self._compute(s, device)) for s, device in self.of if s == slot)

    def _traffic(self, slot: int) -> Expr:
        if not self.cluster.data.links:
            return Const(0)
        sizes = self.cluster.boundary_bytes
        return linear(
            (sizes[cut], self.arcs[arc])
            for cut in self.cuts[1:-1]
            for device in self.devices
            for arc in self.begin[slot, device, cut]
        )

    # What is demanded

    def _demands(self) -> dict[str, list[BoolExpr]]:
        limits, quantities = self.problem.limits, self.problem.formulation.variables(self.problem)
        rows = limit_rows(limits, quantities.number, quantities.number(Q.DEVICES))
        found = {name: [row] for name, row in rows}
        if self.cluster.chain.device_memory is not None:
            found["device_memory"] = [quantities.number(Q.PEAK) <= self.cluster.chain.device_memory]
        if self.cluster.data.switch_bytes_per_second is not None:
            found["switch"] = self._switch(self.cluster.data.switch_bytes_per_second)
        return found

    def _switch(self, capacity: int) -> list[BoolExpr]:
        """Return that all pipelines together send no more than the switch carries.

        The load of a slot is at least bytes / T for every T that its period does not exceed.
        """
        most = capacity + 1
        rows: list[BoolExpr] = []
        sizes = self.cluster.boundary_bytes
        loads = [IntVar("load", (slot,), 0, most) for slot in self.slots]
        for slot, load in zip(self.slots, loads, strict=True):
            period, sent = self._period(slot), self._traffic(slot)
            bound = 1_000_000 * sum(sorted(sizes)[-len(self.devices) :])
            rows += [time * load + bound * (period > time) >= 1_000_000 * sent for time in self._times]
        return [*rows, linear((1, load) for load in loads) <= capacity]

    def _decode(self, values: Values) -> Pipes:
        pipes: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for arc, literal in self.arcs.items():
            if values(literal):
                pipes[arc[0]].append(arc[1:])
        return ordered(tuple(tuple(sorted(pipe)) for pipe in pipes.values()))

    def _exclude(self, pipes: Pipes) -> BoolExpr:
        # A plan that has all these chunks and one more is another plan.
        chosen = {(min(d for _, _, d in pipe) if self.many else 0, *part) for pipe in pipes for part in pipe}
        return linear((1 if arc in chosen else -1, x) for arc, x in self.arcs.items()) <= len(chosen) - 1


def _possible(cluster: Cluster, start: int, stop: int, device: int) -> bool:
    """Return whether a device can run a chunk, whatever else runs."""
    last = cluster.chain.layer_count
    return (
        cluster.runs(start, stop, device)
        and cluster.fits(start, stop, device)
        and (start > 0 or cluster.enter_us[device] is not None)
        and (stop < last or cluster.leave_us[device] is not None)
    )
