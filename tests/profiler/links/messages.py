"""Messages of links whose law is known."""

from __future__ import annotations

import random

from gapless.formulations.cluster_platform import DeviceType, Speed
from gapless.profiler.links.samples import (
    CHECK_SIZES,
    FIT_SIZES,
    Links,
    Load,
    MeasuredLink,
    MessageSample,
    Purpose,
)

US_A_BYTE, LATENCY_US = 0.05, 700.0
"""20 MB/s."""


def sent(size: int, *, noise: float = 0.0, **known: float) -> MessageSample:
    """Return a message over a link of 20 MB/s where queue, own and mean traffic count 0.5, 0.02, 0.003."""
    queue_us, own = known.get("queue_us", 0.0), int(known.get("traffic_bytes", 0))
    mean = int(known.get("mean_traffic_bytes", 0))
    us = LATENCY_US + US_A_BYTE * size + 0.5 * queue_us + 0.02 * own + 0.003 * mean
    return MessageSample(
        size=size,
        latency_us=us * (1 + noise),
        queue_us=queue_us,
        traffic_bytes=own,
        mean_traffic_bytes=mean,
        load=Load.LINK if own else Load.OTHERS if mean else Load.IDLE,
        purpose=Purpose.FIT if size in FIT_SIZES else Purpose.CHECK,
    )


def measured(
    source: str = "a", target: str = "b", *, noise: float = 0.0, loaded: bool = True
) -> MeasuredLink:
    """Return a link, three messages of each size alone and, unless left out, some beside others."""
    chance = random.Random(f"{source}{target}")
    alone = [sent(size, noise=chance.gauss(0, noise)) for size in FIT_SIZES + CHECK_SIZES for _ in range(3)]
    beside = [
        sent(
            size,
            noise=chance.gauss(0, noise),
            queue_us=chance.uniform(0, 5000),
            traffic_bytes=chance.choice((0, 1 << 16, 1 << 20)),
            mean_traffic_bytes=chance.choice((1 << 15, 1 << 18)),
        )
        for size in FIT_SIZES[:-1] * 4
    ]
    return MeasuredLink(source=source, target=target, samples=tuple(alone + beside * loaded))


def links(*names: str, noise: float = 0.0) -> Links:
    """Return all links between some devices."""
    return Links(
        name="three",
        devices=tuple(DeviceType(name=name, speed=Speed(flops_per_second=10**9)) for name in names),
        links=tuple(measured(a, b, noise=noise) for a in names for b in names if a != b),
        source="made up",
    )
