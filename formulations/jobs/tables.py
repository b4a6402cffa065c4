"""Requests on one platform as plain integers by index: where every backend starts from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import NamedTuple

from ..coordination.sections import Section, chunks_of, sections_of
from ..history import Interval
from ..limits import capped
from ..losses import Mark
from ..plan import Chunk, Plan
from ..play import Job, Part, Parts, Run, play
from ..problem import Problem
from ..requests import RequestTables, ServedTables, chains_of, losses_of, networks_in_use
from ..schedules import Cuts, Jobs
from ..scores import Violation

Square = tuple[tuple[int, ...], ...]
"""Microseconds by [unit][unit], or by [request][unit]."""


class Option(NamedTuple):
    """A chunk that a network can have.

    `start`, `stop`: first section, and one past the last.
    """

    start: int
    stop: int
    unit: int  # where it runs
    time_us: int  # how long, copies included

    @property
    def part(self) -> Part:
        """The chunk without its time."""
        return self[:3]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A plan by index."""

    order: tuple[int, ...]
    """A request for each of its chunks, in the order in which units serve them: the k-th time that a request
    stands here means its k-th chunk. Plans whose units serve the same chunks in the same order are equal:
    chunks stand in the order of their starts (`ordered`)."""
    parts: tuple[tuple[Part, ...], ...]  # the chunks of each request

    @property
    def units(self) -> tuple[int, ...]:
        """The unit of the first chunk of each request: where tasks are, which have one."""
        return tuple(own[0][2] for own in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """What the passage of requests allows, step by step.

    What counts of the units so far is a whole number: 0 before the first chunk.
    """

    once: bool  # whether each unit has at most one chunk of a request
    rank: tuple[int, ...] | None  # place of each unit in the order of passage; None: any order

    def after(self, state: int, unit: int) -> int | None:
        """Return what counts after one more chunk, on a unit; None: it may not be there."""
        if self.rank is not None:
            return self.rank[unit] + 1 if self.rank[unit] >= state else None
        if not self.once:
            return 0
        return None if state >> unit & 1 else state | 1 << unit

    def allows(self, units: Iterable[int]) -> bool:
        """Return whether the chunks of a request may be on these units, in this order."""
        state = 0
        for unit in units:
            after = self.after(state, unit)
            if after is None:
                return False
            state = after
        return True


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class ScheduleTables(ServedTables):
    """What is served, as play, models and walks over all plans see it: paths through sections.

    A request has the sections of its network; a task of a graph has one.
    """

    before: tuple[tuple[tuple[int, Square], ...], ...]
    """By request, those that it waits for, and how long from the end of their last chunk to its first one, by
    [unit of the last][unit of the first]."""
    entry_us: Square  # by [request][unit] before when its first chunk cannot start there
    exit_us: Square  # by [request][unit] what is left when its last chunk has ended there
    turns: tuple[tuple[int, ...], ...]
    """Sets of units of which one works at a time: each unit is in one; so are each two that take turns."""
    excluded: tuple[frozenset[int], ...]  # for each unit those that no plan uses with it
    visits: Visits  # which units a request may pass in which order

    @abstractmethod
    def section_count(self, request: int) -> int:
        """Return the number of sections of a request."""

    @property
    @abstractmethod
    def options(self) -> tuple[tuple[Option, ...], ...]:
        """The chunks that there can be of each kind of request, in the order of their starts."""

    @property
    @abstractmethod
    def horizon_us(self) -> int:
        """A time by which every plan is done."""

    @abstractmethod
    def work_us(self, request: int, part: Part) -> int:
        """Return how long a chunk takes alone."""

    @abstractmethod
    def mark(self, request: int, part: Part) -> Mark:
        """Return how sensitive and how intense a chunk is."""

    def fits(self, request: int, part: Part) -> bool:
        """Return whether a chunk alone stays within the memory of its unit; here: it has none of its own."""
        return True

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """By request, the indices of those that it waits for."""
        return tuple(tuple(other for other, _ in own) for own in self.before)

    @cached_property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        """By request, the indices of those that wait for it."""
        found: list[list[int]] = [[] for _ in self.after]
        for request, before in enumerate(self.after):
            for other in before:
                found[other].append(request)
        return tuple(map(tuple, found))

    @cached_property
    def behind(self) -> tuple[int, ...]:
        """By request, all that it waits for, directly or not: a set of bits."""
        found: list[int] = []
        for before in self.after:
            found.append(reduce(or_, (found[other] | 1 << other for other in before), 0))
        return tuple(found)

    @cached_property
    def near(self) -> tuple[tuple[int, ...], ...]:
        """For each unit those that take turns with it, itself among them."""
        units = range(self.unit_count)
        return tuple(tuple(sorted({v for own in self.turns if u in own for v in own})) for u in units)

    def ordered(self, order: Iterable[int], parts: tuple[tuple[Part, ...], ...]) -> JobPlan:
        """Return a plan whose chunks stand in the order of their starts, ties by request.

        `order`: any order of the chunks in which what waits stands behind what it waits for.
        """
        return JobPlan(tuple(run.request for run in self.played(order, parts)), parts)

    def jobs_of(self, parts: Parts) -> list[Job]:
        """Return requests with some chunks, to be played; without delays and turns of units."""
        work_us, mark, entry_us, after = self.work_us, self.mark, self.entry_us, self.after
        return [
            Job(
                chunks=tuple(own),
                works_us=tuple([work_us(request, part) for part in own]),
                marks=tuple([mark(request, part) for part in own]),
                entry_us=entry_us[request][own[0][2]],
                after=after[request],
            )
            for request, own in enumerate(parts)
        ]

    def played(self, order: Iterable[int], parts: Parts) -> list[Run]:
        """Return what runs when, in the order of the starts, ties by request.

        `order`: a request for each of its chunks; units serve theirs in this order, units that take turns as
        one. What waits for others stands behind them.
        """
        if self.losses.contended:
            found = play(self.jobs_of(parts), order, self.unit_count, self.losses.loss)
        else:
            found = self._alone(order, parts)
        found.sort(key=_first_started)
        return found

    def _alone(self, order: Iterable[int], parts: Parts) -> list[Run]:
        """Return what runs when without slowdown: one look at each chunk."""
        free_us, near, before, entry_us = [0] * self.unit_count, self.near, self.before, self.entry_us
        done_us, place = [0] * self.request_count, [0] * self.request_count
        found = []
        for request in order:
            number = place[request]
            part = parts[request][number]
            unit = part[2]
            start_us = done_us[request] if number else entry_us[request][unit]
            for other, square in () if number else before[request]:
                ready_us = done_us[other] + square[parts[other][-1][2]][unit]
                start_us = ready_us if ready_us > start_us else start_us  # `max` takes three times as long
            for other in near[unit]:
                start_us = free_us[other] if free_us[other] > start_us else start_us
            work_us = self.work_us(request, part)
            end_us = start_us + work_us
            found.append(Run(request, number, part, start_us, end_us, work_us))
            free_us[unit] = done_us[request] = end_us
            place[request] = number + 1
        return found


def _first_started(run: Run) -> tuple[int, int]:
    return run.start_us, run.request


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class RoutedTables(RequestTables, ScheduleTables):
    """Integer tables of requests, each of which is a path through the sections of its network."""

    @abstractmethod
    def borders(self, request: int) -> Sequence[int]:
        """Return the layers at which the sections of a request begin, and where the last one ends."""

    def layers(self, request: int, part: Part) -> tuple[int, int]:
        """Return first layer of a chunk, and one past the last."""
        borders = self.borders(request)
        return borders[part[0]], borders[part[1]]

    def work_us(self, request: int, part: Part) -> int:
        """Return how long a chunk takes alone, without a table of all that there can be."""
        return self.chain(request).busy_us(*self.layers(request, part), part[2])

    def mark(self, request: int, part: Part) -> Mark:
        """Return how sensitive and how intense a chunk is."""
        chain = self.chain_of[request]
        if not self.losses.sliced[chain]:
            return self.losses.marks[chain]
        return self.losses.mark(chain, *self.layers(request, part), part[2])

    def memory_bytes(self, request: int, part: Part) -> int:
        """Return the bytes that a chunk needs."""
        return self.chain(request).memory_bytes(*self.layers(request, part))

    def named(self, order: Iterable[int], parts: Parts) -> Plan:
        """Return a plan by name; `order`: requests by index."""
        return Plan(
            order=tuple(self.asked.names[request] for request in order),
            chunks=tuple(
                self.chunk(request, *self.layers(request, part), part[2])
                for request, own in enumerate(parts)
                for part in own
            ),
        )

    def parted(self, plan: Plan) -> tuple[tuple[tuple[Part, ...], ...], list[Violation]]:
        """Return the chunks of each request by index, and what is wrong with them."""
        own: dict[str, list[Chunk]] = {name: [] for name in self.asked.names}
        wrong: list[Violation] = []
        for name in sorted({chunk.request for chunk in plan.chunks} - own.keys()):
            text = f"{name!r} is no request; they are {', '.join(map(repr, own))}"
            wrong.append(Violation(rule="names", message=text))
        for chunk in plan.chunks:
            own.get(chunk.request, []).append(chunk)
        return tuple(self._parts(request, own[name], wrong) for request, name in enumerate(own)), wrong

    def _parts(self, request: int, chunks: list[Chunk], wrong: list[Violation]) -> tuple[Part, ...]:
        """Return the chunks of a request by index; what is wrong with them is added to `wrong`."""
        chain, name = self.chain(request), self.asked.names[request]
        places = {border: number for number, border in enumerate(self.borders(request))}
        parts, at = [], 0
        for chunk in chunks:
            where = f"request {name!r}, chunk [{chunk.start}, {chunk.stop}) on {chunk.unit!r}"

            def note(rule: str, text: str, where: str = where) -> None:
                wrong.append(Violation(rule=rule, message=f"{where}: {text}"))

            if chunk.network != chain.network:
                note("names", f"it is of network {chunk.network!r}, not {chain.network!r}")
            elif chunk.unit not in self.units:
                note("names", f"no such unit; the platform has {', '.join(self.units)}")
            elif chunk.stop <= chain.layer_count and chunk.stop not in places:
                ends = ", ".join(map(str, list(places)[1:]))
                note("sections", f"it ends inside a section; sections end at {ends}")
            elif chunk.start in places and chunk.stop in places:
                parts.append((places[chunk.start], places[chunk.stop], self.units.index(chunk.unit)))
                unit, layers = parts[-1][2], range(chunk.start, chunk.stop)
                if stuck := [layer for layer in layers if chain.layer_us[layer][unit] is None]:
                    note("support", f"the unit cannot run layers {', '.join(map(str, stuck))}")
            if chunk.start != at:
                note("coverage", f"it does not start at layer {at}, where the one before ends")
            at = chunk.stop
        if at != chain.layer_count:
            text = f"request {name!r}: its chunks end at layer {at}, the network has {chain.layer_count}"
            wrong.append(Violation(rule="coverage", message=text))
        return tuple(parts)

    @cached_property
    def index(self) -> dict[str, int]:
        """The index of each request by name."""
        return {name: number for number, name in enumerate(self.asked.names)}

    def intervals(self, runs: Iterable[Run], names: Sequence[str]) -> Iterator[Interval]:
        """Yield what has run as a trace has it; `names`: the request of each stream."""
        stream_of = {self.index[name]: stream for stream, name in enumerate(names)}
        for run in runs:
            (start, stop), unit = self.layers(run.request, run.part), run.part[2]
            chain = self.chain(run.request)
            engine_us = (
                run.start_us + chain.transfer_in_us[start][unit],
                run.end_us - chain.transfer_out_us[stop][unit],
            )
            yield Interval(
                start_ns=1000 * run.start_us,
                end_ns=1000 * run.end_us,
                stream=stream_of[run.request],
                request=run.round,
                chunk=run.place,
                unit=self.units[unit],
                slowdown_ns=1000 * (run.end_us - run.start_us - run.work_us),
                engine_ns=tuple(1000 * at for at in engine_us),
            )


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class JobTables(RoutedTables):
    """Integer tables of requests."""

    jobs: Jobs  # the requests
    sections: tuple[tuple[Section, ...], ...]  # sections of each network, by index of the chain

    @property
    def asked(self) -> Jobs:
        """The requests."""
        return self.jobs

    def section_count(self, request: int) -> int:
        """Return the number of sections of a request."""
        return len(self.sections[self.chain_of[request]])

    @cached_property
    def options(self) -> tuple[tuple[Option, ...], ...]:
        """The chunks that each network can have, by index of the chain."""
        return tuple(
            tuple(
                Option(start, stop, unit, chain.busy_us(own[start].start, own[stop - 1].stop, unit))
                for start, stop, units in chunks_of(own)
                for unit in sorted(units)
            )
            for chain, own in zip(self.chains, self.sections, strict=True)
        )

    @cached_property
    def time_us(self) -> tuple[dict[Part, int], ...]:
        """The time of each chunk that a network can have, by index of the chain."""
        return tuple({option.part: option.time_us for option in options} for options in self.options)

    @cached_property
    def horizon_us(self) -> int:
        """A time by which every plan is done: all requests one after the other, each at its slowest."""
        longest = [_longest_us(*each) for each in zip(self.options, map(len, self.sections), strict=True)]
        work = sum(longest[chain] for chain in self.chain_of)
        chunks = sum(map(self.section_count, range(self.request_count)))
        most_us = self.losses.slowest_us(work, chunks=chunks)
        return most_us + max(request.release_us for request in self.jobs.requests)

    @cached_property
    def due_us(self) -> tuple[int | None, ...]:
        """By request, the time by which it has to be done."""
        return tuple(
            None if request.deadline_us is None else request.release_us + request.deadline_us
            for request in self.jobs.requests
        )

    def borders(self, request: int) -> Sequence[int]:
        """Return the layers at which the sections of a request begin, and where the last one ends."""
        return self._borders[self.chain_of[request]]

    @cached_property
    def _borders(self) -> tuple[tuple[int, ...], ...]:
        return tuple((0, *(section.stop for section in own)) for own in self.sections)

    def fits(self, request: int, part: Part) -> bool:
        """Return whether a chunk stays within the memory of its unit."""
        return self.chain(request).fits(*self.layers(request, part), part[2])

    def plan(self, code: JobPlan) -> Plan:
        """Return a plan by name."""
        return self.named(code.order, code.parts)


def _longest_us(options: tuple[Option, ...], count: int) -> int:
    longest = [0] * (count + 1)
    for start, stop, _, time_us in options:  # in the order of their starts
        longest[stop] = max(longest[stop], longest[start] + time_us)
    return longest[count]


def tables_of(problem: Problem) -> JobTables:
    """Return the tables of a problem of this formulation."""
    tables = problem.tables
    assert isinstance(tables, JobTables)
    return tables


def jobs_of(problem: Problem) -> Jobs:
    """Return the requests of a problem of this formulation."""
    assert isinstance(problem.data, Jobs)
    return problem.data


def build_tables(problem: Problem) -> JobTables:
    """Return the tables of a problem.

    Raises InvalidInputError: a border is no legal cut.
    """
    jobs = jobs_of(problem)
    networks, chain_of = networks_in_use(problem)
    chains = chains_of(problem, networks, capped(problem.platform, problem.limits))
    borders = {each.network: each.cuts for each in jobs.borders}
    if jobs.cuts is Cuts.ALL:
        borders = {chain.network: chain.cuts[1:-1] for chain in chains}
    index = {name: number for number, name in enumerate(jobs.names)}
    units = problem.platform.unit_names
    order, nothing = jobs.unit_order(units), (0,) * len(units)
    at_once = (nothing,) * len(units)
    return JobTables(
        jobs=jobs,
        units=units,
        chains=chains,
        chain_of=chain_of,
        layer_names=tuple(network.layer_names for network in networks),
        losses=losses_of(problem, networks),
        sections=tuple(sections_of(chain, borders.get(chain.network, ())) for chain in chains),
        before=tuple(tuple((index[name], at_once) for name in request.after) for request in jobs.requests),
        entry_us=tuple((request.release_us,) * len(units) for request in jobs.requests),
        exit_us=(nothing,) * len(jobs.requests),
        turns=tuple((unit,) for unit in range(len(units))),
        excluded=problem.platform.exclusive,
        visits=Visits(
            once=jobs.passage != "any", rank=None if order is None else tuple(map(order.index, units))
        ),
    )
