"""The page of a scenario: what each policy makes of it, who works when, and what each application gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...answers.blocks import Block, Section, Sentence, Tone
from ...answers.coordination import (
    applications,
    bound_class,
    bound_table,
    condition_words,
    deadlines,
    deadlines_chart,
    in_time_chart,
    policies,
    rates_chart,
    record_chart,
    requests_words,
    units,
    units_words,
)
from ...answers.words import capital, span_seconds
from ...api.coordination import Coordination, CoordinationBound
from ...formulations.coordination.record import Record
from .page import sections_page

WINDOW_US = 400_000.0
"""How much of each record is drawn."""

_MOST_POLICIES = 12


def coordination_page(
    runs: Sequence[Coordination],
    *,
    bound: CoordinationBound | None = None,
    title: str = "",
    command: str = "",
) -> str:
    """Return a page about a scenario as HTML; everything that comes from files is escaped.

    `bound`: of `bound_coordination`; None: it is not shown. `title`: of the page; empty: the name of the
    scenario and the platform. `command`: the command that made it; empty: not said.
    """
    first = runs[0]
    several = len(runs) > 1
    best: tuple[Block, ...] = ()
    if bound is not None:
        words = (
            "What policies reach on parts of the scenario, beside the best plan that is known for them when "
            f"everything is known beforehand, and what is proven. {bound_class(bound)}"
        )
        best = (Sentence(words, Tone.SOFT), bound_table(bound))
    return sections_page(
        "coordination",
        title or f"{first.scenario.name} on {first.setting.platform.name}",
        _summary(runs),
        [
            Section("Policies", tuple(_policies(runs)), place="policies"),
            Section("Who works when", () if several else tuple(_lines(first.records)), place="units"),
            Section("How far from the best", best, place="bound"),
            Section("Applications", (applications(first.records),), place="applications"),
        ],
        command=command,
    )


def _summary(runs: Sequence[Coordination]) -> Iterator[str]:
    first = runs[0]
    yield (
        f"{requests_words(first.records)} of {', '.join(first.records[0].applications)} in "
        f"{span_seconds(first.scenario.duration_us)} on {first.setting.platform.name}, "
        f"{units_words(first.setting.platform)}, in simulated time."
    )
    if words := condition_words(first.conditions):
        yield f"{capital(words)}."
    if first.scenario.source:
        yield first.scenario.source
    behaviour = first.setting.behaviour
    if behaviour is not None and behaviour.source:
        yield behaviour.source


def _policies(runs: Sequence[Coordination]) -> Iterator[Block]:
    records = runs[0].records
    if len(runs) > 1:
        yield from (deadlines_chart(runs), deadlines(runs))
    else:
        yield from filter(None, (rates_chart(records), in_time_chart(records)))
    yield policies(records, runs[0].setting.platform)


def _lines(records: Sequence[Record]) -> Iterator[Block]:
    """Yield the beginning of each record, and a table of its units."""
    yield Sentence(
        f"The first {span_seconds(round(WINDOW_US))}. What nobody was told of, because it fell back from "
        "another unit, is pale.",
        Tone.SOFT,
    )
    for record in records[:_MOST_POLICIES]:
        yield record_chart(record, 0.0, min(WINDOW_US, record.end_us))
        yield units(record)
