"""What plans of requests are worth, and what rules speak about: a played plan (`ScheduleTables.played`).

Times in microseconds. With slowdown a unit is busy for as long as chunks run on it; their work is what they
would take alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

from ..play import Run
from ..scores import Violation, shared_cores
from ..terms import UNIT, Index, PlanNumbers, Quantity, QuantityInfo, Term, TermInfo, quantity_table, table
from .tables import JobPlan, JobTables, RoutedTables, ScheduleTables


class PlayedPlan(PlanNumbers):
    """The numbers of a plan of anything that is served once.

    `tables`, `code`: what is served, and the plan by index.
    """

    tables: ScheduleTables

    def __init__(self, tables: ScheduleTables, code: JobPlan) -> None:
        self.tables, self.code = tables, code

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """What ran when."""
        return tuple(self.tables.played(self.code.order, self.code.parts))

    @cached_property
    def start_us(self) -> tuple[int, ...]:
        """When each request starts."""
        starts = {run.request: run.start_us for run in self.runs if not run.place}
        return tuple(starts[request] for request in range(self.tables.request_count))

    @cached_property
    def finish_us(self) -> tuple[int, ...]:
        """When the last chunk of each request ends."""
        ends = {run.request: run.end_us for run in self.runs}
        return tuple(ends[request] for request in range(self.tables.request_count))

    @cached_property
    def busy_us(self) -> dict[int, int]:
        """How long chunks run on each unit in use."""
        found = dict.fromkeys(sorted({run.part[2] for run in self.runs}), 0)
        for run in self.runs:
            found[run.part[2]] += run.end_us - run.start_us
        return found

    @cached_property
    def makespan_us(self) -> int:
        """When everything is done."""
        exits = zip(self.finish_us, self.tables.exit_us, self.code.parts, strict=True)
        return max(end_us + left_us[parts[-1][2]] for end_us, left_us, parts in exits)

    @property
    def work_us(self) -> int:
        """What all chunks would take alone."""
        return sum(run.work_us for run in self.runs)

    @property
    def units(self) -> int:
        """Number of units in use."""
        return len(self.busy_us)


class RequestValues(PlayedPlan):
    """The numbers of one plan of requests, whatever else it has to keep to."""

    tables: RoutedTables

    @cached_property
    def request_latency_us(self) -> tuple[int, ...]:
        """From arrival to end, for each request."""
        return tuple(map(int.__sub__, self.finish_us, self.tables.asked.entered_us))

    @property
    def memory_bytes(self) -> dict[int, int]:
        """The most bytes that a chunk needs, by unit in use."""
        found: dict[int, int] = {}
        for request, parts in enumerate(self.code.parts):
            for part in parts:
                needs = self.tables.memory_bytes(request, part)
                found[part[2]] = max(found.get(part[2], 0), needs)
        return found

    def conflicts(self) -> Iterator[Violation]:
        """Yield units that do not go together, and capacities that are not enough."""
        tables, first = self.tables, self.tables.chains[0]
        yield from shared_cores(self.busy_us, first.exclusive, tables.units)
        for request, parts in enumerate(self.code.parts):
            for part in parts:
                yield from tables.too_large(request, *tables.layers(request, part), part[2])
        if first.device_memory is not None and self.peak_bytes > first.device_memory:
            text = f"the plan needs {self.peak_bytes} bytes, the device has {first.device_memory}"
            yield Violation(rule="device_memory", message=text)

    @property
    @abstractmethod
    def peak_bytes(self) -> int:
        """The most bytes in use at any instant."""

    def uses(self, request: int, unit: int) -> int:
        """Return whether the unit runs a layer of the request."""
        return int(any(unit == part[2] for part in self.code.parts[request]))

    def on(self, request: int, layer: int, unit: int) -> int:
        """Return whether the unit runs the layer of the request."""
        tables = self.tables
        bounds = ((tables.layers(request, part), part[2]) for part in self.code.parts[request])
        return int(any(start <= layer < stop and unit == own for (start, stop), own in bounds))


class JobValues(RequestValues):
    """The numbers of one plan of requests."""

    tables: JobTables

    @cached_property
    def request_late_us(self) -> tuple[int, ...]:
        """By how much each request misses its deadline; 0 where it does not."""
        pairs = zip(self.finish_us, self.tables.due_us, strict=True)
        return tuple(0 if due_us is None else max(0, end_us - due_us) for end_us, due_us in pairs)

    @cached_property
    def loaded_bytes(self) -> int:
        """The bytes of all different chunks in use: each stays loaded on its unit."""
        tables = self.tables
        loaded = {(tables.chain_of[run.request], run.part): run for run in self.runs}
        return sum(tables.memory_bytes(run.request, run.part) for run in loaded.values())

    @property
    def peak_bytes(self) -> int:
        """The most bytes in use: what is loaded stays so."""
        return self.loaded_bytes

    @property
    def late(self) -> int:
        """The weights of all requests that are late."""
        return self._weighted(tuple(map(bool, self.request_late_us)))

    @property
    def lateness_us(self) -> int:
        """By how much requests miss their deadlines, weighted."""
        return self._weighted(self.request_late_us)

    @property
    def latency_us(self) -> int:
        """From release to end, weighted."""
        return self._weighted(self.request_latency_us)

    def _weighted(self, values: tuple[int, ...]) -> int:
        pairs = zip(self.tables.jobs.requests, values, strict=True)
        return sum(request.weight * value for request, value in pairs)


def _weights(tables: JobTables) -> int:
    return sum(request.weight for request in tables.jobs.requests)


def most_us(tables: ScheduleTables, *_: int) -> int:
    """Return a time by which every plan is done."""
    return tables.horizon_us


def _most_weighted_us(tables: JobTables) -> int:
    return _weights(tables) * tables.horizon_us


REQUEST = Index(name="request", allowed=lambda tables, *_: range(tables.request_count))
_LAYER = Index(name="layer", allowed=lambda tables, request: range(tables.chain(request).layer_count))

MAKESPAN = TermInfo(Term.MAKESPAN, "end of the last request", most=most_us)
REQUEST_QUANTITIES = (
    QuantityInfo(Quantity.ON, "the unit runs the layer of the request", (REQUEST, _LAYER, UNIT)),
    QuantityInfo(Quantity.USES, "the unit runs at least one layer of the request", (REQUEST, UNIT)),
    QuantityInfo(Quantity.START, "when the first chunk of the request starts", (REQUEST,), most=most_us),
    QuantityInfo(Quantity.FINISH, "when the last chunk of the request ends", (REQUEST,), most=most_us),
)
"""What rules can speak about wherever requests are served, in whatever order."""

TERMS = table(
    (
        MAKESPAN,
        TermInfo(Term.LATE, "sum of the weights of late requests", most=_weights),
        TermInfo(
            Term.LATENESS,
            "weighted sum over the requests of what they miss their deadlines by",
            most=_most_weighted_us,
        ),
        TermInfo(
            Term.LATENCY,
            "weighted sum over the requests of release to end",
            label="total latency",
            most=_most_weighted_us,
        ),
        TermInfo(Term.WORK, "time of all chunks, without slowdown", most=most_us),
    )
)
"""What can be minimised."""

QUANTITIES = quantity_table(
    (
        *REQUEST_QUANTITIES,
        QuantityInfo(Quantity.BUSY, "how long chunks run on the unit", (UNIT,), most=most_us),
        QuantityInfo(
            Quantity.IS_LATE,
            "the request misses its deadline",
            (REQUEST,),
            read=lambda plan, request: int(plan.request_late_us[request] > 0),
        ),
        QuantityInfo(
            Quantity.CHUNKS,
            "number of chunks of the request",
            (REQUEST,),
            most=lambda tables, request: tables.section_count(request),
            read=lambda plan, request: len(plan.code.parts[request]),
        ),
    ),
    TERMS,
)
"""What rules can speak about."""

JobValues.terms, JobValues.quantities = TERMS, QUANTITIES
