"""Several networks on one platform: their profiles in one table, and how they slow each other down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from ...formulations.costs import CostTable, Interference, NetworkContention, Provenance
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform
from ..profile import Method, Profile
from .corun import companions


def check_different(names: Sequence[str]) -> None:
    """Refuse networks of the same name (InvalidInputError): requests would not say which they mean."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InvalidInputError(
            f"network {twice[0]!r} is there more than once; profile it once and ask for several requests of "
            f'it ("{twice[0]}x2"), or give it another name (NAME=...)'
        )


def joint_table(profiles: Sequence[Profile], method: Method) -> CostTable:
    """Return the tables of several profiles as one.

    `profiles`: of different networks on the same platform; at least one.
    """
    if not profiles:
        raise InvalidInputError("there is no profile: at least one network is needed")
    names = [profile.network.name for profile in profiles]
    check_different(names)
    joint_platform(profiles)
    tables = [profile.table(method) for profile in profiles]
    first = tables[0].provenance
    return CostTable(
        units=tables[0].units,
        networks=tuple(costs for table in tables for costs in table.networks),
        provenance=Provenance(
            source="; ".join(dict.fromkeys(table.provenance.source for table in tables)),
            method=first.method,
            notes="; ".join(dict.fromkeys(filter(None, (table.provenance.notes for table in tables)))),
            engine=first.engine,
            device=first.device,
            taken_at=first.taken_at,
        ),
    )


def joint_platform(profiles: Sequence[Profile]) -> Platform:
    """Return the platform of several profiles: the fewest workers that pay for any, at the most they cost.

    Raises InvalidInputError: the platforms differ in something else.
    """
    units = [profile.platform.units for profile in profiles]
    plain = [tuple(replace(unit, workers=1, sharing_permille=()) for unit in each) for each in units]
    alike = {replace(one.platform, units=own) for one, own in zip(profiles, plain, strict=True)}
    if len(alike) > 1:
        names = ", ".join(profile.network.name for profile in profiles)
        raise InvalidInputError(f"the networks {names} were profiled on different platforms")
    joint = (
        replace(
            each[0],
            workers=min(unit.workers for unit in each),
            sharing_permille=tuple(map(max, zip_longest(*(u.sharing_permille for u in each), fillvalue=0))),
        )
        for each in zip(*units, strict=True)
    )
    return replace(profiles[0].platform, units=tuple(joint))


def estimated_interference(profiles: Sequence[Profile]) -> Interference:
    """Return how networks slow each other down, as far as their profiles tell.

    The heavy table says how much longer a network takes on a unit while the other units run the *same*
    layers: beside itself. Two assumptions make that a statement about different networks: who causes much
    contention also suffers much (both factors are the square root of the slowdown, relative to the mean),
    and several other units share the blame equally. Measured co-runs (`profiler.contention`) need neither.

    `profiles`: of different networks on the same platform, with both tables.
    """
    tables = [joint_table(profiles, method) for method in (Method.ISOLATED, Method.HEAVY)]
    names, platform = tables[0].units, profiles[0].platform
    alone_us, beside_us = ([_sums_us(table, unit) for unit in range(len(names))] for table in tables)
    base = [max(0.0, sum(beside_us[u]) / max(1, sum(alone_us[u])) - 1) for u in range(len(names))]
    factors = [
        _mean(
            [
                math.sqrt(max(0.0, beside_us[u][index] / alone_us[u][index] - 1) / base[u])
                for u in range(len(names))
                if base[u] and alone_us[u][index]
            ]
        )
        for index in range(len(profiles))
    ]
    return Interference(
        units=names,
        slowdown_permille=tuple(_row(platform, unit, base[u]) for u, unit in enumerate(names)),
        networks=tuple(
            NetworkContention(
                network=profile.network.name,
                intensity_permille=round(1000 * factor),
                sensitivity_permille=round(1000 * factor),
            )
            for profile, factor in zip(profiles, factors, strict=True)
        ),
        provenance=Provenance(
            source=tables[1].provenance.source,
            method="heavy over isolated tables",
            estimated=True,
            notes="each network was measured beside itself; for others it is assumed that who causes much "
            "contention suffers as much",
            device=tables[1].provenance.device,
        ),
    )


def _sums_us(table: CostTable, unit: int) -> list[int]:
    """Return the time of each network on a unit: of the layers that it can run."""
    return [sum(row[unit] or 0 for row in costs.layer_us) for costs in table.networks]


def _row(platform: Platform, unit: str, slowdown: float) -> tuple[int, ...]:
    """Return the base slowdowns of a unit: the same by each unit that made load beside it."""
    beside = companions(platform, unit, able=platform.unit_names)
    each = round(1000 * slowdown / len(beside)) if beside else 0
    return tuple(each if other in beside else 0 for other in platform.unit_names)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 1.0
