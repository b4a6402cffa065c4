"""Beyond the paper: what loaded sessions cost and save."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from gapless.api.coordination import with_sessions

from ..printing import Part, titled
from .playing import GALAXY, PIXEL, REDMI, Study, phone, rates_on, scenario_for

POLICIES = ("sel", "lst")


def sessions(study: Study) -> Iterator[Part]:
    """Yield frames a second with all sessions, and with those alone that are useful."""
    table = titled(
        "Sessions (4.2 leaves this open): frames a second with all, and with the useful ones alone",
        "workload, phone", "sessions", "useful", "MiB", "useful",
        *(f"{each}, all / useful" for each in POLICIES),
    )  # fmt: skip
    for name in ("eagleeye", "distream"):
        for platform in (PIXEL, GALAXY, REDMI):
            table.add_row(f"{name}, {platform}", *loaded(study, name, platform))
    yield table


@cache
def loaded(study: Study, name: str, platform: str) -> tuple[str, ...]:
    """Return a row of the table."""
    scenario = scenario_for(study, name)
    everything = phone(platform, scenario)
    useful, kept = with_sessions(everything)
    count, size = sum(len(each.sessions) for each in kept.values()), sum(each.bytes for each in kept.values())
    all_count = count + sum(len(each.dropped) for each in kept.values())
    all_size = size + sum(each.dropped_bytes for each in kept.values())
    pairs = [
        " / ".join(f"{rates_on(study, scenario, place, policy).mean:.2f}" for place in (everything, useful))
        for policy in POLICIES
    ]
    return f"{all_count:,}", f"{count:,}", f"{all_size / 2**20:,.0f}", f"{size / 2**20:,.0f}", *pairs
