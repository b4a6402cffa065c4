"""All plans, best first as far as bounds can say: what the programs over sets of devices do not decide.

A plan is built pipeline by pipeline, in order of the devices that they begin with, and chunk by chunk. A
branch is left out when it cannot lead to a valid plan, or to none that is better than those that are kept
already: `Bounds` says what is left to do at least. So the search is exact for every term, limit and rule; how
long it takes depends on the bounds.

Where no rule names devices, those of one kind stand for one another: of free devices of a kind only the
first is tried, and pipelines that begin with devices of one kind come in order of their cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from ...formulations.chain import Part
from ...formulations.expr import Interval, IntVar, Variable
from ...formulations.pipelines.plans import Pipe, Pipes, ordered
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.problem import Problem
from ...formulations.rules import Rule
from ...formulations.terms import Quantity as Q
from ..branch_and_bound import BranchAndBound
from ..protocol import Deadline, SolveOptions
from .arrays import NEVER, KindArrays
from .bounds import Begun, Bounds, Done, completed, values_of
from .relaxed import copies

_SO_FAR: dict[str, str] = {
    Q.LATENCY: "latency_us",
    Q.GAPNESS: "gapness_us",
    Q.ENERGY: "energy_nj",
    Q.TRAFFIC: "traffic_bytes",
}


class Completed(NamedTuple):
    """Some pipelines, and what is left.

    `pipes`, `done`: the pipelines in the order in which they were found, and their numbers.
    """

    pipes: Pipes
    done: Done
    used: frozenset[int]  # their devices
    state: int  # the devices that are free, as the bounds count them
    order: tuple[int, tuple[object, ...]]
    """What orders the last pipeline: the kind that it begins with, and its chunks by kind."""


class Head(NamedTuple):
    """A pipeline that was begun.

    `parts`, `begun`: its chunks that are followed by others, and their numbers; `device`, `place`: what takes
    the layers from a place on.
    """

    parts: Pipe
    begun: Begun
    device: int
    place: int
    used: frozenset[int]  # the devices of it and of the pipelines before
    state: int  # the devices that are free, that one included, as the bounds count them


class Prospects:
    """What rules allow of plans that are not finished."""

    def __init__(self, cluster: Cluster, rules: Sequence[Rule]) -> None:
        self._cluster, self._rules = cluster, rules

    def hopeless(self, plan: Completed, head: Head) -> bool:
        """Return whether some rule is broken however a plan is finished."""
        if not self._rules:
            return False
        known = _Known(self._cluster, plan, head)
        return any(rule.expr.bounds(known)[1] <= 0 for rule in self._rules)


class _Known:
    """What is known of the quantities of a plan that is not finished."""

    def __init__(self, cluster: Cluster, plan: Completed, head: Head) -> None:
        self._cluster, self._plan, self._head = cluster, plan, head
        self._boundary = cluster.chain.cuts[head.place]
        rows = [*plan.pipes, head.parts]
        self._chunk: Mapping[int, Part] = {part[2]: part for row in rows for part in row}
        self._row = {part[2]: number for number, row in enumerate(rows) for part in row}
        self._row[head.device] = len(plan.pipes)
        self._next: dict[int, int | None] = {}
        for row in plan.pipes:
            self._next |= {part[2]: later[2] for part, later in pairwise(row)}
            self._next[row[-1][2]] = None
        path = [*(part[2] for part in head.parts), head.device]
        self._next |= dict(pairwise(path))
        self._last_pipe = len(plan.pipes) + 1 >= cluster.most_pipelines

    def __call__(self, variable: Variable) -> Interval:
        """Return the least and the greatest value that a quantity can still take."""
        known = self._exactly(variable.name, variable.args)
        if known is not None:
            return known, known
        high = variable.high if isinstance(variable, IntVar) else 1
        return min(high, self._at_least(variable.name)), high

    def _exactly(self, name: str, args: tuple[int, ...]) -> int | None:
        if name == Q.ON:
            return self._on(*args)
        if name == Q.USES:
            return 1 if args[0] in self._row else None
        if name == Q.SENDS:
            return self._sends(*args)
        if name == Q.WITH:
            return self._with(*args)
        if name in (Q.BUSY, Q.MEMORY) and args[0] in self._chunk:
            start, stop, device = self._chunk[args[0]]
            if name == Q.BUSY:
                return self._cluster.compute_us(start, stop, device)
            return self._cluster.memory_bytes(start, stop)
        return None

    def _on(self, layer: int, device: int) -> int | None:
        if device in self._chunk:
            start, stop, _ = self._chunk[device]
            return int(start <= layer < stop)
        if device == self._head.device:
            return int(layer == self._boundary) if layer <= self._boundary else None
        return 0 if self._last_pipe and layer <= self._boundary else None

    def _sends(self, one: int, other: int) -> int | None:
        if one in self._next:
            return int(self._next[one] == other)
        return 0 if other in self._row else None  # who sends to it is known, and is not this one

    def _with(self, one: int, other: int) -> int | None:
        rows = [self._row.get(one), self._row.get(other)]
        if None not in rows:
            return int(rows[0] == rows[1])
        known = next((row for row in rows if row is not None), None)
        return 0 if known is not None and known < len(self._plan.pipes) else None

    def _at_least(self, name: str) -> int:
        done, begun = self._plan.done, self._head.begun
        if name == Q.PIPELINES:
            return done.pipelines + 1
        if name == Q.DEVICES:
            return done.devices + begun.devices + 1
        if name == Q.PEAK:
            return done.peak_bytes + begun.memory_bytes
        if name == Q.RATE:
            return done.rate
        if name == Q.PERIOD:
            return max(done.period_us, begun.longest_us)
        if name in _SO_FAR:
            before, own = (int(getattr(numbers, _SO_FAR[name])) for numbers in (done, begun))
            return max(before, own)
        return 0


class Search(BranchAndBound[Pipes, Pipes]):
    """The best plans of a problem.

    `bounds`: on the terms that rank plans; on those of the objective for a single plan.
    """

    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        arrays: KindArrays,
        bounds: Bounds,
        *,
        deadline: Deadline,
        on_better: Callable[[], None],
    ) -> None:
        super().__init__(problem, options, deadline=deadline, on_better=on_better)
        self._cluster, self._bounds = cluster_of(problem), bounds
        self.alike = not problem.rules
        self._kind_of = arrays.kind_of if self.alike else tuple(range(len(arrays.kind_of)))
        self._cuts, self._last = arrays.cuts, arrays.last
        tables = arrays.compute_us.tolist()
        self._compute = [tables[kind] for kind in arrays.kind_of]
        self._memory: list[list[int]] = arrays.memory_bytes.tolist()
        self._sent: list[int] = arrays.sent_bytes.tolist()
        self._power = arrays.power_mw[list(arrays.kind_of)].tolist()
        self._prospects = Prospects(self._cluster, problem.expression_rules)

    def _search(self) -> None:
        self._more(Completed((), Done(), frozenset(), self._bounds.all, (-1, ())))

    def _code(self, form: Pipes) -> Pipes:
        return form

    def _shape(self, form: Pipes) -> Hashable:
        return tuple(sorted(tuple(map(self._by_kind, pipe)) for pipe in form))

    def _copies(self, form: Pipes) -> int:
        return sum(1 for _ in islice(copies(form, self._kind_of), self._top))

    # Branches

    def _more(self, plan: Completed) -> None:
        """Add one pipeline more in every way, to some that are completed."""
        done, most = plan.done, self._problem.limits.max_units
        if done.pipelines == self._cluster.most_pipelines or (most is not None and done.devices >= most):
            return
        if self._hopeless(self._bounds.between(done, plan.state)):
            return
        starts = []
        for device in self._free(plan.used):
            if self._kind_of[device] >= plan.order[0] and self._cluster.enter_us[device] is not None:
                least = self._bounds.of(done, Begun(), device, 0, plan.state)
                if least is not None:
                    starts.append((least, device))
        for least, device in sorted(starts):
            if not self._hopeless(least):
                self._extend(plan, Head((), Begun(), device, 0, plan.used | {device}, plan.state))

    def _free(self, used: frozenset[int]) -> Iterator[int]:
        """Yield the devices that can be used beside others; one of each kind."""
        seen = set()
        for device in range(self._cluster.device_count):
            kind = self._kind_of[device]
            if device not in used and kind not in seen and not used & self._cluster.chain.exclusive[device]:
                seen.add(kind)
                yield device

    def _extend(self, plan: Completed, head: Head) -> None:
        """Go on with a pipeline that was begun, in every way."""
        self._obey_deadline()
        left = self._bounds.without(head.state, head.device)
        following: list[tuple[tuple[int, ...], tuple[int, int], Pipe, Begun, Head | None]] = []
        for stop, other, begun in self._chunks(head):
            chunk = (self._cuts[head.place], self._cuts[stop], head.device)
            parts = (*head.parts, chunk)
            if other < 0:
                following.append((self._finished(plan.done, begun), (stop, other), parts, begun, None))
                continue
            further = Head(parts, begun, other, stop, head.used | {other}, left)
            least = self._bounds.of(plan.done, begun, other, stop, left)
            if least is not None and not self._breaks(plan, further):
                following.append((least, (stop, other), parts, begun, further))
        for least, _, parts, begun, later in sorted(following, key=lambda one: one[:2]):
            if later is None:
                done = completed(self._cluster, plan.done, begun)
                self._complete(plan, parts, Completed(plan.pipes, done, head.used, left, plan.order))
            elif not self._hopeless(least):
                self._extend(plan, later)

    def _finished(self, done: Done, pipe: Begun) -> tuple[int, ...]:
        return values_of(self._cluster, self._terms, completed(self._cluster, done, pipe))

    def _chunks(self, head: Head) -> Iterator[tuple[int, int, Begun]]:
        """Yield (place, device, numbers) of what can follow; the device is -1 after the last chunk."""
        device, place = head.device, head.place
        cluster, times = self._cluster, self._compute[device][place]
        enter = (cluster.enter_us[device] or 0) if place == 0 else 0
        free = list(self._free(head.used))
        for stop in range(place + 1, self._last + 1):
            compute = times[stop]
            if compute >= NEVER:
                continue
            energy, memory = self._power[device] * compute, self._memory[place][stop]
            ends: Sequence[tuple[int, int | None, int]] = ((-1, cluster.leave_us[device], 0),)
            if stop < self._last:
                links = cluster.link_us[device]
                ends = [(other, links[other][self._cuts[stop]], self._sent[stop]) for other in free]
            for other, message, sent in ends:
                if message is None:
                    continue
                stage = cluster.stage_us(compute, message, enter)
                further = head.begun.and_then(stage, compute + message + enter, energy, sent, memory)
                if not self._over_limits(further):
                    yield stop, other, further

    def _over_limits(self, begun: Begun) -> bool:
        """Return whether a pipeline is over a limit already."""
        limits = self._problem.limits
        return (
            (limits.max_period_us is not None and begun.longest_us > limits.max_period_us)
            or (limits.max_gapness_us is not None and begun.gapness_us > limits.max_gapness_us)
            or (limits.max_units is not None and begun.devices > limits.max_units)
        )

    def _breaks(self, plan: Completed, head: Head) -> bool:
        """Return whether a plan breaks a capacity, a limit or a rule however it is finished."""
        capacity, most = self._cluster.chain.device_memory, self._problem.limits.max_units
        if capacity is not None and plan.done.peak_bytes + head.begun.memory_bytes > capacity:
            return True
        if most is not None and plan.done.devices + head.begun.devices >= most:
            return True
        return self._prospects.hopeless(plan, head)

    def _complete(self, before: Completed, pipe: Pipe, plan: Completed) -> None:
        """Offer the plan with one pipeline more, and go on from there."""
        order = (self._kind_of[pipe[0][2]], tuple(map(self._by_kind, pipe)))
        if self.alike and order < before.order:
            return
        pipes = (*before.pipes, pipe)
        self.offer(ordered(pipes))
        self._more(plan._replace(pipes=pipes, order=order))

    def _by_kind(self, part: Part) -> tuple[int, int, int]:
        return part[0], part[1], self._kind_of[part[2]]
