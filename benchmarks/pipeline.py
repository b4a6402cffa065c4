"""What the pipeline runtime itself costs: one hop between two workers, and the period of a pipeline.

    python -m benchmarks.pipeline
    python -m benchmarks.pipeline --models squeezenet,mobilenetv2

A hop is the time from the end of a chunk, when its outputs are in the task slot, to the start of the next
chunk of the same request in another worker that was asleep. The period of a pipeline is compared with the
mean busy time of its busiest unit in the same run. It is longer by the hops, and by waiting: where times
vary, as on a machine that does other things too, balanced units wait for each other, the less the more task
slots there are. So the last columns compare how long a traced run took with what a runtime without any
cost of its own would have taken for tasks of the same lengths.

Two units, one core each; every round opens the pipelines anew, in turns.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from gapless.api.models import open_model
from gapless.executor.engine import Engine
from gapless.executor.engines.registry import get_engine
from gapless.executor.model import Model
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.history import History
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream

KERNELS = os.path.join(os.path.dirname(__file__), "kernels.py")
SHARES = (30, 50)
"""Where the models are cut, percent of their cuts."""

_Result = TypeVar("_Result")


def main() -> None:
    """Run both benchmarks and print their tables."""
    options = _arguments()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}; {options.rounds} rounds"
    )
    console.print(_hop_table(options.rounds, options.requests))
    models = [(f"{KERNELS}:WORK", "callable"), *((name, "mnn") for name in options.models)]
    console.print(_efficiency_table(models, options))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=500, help="for hops, each round")
    parser.add_argument("--seconds", type=float, default=2.0, help="for periods, each round and model")
    parser.add_argument("--task-slots", type=lambda text: [int(n) for n in text.split(",")], default=[4, 9])
    parser.add_argument(
        "--models",
        type=lambda text: text.split(",") if text else [],
        default=["mobilenetv2", "resnet50"],
        help="ONNX files or built-in networks, run by MNN",
    )
    return parser.parse_args()


def _units() -> Platform:
    """Return two units on different cores, or on the same one where there is no second."""
    cores = sorted(os.sched_getaffinity(0))
    return Platform(
        name="here",
        units=tuple(
            ProcessingUnit(name=name, kind=UnitKind.CPU, cores=(core,), threads=1)
            for name, core in (("first", cores[0]), ("second", cores[-1]))
        ),
    )


def _in_two(model: Model, cut: int, *, task_slots: int | None = None) -> Deployment:
    name, count = model.network.name, len(model.network.layers)
    chunks = (
        Chunk(network=name, start=0, stop=cut, unit="first"),
        Chunk(network=name, start=cut, stop=count, unit="second"),
    )
    return Deployment(streams=(Stream(name=name, chunks=chunks, task_slots=task_slots),))


def _run(model: Model, engine: Engine, deployment: Deployment, use: Callable[[Pipeline], _Result]) -> _Result:
    with Pipeline(deployment, {model.network.name: model}, _units(), engine) as pipeline:
        return use(pipeline)


def _hop_table(rounds: int, requests: int) -> Table:
    model = open_model(f"{KERNELS}:HOP")
    engine = get_engine("callable")
    # One task slot: the second worker always sleeps when its request comes.
    deployment = _in_two(model, 1, task_slots=1)
    table = Table(title="one hop, 256 KB, us (goal: below 100)", title_justify="left")
    for column in ("round", "median", "p95", "least", "most", "requests"):
        table.add_column(column, justify="right")
    for number in range(rounds):
        hops = sorted(_run(model, engine, deployment, lambda pipeline: _hops_us(pipeline, requests)))
        cells = (median(hops), hops[len(hops) * 95 // 100], hops[0], hops[-1])
        table.add_row(str(number + 1), *(f"{value:.1f}" for value in cells), str(len(hops)))
    return table


def _hops_us(pipeline: Pipeline, requests: int) -> list[float]:
    events = pipeline.trace(requests=requests).events
    ends = {event.request: event.end_ns for event in events if event.chunk == 0}
    return [(event.start_ns - ends[event.request]) / 1000 for event in events if event.chunk == 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model, cut in two, with a number of task slots."""

    model: Model
    engine: Engine
    cut: int
    task_slots: int

    def run(self, seconds: float) -> Efficiency:
        """Measure once."""
        deployment = _in_two(self.model, self.cut, task_slots=self.task_slots)
        return _run(self.model, self.engine, deployment, lambda pipeline: _efficiency(pipeline, seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What one round found: milliseconds, and how much longer than ideal a traced run took."""

    busy_ms: float
    period_ms: float
    over_ideal: float


def _cases(models: Sequence[tuple[str, str]], task_slots: Sequence[int]) -> list[Case]:
    cases = []
    for locator, engine in models:
        model = open_model(locator)
        cuts = model.network.legal_cuts
        cases += [
            Case(model=model, engine=get_engine(engine), cut=cuts[len(cuts) * share // 100], task_slots=slots)
            for share in SHARES
            for slots in task_slots
        ]
    return cases


def _efficiency_table(models: Sequence[tuple[str, str]], options: argparse.Namespace) -> Table:
    table = Table(
        title="period against the busiest unit, medians of the rounds (goal: within 5 %)",
        title_justify="left",
    )
    for column in ("model", "cut", "slots", "busy, ms", "period, ms", "period / busy", "traced / ideal"):
        table.add_column(column, justify="left" if column == "model" else "right")
    cases = _cases(models, options.task_slots)
    rounds = [[case.run(options.seconds) for case in cases] for _ in range(options.rounds)]
    for case, found in zip(cases, zip(*rounds, strict=True), strict=True):
        table.add_row(
            case.model.network.name,
            f"{case.cut} of {len(case.model.network.layers)}",
            str(case.task_slots),
            f"{median(one.busy_ms for one in found):.2f}",
            f"{median(one.period_ms for one in found):.2f}",
            _ratio_cell([one.period_ms / one.busy_ms for one in found]),
            _ratio_cell([one.over_ideal for one in found]),
        )
    return table


def _ratio_cell(ratios: Sequence[float]) -> str:
    return f"{median(ratios):.3f} ({min(ratios):.3f} - {max(ratios):.3f})"


def _efficiency(pipeline: Pipeline, seconds: float) -> Efficiency:
    measured = pipeline.measure(Budget(seconds=seconds))
    trace = pipeline.trace(requests=min(measured.requests, 1000))
    end_us = max(event.end_ns for event in trace.events) / 1000
    return Efficiency(
        busy_ms=max(unit.busy_us for unit in measured.units) / 1000,
        period_ms=measured.period_us / 1000,
        over_ideal=end_us / _ideal_us(trace),
    )


def _ideal_us(trace: History) -> float:
    """Return when the last request would end if every task began as soon as it could."""
    (stream,) = trace.streams
    last = len(stream.chunks) - 1
    ends: dict[tuple[int, int], int] = {}
    for event in sorted(trace.events, key=lambda event: (event.request, event.chunk)):
        request, chunk = event.request, event.chunk
        before = (request, chunk - 1) if chunk else (request - stream.slots, last)
        ready = max(ends.get(before, 0), ends.get((request - 1, chunk), 0))
        ends[request, chunk] = ready + event.end_ns - event.start_ns
    return max(ends.values()) / 1000


if __name__ == "__main__":
    main()
