"""Requests in time: Figure 18."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from gapless.formulations.coordination.scenario import Scenario
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.simulation import Late

from ..printing import Part, Statement, near, titled
from .playing import PIXEL, Study, in_time, phone, scenario_for

MULTIPLIERS = (1, 2, 3, 4)
PRINTED = 3.76
POLICIES = ("lst", "sel", "tflite-fastest")
"""No unit lacks a layer of these networks, so that with whole networks nothing changes."""
WAYS = ("as shipped", "all begin at once", "chunks always alike", "units take turns")


def variant(study: Study, how: str) -> tuple[Scenario, Setting]:
    """Return the four applications on Pixel 4 in one of `WAYS`: what the paper leaves open."""
    scenario = scenario_for(study, "four-apps")
    setting = phone(PIXEL, scenario)
    if how == "all begin at once":
        together = (
            replace(each, arrivals=replace(each.arrivals, phase_us=0)) for each in scenario.applications
        )
        scenario = replace(scenario, applications=tuple(together))
    changes: dict[str, dict[str, Any]] = {
        "chunks always alike": {"tail_permille": 1000, "cold_permille": 1000},
        "units take turns": {"sharing_permille": ()},  # instead of Table 1
    }
    if how in changes and setting.behaviour is not None:
        changed = tuple(replace(unit, **changes[how]) for unit in setting.behaviour.units)
        setting = replace(setting, behaviour=replace(setting.behaviour, units=changed))
    return scenario, setting


@cache
def shares(study: Study, how: str, policy: str, late: Late) -> tuple[float, ...]:
    """Return the share of requests in time by multiplier."""
    scenario, setting = variant(study, how)
    return tuple(in_time(study, (setting, scenario), policy, x, late) for x in MULTIPLIERS)


def figure_18(study: Study) -> Iterator[Part]:
    """Yield the shares of requests in time."""
    for how in WAYS:
        table = titled(
            f"Fig. 18, four applications on Pixel 4, {how}: percent in time, by multiplier of the deadline",
            "policy, late requests", *(f"x {each}" for each in MULTIPLIERS),
        )  # fmt: skip
        for policy in POLICIES:
            for late in Late:
                found = shares(study, how, policy, late)
                table.add_row(f"{policy}, {late}", *(f"{100 * share:.1f}" for share in found))
        yield table
    ratios = {how: _gain(study, how) for how in WAYS}
    words = "; ".join(f"{how} {ratio:.2f}" for how, ratio in ratios.items())
    yield Statement(
        f"LST has up to {PRINTED:g} times as many requests in time, at twice the percentile",
        f"lst over tflite-fastest at x 2, late ones run: {words}",
        any(near(ratio, PRINTED) for ratio in ratios.values()),
    )


SHARES = (0, 200, 400, 500, 600, 700, 800, 1000)
"""Of the way from Table 1 (0) to units that take turns (1000), permille: how much others on a unit cost."""


def sweep(study: Study) -> Iterator[Part]:
    """Yield what Fig. 18 is at twice the percentile by the one number that nothing printed tells.

    Table 1 is about several inferences of one network; what different networks cost each other is guessed.
    """
    table = titled(
        "Fig. 18 by what networks on one unit cost each other: percent in time at x 2, late ones run",
        "of the way to taking turns", "four at once take", "lst", "tflite-fastest", "lst over tflite-fastest",
    )  # fmt: skip
    found = {permille: _swept(study, permille) for permille in SHARES}
    for permille, (four, lst, baseline) in found.items():
        ratio = lst / baseline if baseline else float("inf")
        cells = f"{four / 1000:.2f}", f"{100 * lst:.1f}", f"{100 * baseline:.1f}", f"{ratio:.2f}"
        table.add_row(f"{permille / 10:g} %", *cells)
    yield table
    least = [permille for permille, (_, lst, baseline) in found.items() if lst >= PRINTED * baseline]
    words = f"from {min(least) / 10:g} % of the way on" if least else "nowhere"
    yield Statement(f"{PRINTED:g} times as many requests in time at x 2", words, bool(least))


@cache
def _swept(study: Study, permille: int) -> tuple[int, float, float]:
    """Return what four at once take on the NPU, and the shares of `lst` and `tflite-fastest` in time."""
    scenario, setting = variant(study, "as shipped")
    assert setting.behaviour is not None
    changed = tuple(
        replace(
            unit,
            sharing_permille=tuple(
                round(known + (1000 * count - known) * permille / 1000)
                for count, known in enumerate(unit.sharing_permille, 1)
            ),
        )
        for unit in setting.behaviour.units
    )
    place = replace(setting, behaviour=replace(setting.behaviour, units=changed))
    four = place.behaviours[place.platform.index_of("npu")].shared_permille(4)
    lst, baseline = (
        in_time(study, (place, scenario), policy, 2, Late.KEEP) for policy in ("lst", "tflite-fastest")
    )
    return four, lst, baseline


def _gain(study: Study, how: str) -> float:
    one, other = (shares(study, how, policy, Late.KEEP)[1] for policy in ("lst", "tflite-fastest"))
    return one / other if other else float("inf")
