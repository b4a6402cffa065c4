"""How well messages between devices are predicted: Eq. 3 of EPipe, as corrected, and bandwidth alone.

    python -m benchmarks.links                      # about three minutes on an idle machine; needs Ray
    python -m benchmarks.links --local "a=core0@20MB/s+500us,b=core1@50MB/s" --rounds 9
    python -m benchmarks.links --address 192.168.1.10:6379
    python -m benchmarks.links --samples cluster.links.json

Each ordered pair of devices is measured with messages of 1 KiB to 16 MiB, alone, beside others on the same
link, and while other devices send. Sizes 1, 4, 16, ... KiB are fitted, those between are not, nor are the
500 messages of the size of what a part of a built-in network sends on. "fit" and "bandwidth" are relative
errors (median, 90 % below). What each fit says about w1 alone and about w1 and w3 apart is in the last table:
the rank of the equations of EPipe's printed form, of 3 parameters, for messages that were sent alone.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import gapless
from gapless.answers.clusters import link_blocks
from gapless.executor.cluster.actors import join_cluster, local_cluster
from gapless.executor.machine.state import fingerprint
from gapless.executor.progress import Step
from gapless.formulations.files import load
from gapless.profiler.links.fitting import fit_link
from gapless.profiler.links.measure import LinkOptions
from gapless.profiler.links.samples import LINKS, Links, Load, MessageSample, Purpose
from gapless.view.terminal.blocks import blocks_view


def main() -> None:
    """Measure, fit, and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--local", default="3")
    parser.add_argument("--address")
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shards", type=int, default=500)
    given = parser.parse_args()
    console = Console(width=118)
    console.print(f"{fingerprint()}; load of the machine before: {os.getloadavg()[0]:.1f}")
    links = load(given.samples, LINKS) if given.samples else _measured(given)
    fits = [fit_link(one) for one in links.links]
    console.print(blocks_view(link_blocks(links, fits)))
    table = Table(
        "from", "to", "printed form, alone: rank of 3", "and with traffic", "round trip", "one way twice"
    )
    for one in links.links:
        idle, all_ = one.of(Purpose.FIT, Load.IDLE), one.of(Purpose.FIT)
        smallest = min(sample.size for sample in idle)
        way_us = min(sample.latency_us for sample in idle if sample.size == smallest)
        back = next(link for link in links.links if (link.source, link.target) == (one.target, one.source))
        back_us = min(
            sample.latency_us for sample in back.of(Purpose.FIT, Load.IDLE) if sample.size == smallest
        )
        table.add_row(
            one.source,
            one.target,
            str(_rank(idle)),
            str(_rank(all_)),
            f"{one.round_trip_us:,.0f} us",
            f"{way_us + back_us:,.0f} us",
        )
    console.print(table)


def _measured(given: argparse.Namespace) -> Links:
    options = LinkOptions(rounds=given.rounds, shards=given.shards)
    opened = (
        join_cluster(given.address, report=_say) if given.address else local_cluster(given.local, report=_say)
    )
    with opened as cluster:
        return gapless.clusters.measure_links(cluster, options=options, report=_say)


def _say(step: Step) -> None:
    print(f"\r{step.text:<70}", end="", file=sys.stderr, flush=True)


def _rank(samples: tuple[MessageSample, ...]) -> int:
    """Return how many of w1, w3 and e of Eq. 3 as it is printed can be told apart."""
    rows = [[one.size, one.traffic_bytes - one.size, 1.0] for one in samples]
    return int(np.linalg.matrix_rank(np.array(rows)))


if __name__ == "__main__":
    main()
