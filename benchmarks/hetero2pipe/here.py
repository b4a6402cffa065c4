"""What can be measured here: Fig. 9's memory, Fig. 10's cores of one cluster, Fig. 11's warm units."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from time import monotonic

import gapless
from gapless.api.device import this_device
from gapless.executor.engines.registry import get_engine
from gapless.executor.joined import join
from gapless.executor.progress import Forgetful, silent
from gapless.formulations.chain import build_chain
from gapless.formulations.costs import NetworkCosts
from gapless.formulations.hardware import Platform
from gapless.profiler.measuring import NOTHING, PreparedPiece
from gapless.profiler.measuring import Bench as Timed
from gapless.profiler.profile import ProfileOptions
from gapless.profiler.sampling import Effort, TimeBase
from gapless.profiler.survey import survey

from ..printing import Part, titled
from ..processes import descendants, resident_bytes
from .playing import Study

NETWORKS = ("vgg16", "squeezenet")
"""Fig. 10's are YOLOv4 and VGG16; YOLOv4 takes seconds a run on one core, and minutes to prepare."""

ROUNDS = 2
_ALONE = Effort(min_repetitions=3, min_seconds=0.3, max_seconds=2.0, time_base=TimeBase.BUSY)
_SAMPLE_S = 0.02


@dataclass(frozen=True, slots=True)
class Bench:
    """Workers of this machine, and whole networks that they can run."""

    bench: Timed
    platform: Platform
    pieces: dict[str, PreparedPiece]

    def time_ms(self, unit: str, name: str, effort: Effort, *, beside: dict[str, str] | None = None) -> float:
        """Return the typical time of a network on a unit, beside others on others."""
        load = {other: self.pieces[each] for other, each in beside.items()} if beside else NOTHING
        timing = self.bench.timing(unit, self.pieces[name], effort=effort, beside=load)
        return timing.busy.typical_us / 1000


@contextmanager
def opened(names: Sequence[str]) -> Iterator[Bench]:
    """Open workers on the single cores of this machine, with whole networks to run."""
    platform = this_device()
    models = [gapless.open_model(name) for name in names]
    joined = join(models)
    engine = get_engine("mnn")
    with survey(
        joined, platform, engine, options=ProfileOptions(), ledger=Forgetful(), report=silent
    ) as found:
        (preparer,), at, spans = found.preparers.each, 0, {}
        for model in models:
            spans[model.network.name] = (at, at + len(model.network.layers))
            at += len(model.network.layers)
        preparer.prepare(spans.values())
        pieces = {name: preparer.probes(span)[0].prepared for name, span in spans.items()}
        yield Bench(found.bench.bench, platform, pieces)


def cores(platform: Platform) -> tuple[str, str] | None:
    """Return two single cores of one cluster, as far as this machine tells them apart."""
    single = [unit.name for unit in platform.units if len(unit.cores) == 1]
    return next(combinations(single, 2), None)


def figure_10(study: Study) -> Iterator[Part]:
    """Yield how much two cores of one cluster slow each other down, here."""
    pair = cores(this_device())
    if pair is None:
        yield "Fig. 10 here: this machine has no two cores that can be told apart."
        return
    table = titled(
        f"Fig. 10, here, {pair[0]} beside {pair[1]} of one cluster (the paper: up to 70 % on the big cores)",
        "network", *(f"beside {name}" for name in NETWORKS),
    )  # fmt: skip
    with opened(NETWORKS) as found:
        for unit in pair:
            found.bench.start(unit)
        for victim in NETWORKS:
            cells = []
            for other in NETWORKS:
                alone = beside = 0.0
                for _ in range(ROUNDS):
                    alone += found.time_ms(pair[0], victim, _ALONE)
                    beside += found.time_ms(pair[0], victim, _ALONE, beside={pair[1]: other})
                cells.append(f"{100 * (beside / alone - 1):+.1f} %")
            table.add_row(victim, *cells)
    yield table


def figure_11(study: Study) -> Iterator[Part]:
    """Yield times of the first runs, and after they have stopped drifting (Appendix B)."""
    table = titled(
        "Fig. 11, here: ms of a network at once, and when its times have stopped drifting",
        "network, unit", "first runs", "steady", "steady over first",
    )  # fmt: skip
    at_once = replace(_ALONE, warm_up_repetitions=1, min_seconds=0.0, time_base=TimeBase.WALL)
    with opened(NETWORKS) as found:
        for unit in (found.platform.unit_names[0], found.platform.unit_names[-1]):
            found.bench.start(unit)
            for name in NETWORKS:
                first = found.time_ms(unit, name, at_once)
                steady = found.time_ms(unit, name, replace(_ALONE, steady=True, time_base=TimeBase.WALL))
                table.add_row(f"{name}, {unit}", f"{first:.1f}", f"{steady:.1f}", f"{steady / first:.2f}")
    yield table


@cache
def memory() -> dict[tuple[str, ...], tuple[tuple[float, int], ...]]:
    """Return (second, bytes that workers take more than idle ones) over time, by the networks that run."""
    pair, found = cores(this_device()), {}
    if pair is None:
        return {}
    with opened(NETWORKS) as workers:
        for unit in pair:
            workers.bench.start(unit)
        idle = _used()
        for count in (1, 2):
            running = dict(zip(pair[:count], NETWORKS, strict=False))
            first, *others = running
            with _watched() as samples:
                workers.time_ms(
                    first, running[first], _ALONE, beside={unit: running[unit] for unit in others}
                )
            found[NETWORKS[:count]] = tuple((at, used - idle) for at, used in samples)
    return found


def figure_9(study: Study) -> Iterator[Part]:
    """Yield the memory of networks that run at once here, beside what the judge counts for them."""
    table = titled(
        "Fig. 9, here: memory that workers on single cores take more than idle ones, MB, while networks run",
        "running", "measured, most", "in the end", "counted (weights and tensors)",
    )  # fmt: skip
    for names, samples in memory().items():
        most, last = max(used for _, used in samples), samples[-1][1]
        counted = sum(map(_counted, names))
        table.add_row(", ".join(names), *(f"{size / 1e6:.0f}" for size in (most, last, counted)))
    yield table if memory() else "Fig. 9 here: this machine has no two cores that can be told apart."


@contextmanager
def _watched() -> Iterator[list[tuple[float, int]]]:
    """Collect (second, bytes of the workers) meanwhile."""
    begin, over = monotonic(), threading.Event()
    samples = [(0.0, _used())]

    def watch() -> None:
        while not over.wait(_SAMPLE_S):
            samples.append((monotonic() - begin, _used()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield samples
    finally:
        over.set()
        watcher.join()


def _used() -> int:
    """Return the bytes of all child processes, shared ones in parts (PSS)."""
    return sum(map(resident_bytes, descendants(os.getpid())))


def _counted(name: str) -> int:
    network = gapless.open_model(name).network
    count = len(network.layers)
    costs = NetworkCosts(network=network.name, layer_us=((1,),) * count)
    platform = Platform(name="one", units=this_device().units[:1])
    return build_chain(platform, network, costs).memory_bytes(0, count)
