"""What a hop between units costs, taken apart: `python -m benchmarks.hops` (about two minutes).

Two tables, both measured in the runtime that plans run in, on two cores at full speed:

handed   chunks that do nothing pass a tensor on, from core to core: how long the hand-over takes from the end
         of a chunk to the start of the next one, with one request on its way and with four; and what a copy
         takes of a tensor that the other core has just written, and of one that lies still
cut      networks in one chunk, in chunks that are all on one core, and in the same chunks to and fro between
         two cores: copies, runs of the engine, hand-overs per request, and what each border costs more than
         the uncut network in all. Chunks on one core share its caches, to and fro they do not.

Options: `--tables handed,cut`, `--only squeezenet,mobilenetv2,deit-tiny`, `--chunks 24`, `--rounds 3`,
`--engine onnxruntime`, `--percent 50`: which percentile over the requests counts; 10 is nearer to what a
quiet machine takes than the median of a busy one. The load is printed with each table: other programs make
hops dear.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rich.console import Console
from rich.table import Table

import gapless
from benchmarks.printing import WIDTH, show, titled
from gapless.executor.callable_layers import CallableLayer, CallableModel
from gapless.executor.engines.registry import get_engine
from gapless.executor.model import Model, TensorSpec
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.formulations.deployment import Deployment
from gapless.formulations.hardware import Platform
from gapless.formulations.history import History
from gapless.formulations.plan import Chunk
from gapless.formulations.streams import Stream
from gapless.profiler.hops import hand_overs

CORES = "core0", "core1"
BACK = 16
"""Chunks of the models that do nothing."""

REQUESTS = 40
"""Requests of a visit that count."""


def _passing(name: str, size: int) -> CallableModel:
    layers = (CallableLayer(name=f"pass{index}", variants={"*": _same}) for index in range(BACK))
    return CallableModel(name=name, inputs=(TensorSpec(name="x", shape=(size // 4,)),), layers=tuple(layers))


def _same(tensor: object) -> object:
    return tensor


SMALL = _passing("4 kB", 4_000)
MEDIUM = _passing("600 kB", 600_000)
LARGE = _passing("6 MB", 6_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How often everything is measured, and which percentile over the requests counts."""

    rounds: int
    percent: int

    def __str__(self) -> str:
        return f"{self.rounds} rounds, percentile {self.percent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one request takes on its way through all chunks, microseconds."""

    copy_in_us: float
    run_us: float
    copy_out_us: float
    hand_over_us: float

    @property
    def total_us(self) -> float:
        """All of it, without waiting for a unit that is busy."""
        return self.copy_in_us + self.run_us + self.copy_out_us + self.hand_over_us


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", default="handed,cut")
    parser.add_argument("--only", default="squeezenet,mobilenetv2,deit-tiny")
    parser.add_argument("--chunks", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", default="onnxruntime")
    parser.add_argument("--percent", type=int, default=50)
    asked = parser.parse_args(arguments)
    console, how = Console(width=WIDTH), How(rounds=asked.rounds, percent=asked.percent)
    if "handed" in asked.tables.split(","):
        show(console, _handed(how))
        console.print(f"load at the end {os.getloadavg()[0]:.1f}")
    if "cut" in asked.tables.split(","):
        for name in asked.only.split(","):
            show(console, _cut(name, asked.engine, asked.chunks, how))
            console.print(f"load at the end {os.getloadavg()[0]:.1f}")


def _handed(how: How) -> Table:
    table = titled(
        f"hand-overs between two cores, {how}",
        "tensor",
        "1 in flight us",
        "4 in flight us",
        "copy in, still us",
        "copy in, just written us",
    )
    platform = gapless.this_device(engine="callable", units=CORES)
    for attribute in ("SMALL", "MEDIUM", "LARGE"):
        model = gapless.open_model(f"benchmarks.hops:{attribute}")
        ends = range(BACK + 1)
        cases = {
            "still": _deployment(model, (0, BACK), CORES[:1], slots=1),
            "1": _deployment(model, ends, CORES, slots=1),
            "4": _deployment(model, ends, CORES, slots=4),
        }
        taken = _measured(cases, model, platform, "callable", how)
        table.add_row(
            model.network.name,
            *(f"{taken[case].hand_over_us / (BACK - 1):.0f}" for case in ("1", "4")),
            f"{taken['still'].copy_in_us:.0f}",
            f"{taken['1'].copy_in_us / BACK:.0f}",
        )
    return table


def _cut(name: str, engine: str, chunks: int, how: How) -> Table:
    model = gapless.open_model(name)
    ends = (0, *model.network.legal_cuts, len(model.network.layers))
    some = sorted({ends[round(index * (len(ends) - 1) / chunks)] for index in range(chunks + 1)})
    borders = len(some) - 2
    platform = gapless.this_device(engine=engine, units=CORES)
    cases = {
        "one chunk on core0": _deployment(model, (some[0], some[-1]), CORES[:1], slots=1),
        "all chunks on core0": _deployment(model, some, CORES[:1], slots=1),
        "to and fro": _deployment(model, some, CORES, slots=1),
        "to and fro, 4 in flight": _deployment(model, some, CORES, slots=4),
    }
    taken = _measured(cases, model, platform, engine, how)
    table = titled(
        f"{name} in {len(some) - 1} chunks, {how}",
        "what",
        "copy in us",
        "run us",
        "copy out us",
        "hand-over us",
        "together us",
        "more per border us",
    )
    whole_us = taken["one chunk on core0"].total_us
    for case, parts in taken.items():
        more = "-" if parts.total_us == whole_us else f"{(parts.total_us - whole_us) / borders:.0f}"
        columns = (parts.copy_in_us, parts.run_us, parts.copy_out_us, parts.hand_over_us, parts.total_us)
        table.add_row(case, *(f"{time_us:,.0f}" for time_us in columns), more)
    return table


def _deployment(model: Model, ends: Sequence[int], units: Sequence[str], *, slots: int) -> Deployment:
    """Return chunks that are on some units in turn."""
    name = model.network.name
    chunks = tuple(
        Chunk(network=name, start=start, stop=stop, unit=units[index % len(units)])
        for index, (start, stop) in enumerate(pairwise(ends))
    )
    return Deployment(streams=(Stream(name=name, chunks=chunks, task_slots=slots),))


def _measured(
    cases: Mapping[str, Deployment], model: Model, platform: Platform, engine: str, how: How
) -> dict[str, Parts]:
    """Run all cases in turns, and return medians over the rounds of a percentile over the requests."""
    found: dict[str, list[Parts]] = {case: [] for case in cases}
    for _ in range(how.rounds):
        for case, deployment in cases.items():
            with Pipeline(deployment, {model.network.name: model}, platform, get_engine(engine)) as pipeline:
                slots = deployment.streams[0].slots
                history = pipeline.trace(requests=REQUESTS + 10 + 2 * slots)
            found[case].append(_parts(history, range(10 + slots, 10 + slots + REQUESTS), how.percent))
    return {case: _median(parts) for case, parts in found.items()}


def _parts(history: History, counted: range, percent: int) -> Parts:
    """Return what one request takes: sums over the chunks of a percentile over the requests."""
    columns: dict[int, list[tuple[float, ...]]] = {}
    for event, handed_ns in hand_overs(history):
        if event.request in counted:
            row = (*event.parts_us, handed_ns / 1000 if event.chunk else 0.0)
            columns.setdefault(event.chunk, []).append(row)
    usual = [
        [sorted(part)[len(part) * percent // 100] for part in zip(*rows, strict=True)]
        for rows in columns.values()
    ]
    copy_in, run, copy_out, handed = (sum(parts) for parts in zip(*usual, strict=True))
    return Parts(copy_in_us=copy_in, run_us=run, copy_out_us=copy_out, hand_over_us=handed)


def _median(parts: Sequence[Parts]) -> Parts:
    return Parts(
        copy_in_us=median(one.copy_in_us for one in parts),
        run_us=median(one.run_us for one in parts),
        copy_out_us=median(one.copy_out_us for one in parts),
        hand_over_us=median(one.hand_over_us for one in parts),
    )


if __name__ == "__main__":
    main()
