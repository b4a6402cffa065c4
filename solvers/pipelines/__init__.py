"""Native algorithms for pipelines over devices: programs over sets of devices, and an exact search."""

from collections.abc import Iterable
from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Drawn, Family, Instances, Search, Usual
from ..protocol import EXACT, Backend

_TERMS = frozenset(
    (T.THROUGHPUT, T.PERIOD, T.LATENCY, T.GAPNESS, T.DEVICES, T.ENERGY, T.TRAFFIC, T.PEAK_MEMORY)
)
"""What the native algorithms compute."""


def _search() -> Search:
    from .solving import solve_pipelines, starts_of

    return Search(solve_pipelines, starts_of)


def _classes() -> Iterable[type[Backend]]:
    from . import baselines, genetic

    return (
        genetic.GeneticBackend,
        genetic.RepairingGeneticBackend,
        genetic.UnseededRepairingBackend,
        genetic.UnseededGeneticBackend,
        genetic.RandomSearchBackend,
        baselines.PipeEdgeBackend,
        baselines.PipeDreamBackend,
        baselines.PicoCostsBackend,
        baselines.GreedyBackend,
    )


def _instances() -> Instances:
    from .samples import drawn_cluster, samples

    return Instances(samples, drawn_cluster)


FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    search=_search,
    backends=(
        "epipe-ga",
        "epipe-ga-repair",
        "epipe-ga-repair-unseeded",
        "epipe-ga-unseeded",
        "random-search",
        "pipeedge",
        "pipedream",
        "pico-costs",
        "greedy",
    ),
    classes=_classes,
    instances=_instances,
    drawn=Drawn(sizes=("layers", "devices", "types")),
    usual=Usual(
        names=("native", "cpsat", "pulp", "pipeedge", "epipe-ga", "pico-costs", "pipedream", "greedy"),
        time_limit_s=10.0,
    ),
)
