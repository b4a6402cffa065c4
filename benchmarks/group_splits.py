"""How far the split of rows of a group is from the best one: brute force over all splits and leaders.

    python -m benchmarks.group_splits          # 1,000 chunks with like links, 1,000 with others

Chunks, speeds and links are drawn (`drawn_split`). Where links are alike no split may be better; where they
are not, the split is a rule, and what it loses is printed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise

from gapless.formulations.cooperation.service import Part
from gapless.formulations.cooperation.tables import Groups, groups_of
from gapless.formulations.spatial import SpatialNetwork, SpatialNode, Window

from .group_instances import group_problem


def drawn_split(seed: int, *, alike: bool = True) -> tuple[Groups, Part]:
    """Return a chunk of one to three convolutions or pools of 4 to 20 rows, and a group of two to four."""
    rng = random.Random(f"split {seed}")
    layers, devices, side = rng.randint(1, 3), rng.randint(2, 4), rng.randint(4, 20)
    nodes = [SpatialNode(name="in", op_type="Input", size=(side, side), bytes=side * rng.randint(1, 4000))]
    for layer in range(layers):
        size, extent = (
            nodes[-1].size[0],
            rng.choice([extent for extent in (1, 2, 3, 5) if extent <= nodes[-1].size[0]]),
        )
        stride = rng.choice([1, 1, 2]) if size >= 10 else 1
        before = rng.randint(0, extent // 2)
        out = (size + 2 * before - extent) // stride + 1
        nodes.append(
            SpatialNode(
                name=f"conv{layer}",
                op_type="Conv",
                sources=(layer,),
                windows=((Window(stride=stride, extent=extent, before=before),) * 2,),
                size=(out, out),
                bytes=out * rng.randint(1, 4000),
                flops=out * rng.randint(1, 50_000),
            )
        )
    network = SpatialNetwork(name="net", nodes=tuple(nodes), outputs=(layers,))
    speeds = [rng.choice([rng.uniform(0.5, 2), rng.uniform(0.05, 20)]) for _ in range(devices)]
    problem = group_problem(
        network, (-1, *range(layers)), speeds, mbit_per_second=rng.choice([50, 400, 5000]), interstage=False
    )
    devices_data = problem.data.devices
    links = tuple(
        link if alike else replace(link, bytes_per_second=rng.randint(1, 700) * 10**6)
        for link in devices_data.links
    )
    data = replace(devices_data, links=links, overlap=rng.random() < 0.3)
    problem = replace(problem, data=replace(problem.data, devices=data))
    return groups_of(problem), (0, layers, tuple(range(devices)))


def _splits(rows: int, devices: int) -> Iterator[tuple[int, ...]]:
    for cuts in combinations(range(1, rows), devices - 1):
        borders = (0, *cuts, rows)
        yield tuple(last - first for first, last in pairwise(borders))


def best_us(groups: Groups, part: Part) -> int | None:
    """Return the least time of a request over all splits and leaders; None: the group cannot serve it."""
    start, stop, group = part
    segment = groups.segments.of(start, stop)
    times = [groups.tile_us(start, stop, device, len(group)) for device in group]
    received, sent = segment.received.by_rows(len(group)), segment.sent.by_rows(len(group))
    best: int | None = None
    for rows in _splits(segment.rows, len(group)):
        compute = max(row[count] for row, count in zip(times, rows, strict=True))
        sizes = [received[count] + sent[count] for count in rows]
        for leader in range(len(group)):
            message = groups.messages_us(group, leader, sizes)
            if message is not None:
                time = max(compute, message) if groups.data.devices.overlap else compute + message
                best = time if best is None else min(best, time)
    return best


def loss(seed: int, *, alike: bool = True) -> float | None:
    """Return how much longer the split of a drawn chunk takes than the best one, as a share; None: none."""
    groups, part = drawn_split(seed, alike=alike)
    service, best = groups.service(part), best_us(groups, part)
    if service is None or best is None:
        return None
    return groups.stage_us(service) / max(1, best) - 1


def main() -> None:
    """Print what the split loses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=1000)
    chunks = parser.parse_args().chunks
    for alike in (True, False):
        losses = [each for seed in range(chunks) if (each := loss(seed, alike=alike)) is not None]
        worse = [each for each in losses if each > 0]
        print(
            f"links {'alike' if alike else 'unlike'}: {len(losses)} of {chunks} drawn chunks can be split; "
            f"{len(worse)} take longer than the best split, {100 * sum(losses) / len(losses):.3f} % in the "
            f"mean, {100 * max(losses):.2f} % at most (measured)"
        )


if __name__ == "__main__":
    main()
