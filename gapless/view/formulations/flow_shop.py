"""How plans for a workload are shown: requests, units, who runs when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from ...answers.blocks import Block, Sentence, Table, Unit, grid
from ...answers.traces import letter, trace_chart
from ...answers.words import capital, millis, part_of, share
from ...formulations.deployment import Deployment, Mode
from ...formulations.flow_shop.tables import shop_of, workload_of
from ...formulations.history import History, SteadyState, executed
from ...formulations.judge import score
from ...formulations.operation import operation_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ...formulations.shares import unit_shares
from ...formulations.simulate import simulate
from ..presenter import UnitTime
from .requests import (
    MOST_REQUESTS,
    RequestPresenter,
    chunks_words,
    lost_words,
    network_parts,
)

_ROUNDS = 3
"""Periods of a stream that a chart shows."""


_CONTENTION = "pairs of slices of high contention that are in one column (position in the order + unit)"


class FlowShopPresenter(RequestPresenter):
    """Requests of several networks, in one order."""

    plan_title: ClassVar[str] = "order"
    ordered: ClassVar[str] = "request"

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most; a stream has no end, and no bubbles before it."""
        first = ("period",) if _is_stream(problem) else ("makespan", "bubbles")
        return (*first, "peak_memory", "contention")

    def legend(self, problem: Problem) -> str:
        """Return what they mean."""
        if _is_stream(problem):
            return (
                "period: time from one round of all requests to the next, once the pipeline is full; "
                f"contention: {_CONTENTION}"
            )
        return (
            "makespan: end of the last request; bubbles: idle time of the units between their first start "
            f"and last end; contention: {_CONTENTION}"
        )

    def distance_words(self) -> str:
        """Return that layers and pairs of requests are counted."""
        return "layers on other units than in plan 1, and pairs of requests in the other order"

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return the requests, networks and interference."""
        workload = workload_of(problem)
        words = [f"{len(workload.requests)} requests in {workload.order} order", str(workload.mode)]
        words += [str(workload.execution), f"weights {workload.load_policy}"]
        if workload.task_slots is not None:
            words.append(f"at most {workload.task_slots} on their way")
        shop = shop_of(problem)
        yield Sentence("; ".join(words))
        yield from network_parts(problem, shop.chains, shop.chain_of)

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the requests and units of a plan, and the plan at work; a stream in its steady state."""
        if _is_stream(problem):
            return [*self._steady_parts(problem, plan), self.units_table(problem, plan, judged)]
        return super().plan_parts(problem, plan, judged)

    def _steady_parts(self, problem: Problem, plan: Plan) -> Iterator[Block]:
        deployment = self.arranged(problem, plan)
        (state,) = operation_of(problem).steady(problem, deployment)
        yield _steady_requests(problem, deployment, state)
        note = (
            f"a new round begins every {millis(round(state.period_us))}; each block is one request (letter) "
            "of one round (digit), dots are idle time"
        )
        played = trace_chart(executed(deployment, state.window(_ROUNDS)))
        yield replace(played, title="steady state", note=note)

    def is_one_round(self, problem: Problem) -> bool:
        """Return whether it is a stream."""
        return _is_stream(problem)

    def trace_parts(self, problem: Problem, trace: History) -> Iterable[Block]:
        """Return the requests."""
        if _is_stream(problem) and trace.plan is not None:
            return self._steady_parts(problem, trace.plan)
        return super().trace_parts(problem, trace)

    def trace_rows(self, problem: Problem, trace: History) -> Iterator[tuple[str, str]]:
        """Yield the longest latency, and what slowdown takes; of a stream the period."""
        if _is_stream(problem) and trace.plan is not None:
            shares = unit_shares(problem, self.arranged(problem, trace.plan))
            yield "period, steady state", millis(score(problem, trace.plan).period_us)
            yield "makespan of one round alone", millis(trace.makespan_us)
            for unit, one in shares.items():
                yield f"{unit} busy, of each period", share(one.busy_us, one.whole_us)
            return
        yield from super().trace_rows(problem, trace)

    def units_table(self, problem: Problem, plan: Plan, judged: Score) -> Table:
        """Return how busy units are, with what slowdown takes: of the makespan, of a stream of the period."""
        stream = _is_stream(problem)
        shares = unit_shares(problem, self.arranged(problem, plan))
        idle, whole = ("idle", "of the period") if stream else ("bubbles", "of the makespan")
        bubble_us = dict(zip(problem.platform.unit_names, judged.bubble_us, strict=True))
        memory = dict(zip(problem.platform.unit_names, judged.memory_bytes, strict=True))

        def row(unit: str) -> tuple[str | int | None, ...]:
            one = shares.get(unit)
            if one is None:
                return unit, None, None, None, None, None
            idle_us = round(one.idle_us) if stream else bubble_us[unit]
            part = share(one.busy_us, one.whole_us)
            return unit, round(one.busy_us), part, round(one.lost_us), idle_us, memory[unit]

        us = Unit.MICROSECONDS
        heads = [("unit", Unit.NAME), ("busy", us), (whole, Unit.COUNT), ("by slowdown", us), (idle, us)]
        return grid("Units", [*heads, ("largest chunk", Unit.BYTES)], map(row, bubble_us))

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which request ends last, which unit works most, and what bubbles and slowdown take."""
        judged, shares = score(problem, plan), unit_shares(problem, self.arranged(problem, plan))
        busiest = max(shares, key=lambda unit: shares[unit].busy_us)
        whole_us = shares[busiest].whole_us
        most = f"{busiest} works most, {share(shares[busiest].busy_us, whole_us)} of that time"
        if _is_stream(problem):
            words = f"A round of all requests comes every {millis(round(whole_us))}; {most}"
            lost = []
        else:
            last = max(simulate(problem, plan).events, key=lambda event: event.end_ns)
            name = workload_of(problem).names[last.stream]
            words = f"{name} ends last, at {millis(judged.makespan_us)} on {last.unit}; {most}"
            lost = [f"bubbles take {millis(judged.bubbles_us)}"] if judged.bubbles_us else []
        slowed = round(sum(one.lost_us for one in shares.values()))
        if slowed:
            work = round(sum(one.busy_us for one in shares.values())) - slowed
            lost.append(
                f"slowdown {'' if lost else 'takes '}{millis(slowed)} ({part_of(slowed, work)} of the work)"
            )
        return f"{words}. {capital(' and '.join(lost))} over all units." if lost else f"{words}."

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return that it is a workload, and of what."""
        return f"A workload of {super().deployment_words(problem, deployment)}"

    def pace_verb(self, problem: Problem, deployment: Deployment, pace: str) -> str:
        """Return that it ends, or that results come."""
        return "ends after" if deployment.is_batch else "gives one result of each request every"

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield what is asked of the requests."""
        workload = workload_of(problem)
        slots = "" if workload.task_slots is None else f", {workload.task_slots} task slots"
        yield (
            "workload",
            f"{len(workload.requests)} requests, {workload.mode}, order {workload.order}, "
            f"execution {workload.execution}, weights {workload.load_policy}{slots}",
        )

    def glossary(self, problem: Problem) -> tuple[tuple[str, str], ...]:
        """Return nothing: the glossary has it all."""
        return ()

    def unit_times(self, problem: Problem, plan: Plan) -> tuple[UnitTime, ...]:
        """Return work, what slowdown takes, bubbles: of a batch until all is done, of a stream a period."""
        shares, judged = unit_shares(problem, self.arranged(problem, plan)), score(problem, plan)
        found = []
        for unit, bubble_us in zip(problem.platform.unit_names, judged.bubble_us, strict=True):
            one = shares.get(unit)
            if one is None:
                found.append(UnitTime())
                continue
            idle_us = one.idle_us if _is_stream(problem) else bubble_us or 0
            found.append(
                UnitTime(
                    busy=(one.busy_us - one.lost_us) / 1000, lost=one.lost_us / 1000, idle=idle_us / 1000
                )
            )
        return tuple(found)


def _is_stream(problem: Problem) -> bool:
    """Return whether the requests come over and over: then what counts is the steady state."""
    return workload_of(problem).mode is Mode.STREAM


def _steady_requests(problem: Problem, deployment: Deployment, state: SteadyState) -> Table:
    """Return one line a request, in the order of the plan: what it takes in each round."""
    own = [[event for event in state.events if event.stream == i] for i in range(len(deployment.streams))]
    rows = [
        (
            letter(index),
            stream.name,
            chunks_words(problem, stream.chunks),
            sum(event.end_ns - event.start_ns for event in own[index]) // 1000,
            lost_words(own[index]),
        )
        for index, stream in enumerate(deployment.streams)
    ]
    heads = [("", Unit.TEXT), ("request", Unit.NAME), ("layers by unit", Unit.NAME)]
    heads += [("busy", Unit.MICROSECONDS), ("slowdown", Unit.COUNT)]
    return grid("Requests", heads, rows, most=MOST_REQUESTS)


PRESENTER = FlowShopPresenter()
