"""How plans of single requests are shown: requests with releases and deadlines, units, who runs when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar

from ...answers.blocks import Block, Column, Sentence, Table, Tone, Unit, grid, table
from ...answers.words import counted, millis, part_of, percent, share
from ...formulations.deployment import Deployment
from ...formulations.jobs.quantities import JobValues, PlayedPlan
from ...formulations.jobs.tables import jobs_of, tables_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.schedules import Cuts
from ...formulations.scores import Score
from ..presenter import UnitTime
from .requests import RequestPresenter, network_parts


class JobsPresenter(RequestPresenter):
    """Single requests, each on the units that suit it."""

    plan_title: ClassVar[str] = "requests, in the order of their chunks"
    ordered: ClassVar[str] = "chunk"
    alternatives: ClassVar[int] = 32
    """Equal requests in each other's place do not count."""

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most; lateness where there are deadlines."""
        late = any(request.deadline_us is not None for request in jobs_of(problem).requests)
        return ("makespan", *(("late", "lateness") if late else ()), "latency")

    def distance_words(self) -> str:
        """Return that layers are counted."""
        return "layers of requests on other units than in plan 1"

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return what is asked, and the sections of the networks."""
        tables = tables_of(problem)
        yield Sentence("; ".join(text for _, text in self.facts(problem)))
        if jobs_of(problem).cuts is Cuts.ALL:
            yield from network_parts(problem, tables.chains, tables.chain_of)
        else:
            yield _sections(problem)

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the requests and units of a plan, the plan at work, and what it is about."""
        return [*super().plan_parts(problem, plan, judged), Sentence(self.pace_words(problem, plan))]

    def units_table(self, problem: Problem, plan: Plan, judged: Score) -> Table:
        """Return how busy units are, and what slowdown takes of that."""
        values = _values(problem, plan)
        work_us: Counter[int] = Counter()
        for run in values.runs:
            work_us[run.part[2]] += run.work_us

        def lost(unit: int) -> int | str:
            return values.busy_us[unit] - work_us[unit] if unit in values.busy_us else ""

        columns: list[Column[int]] = [
            Column("unit", Unit.NAME, lambda unit: problem.platform.unit_names[unit]),
            Column("busy", Unit.MICROSECONDS, lambda unit: values.busy_us.get(unit, "not used")),
            Column(
                "of the makespan",
                Unit.COUNT,
                lambda unit: (
                    share(values.busy_us[unit], values.makespan_us) if unit in values.busy_us else ""
                ),
            ),
            *([Column("by slowdown", Unit.MICROSECONDS, lost)] if values.tables.losses.contended else []),
        ]
        units = range(len(problem.platform.units))
        return table(
            "Units", columns, units, tone=lambda one: Tone.PLAIN if one in values.busy_us else Tone.SOFT
        )

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which request ends last, which unit works most, and what is late."""
        values = _values(problem, plan)
        tables = values.tables
        last = max(values.runs, key=lambda run: run.end_us)
        busiest = max(values.busy_us, key=lambda unit: values.busy_us[unit])
        part = share(values.busy_us[busiest], values.makespan_us)
        words = (
            f"{tables.jobs.names[last.request]} ends last, at {millis(last.end_us)} on "
            f"{tables.units[last.part[2]]}; {tables.units[busiest]} works most, {part} of that time."
        )
        busy_us, work_us = sum(values.busy_us.values()), values.work_us
        if busy_us > work_us:
            lost = busy_us - work_us
            words += f" Slowdown takes {millis(lost)} ({part_of(lost, work_us)} of the work) over all units."
            words += _pressing(values)
        late = sum(map(bool, values.request_late_us))
        due = sum(time is not None for time in tables.due_us)
        return f"{words} {late} of {counted(due, 'request')} with a deadline end late." if due else words

    def pace_verb(self, problem: Problem, deployment: Deployment, pace: str) -> str:
        """Return that they end."""
        return "end after"

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield how many requests there are, and what holds them back."""
        requests = jobs_of(problem).requests
        words = [counted(len(requests), "request")]
        parts = (
            (sum(bool(request.after) for request in requests), "wait for others"),
            (sum(bool(request.release_us) for request in requests), "come later than at 0"),
            (sum(request.deadline_us is not None for request in requests), "have a deadline"),
        )
        words += [f"{count} {text}" for count, text in parts if count]
        yield "requests", ", ".join(words)
        jobs = jobs_of(problem)
        if jobs.passage != "any":
            yield "passage", f"passage {jobs.passage}"
        if jobs.cuts is Cuts.ALL:
            yield "cuts", "cut at any legal cut"
        losses = tables_of(problem).losses
        names = [name for name, sliced in zip(losses.networks, losses.sliced, strict=True) if sliced]
        if names:
            yield "slowdown", f"slowdown by slice of {', '.join(names)}"

    def unit_times(self, problem: Problem, plan: Plan) -> tuple[UnitTime, ...]:
        """Return the work of each unit, and what it waits for until all requests are done."""
        return times_of(_values(problem, plan))


def _pressing(values: JobValues) -> str:
    """Return which chunk presses hardest on the others, where slowdown is by slice; else nothing."""
    tables = values.tables
    if not any(tables.losses.sliced):
        return ""
    hardest = max(values.runs, key=lambda run: tables.mark(run.request, run.part)[1])
    start, stop = tables.layers(hardest.request, hardest.part)
    intensity = percent(tables.mark(hardest.request, hardest.part)[1])
    return (
        f" It goes by slice: layers {start}-{stop - 1} of {tables.jobs.names[hardest.request]} on "
        f"{tables.units[hardest.part[2]]} press hardest, with an intensity of {intensity}."
    )


def times_of(values: PlayedPlan) -> tuple[UnitTime, ...]:
    """Return the work of each unit, and what it waits for until all is done."""
    return tuple(
        UnitTime(busy=busy / 1000, idle=(values.makespan_us - busy) / 1000) if busy else UnitTime()
        for unit in range(values.tables.unit_count)
        for busy in [values.busy_us.get(unit, 0)]
    )


def _values(problem: Problem, plan: Plan) -> JobValues:
    return JobValues(tables_of(problem), problem.formulation.code(problem, plan))


def _sections(problem: Problem) -> Table:
    """Return one line per section: its layers, and how long they take on each unit that can run them."""
    tables, units = tables_of(problem), problem.platform.unit_names
    rows = []
    for index, chain in enumerate(tables.chains):
        for place, section in enumerate(tables.sections[index]):
            times = (
                chain.busy_us(section.start, section.stop, unit) if unit in section.units else "no"
                for unit in range(len(units))
            )
            head = ("", "") if place else (chain.network, tables.chain_of.count(index))
            rows.append((*head, f"{section.start}-{section.stop - 1}", *times))
    heads = [("network", Unit.NAME), ("requests", Unit.COUNT), ("layers", Unit.TEXT)]
    return grid("Sections", [*heads, *((unit, Unit.MICROSECONDS) for unit in units)], rows, most=len(rows))


PRESENTER = JobsPresenter()
