"""Links: what messages between the devices of a cluster cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...formulations.errors import InvalidInputError
from ..base.answer import Answer, command, write_out
from ..base.declared import check_writable
from ..options.cluster import ClusterChoice, cluster_option
from ..options.models import EngineOption, measuring_option
from ..options.problem import OutOption

SamplesOption = Annotated[
    Path | None,
    cluster_option(
        "--samples", metavar="FILE", help="Fit messages that were measured before, instead of measuring."
    ),
]
NameOption = Annotated[
    str, cluster_option("--name", metavar="NAME", help="What it is to be called.", show_default=True)
]
RoundsOption = Annotated[
    int,
    measuring_option(min=2, max=1000, help="Messages of each size on each link.", show_default=True),
]
ShardsOption = Annotated[
    int,
    measuring_option(
        min=0,
        max=100_000,
        help="Messages as large as what parts of built-in networks send on; they check the prediction.",
        show_default=True,
    ),
]
NetworkOption = Annotated[
    str, measuring_option(metavar="MODEL", help="What each device runs to tell its speed.", show_default=True)
]


@command(
    "gapless device links --local 2 --rounds 2 --shards 60 --out cluster.json",
    "gapless device links --address 192.168.1.10:6379 --out cluster.json",
    "gapless device links --samples cluster.links.json --out cluster.json",
)
def device_links(
    *,
    place: ClusterChoice,
    samples: SamplesOption = None,
    name: NameOption = "cluster",
    rounds: RoundsOption = 5,
    shards: ShardsOption = 500,
    network: NetworkOption = "squeezenet",
    engine: EngineOption = None,
    out: OutOption = None,
) -> Answer:
    """Measure what messages between the devices of a cluster cost, and write the cluster to plan for.

    Beside FILE.json, FILE.links.json keeps the messages, so that the links can be fitted again.
    """
    from ...answers.clusters import link_blocks
    from ...api.links import load_links, measure_links
    from ...formulations.cluster_platform import CLUSTER
    from ...formulations.files import dump
    from ...profiler.links.fitting import checks_by_size, checks_in_short, fit_link
    from ...profiler.links.measure import LinkOptions
    from ...profiler.links.platform import cluster_platform
    from ...profiler.links.samples import LINKS
    from ..base.progress import StepLine

    if bool(place) == bool(samples):
        raise InvalidInputError(
            "which cluster? --local NODES starts one, --address HOST:PORT joins one, and --samples FILE fits "
            "what was measured before: give one of them"
        )
    kept = None if out is None or samples is not None else out.with_suffix(".links.json")
    check_writable(kept)
    if samples is not None:
        found = load_links(samples)
    else:
        options = LinkOptions(rounds=rounds, shards=shards)
        with StepLine() as line, place.joined(line.report) as cluster:
            found = measure_links(
                cluster, network=network, engine=engine, name=name, options=options, report=line.report
            )
    fits = [fit_link(one) for one in found.links]
    platform = cluster_platform(found, fits)
    return Answer.of(
        "link_fits",
        platform,
        lambda: link_blocks(found, fits),
        notes=write_out(kept, lambda: dump(found, LINKS)),
        files={"out": lambda: dump(platform, CLUSTER)},
        fits=[fit.summary for fit in fits],
        checks={"by_size": checks_by_size(found, fits), "in_short": checks_in_short(found, fits)},
    )
