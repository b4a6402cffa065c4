"""What the paper's figures show of the phones themselves: classes, queues, memory, bubbles, batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations_with_replacement, pairwise, permutations
from statistics import correlation, fmean, linear_regression

import numpy as np
from numpy.typing import NDArray

from benchmarks.phone_platforms.hetero2pipe import PAPER_NETWORKS
from gapless.formulations.flow_shop.space import pipelines, split_points
from gapless.formulations.flow_shop.tables import FlowShop, Schedule, shop_of, workload_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate_workload, trace_usage
from gapless.formulations.workload import Execution, LoadPolicy
from gapless.profiler.analytic.costs import BatchTime, time_of
from gapless.profiler.platforms.phone_estimates import EstimatedContention, estimate_contention
from gapless.profiler.platforms.workloads import phone_model, phone_network, shipped_workload
from gapless.profiler.slowdown.contention.ridge import Form

from ..printing import Part, Statement, near, titled
from .playing import KIRIN, PAPERS, Study, ask, on_units

STAGES = {
    "serial, cpu_big": ("cpu_big",),
    "2 units": ("cpu_big", "gpu"),
    "3 units": ("npu", "cpu_big", "gpu"),
    "4 units": ("npu", "cpu_big", "gpu", "cpu_little"),
}
"""The units of Fig. 2(a) and Fig. 9; the paper does not say which two and three."""

OBSERVED = ("squeezenet", "googlenet", "bert", "vgg16")
"""High by Observations 2 and 3."""

BUBBLES = {
    "(a)": (("cpu_big", "gpu", "cpu_little"), ("vit", "alexnet", "yolov4", "bert", "mobilenetv2")),
    "(b)": (("npu", "cpu_big", "gpu"), ("inceptionv4", "resnet50", "squeezenet")),
}
"""Units and networks of Fig. 12."""

SPLIT = "split-kirin990"
"""The Kirin 990 by groups of cores."""

CORE_LEVEL = 10
"""Combinations that are planned on groups of cores."""

BATCHES = (1, 2, 4, 8, 16)
LIGHT = ("mobilenetv2", "squeezenet")
PLANS = 400

ENUMERATED = "(b)"
"""The pipeline of which all plans are tried, with few places of cuts."""

EDGE_CUTS, EDGE_STEP_MS = 11, 10.0
"""Places of cuts of each network, and sizes of bubbles, where all plans are tried."""


def classes(study: Study) -> Iterator[Part]:
    """Yield the classification (Fig. 2b, Observations 2 and 3), of networks and of layers."""
    found = estimate_contention([phone_network(name) for name in PAPER_NETWORKS])
    printed = estimate_contention([phone_network(name) for name in PAPER_NETWORKS], form=Form.PRINTED)
    table = titled(
        "Contention intensity on the Kirin 990, estimated by Eq. (1)",
        "network", "centred form", "printed form", "taken", "class", "time in high layers",
    )  # fmt: skip
    for whole, other in zip(found.networks, printed.networks, strict=True):
        high = sum(part.time_us for part in found.parts if part.network == whole.network and part.high)
        table.add_row(
            whole.network,
            f"{whole.intensity:.2f}",
            f"{other.intensity:.2f}",
            f"{found.interference.of(whole.network).intensity_permille / 1000:.2f}",
            "high" if found.interference.is_high(whole.network) else "low",
            f"{100 * high / whole.time_us:.0f} %",
        )
    yield table
    low = [name for name in OBSERVED if not found.interference.is_high(name)]
    yield Statement(
        "SqueezeNet, GoogLeNet, BERT, VGG16 press much",
        f"low are {', '.join(low) or 'none of them'}",
        not low,
    )
    ratio = (
        found.interference.of("vit").intensity_permille
        / found.interference.of("squeezenet").intensity_permille
    )
    yield Statement(
        "ViT presses half as much as SqueezeNet (Table II: 5.60 to 11.22)", f"{ratio:.2f}", ratio < 0.6
    )
    for what, members in {
        "fully connected layers of VGG16 and AlexNet": [
            part for part in found.parts
            if part.network in {"vgg16", "alexnet"} and (part.first[:2] == "fc" or part.first == "logits")
        ],
        "attention layers of BERT": [
            part for part in found.parts if part.network == "bert" and ".attention." in part.first
        ],
    }.items():  # fmt: skip
        count = sum(part.high for part in members)
        yield Statement(f"{what} press much", f"{count} of {len(members)} are high", count == len(members))
    ratios = {name: _misses(found, name) for name in ("alexnet", "vgg16")}
    yield Statement(
        "fully connected layers have 2 to 4 times the cache misses of convolutions",
        f"computed, by time: {', '.join(f'{name} {ratio:.0f} times' for name, ratio in ratios.items())}",
        all(2 <= ratio <= 4 for ratio in ratios.values()),
    )


def _misses(found: EstimatedContention, network: str) -> float:
    """Return the rate of misses of fully connected layers over that of convolutions, means by time."""
    parts = [part for part in found.parts if part.network == network]
    convolutions = [part for part in parts if part.first.startswith("conv")]
    others = [part for part in parts if part not in convolutions]
    one, other = (
        sum(part.time_us * part.features.miss_rate for part in each) / sum(part.time_us for part in each)
        for each in (others, convolutions)
    )
    return one / other


@cache
def delays(stage: str) -> tuple[list[float], Problem, Plan]:
    """Return the queueing delay of each of the ten networks in milliseconds, with the plan that gives it."""
    problem = on_units(shipped_workload(KIRIN, ",".join(PAPER_NETWORKS)), STAGES[stage])
    plan = ask(problem, "serial" if stage.startswith("serial") else PAPERS).plan
    assert plan is not None
    schedule = shop_of(problem).schedule(plan)
    start_us = WorkloadValues(shop_of(problem), schedule).start_us
    return [start_us[request] / 1000 for request in schedule.order], problem, plan


def figure_2a(study: Study) -> Iterator[Part]:
    """Yield how long requests wait for their first chunk, by the number of units."""
    table = titled(
        "Fig. 2(a), ten networks at once, Kirin 990: queueing delay until a request starts, ms (hetero2pipe)",
        "units", "mean", "last", "all done",
    )  # fmt: skip
    means = []
    for stage in STAGES:
        waits, problem, plan = delays(stage)
        end_us = WorkloadValues(shop_of(problem), shop_of(problem).schedule(plan)).makespan_us
        means.append(fmean(waits))
        table.add_row(stage, f"{means[-1]:.0f}", f"{max(waits):.0f}", f"{end_us / 1000:.0f}")
    yield table
    yield Statement(
        "more units reduce the queueing delay of serial execution substantially",
        f"mean delay over that of serial: {', '.join(f'{mean / means[0]:.2f}' for mean in means[1:])}",
        means == sorted(means, reverse=True) and means[-1] < means[0] / 2,
    )


def figure_9(study: Study) -> Iterator[Part]:
    """Yield the memory that pipelines of one to four units take, simulated."""
    table = titled(
        "Fig. 9, ten networks on the Kirin 990, 2,500 MB available: simulated (/ paper)",
        "units", "most in use, MB", "mean in use, MB", "least available, MB", "with all weights loaded, MB",
    )  # fmt: skip
    for stage in STAGES:
        steps, loaded = usage(stage, LoadPolicy.RUNNING), usage(stage, LoadPolicy.RESIDENT)
        peak, all_loaded = (max(used for _, used in each) / 1e6 for each in (steps, loaded))
        paper = " / 500" if stage == "3 units" else ""
        table.add_row(
            stage,
            f"{peak:.0f}",
            f"{_mean_used(steps) / 1e6:.0f}",
            f"{2500 - peak:.0f}{paper}",
            f"{2500 - all_loaded:.0f}{paper}",
        )
    yield table
    sizes = {name: _whole_bytes(name) / 1e6 for name in PAPER_NETWORKS}
    kinds = {
        "large, over 300 MB": (("bert", "vit", "yolov4"), 300, 1e9),
        "medium, 100 to 300 MB": (("inceptionv4", "resnet50", "alexnet"), 100, 300),
        "light, under 100 MB": (("squeezenet", "mobilenetv2", "googlenet"), 0, 100),
    }
    for kind, (names, low, high) in kinds.items():
        words = ", ".join(f"{name} {sizes[name]:.0f}" for name in names)
        yield Statement(f"{kind}", f"{words} MB", all(low <= sizes[name] <= high for name in names))


@cache
def usage(stage: str, policy: LoadPolicy) -> tuple[tuple[int, int], ...]:
    """Return (microsecond, bytes in use from then on) of the plan of a stage."""
    _, problem, plan = delays(stage)
    problem = replace(problem, data=replace(workload_of(problem), load_policy=policy))
    return trace_usage(problem, simulate_workload(problem, plan)).steps


def _mean_used(steps: Sequence[tuple[int, int]]) -> float:
    spans = [(after - at) * used for (at, used), (after, _) in pairwise(steps)]
    return sum(spans) / (steps[-1][0] - steps[0][0])


def _whole_bytes(name: str) -> int:
    chain = shop_of(shipped_workload(KIRIN, name)).chains[0]
    return chain.memory_bytes(0, chain.layer_count)


def figure_10(study: Study) -> Iterator[Part]:
    """Yield what cores of one cluster do to each other, and what planners make of groups of cores."""
    split = shipped_workload(SPLIT, "yolov4,vgg16")
    known, names = split.interference, split.platform.unit_names
    assert known is not None
    table = titled(
        f"Fig. 10, {SPLIT}: slowdown of YOLOv4 beside VGG16 on two groups of cores (/ paper)",
        "groups",
        "slowdown",
    )
    for one, other in (
        ("cpu_big-45", "cpu_big-67"),
        ("cpu_big-456", "cpu_big-7"),
        ("cpu_little-01", "cpu_little-23"),
    ):
        slowdown = known.slowdown_of("yolov4", names.index(one), "vgg16", names.index(other)) / 10
        paper = " / up to 70" if one.startswith("cpu_big") else ""
        table.add_row(f"{one} beside {other}", f"{slowdown:.0f}{paper} %")
    yield table
    gains, together = [], 0
    for text in study.texts(KIRIN)[:CORE_LEVEL]:
        whole, groups = (ask(shipped_workload(platform, text), PAPERS) for platform in (KIRIN, SPLIT))
        assert groups.plan is not None
        used = {chunk.unit for chunk in groups.plan.chunks}
        together += len(used) > len({unit.partition("-")[0] for unit in used})
        gains.append((groups.makespan_us or 0) / (whole.makespan_us or 1))
    yield Statement(
        "clusters are taken as a whole, since groups of their cores contend",
        f"given groups of cores, too, {together} of {len(gains)} plans of hetero2pipe have two groups of one "
        f"cluster at work; plans take {fmean(gains):.2f} times as long, because there are more sets of units "
        "to choose from",
        together <= len(gains) // 10,
    )


def figure_11(study: Study) -> Iterator[Part]:
    """Yield how fast the units are against each other (the caption of Fig. 11, and Fig. 1)."""
    table = titled("Figs. 1 and 11, Kirin 990: ms alone, estimated", "network", *_units())
    ratios: dict[str, list[float]] = {}
    for name in PAPER_NETWORKS:
        times = {unit.unit: time_of(phone_network(name), unit) for unit in phone_model(KIRIN).units}
        took = {unit: time.of(1) / 1000 for unit, time in times.items() if time is not None}
        table.add_row(name, *(f"{took[unit]:.1f}" if unit in took else "fails" for unit in times))
        for unit, time in took.items():
            ratios.setdefault(unit, []).append(time / took["cpu_big"])
    yield table
    means = {unit: fmean(values) for unit, values in ratios.items()}
    words = ", ".join(f"{unit} {mean:.2f}" for unit, mean in means.items())
    holds = means["npu"] < 0.25 and 0.5 < means["gpu"] < 2 and means["cpu_little"] > 2
    yield Statement(
        "NPU >> CPU Big >= GPU >> CPU Small; YOLOv4 and BERT fail on the NPU",
        f"mean time over that on the big cores: {words}",
        holds,
    )


def _units() -> tuple[str, ...]:
    return tuple(unit.unit for unit in phone_model(KIRIN).units)


@cache
def in_columns(which: str) -> Problem:
    """Return a pipeline of Fig. 12, played in columns, without slowdown."""
    units, names = BUBBLES[which]
    problem = on_units(shipped_workload(KIRIN, ",".join(names)), units)
    return replace(
        problem, data=replace(workload_of(problem), execution=Execution.COLUMNS), interference=None
    )


@cache
def bubbles(which: str) -> tuple[tuple[float, float], ...]:
    """Return (bubbles, latency) in milliseconds of random plans in the paper's columns (Eqs. 3 and 5)."""
    shop, source, found = shop_of(in_columns(which)), random.Random(0), list[tuple[float, float]]()
    while len(found) < PLANS:
        order = tuple(source.sample(range(shop.request_count), shop.request_count))
        schedule = Schedule(
            order, tuple(_cuts(shop, request, source) for request in range(shop.request_count))
        )
        values = WorkloadValues(shop, schedule)
        found.append((values.bubbles_us / 1000, values.makespan_us / 1000))
    return tuple(found)


def _cuts(shop: FlowShop, request: int, source: random.Random) -> tuple[int, ...]:
    """Return random cuts with which every unit can run what it gets."""
    chain = shop.chain(request)
    while True:
        inner = sorted(source.choices(chain.cuts, k=shop.unit_count - 1))
        cuts = (0, *inner, chain.layer_count)
        if all(chain.runs(cuts[unit], cuts[unit + 1], unit) for unit in range(shop.unit_count)):
            return cuts


def figure_12(study: Study) -> Iterator[Part]:
    """Yield whether bubbles tell the latency (Property 1)."""
    table = titled(
        f"Fig. 12, Kirin 990: bubbles (Eq. 3) against latency of {PLANS} random plans in columns",
        "pipeline", "correlation", "latency by bubbles, ms/ms", "least bubbles: latency over the least",
    )  # fmt: skip
    for which in BUBBLES:
        pairs = bubbles(which)
        slope = linear_regression(*zip(*pairs, strict=True)).slope
        few, best = min(pairs)[1], min(latency for _, latency in pairs)
        table.add_row(
            which, f"{correlation(*zip(*pairs, strict=True)):.3f}", f"{slope:.2f}", f"{few / best:.2f}"
        )
    yield table
    edge = lower_edge(ENUMERATED, EDGE_CUTS)
    found = correlation(*zip(*edge.points, strict=True))
    yield Statement(
        "a general linear relation of bubbles and the latencies that exhaustive search finds",
        f"{ENUMERATED}, all {edge.plans:,} plans with {EDGE_CUTS} places of cuts a network: correlation of "
        f"bubbles and the least latency of each size {found:.3f}",
        found > 0.9,
    )


@dataclass(frozen=True, slots=True)
class Edge:
    """The least latency for each size of bubbles: (bubbles, latency) in milliseconds, of some plans."""

    plans: int
    points: tuple[tuple[float, float], ...]


@cache
def lower_edge(which: str, places: int) -> Edge:
    """Return the best of all plans in columns, by the size of their bubbles, with few places of cuts."""
    problem = in_columns(which)
    shop = shop_of(problem)
    times = [_chunk_times(shop, request, places) for request in range(shop.request_count)]
    least: dict[int, float] = {}
    plans = 0
    for order in permutations(range(shop.request_count)):
        columns = np.zeros((1, shop.request_count + shop.unit_count - 1))
        work = np.zeros(1)
        for place, request in enumerate(order):
            mine = np.zeros((len(times[request]), columns.shape[1]))
            mine[:, place : place + shop.unit_count] = times[request]
            columns = np.maximum(columns[:, None], mine[None]).reshape(-1, columns.shape[1])
            work = (work[:, None] + times[request].sum(axis=1)[None]).reshape(-1)
        members = [
            sum(0 <= column - place < shop.unit_count for place in range(shop.request_count))
            for column in range(columns.shape[1])
        ]
        latency, idle = columns.sum(axis=1), columns @ np.array(members) - work
        plans += len(latency)
        sizes = (idle // EDGE_STEP_MS).astype(int)
        for size in np.unique(sizes):
            best = float(latency[sizes == size].min())
            least[int(size)] = min(best, least.get(int(size), best))
    points = tuple(((size + 0.5) * EDGE_STEP_MS, latency) for size, latency in sorted(least.items()))
    return Edge(plans, points)


def _chunk_times(shop: FlowShop, request: int, places: int) -> NDArray[np.float64]:
    """Return the times on each unit, in milliseconds, with every choice among few places of cuts."""
    cuts = shop.chain(request).cuts
    some = sorted({cuts[round(place * (len(cuts) - 1) / (places - 1))] for place in range(places)})
    count = shop.chain(request).layer_count
    rows = [
        shop.times_us(request, (0, *inner, count))
        for inner in combinations_with_replacement(some, shop.unit_count - 1)
    ]
    return np.array(rows) / 1000


def figure_13(study: Study) -> Iterator[Part]:
    """Yield the time of batches over that of one inference."""
    table = titled(
        "Fig. 13, Kirin 990: time of a batch over that of one inference (estimated: affine by construction)",
        "network, unit", *(str(size) for size in BATCHES), "fixed, ms", "each, ms",
    )  # fmt: skip
    for name in LIGHT:
        for unit, time in batch_times(name).items():
            ratios = (f"{time.of(size) / time.of(1):.2f}" for size in BATCHES)
            table.add_row(
                f"{name}, {unit}", *ratios, f"{time.fixed_us / 1000:.2f}", f"{time.each_us / 1000:.2f}"
            )
    yield table
    heavy = batch_times("bert")["cpu_big"].of(1)
    times = {name: heavy / batch_times(name)["cpu_big"].of(1) for name in LIGHT}
    words = ", ".join(f"{name} {value:.0f}" for name, value in times.items())
    holds = all(18 <= value <= 44 for value in times.values())
    yield Statement("BERT takes 20 to 40 times as long as a light network", words, holds)


def batch_times(name: str) -> dict[str, BatchTime]:
    """Return the time of batches of a network on each unit that can run it."""
    times = {unit.unit: time_of(phone_network(name), unit) for unit in phone_model(KIRIN).units}
    return {unit: time for unit, time in times.items() if time is not None}


def spaces(study: Study) -> Iterator[Part]:
    """Yield how large the space of plans is (Eqs. 12 to 14, corrected)."""
    found = pipelines(4, 4)
    yield Statement("449 pipelines of 8 cores, GPU and NPU (Eq. 12)", f"{found:,}", near(found, 449))
    cuts = split_points(28, 4, 4)
    yield Statement("3.6 billion split points of MobileNetV2 (Eq. 14)", f"{cuts:,}", near(cuts, 3.6e9))
