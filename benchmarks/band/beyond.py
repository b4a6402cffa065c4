"""Beyond the paper: what loaded sessions cost and save, and a second worker on an accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from gapless.api.coordination import with_sessions, with_workers

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


def workers(study: Study) -> Iterator[Part]:
    """Yield frames a second of EagleEye with one worker on the NPU, and with two."""
    table = titled(
        "Workers (6.1: one on each accelerator): EagleEye, frames a second with 1 / 2 on the NPU",
        "phone", "two InceptionV4 at once take", *POLICIES, "sel-whole",
    )  # fmt: skip
    for platform in (PIXEL, GALAXY, REDMI):
        scenario = scenario_for(study, "eagleeye")
        one = phone(platform, scenario)
        shared = one.behaviours[one.platform.index_of("npu")].shared_permille(2)
        cells = [
            " / ".join(
                f"{rates_on(study, scenario, place, policy).mean:.2f}"
                for place in (one, with_workers(one, {"npu": 2}))
            )
            for policy in (*POLICIES, "sel-whole")
        ]
        table.add_row(platform, f"{shared / 1000:.3f}", *cells)
    yield table
