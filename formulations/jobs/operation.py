"""How plans of single requests run: in rounds, in which each unit serves chunks in an order of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..deployment import Deployment, Mode, Rounds
from ..errors import InvalidInputError, InvalidPlanError
from ..history import History, Interval, SteadyState, executed
from ..plan import Plan
from ..problem import Problem
from ..requests import RequestOperation, stream_of
from ..usage import Usage, usage_of
from .quantities import JobValues
from .tables import jobs_of, tables_of

_WAITS = (
    "requests that wait for others are only simulated (`gapless simulate`): the runtime lets each request in "
    "when it arrives; leave out `after`"
)


class JobsOperation(RequestOperation):
    """Requests that are served once."""

    def pace(self, problem: Problem) -> str:
        """Return the makespan."""
        return "makespan"

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream for each request, in rounds in which each unit has its order of chunks."""
        if any(request.after for request in jobs_of(problem).requests):
            raise InvalidPlanError(_WAITS)
        if task_slots not in (None, 1):
            raise InvalidPlanError(
                f"{task_slots} task slots: each request comes once in a round, in one slot"
            )
        return self.arrange(problem, plan)

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return one stream for each request."""
        jobs = jobs_of(problem)
        return Deployment(
            streams=tuple(stream_of(plan, name, 1) for name in jobs.names),
            rounds=Rounds(mode=Mode.BATCH, arrivals_us=jobs.entered_us, order=plan.order),
        )

    def check_executable(self, problem: Problem) -> None:
        """Refuse requests that wait for others."""
        if any(request.after for request in jobs_of(problem).requests):
            raise InvalidInputError(_WAITS)

    def ran(self, problem: Problem, plan: Plan) -> Iterator[Interval]:
        """Yield what has run; streams are the requests in the order of the problem."""
        tables = tables_of(problem)
        for run in JobValues(tables, problem.formulation.code(problem, plan)).runs:
            start, stop = tables.layers(run.request, run.part)
            chain, unit = tables.chain(run.request), run.part[2]
            begin_us = run.start_us + chain.transfer_in_us[start][unit]
            engine_us = (begin_us, run.end_us - chain.transfer_out_us[stop][unit])
            yield Interval(
                start_ns=1000 * run.start_us,
                end_ns=1000 * run.end_us,
                stream=run.request,
                request=0,
                chunk=run.place,
                unit=tables.units[unit],
                slowdown_ns=1000 * (run.end_us - run.start_us - run.work_us),
                engine_ns=tuple(1000 * at for at in engine_us),
            )

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time: all chunks in use stay loaded."""
        assert history.plan is not None
        values = JobValues(tables_of(problem), problem.formulation.code(problem, history.plan))
        return usage_of(
            [(0, 0)],
            ((event.stream, *event.span_us) for event in history.events),
            base=values.loaded_bytes,
            requests=len(history.streams),
        )

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse what does not serve the requests."""
        if deployment.plan is None or deployment != self.arrange(problem, deployment.plan):
            raise InvalidPlanError("it serves other requests")

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play all requests over and over, each time when all of them are done."""
        first = self._round(problem, deployment)
        round_ns = max(event.end_ns for event in first)
        return executed(
            deployment,
            (
                replace(event.moved(number * round_ns), request=number, slowdown_ns=0)
                for number in range(rounds)
                for event in first
            ),
        )

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what all requests do, served once."""
        first = self._round(problem, deployment)
        period_us = max(event.end_ns for event in first) / 1000
        return (SteadyState(period_us=period_us, events=tuple(sorted(first))),)

    def _round(self, problem: Problem, deployment: Deployment) -> list[Interval]:
        assert deployment.plan is not None
        return list(self.ran(problem, deployment.plan))
