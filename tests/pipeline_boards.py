"""Problems of pipelines with known plans: two pipelines over five of six devices, and one board."""

from __future__ import annotations

from dataclasses import replace

from gapless.formulations.cluster import Link, Pipelines
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective

TYPES = ("xavier", "nano", "nano", "pi", "pi", "pi")
DEVICES = ("xavier", "nano-1", "nano-2", "pi-1", "pi-2", "pi-3")
_FACTOR = {"xavier": 1, "nano": 3, "pi": 6}
_LAYER_US = (2000, 3000, 1000, 2000)


def six_devices(*, overlap: bool = True, host: str = "") -> Problem:
    """Return four layers over a fast device, two slower ones and three slow ones.

    Links from and to the slow ones carry 1 MB a second; their message of 12,000 bytes takes 12,100 us.
    """
    kinds = dict.fromkeys(TYPES)
    return Problem(
        platform=Platform(
            name="shelf", units=tuple(ProcessingUnit(name=name, memory_bytes=10**6) for name in DEVICES)
        ),
        networks=(
            Network(
                name="net",
                layers=tuple(Layer(name=f"block{number}", weight_bytes=1000) for number in range(4)),
                tensors=tuple(
                    Tensor(name=f"x{source}", bytes=12_000, source=source, targets=(source + 1,))
                    for source in range(-1, 4)
                ),
            ),
        ),
        costs=CostTable(
            units=DEVICES,
            networks=(
                NetworkCosts(
                    network="net",
                    layer_us=tuple(tuple(time * _FACTOR[kind] for kind in TYPES) for time in _LAYER_US),
                ),
            ),
        ),
        objective=Objective(terms=("throughput",)),
        data=Pipelines(
            types=TYPES,
            links=tuple(
                Link(
                    source=one,
                    target=other,
                    bytes_per_second=10**6 if "pi" in (one, other) else 10**7,
                    latency_us=100,
                )
                for one in kinds
                for other in kinds
            ),
            overlap=overlap,
            host=host,
        ),
    )


def _chunk(start: int, stop: int, unit: str, request: str) -> Chunk:
    return Chunk(network="net", start=start, stop=stop, unit=unit, request=request)


TWO = Plan(
    chunks=(
        _chunk(0, 3, "xavier", "pipeline 1"),
        _chunk(3, 4, "nano-1", "pipeline 1"),
        _chunk(0, 1, "pi-1", "pipeline 2"),
        _chunk(1, 2, "nano-2", "pipeline 2"),
        _chunk(2, 4, "pi-2", "pipeline 2"),
    ),
    order=("pipeline 1", "pipeline 2"),
)
"""xavier and nano-1 take 6 ms each; pi-2 takes 18 ms, messages from and to it take 12.1 ms."""


def one_board() -> Problem:
    """Return three units of one board, of which one shares its cores with the others."""
    whole = six_devices()
    units = (
        ProcessingUnit(name="big", cores=(0,)),
        ProcessingUnit(name="small", cores=(1,)),
        ProcessingUnit(name="all", cores=(0, 1)),
    )
    rows = tuple((time, 2 * time, time) for time in _LAYER_US)
    names = tuple(unit.name for unit in units)
    return replace(
        whole,
        platform=Platform(name="board", units=units),
        costs=CostTable(units=names, networks=(NetworkCosts(network="net", layer_us=rows),)),
        data=Pipelines(),
    )
