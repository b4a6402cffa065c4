"""How plans for a workload run: one stream for each request, in rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..chain import Chain
from ..deployment import Deployment, Mode
from ..errors import InvalidInputError
from ..history import History, SteadyState
from ..operation import Operation, whole_requests
from ..plan import Plan
from ..problem import Problem
from ..usage import Usage
from . import history
from .deployment import arrange, deploy
from .tables import shop_of, workload_of
from .usage import workload_usage


class FlowShopOperation(Operation):
    """Rounds of all requests: one after the other in a batch, without waiting in a stream."""

    def pace(self, problem: Problem) -> str:
        """Return the makespan of a batch, the period of a stream: nothing else can a race compare."""
        return "makespan" if workload_of(problem).mode is Mode.BATCH else "period"

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream for each request, in their order."""
        return deploy(plan, workload_of(problem), task_slots=task_slots)

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return the same for workloads that the runtime cannot serve, too."""
        return arrange(plan, workload_of(problem))

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield plans that cut nothing and keep the order of the requests."""
        shop = shop_of(problem)
        requests = [(name, shop.chain(index)) for index, name in enumerate(shop.workload.names)]
        for label, plan in whole_requests(requests, sets):
            yield label, self.deploy(problem, plan)

    def chains(self, problem: Problem, deployment: Deployment) -> tuple[Chain, ...]:
        """Return the table of the network of each request."""
        shop, names = shop_of(problem), workload_of(problem).names
        return tuple(shop.chain(names.index(stream.name)) for stream in deployment.streams)

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play the requests as the judge does."""
        if (requests, interval_us, task_slots) != (None, None, None):
            raise InvalidInputError(
                "the problem has a workload, which says what comes when: play it with simulate_workload"
            )
        return history.history(problem, plan)

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        return workload_usage(problem, history)

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse what does not serve the workload."""
        history.check_deployment(problem, deployment)

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play rounds."""
        return history.play(problem, deployment, rounds)

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what one round does."""
        return history.steady(problem, deployment)
