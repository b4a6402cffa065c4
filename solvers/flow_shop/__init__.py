"""Native algorithms for workloads: bounds, slicing, ordering, alignment and joint local search."""

from collections.abc import Iterable
from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Drawn, Family, Instances, Search, Translation, Usual
from ..protocol import BOUNDED, Backend

_TERMS = frozenset(
    (
        T.PERIOD,
        T.GAPNESS,
        T.LATENCY,
        T.BUBBLES,
        T.PEAK_MEMORY,
        T.IDLE,
        T.MAKESPAN,
        T.BOTTLENECK,
        T.WORK,
        T.CONTENTION,
        T.DISPLACEMENT,
        T.ENERGY,
        T.UNITS,
    )
)
"""What the native algorithms compute."""


def _search() -> Search:
    from .solving import solve_flow_shop, starts_of

    return Search(solve_flow_shop, starts_of)


def _classes() -> Iterable[type[Backend]]:
    from . import baselines
    from . import hetero2pipe as paper

    return (
        paper.Hetero2PipeBackend,
        paper.NoContentionNoTailBackend,
        paper.NoContentionBackend,
        paper.NoTailBackend,
        paper.NoStealingBackend,
        paper.HungarianBackend,
        baselines.AnnealingBackend,
        baselines.SerialBackend,
        paper.PipeItBackend,
        baselines.BandBackend,
    )


def _instances() -> Instances:
    from .samples import random_workload, samples

    return Instances(samples, random_workload)


def _translation() -> Translation:
    from ...formulations.jobs.formulation import FORMULATION
    from ...formulations.schedules import as_workload, from_workload

    return Translation(
        formulation=FORMULATION.name,
        problem=as_workload,
        plan=from_workload,
        searches=(
            "plans in which every request passes the units once, in the order of the platform, and all units "
            "serve the requests in one order"
        ),
    )


FAMILY = Family(
    support=replace(BOUNDED, terms=_TERMS),
    search=_search,
    backends=(
        "hetero2pipe",
        "hetero2pipe-noct",
        "hetero2pipe-noc",
        "hetero2pipe-not",
        "hetero2pipe-nos",
        "hungarian",
        "annealing",
        "serial",
        "pipe-it",
        "band",
    ),
    classes=_classes,
    instances=_instances,
    drawn=Drawn(sizes=("requests", "units"), switches=("slowdown", "balanced")),
    usual=Usual(
        names=("native", "cpsat", "pulp", "hetero2pipe", "annealing", "band", "pipe-it", "serial"),
        time_limit_s=10.0,
    ),
    translation=_translation,
)
