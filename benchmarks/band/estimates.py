"""Expected times and what chunks take: Figure 15."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import starmap

from gapless.formulations.coordination.expected import estimated_times, largest_chunks
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.policy import Decision, UnitState, Waiting
from gapless.formulations.coordination.record import percentile
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.simulation import Conditions
from gapless.formulations.coordination.times import SMOOTHING, NetworkTimes, Times
from gapless.formulations.coordination.truth import Noise
from gapless.solvers.coordination.dynamic import LongestFirst

from ..printing import Part, Statement, beside, near, titled
from .playing import GALAXY, Spread, Study, phone, scenario_for, spread

WAYS = {
    "static, offline": (9.12, 76.0),
    "dynamic, offline": (9.46, 76.0),
    "Band, estimates ± 30 %": (9.31, 4.8),
    "Band": (9.46, 4.8),
}
"""Frames a second and seconds of profiling, as printed (Fig. 15b)."""

SHARES = (50, 100, 250, 500, 750, 900, 950)


class Told(LongestFirst):
    """SEL, told first what to expect; it keeps what was expected of each chunk that it started.

    Parameters
    ----------
    first
        What to expect of each network; empty: what the setting says.
    """

    def __init__(self, first: Sequence[NetworkTimes] = ()) -> None:
        super().__init__()
        self._first = first
        self.expected_us: dict[tuple[int, int], int] = {}

    def begin(self, times: Times, demand: Sequence[float]) -> None:
        """Set the expectations."""
        for network, expected in enumerate(self._first):
            for key, time_us in expected.chunk_us.items():
                times.expect(network, *key, time_us)

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Decide, and note what is expected."""
        found = super().next(now_us, queue, units, times)
        if found is not None:
            request = next(each for each in queue if each.number == found.request)
            known = times.chunk_us(request.network, request.done, found.stop, found.unit)
            assert known is not None  # it was one of the options
            self.expected_us[found.request, request.done] = known
        return found


def estimates(setting: Setting) -> list[NetworkTimes]:
    """Return the times by Band's estimate, from the largest chunk on each unit."""
    found, units = [], setting.platform.units
    for network, parts, known in zip(
        setting.networks, setting.sections, setting.network_times(Told()), strict=True
    ):
        largest = largest_chunks(network, parts, known.chunk_us.keys(), units)
        measured = {key: known.chunk_us[key] for key in largest.values()}
        found.append(estimated_times(network, parts, known.chunk_us.keys(), units, measured))
    return found


@cache
def profiled(study: Study, way: str) -> tuple[Spread, list[float]]:
    """Return the frames a second, and expected over measured time of every chunk, ascending."""
    scenario = scenario_for(study, "eagleeye")
    setting = phone(GALAXY, scenario)
    first = estimates(setting) if way.startswith("Band") else ()
    how = Conditions(
        noise=Noise(estimates_permille=300 if "30" in way else 0),
        smoothing=0.0 if way.startswith("static") else SMOOTHING,
    )
    rates, ratios = [], []
    for seed in range(study.runs):
        policy = Told(first)
        record = play(setting, replace(scenario, seed=seed), policy, replace(how, seed=seed))
        rates.append(record.frames_per_s or 0.0)
        ratios += [
            policy.expected_us[ran.request, ran.first] / (ran.end_us - ran.start_us) for ran in record.ran
        ]
    return spread(rates), sorted(ratios)


def profiling_ms(setting: Setting) -> tuple[float, float]:
    """Return how long it takes to measure every chunk once, and the largest of each unit, milliseconds."""
    every = largest_only = 0.0
    for network, parts, known in zip(
        setting.networks, setting.sections, setting.network_times(Told()), strict=True
    ):
        largest = largest_chunks(network, parts, known.chunk_us.keys(), setting.platform.units)
        every += sum(known.chunk_us.values())
        largest_only += sum(known.chunk_us[key] for key in largest.values())
    return every / 1000, largest_only / 1000


def error_of_estimates(setting: Setting) -> list[float]:
    """Return the estimate over the time of the table, for every chunk, ascending."""
    pairs = zip(estimates(setting), setting.network_times(Told()), strict=True)
    return sorted(
        ratio
        for made, known in pairs
        for ratio in (made.chunk_us[key] / time_us for key, time_us in known.chunk_us.items())
    )


def figure_15(study: Study) -> Iterator[Part]:
    """Yield frames a second by what is known beforehand, and expected over measured times."""
    setting = phone(GALAXY, scenario_for(study, "eagleeye"))
    all_ms, largest_ms = profiling_ms(setting)
    table = titled(
        "Fig. 15, EagleEye on Galaxy S20, sel: expected over measured time, by share of chunks",
        "profiled", "frames/s (/ paper)", "once each, s", "paper, s",
        *(f"{share / 10:g} %" for share in SHARES),
    )  # fmt: skip
    for way, (printed, seconds) in WAYS.items():
        rate, ratios = profiled(study, way)
        once_ms = largest_ms if way.startswith("Band") else all_ms
        cells = [f"{percentile(ratios, share) or 0:.2f}" for share in SHARES]
        table.add_row(way, beside(str(rate), f"{printed:g}"), f"{once_ms / 1000:.2f}", f"{seconds:g}", *cells)
    yield table
    own = all_ms / largest_ms
    yield Statement(
        "profiling everything takes 76 / 4.8 = 15.8 times as long",
        f"{own:.1f} times ({all_ms / 1000:.2f} s against {largest_ms / 1000:.2f}, one run each)",
        near(own, 15.8),
    )  # fmt: skip
    static, dynamic, noisy, band = (profiled(study, way)[0].mean for way in WAYS)
    yield Statement(
        "adjusting gains 4 %, a noise of 30 % costs 2 %, cheap profiling nothing",
        f"adjusting {100 * (dynamic / static - 1):+.1f} %, noise {100 * (noisy / band - 1):+.1f} %, "
        f"cheap profiling {100 * (band / dynamic - 1):+.1f} %",
        dynamic > 1.02 * static and near(noisy / band, 9.31 / 9.46) and near(band / dynamic, 1.0),
    )
    errors = error_of_estimates(setting)
    shown = ", ".join(
        starmap("{:g} % {:.2f}".format, ((p / 10, percentile(errors, p)) for p in (100, 500, 900)))
    )
    yield Statement(
        "estimates from the largest chunk are sufficient for most models (4.3.2)",
        f"estimate over time, of all chunks and units: {shown}", near(band, dynamic),
    )  # fmt: skip
