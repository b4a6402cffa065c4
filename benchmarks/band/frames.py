"""Frames a second and the time of frames: Figures 4, 6, 14, 16 and 17."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from statistics import median

from gapless.formulations.coordination.play import first_frames, play_jobs
from gapless.formulations.coordination.record import Record
from gapless.profiler.coordination.catalog import shipped_scenario
from gapless.solvers.coordination.policies import make_policy

from ..printing import Part, Statement, beside, near, titled
from .playing import (
    GALAXY,
    MORE,
    PAPERS,
    PIXEL,
    REDMI,
    Study,
    bounds,
    frames_of,
    of_units,
    phone,
    plain,
    rates,
    rates_on,
    scenario_for,
    served,
)  # fmt: skip

PHONES = (PIXEL, GALAXY, REDMI)
UNITS_4 = {"CPU": 2, "+ GPU": 3, "+ DSP": 4, "+ NPU": 5}
"""Figure 4: what is added, and how many units there are then: two workers on cores, and so on."""

PRINTED_4 = {"+ GPU": "5.3", "+ NPU": "11.8"}
PRINTED_14 = {"eagleeye": (4.53, 2.42), "eagleeye-crowded": (5.04, 2.54), "distream": (3.18, 3.22)}
"""Band over TFLite and over TFLite+MP, "up to"."""

LETTERS = {"eagleeye": "a", "eagleeye-crowded": "b", "distream": "c"}
NETWORKS_16 = {"fsrnet": 1.40, "efficientdet-lite0": None, "retinaface": 1.11}
MOST_16 = 8


def figure_4(study: Study) -> Iterator[Part]:
    """Yield the frames a second of EagleEye by units."""
    table = titled("Fig. 4, EagleEye on Pixel 4: frames a second (/ paper)", "units", "sel", "lst")
    found = {what: by_units(study, what) for what in UNITS_4}
    for what, (sel, lst) in found.items():
        table.add_row(what, beside(f"{sel:.2f}", PRINTED_4.get(what)), f"{lst:.2f}")
    yield table
    gain = found["+ NPU"][0] / found["+ GPU"][0]
    yield Statement("DSP and NPU make it 2.23 times as fast", f"{gain:.2f} times", near(gain, 2.23))


@cache
def by_units(study: Study, what: str) -> tuple[float, float]:
    """Return the frames a second of `sel` and `lst` with some of the units."""
    scenario = scenario_for(study, "eagleeye")
    setting = phone(PIXEL, scenario)
    some = of_units(setting, setting.platform.unit_names[: UNITS_4[what]])
    sel, lst = (rates_on(study, scenario, some, policy).mean for policy in ("sel", "lst"))
    return sel, lst


def figure_14(study: Study) -> Iterator[Part]:
    """Yield the frames a second of three workloads on three phones, and how far from the best that is."""
    for name in PRINTED_14:
        yield from _workload(study, name)
    yield _fastest(study)
    yield _partition(study)
    yield _subgraphs(study)
    yield from _distances(study)


def _workload(study: Study, name: str) -> Iterator[Part]:
    scenario = scenario_for(study, name)
    table = titled(
        f"Fig. 14{LETTERS[name]}, {name}: frames a second, mean and deviation of {study.runs} runs",
        "policy", "stands for", *PHONES,
    )  # fmt: skip
    for policy in (*PAPERS, *MORE):
        cells = [str(rates(study, scenario, each, policy)) for each in PHONES]
        table.add_row(policy, PAPERS.get(policy, ""), *cells)
    yield table
    for policy in ("sel", "lst"):
        for baseline, printed in zip(("tflite", "tflite-mp"), PRINTED_14[name], strict=True):
            ratios = {each: over(study, name, each, policy, baseline) for each in PHONES}
            most = max(ratios.values())
            words = ", ".join(f"{each} {ratio:.2f}" for each, ratio in ratios.items())
            text = f"{policy} over {baseline}: {words}"
            yield Statement(
                f"{name}: Band over {PAPERS[baseline]} up to {printed:g} times", text, near(most, printed)
            )


def over(study: Study, name: str, platform: str, policy: str, other: str) -> float:
    """Return how many times as many frames a second a policy reaches as another."""
    scenario = scenario_for(study, name)
    one, two = (rates(study, scenario, platform, each).mean for each in (policy, other))
    return one / two


def _fastest(study: Study) -> Statement:
    found = {each: rates(study, scenario_for(study, "eagleeye"), each, "sel").mean for each in PHONES}
    words = ", ".join(f"{each} {rate:.2f}" for each, rate in found.items())
    return Statement("the K40 is the fastest (EagleEye)", words, max(found, key=found.__getitem__) == REDMI)


def _partition(study: Study) -> Statement:
    gains = {name: [over(study, name, each, "tflite-mp", "tflite") for each in PHONES] for name in PRINTED_14}
    words = "; ".join(f"{name} {min(each):.2f} to {max(each):.2f}" for name, each in gains.items())
    faster, slower = min(gains["eagleeye"]) > 1, max(gains["distream"]) <= 1
    return Statement(
        "TFLite+MP is always faster than TFLite on EagleEye, and not on Distream",
        f"tflite-mp over tflite: {words}", faster and slower,
    )  # fmt: skip


def _subgraphs(study: Study) -> Statement:
    gains = {name: [over(study, name, each, "sel", "sel-whole") for each in PHONES] for name in PRINTED_14}
    words = "; ".join(f"{name} {', '.join(f'{gain:.2f}' for gain in each)}" for name, each in gains.items())
    return Statement(
        "chunks help more on Distream than on EagleEye, most on the S20",
        f"sel over sel-whole (pixel4, galaxy-s20, redmi-k40): {words}",
        all(more > less for more, less in zip(gains["distream"], gains["eagleeye"], strict=True))
        and max(gains["distream"]) == gains["distream"][PHONES.index(GALAXY)],
    )


def _distances(study: Study) -> Iterator[Part]:
    """Yield how long the frames of each workload take, over the best known and over the bound."""
    names = (*PAPERS, *MORE)
    table = titled(
        f"Beyond the paper: time of the first 5 frames of at most 23 requests (crowded ones: of any number) "
        f"over the best known; CP-SAT (crowded ones: native) {study.bound_s:g} s a frame",
        "workload, phone", *names, "bound", "proven",
    )  # fmt: skip
    for name in PRINTED_14:
        for each in PHONES:
            found = bounds(study, scenario_for(study, name), each, names, large=name == "eagleeye-crowded")
            cells = [f"{reached / found.best:.2f}" for reached in found.reached]
            share = f"{found.bound / found.best:.2f}"
            table.add_row(f"{name}, {each}", *cells, share, f"{found.proven} of {len(found.parts)}")
    yield table


def figure_16(study: Study) -> Iterator[Part]:
    """Yield the times of frames of 1 to 8 requests of one network: whole networks against chunks."""
    for name, printed in NETWORKS_16.items():
        table = titled(
            f"Fig. 16, {name} on Pixel 4: time of a frame, ms", "requests", *map(str, range(1, MOST_16 + 1))
        )
        rows = {
            label: [row[label] for row in scalability(study, name)] for label in ("sel-whole", "sel", "lst")
        }
        for label, times in rows.items():
            table.add_row(label, *(f"{time / 1000:.1f}" for time in times))
        ratios = [whole / chunks for whole, chunks in zip(rows["sel-whole"], rows["sel"], strict=True)]
        table.add_row("sel-whole / sel", *(f"{ratio:.2f}" for ratio in ratios))
        for label in ("best", "bound"):
            table.add_row(label, *(f"{row[label] / 1000:.1f}" for row in scalability(study, name)))
        yield table
        if printed is not None:
            text = f"{max(ratios):.2f} with {ratios.index(max(ratios)) + 1}"
            statement = f"{name}: chunks make frames up to {printed:.2f} times as fast"
            yield Statement(statement, text, near(max(ratios), printed))


@cache
def scalability(study: Study, name: str) -> tuple[dict[str, float], ...]:
    """Return, by number of requests, the time of a frame under each policy, the best known and the bound.

    Units are always alike here, so that the same frame always takes the same time, and the bound counts.
    """
    found: list[dict[str, float]] = []
    policies = ("sel-whole", "sel", "lst")
    for count in range(1, MOST_16 + 1):
        best = bounds(study, frames_of({name: count}, 1.0), PIXEL, policies, frames=1)
        row: dict[str, float] = dict(zip(policies, best.reached, strict=True))
        fewer = found[-1]["bound"] if found else 0.0  # one request more takes no less time
        found.append({**row, "best": best.best, "bound": max(best.bound, fewer)})
    return tuple(found)


def figure_17(study: Study) -> Iterator[Part]:
    """Yield what chunks save of two FSRNets, and of frames of EagleEye."""
    whole, chunks = (record.end_us for record in timelines())
    saved = 1 - chunks / whole
    best = scalability(study, "fsrnet")[1]["best"] if study.bound_s else chunks
    text = (
        f"{whole / 1000:.1f} ms (sel-whole) to {chunks / 1000:.1f} (sel): {100 * saved:.0f} %; best known "
        f"{best / 1000:.1f} ms, {100 * (1 - best / whole):.0f} %"
    )
    yield Statement("two FSRNets on Pixel 4 take 32 % less time (Fig. 17a)", text, near(saved, 0.32))
    gains = frame_savings()
    words = f"median {100 * median(gains):.0f} %, from {100 * min(gains):.0f} to {100 * max(gains):.0f} %"
    yield Statement(
        "a frame of EagleEye takes 23 % less (Fig. 17b, one case)",
        f"of the first {len(gains)} frames: {words}", min(gains) <= 0.23 <= max(gains),
    )  # fmt: skip


def timelines() -> tuple[Record, Record]:
    """Return two FSRNets on Pixel 4: networks whole, and in chunks; units are always alike."""
    scenario = frames_of({"fsrnet": 2}, 1e-6)
    setting = plain(phone(PIXEL, scenario))
    whole, chunks = (served(setting, scenario, policy) for policy in ("sel-whole", "sel"))
    return whole, chunks


@cache
def frame_savings(count: int = 50) -> tuple[float, ...]:
    """Return which share of the time of each frame of EagleEye chunks save."""
    scenario = shipped_scenario("eagleeye")
    setting = plain(phone(PIXEL, scenario))
    found = []
    for _, jobs in first_frames(scenario, count):
        whole, chunks = (
            play_jobs(setting, jobs, make_policy(policy)).end_us for policy in ("sel-whole", "sel")
        )
        found.append(1 - chunks / whole)
    return tuple(found)


def figure_6(study: Study) -> Iterator[Part]:
    """Yield what the silent fallback of EfficientDet costs MobileNetV1 on one core and the NPU."""
    before, after = (_mobilenet_us(record) for record in fallbacks())
    saved = 1 - after / before
    left_us = next(ran.end_us for ran in fallbacks()[0].ran if ran.request == 0)
    yield Statement(
        "EfficientDet leaves the NPU around 7 ms (Fig. 6)", f"{left_us / 1000:.1f} ms", near(left_us, 7000)
    )
    yield Statement(
        "MobileNetV1 beside it takes up to 58 % less time if it gets the NPU then",
        f"{before / 1000:.1f} ms on the core (tflite), {after / 1000:.1f} on the NPU (lst): "
        f"{100 * saved:.0f} %",
        near(saved, 0.58),
    )


@cache
def fallbacks() -> tuple[Record, Record]:
    """Return EfficientDet and MobileNetV1 on one core and the NPU, both from the beginning: tflite, lst."""
    scenario = frames_of({"efficientdet-lite0": 1, "mobilenetv1": 1}, 1e-6)
    setting = of_units(plain(phone(PIXEL, scenario)), ("cpu0", "npu"))
    before, after = (served(setting, scenario, policy) for policy in ("tflite", "lst"))
    return before, after


def _mobilenet_us(record: Record) -> float:
    latency_us = record.requests[1].latency_us
    assert latency_us is not None  # nothing is dropped
    return latency_us
