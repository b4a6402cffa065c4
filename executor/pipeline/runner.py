"""The runner on this machine: opens pipelines as they are needed, and keeps the latest ones open."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Self

from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform
from ...formulations.history import History
from ..engine import Engine
from ..measurement import Measurement
from ..model import Model
from ..progress import Report, silent
from ..runner import Budget, Verification
from .pipeline import Pipeline
from .verify import References, verify


class PipelineRunner:
    """Executes deployments on the units of this machine; a context manager.

    Pipelines stay open, idle, so that candidates which are measured in turns need not be opened anew
    each time; the one that was not used for longest is closed for a new one. One runs at a time.

    `max_open`: most pipelines that are open at once; each holds its weights and its worker processes.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        platform: Platform,
        engine: Engine,
        *,
        device: str = "",
        max_open: int = 4,
        stall_limit_s: float | None = None,
        restarts: int = 0,
        report: Report = silent,
    ) -> None:
        if max_open < 1:
            raise InvalidInputError(f"max_open is {max_open}, must be at least 1")
        self._models = models
        self._platform = platform
        self._engine = engine
        self._device = device
        self._max_open = max_open
        self._stall_limit_s = stall_limit_s
        self._restarts = restarts
        self._report = report
        self._references = References(models)
        self._verified: dict[Deployment, Verification] = {}
        self._open: OrderedDict[Deployment, Pipeline] = OrderedDict()

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        """Run a deployment on sample inputs, and measure it; errors as for `Pipeline.measure`."""
        return self.pipeline(deployment).measure(budget)

    def trace(self, deployment: Deployment, *, requests: int) -> History:
        """Run some requests and return when everything happened; errors as for `Pipeline.trace`."""
        return self.pipeline(deployment).trace(requests=requests)

    def verify(self, deployment: Deployment) -> Verification:
        """Compare numbers with those of the uncut models; errors as for `verify`."""
        pipeline = self.pipeline(deployment)
        pipeline.verification = self._verified[deployment] = verify(pipeline, self._references)
        return pipeline.verification

    def pipeline(self, deployment: Deployment) -> Pipeline:
        """Return the open pipeline of a deployment, opening it if need be; errors as for `Pipeline`."""
        pipeline = self._open.get(deployment)
        if pipeline is not None and pipeline.is_open:
            self._open.move_to_end(deployment)
            return pipeline
        self._open.pop(deployment, None)
        while len(self._open) >= self._max_open:
            self._open.popitem(last=False)[1].close()
        self._open[deployment] = Pipeline(
            deployment,
            self._models,
            self._platform,
            self._engine,
            device=self._device,
            stall_limit_s=self._stall_limit_s,
            restarts=self._restarts,
            report=self._report,
        )
        self._open[deployment].verification = self._verified.get(deployment)
        return self._open[deployment]

    def close(self) -> None:
        """End all workers and free everything. Can be called twice."""
        while self._open:
            self._open.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
