"""Requests in time: Figure 18."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from gapless.formulations.coordination.dispatch import Late
from gapless.formulations.coordination.policy import Conduct, Decision, Policy, UnitState, Waiting
from gapless.formulations.coordination.scenario import Scenario
from gapless.formulations.coordination.sections import Fallback
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.times import Times

from ..printing import Part, Statement, near, titled
from .playing import PIXEL, Study, in_time, phone, scenario_for

MULTIPLIERS = (1, 2, 3, 4)
PRINTED = 3.76
POLICIES = ("lst", "sel", "lst-whole", "tflite-fastest", "tflite-fastest, not waiting")
WAYS = ("as shipped", "all begin at once", "chunks always alike")


class NotWaiting(Policy):
    """As `tflite-fastest`, but applications do not wait for their request before: all run at once."""

    name = "tflite-fastest, not waiting"
    conduct = Conduct.ALONE
    fallback = Fallback.REST

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision:
        """Start the first that waits, on the unit that is fastest for it."""
        fastest = min(times.options(queue[0].network, 0), key=lambda option: (option.time_us, option.unit))
        return Decision(queue[0].number, fastest.stop, fastest.unit)


def variant(study: Study, how: str) -> tuple[Scenario, Setting]:
    """Return the four applications on Pixel 4 in one of `WAYS`: what the paper leaves open."""
    scenario = scenario_for(study, "four-apps")
    setting = phone(PIXEL, scenario)
    if how == "all begin at once":
        together = (
            replace(each, arrivals=replace(each.arrivals, phase_us=0)) for each in scenario.applications
        )
        scenario = replace(scenario, applications=tuple(together))
    if how == "chunks always alike" and setting.behaviour is not None:
        alike = tuple(
            replace(unit, tail_permille=1000, cold_permille=1000) for unit in setting.behaviour.units
        )
        setting = replace(setting, behaviour=replace(setting.behaviour, units=alike))
    return scenario, setting


@cache
def shares(study: Study, how: str, policy: str, late: Late) -> tuple[float, ...]:
    """Return the share of requests in time by multiplier."""
    scenario, setting = variant(study, how)
    who = NotWaiting if policy == NotWaiting.name else policy
    return tuple(in_time(setting, scenario, who, x, late, study.runs) for x in MULTIPLIERS)


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
    for baseline in POLICIES[-2:]:
        ratios = {how: _gain(study, how, baseline) for how in WAYS}
        words = "; ".join(f"{how} {ratio:.2f}" for how, ratio in ratios.items())
        yield Statement(
            f"LST has up to {PRINTED:g} times as many requests in time, at twice the percentile",
            f"lst over {baseline} at x 2, late ones run: {words}",
            any(near(ratio, PRINTED) for ratio in ratios.values()),
        )


def _gain(study: Study, how: str, baseline: str) -> float:
    one, other = (shares(study, how, policy, Late.KEEP)[1] for policy in ("lst", baseline))
    return one / other if other else float("inf")
