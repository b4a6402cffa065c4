"""What units do: Figure 7, Figure 19, Table 1 and Table 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean, median

from benchmarks.phone_platforms.behaviours import TABLE_1_MS
from gapless.api.coordination import with_power
from gapless.formulations.coordination.policy import Conduct, Decision, Policy, UnitState, Waiting
from gapless.formulations.coordination.record import Record, percentile
from gapless.formulations.coordination.scenario import Application, Arrivals, Scenario, UnitChange, UnitEvent
from gapless.formulations.coordination.simulation import Conditions
from gapless.formulations.coordination.times import Times
from gapless.profiler.coordination.catalog import shipped_scenario, shipped_setting

from ..printing import Part, Statement, beside, near, titled
from .playing import PIXEL, Study, frames_of, of_units, phone, scenario_for, served, spread

NETWORK_7 = "arcface-resnet50"
UNITS_7 = ("cpu0", "gpu", "dsp", "npu")
INTERVALS = {"consecutive": None, "random": Arrivals(rate_per_s=2.0), "fixed": Arrivals(period_us=1_000_000)}
"""When inferences come; one or two a second are our choice."""

LOST_US, BACK_US, END_US = 10_000_000, 17_000_000, 27_000_000
PRINTED_19, PRINTED_2 = 5.9, {"tflite-mp": (7.60, 4.11), "sel": (7.99, 8.71)}
WAYS_19 = {"lost when hot, as in the paper": None, "rests 1 K before": 1.0}
"""By name, so far below its limit the NPU is left alone."""

POWER_W = 7.6
"""The least of Table 2: what TFLite+MP takes."""


class AtOnce(Policy):
    """Sends everything to the first unit as it comes (Table 1)."""

    name = "at once"
    conduct = Conduct.ALONE

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Start the first that waits."""
        return Decision(queue[0].number, times.sections(queue[0].network), 0)


def table_1(study: Study) -> Iterator[Part]:
    """Yield the mean times of 1, 2 and 4 inferences at once."""
    table = titled("Table 1: mean ms of InceptionV4 with 1, 2, 4 at once (/ paper)", "unit", "1", "2", "4")
    places = {
        "Edge TPU": (PIXEL, "npu"), "Hexagon": (PIXEL, "dsp"), "HTA": ("galaxy-s20", "npu"),
        "Adreno 650": ("galaxy-s20", "gpu"), "APU 3.0": ("redmi-k40", "npu"),
        "Mali-G77": ("redmi-k40", "gpu"), "Huawei NPU": ("mate40pro", "npu"),
    }  # fmt: skip
    for name, printed in TABLE_1_MS.items():
        cells = [
            f"{at_once(*places[name], count, study.simulated_s):.2f} / {paper:.2f}"
            for count, paper in zip((1, 2, 4), printed, strict=True)
        ]
        table.add_row(f"{name} ({places[name][0]})", *cells)
    yield table


def at_once(platform: str, unit: str, count: int, seconds: float) -> float:
    """Return the mean time of a given number of inferences of InceptionV4 at once, milliseconds."""
    scenario = frames_of({"inceptionv4": count}, seconds)
    setting = of_units(phone(platform, scenario), ("cpu0", unit))
    setting = of_units(setting, (unit, "cpu0"))
    return mean(served(setting, scenario, AtOnce).latencies_us()) / 1000


def figure_7(study: Study) -> Iterator[Part]:
    """Yield the times of one network with intervals between inferences."""
    table = titled("Fig. 7, ArcFace-ResNet50 on Pixel 4: ms, median and 99th percentile", "unit", *INTERVALS)
    found = {unit: [latencies(study, unit, how) for how in INTERVALS] for unit in UNITS_7}
    for unit, rows in found.items():
        table.add_row(
            unit, *(f"{median(row) / 1000:.1f}, {(percentile(row, 990) or 0) / 1000:.1f}" for row in rows)
        )
    yield table
    slow = max(median(found[unit][2]) / median(found[unit][0]) for unit in ("cpu0", "gpu"))
    yield Statement("CPU and GPU up to 2.61 times as slow", f"{slow:.2f} (medians)", near(slow, 2.61))
    tails = max((percentile(found[unit][0], 990) or 0) / median(found[unit][0]) for unit in ("dsp", "npu"))
    yield Statement("tails of DSP and NPU up to 1.53 times the median", f"{tails:.2f}", near(tails, 1.53))


@cache
def latencies(study: Study, unit: str, how: str) -> list[float]:
    """Return the times of inferences on one unit, microseconds, ascending."""
    arrivals = INTERVALS[how]
    if arrivals is None:
        scenario = frames_of({NETWORK_7: 1}, study.simulated_s)
    else:
        asker = Application(name="one", network=NETWORK_7, arrivals=arrivals)
        scenario = Scenario(name=how, duration_us=round(10e6 * study.simulated_s), applications=(asker,))
    record = served(of_units(phone(PIXEL, scenario), (unit,)), scenario, "lst")
    return sorted(ran.end_us - ran.start_us for ran in record.ran)  # without waiting for the one before


def figure_19(study: Study) -> Iterator[Part]:
    """Yield what becomes of frames while the NPU is away, and of a quarter of an hour in heat."""
    table = titled(
        "Fig. 19, EagleEye on Pixel 4, NPU lost for 7 s: frames a second, mean of the runs",
        "policy", "before", "meanwhile", "after",
    )  # fmt: skip
    for scenario in ("eagleeye", "eagleeye-crowded"):
        for policy in ("sel", "lst", "tflite-mp"):
            before, during, after = (f"{rate:.2f}" for rate in away(study, scenario, policy))
            printed = f"{PRINTED_19:g}" if (scenario, policy) == ("eagleeye", "sel") else None
            table.add_row(f"{policy}, {scenario}", before, beside(during, printed), after)
    yield table
    without = away(study, "eagleeye", "sel")[1]
    baseline = away(study, "eagleeye", "tflite-mp")[0]
    yield Statement(
        "without the NPU still faster than TFLite+MP with it",
        f"{without:.2f} against {baseline:.2f}", without > baseline,
    )  # fmt: skip
    yield from _heat(study)


@cache
def away(study: Study, name: str, policy: str) -> tuple[float, float, float]:
    """Return frames a second before the NPU is lost, meanwhile, and after it is back; mean of the runs."""
    events = (
        UnitEvent(at_us=LOST_US, unit="npu", change=UnitChange.LOST),
        UnitEvent(at_us=BACK_US, unit="npu", change=UnitChange.BACK),
    )
    scenario = replace(shipped_scenario(name), duration_us=END_US, events=events)
    setting, rows = phone(PIXEL, scenario), []
    for seed in range(study.runs):
        record = served(setting, scenario, policy, seed)
        spans = ((0, LOST_US), (LOST_US, BACK_US), (BACK_US, END_US))
        rows.append([rate_between(record, *span) for span in spans])
    before, during, after = (mean(column) for column in zip(*rows, strict=True))
    return before, during, after


def rate_between(record: Record, start_us: float, end_us: float) -> float:
    """Return the frames a second that ended between two times."""
    ends = [frame.end_us for frame in record.done_frames if frame.end_us is not None]
    return sum(start_us <= end < end_us for end in ends) * 1e6 / (end_us - start_us)


def _heat(study: Study) -> Iterator[Part]:
    table = titled(
        f"Fig. 19, eagleeye-hot on Pixel 4, a quarter of an hour, sel; power budget {POWER_W} W",
        "how", "frames/s", "first away, s", "times", "s away, in all", "frames/s meanwhile", "W",
    )  # fmt: skip
    for how in (*WAYS_19, "power budget"):
        found = hot(how)
        table.add_row(how, *found.cells)
    yield table
    first_s = hot(next(iter(WAYS_19))).first_s
    yield Statement(
        "the NPU is lost after more than ten minutes, for about 7 s",
        "never"
        if first_s is None
        else f"after {first_s:.0f} s, for {hot(next(iter(WAYS_19))).longest_s:.1f} s",
        first_s is not None and first_s > 600,
    )


@dataclass(frozen=True, slots=True)
class Hot:
    """What heat does in a quarter of an hour."""

    rate: float
    first_s: float | None
    times: int
    away_s: float
    longest_s: float
    meanwhile: float | None
    power_w: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        first = "never" if self.first_s is None else f"{self.first_s:.0f}"
        meanwhile = "" if self.meanwhile is None else f"{self.meanwhile:.2f}"
        return (
            f"{self.rate:.2f}", first, str(self.times), f"{self.away_s:.1f}", meanwhile, f"{self.power_w:.2f}"
        )  # fmt: skip


@cache
def hot(how: str) -> Hot:
    """Return what becomes of a quarter of an hour of crowded frames, one of `WAYS_19` or a power budget."""
    scenario = shipped_scenario("eagleeye-hot")
    setting = shipped_setting(PIXEL, scenario.networks)
    policy = with_power("sel", setting, POWER_W if how == "power budget" else None)
    record = served(setting, scenario, policy, conditions=Conditions(rest_kelvin=WAYS_19.get(how)))
    spans = [(span.start_us, record.end_us if span.end_us is None else span.end_us) for span in record.away]
    away_us = sum(end - start for start, end in spans)
    ended = sum(rate_between(record, *span) * (span[1] - span[0]) for span in spans if span[1] > span[0])
    return Hot(
        rate=record.frames_per_s or 0.0,
        first_s=spans[0][0] / 1e6 if spans else None,
        times=len(spans),
        away_s=away_us / 1e6,
        longest_s=max(((end - start) / 1e6 for start, end in spans), default=0.0),
        meanwhile=ended / away_us if away_us else None,
        power_w=(record.energy_mj or 0.0) * 1000 / record.end_us,
    )


def table_2(study: Study) -> Iterator[Part]:
    """Yield power and frames a second of crowded frames."""
    table = titled(
        "Table 2, eagleeye-crowded on Pixel 4 (/ paper); powers are estimated by this very table",
        "policy", "W", "frames/s", "mJ a frame",
    )  # fmt: skip
    for policy in ("tflite-mp", "sel", "lst"):
        watt, rate = power(study, policy)
        printed = PRINTED_2.get(policy)
        cells = [
            beside(f"{own:.2f}", printed and f"{printed[place]:.2f}")
            for place, own in enumerate((watt, rate))
        ]
        energy = beside(f"{1000 * watt / rate:.0f}", printed and f"{1000 * printed[0] / printed[1]:.0f}")
        table.add_row(policy, *cells, energy)
    yield table
    (low_w, low), (high_w, high) = power(study, "tflite-mp"), power(study, "sel")
    yield Statement(
        "5.1 % more power for 2.1 times as many frames",
        f"{100 * (high_w / low_w - 1):.1f} % more for {high / low:.2f} times as many",
        near(high_w / low_w, 1.051) and near(high / low, 8.71 / 4.11),
    )


@cache
def power(study: Study, policy: str) -> tuple[float, float]:
    """Return the power in watts and the frames a second of crowded EagleEye, means of the runs."""
    scenario = scenario_for(study, "eagleeye-crowded")
    records = [served(phone(PIXEL, scenario), scenario, policy, seed) for seed in range(study.runs)]
    watts = spread([(record.energy_mj or 0.0) * 1000 / record.end_us for record in records])
    return watts.mean, spread([record.frames_per_s or 0.0 for record in records]).mean
