"""The filters that a plan must pass (formulations, section 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from types import MappingProxyType
from typing import Any

from .errors import InvalidProblemError
from .hardware import Platform
from .validation import Defects, FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(FileContent):
    """Filters that a plan must pass; None is off (formulations, section 1).

    Attributes
    ----------
    max_period_us
        Largest period, microseconds.
    max_latency_us
        Largest latency of one request that nothing waits for, microseconds.
    max_energy_nj
        Largest energy of one request (of a workload: of all its requests), nanojoules.
    min_units
        Fewest units in use.
    max_units
        Most units in use.
    min_balance_permille
        Least balance: smallest over largest busy time, permille; 0 of a plan on one unit of several.
    max_gapness_us
        Largest gapness, microseconds.
    min_utilisation_permille
        Least utilisation: busy time of all units over (units of the platform x period).
    max_bubbles_us
        Largest sum of the bubbles of all units, microseconds.
    max_memory_bytes
        Most bytes on the device at any instant: as if it had no more.
    max_unit_memory_bytes
        Most bytes that a chunk needs on its unit: as if no unit had more.
    max_hops
        Most borders between chunks of one network in a stream.
    max_stream_latency_us
        Largest latency of a request in the stream at the period of the plan, waits included, microseconds.
    max_in_flight
        Most requests that are on their way at once at the period of the plan.
    max_makespan_us
        Latest end of the last of several requests, microseconds.
    max_request_latency_us
        Largest latency of any of several requests, from arrival to end, microseconds.
    """

    max_period_us: int | None = None
    max_latency_us: int | None = None
    max_energy_nj: int | None = None
    min_units: int | None = None
    max_units: int | None = None
    min_balance_permille: int | None = None
    max_gapness_us: int | None = None
    min_utilisation_permille: int | None = None
    max_bubbles_us: int | None = None
    max_memory_bytes: int | None = None
    max_unit_memory_bytes: int | None = None
    max_hops: int | None = None
    max_stream_latency_us: int | None = None
    max_in_flight: int | None = None
    max_makespan_us: int | None = None
    max_request_latency_us: int | None = None

    def __post_init__(self) -> None:
        defects = Defects("limits")
        for field, info in LIMITS.items():
            value = getattr(self, field)
            if value is not None and defects.check_count(field, value, least=info.least):
                if field.endswith("_permille") and value > 1000:
                    defects.add(f"{field} is {value}, must be at most 1000")
        defects.raise_as(InvalidProblemError)

    @property
    def most_chunks(self) -> int | None:
        """Most chunks of a plan whose chunks are on different units: units and hops count the same."""
        found = (self.max_units, None if self.max_hops is None else self.max_hops + 1)
        return min((number for number in found if number is not None), default=None)

    def in_use(self) -> dict[str, int]:
        """Return the filters that are on, by name."""
        values = ((name, getattr(self, name)) for name in LIMIT_NAMES)
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, slots=True)
class LimitInfo:
    """One filter: `max_` or `min_` and what is limited."""

    name: str
    text: str  # what it demands; {} stands for its value
    help: str  # what users are told of it: one sentence, without its unit
    _: KW_ONLY
    least: int = 0  # least value that makes sense
    read: Callable[[Any], int] | None = None
    """From the numbers of a plan (`PlanNumbers`) to the one that is limited. None: the quantity that the name
    says."""

    @property
    def quantity(self) -> str:
        """What is limited: where nothing else is said, the quantity of the plan with this name."""
        return self.name[4:]

    def missed(self, limit: int, numbers: Any) -> int | None:
        """Return what a plan has, if that does not pass."""
        value: int = getattr(numbers, self.quantity) if self.read is None else self.read(numbers)
        return value if (value < limit if self.name.startswith("min_") else value > limit) else None


def _units(plan: Any) -> int:
    return len(plan.busy_us)


LIMITS = {
    info.name: info
    for info in (
        LimitInfo("max_period_us", "the period is at most {} us", "Largest period."),
        LimitInfo(
            "max_latency_us",
            "the latency is at most {} us",
            "Largest latency of a request that nothing waits for.",
        ),
        LimitInfo(
            "max_energy_nj",
            "the energy is at most {} nJ",
            "Largest energy of a request, of a workload of all requests; needs powers.",
        ),
        LimitInfo("min_units", "at least {} units are used", "Fewest units in use.", read=_units),
        LimitInfo("max_units", "at most {} units are used", "Most units in use.", least=1, read=_units),
        LimitInfo(
            "min_balance_permille",
            "the least loaded unit in use has at least {} permille of the largest load",
            "Least busy time of a unit in use over the largest one, e.g. 80%.",
            read=lambda plan: 1000 * (plan.period_us - plan.gapness_us) // int(plan.period_us),
        ),
        LimitInfo("max_gapness_us", "the gapness is at most {} us", "Largest gapness."),
        LimitInfo(
            "min_utilisation_permille",
            "at least {} permille of the platform are busy",
            "Least share of the platform that is busy, e.g. 62.5%.",
            read=lambda plan: 1000 - int(plan.idle_permille),
        ),
        LimitInfo(
            "max_bubbles_us", "the bubbles are at most {} us", "Largest sum of the bubbles of all units."
        ),
        LimitInfo(
            "max_memory_bytes",
            "at most {} bytes are needed at any instant",
            "Most memory that a plan needs at any instant.",
            read=lambda plan: int(plan.peak_bytes),
        ),
        LimitInfo(
            "max_unit_memory_bytes",
            "no unit needs more than {} bytes for its chunks",
            "Most memory that a chunk needs on its unit.",
            read=lambda plan: max(plan.memory_bytes.values()),
        ),
        LimitInfo(
            "max_hops",
            "there are at most {} hops",
            "Most borders between chunks: hops from one unit to another.",
        ),
        LimitInfo(
            "max_stream_latency_us",
            "the latency in the stream is at most {} us",
            "Largest latency of a request in the stream at the period of the plan, waits included.",
        ),
        LimitInfo(
            "max_in_flight",
            "at most {} requests are in flight",
            "Most requests that are on their way at once at the period of the plan.",
            least=1,
        ),
        LimitInfo(
            "max_makespan_us",
            "all requests are done after {} us",
            "Latest end of the last request of a workload.",
        ),
        LimitInfo(
            "max_request_latency_us",
            "no request takes more than {} us from its arrival to its end",
            "Largest latency of any request of a workload, from its arrival to its end.",
            read=lambda plan: max(plan.request_latency_us),
        ),
    )
}
"""The filters by name, in the order in which they are told."""

LIMIT_NAMES = tuple(LIMITS)
"""The filters, by name."""

OF_ONE_NETWORK = ("max_hops", "max_stream_latency_us", "max_in_flight")
"""Those that mean nothing for workloads."""

OF_REQUESTS = ("max_makespan_us", "max_request_latency_us")
"""Those that are about several requests."""


def capped(platform: Platform, limits: Limits) -> Platform:
    """Return a platform whose device and units have no more memory than limits allow.

    Tables are made of it, so that every encoding and every search that knows capacities knows these limits.
    """

    def least(own: int | None, most: int | None) -> int | None:
        return min((value for value in (own, most) if value is not None), default=None)

    if limits.max_memory_bytes is None and limits.max_unit_memory_bytes is None:
        return platform
    most = limits.max_unit_memory_bytes
    units = (replace(unit, memory_bytes=least(unit.memory_bytes, most)) for unit in platform.units)
    whole = least(platform.memory_bytes, limits.max_memory_bytes)
    return replace(platform, units=tuple(units), memory_bytes=whole)


def limits_missed(limits: Limits, numbers: Any) -> list[tuple[str, int, int]]:
    """Return (name, value, limit) of the filters that a plan does not pass."""
    missed = ((name, LIMITS[name].missed(limit, numbers), limit) for name, limit in limits.in_use().items())
    return [(name, value, limit) for name, value, limit in missed if value is not None]


def limit_rows(
    limits: Limits,
    number: Callable[[str], Any],
    used: Any,
    others: Mapping[str, Callable[[int], Any]] = MappingProxyType({}),
) -> Iterator[tuple[str, Any]]:
    """Yield the filters in use as conditions on integers, of a model or of arrays; the judge rounds alike.

    `number`: a quantity of the plan, as expression or array; `used`: the number of units in use; `others`:
    from the value of a filter to its condition, where that is another one than its quantity says; None: there
    is none. Capacities are no conditions here (`capped`).
    """
    for name, value in limits.in_use().items():
        row = None
        if name in others:
            row = others[name](value)
        elif name == "min_units":
            row = used >= value
        elif name == "max_units":
            row = used <= value
        elif LIMITS[name].read is None:
            row = number(LIMITS[name].quantity) <= value
        if row is not None:
            yield name, row
