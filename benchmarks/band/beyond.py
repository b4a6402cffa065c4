"""Sessions, a second worker on an accelerator, the mapping of 6.2, and which operators units can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from random import Random
from statistics import mean

from gapless.api.coordination import with_sessions, with_workers
from gapless.formulations.coordination.record import percentile
from gapless.formulations.coordination.scenario import frames_of
from gapless.formulations.coordination.sections import Fallback
from gapless.formulations.operators import excluded
from gapless.profiler.coordination.catalog import shipped_setting
from gapless.solvers.coordination.fixed import TensorFlowLite

from ..printing import Part, Statement, near, titled
from .playing import GALAXY, PIXEL, REDMI, Study, phone, rates, rates_on, scenario_for

POLICIES = ("sel", "lst")


def sessions(study: Study) -> Iterator[Part]:
    """Yield frames a second with all sessions, and with those alone that are useful."""
    table = titled(
        "Sessions (4.2 leaves this open): frames a second with all, and with the useful ones alone",
        "workload, phone", "sessions", "useful", "MiB", "useful",
        *(f"{each}, all / useful" for each in POLICIES),
    )  # fmt: skip
    for name in ("eagleeye", "distream"):
        for platform in (PIXEL, GALAXY, REDMI):
            table.add_row(f"{name}, {platform}", *loaded(study, name, platform))
    yield table


@cache
def loaded(study: Study, name: str, platform: str) -> tuple[str, ...]:
    """Return a row of the table."""
    scenario = scenario_for(study, name)
    everything = phone(platform, scenario)
    useful, kept = with_sessions(everything)
    count, size = sum(len(each.sessions) for each in kept.values()), sum(each.bytes for each in kept.values())
    all_count = count + sum(len(each.dropped) for each in kept.values())
    all_size = size + sum(each.dropped_bytes for each in kept.values())
    pairs = [
        " / ".join(f"{rates_on(study, scenario, place, policy).mean:.2f}" for place in (everything, useful))
        for policy in POLICIES
    ]
    return f"{all_count:,}", f"{count:,}", f"{all_size / 2**20:,.0f}", f"{size / 2**20:,.0f}", *pairs


def workers(study: Study) -> Iterator[Part]:
    """Yield frames a second of EagleEye with one worker on the NPU, and with two."""
    table = titled(
        "Workers (6.1: one on each accelerator): EagleEye, frames a second with 1 / 2 on the NPU",
        "phone", "two InceptionV4 at once take", *POLICIES, "sel-whole",
    )  # fmt: skip
    for platform in (PIXEL, GALAXY, REDMI):
        scenario = scenario_for(study, "eagleeye")
        one = phone(platform, scenario)
        shared = one.behaviours[one.platform.index_of("npu")].shared_permille(2)
        cells = [
            " / ".join(
                f"{rates_on(study, scenario, place, policy).mean:.2f}"
                for place in (one, with_workers(one, {"npu": 2}))
            )
            for policy in (*POLICIES, "sel-whole")
        ]
        table.add_row(platform, f"{shared / 1000:.3f}", *cells)
    yield table


MAPPING = {"retinaface": "cpu0", "arcface-mobilenet": "gpu", "arcface-resnet50": "dsp", "fsrnet": "npu"}
"""Of the baselines on Pixel 4 (6.2)."""

PRINTED = {"eagleeye": 2.42, "eagleeye-crowded": 2.54}
"""Band over TFLite+MP, "up to", of all phones."""


def mapping(study: Study) -> Iterator[Part]:
    """Yield what TensorFlow Lite reaches on Pixel 4 with its mapping here, and with the one of the paper."""
    table = titled(
        "TFLite's mapping on Pixel 4: frames a second with ours / with the paper's (6.2)",
        "workload", "tflite", "tflite-mp", "sel", "sel over tflite-mp",
    )  # fmt: skip
    found = {name: mapped(study, name) for name in PRINTED}
    for name, (ours, papers, sel) in found.items():
        cells = [f"{one:.2f} / {other:.2f}" for one, other in zip(ours, papers, strict=True)]
        table.add_row(name, *cells, f"{sel:.2f}", f"{sel / ours[1]:.2f} / {sel / papers[1]:.2f}")
    yield table
    for name, printed in PRINTED.items():
        _, papers, sel = found[name]
        words = f"sel over tflite-mp with the paper's mapping: {sel / papers[1]:.2f}"
        text = f"{name}: Band over TFLite+MP up to {printed:g} times, mapped as in 6.2"
        yield Statement(text, words, near(sel / papers[1], printed))


@cache
def mapped(study: Study, name: str) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Return frames a second of tflite and tflite-mp by our mapping, the same by the paper's, and of sel."""
    scenario = scenario_for(study, name)
    setting = phone(PIXEL, scenario)
    units = [setting.platform.index_of(MAPPING[network.name]) for network in setting.networks]
    ours = tuple(rates_on(study, scenario, setting, policy).mean for policy in ("tflite", "tflite-mp"))
    papers = tuple(
        rates_on(study, scenario, setting, partial(TensorFlowLite, fallback, mapping=units)).mean
        for fallback in Fallback
    )
    return ours, papers, rates_on(study, scenario, setting, "sel").mean


def support(study: Study) -> Iterator[Part]:
    """Yield which share of the operators of each network units can run, by our rules."""
    table = titled(
        "Figs. 1 and 5: percent of operators that an accelerator can run, by our rules; bars in the paper",
        "network", *(f"{platform}, {unit}" for platform, unit in ACCELERATORS),
    )  # fmt: skip
    for name in NETWORKS:
        table.add_row(name, *(f"{100 * runs(name, *where):.1f}" for where in ACCELERATORS))
    yield table


ACCELERATORS = ((PIXEL, "npu"), (PIXEL, "dsp"), (PIXEL, "gpu"), (GALAXY, "npu"), (REDMI, "npu"))
NETWORKS = (
    "mobilenetv1", "inceptionv4", "efficientnet-lite1", "arcface-mobilenet", "arcface-resnet50", "retinaface",
    "efficientdet-lite0", "fsrnet",
)  # fmt: skip


def runs(network: str, platform: str, unit: str) -> float:
    """Return the share of the operators of a network that a unit can run."""
    (known,) = shipped_setting(platform, [network]).networks
    place = shipped_setting(platform, [network]).platform
    rules = place.units[place.index_of(unit)].unsupported
    texts = [text for layer in known.layers for text in layer.op_types]
    return 1 - len([text for text in texts if excluded([text], rules)]) / len(texts)


CROWDINGS = (0, 500, 1000)
"""How much frames differ as a whole, permille."""


def crowds(study: Study) -> Iterator[Part]:
    """Yield the requests of frames whose counts are drawn alone, or together, and what that does to rates."""
    table = titled(
        "Fig. 2, in its place: requests of a frame of EagleEye, and frames a second on Pixel 4",
        "deviation of the crowd", "mean", "10 %", "50 %", "90 %", "99 %", "sel", "tflite-mp",
        "sel over tflite-mp",
    )  # fmt: skip
    for permille in CROWDINGS:
        scenario = scenario_for(study, "eagleeye")
        workflows = (replace(each, crowding_permille=permille) for each in scenario.workflows)
        scenario = replace(scenario, workflows=tuple(workflows))
        frames = frames_of(scenario.workflows[0], Random(0))
        sizes = sorted(len(frame) for frame in islice(frames, 1000))
        shares = (percentile([*map(float, sizes)], each) or 0.0 for each in (100, 500, 900, 990))
        sel, baseline = (rates(study, scenario, PIXEL, policy).mean for policy in ("sel", "tflite-mp"))
        cells = f"{mean(sizes):.1f}", *(f"{share:.0f}" for share in shares), f"{sel:.2f}", f"{baseline:.2f}"
        table.add_row(f"{permille / 10:g} %", *cells, f"{sel / baseline:.2f}")
    yield table
