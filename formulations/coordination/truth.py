"""What chunks really take in the simulation, and how warm units become."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from .behaviour import HeatModel, UnitBehaviour
from .setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Errors of two kinds, told apart; each time is multiplied by a number between 1 - x and 1 + x."""

    estimates_permille: int = 0
    """Of what policies expect: one number for each chunk and unit (Band, Fig. 15)."""
    times_permille: int = 0  # of what chunks really take: one number each time


class Truth:
    """What each chunk takes when it is alone, drawn anew for each request.

    The same request has the same luck under every policy: what is drawn depends on its name, the section and
    the unit alone.
    """

    def __init__(self, setting: Setting, *, times_permille: int = 0, seed: int = 0) -> None:
        self._setting = setting
        self._spread = times_permille / 1000
        self._seed = seed

    def time_us(  # noqa: PLR0917 - a chunk of sections, by index
        self, luck: str, network: int, first: int, last: int, unit: int, idle_us: float
    ) -> float:
        """Return how long sections [first, last) of a request take on a unit that was idle for `idle_us`.

        `luck` is the name of the request, for what is drawn.
        """
        chain, sections = self._setting.chains[network], self._setting.sections[network]
        time_us: float = chain.busy_us(sections[first].start, sections[last - 1].stop, unit)
        behaviour = self._setting.behaviours[unit]
        if behaviour.cold_permille > 1000:
            time_us *= 1 + (behaviour.cold_permille / 1000 - 1) * min(1.0, idle_us / behaviour.cold_after_us)
        if self._spread or behaviour.tail_share_permille:
            random = Random(f"{self._seed}/{luck}/{first}/{unit}")
            time_us *= 1 + self._spread * (2 * random.random() - 1)
            if random.random() * 1000 < behaviour.tail_share_permille:
                time_us *= behaviour.tail_permille / 1000
        return time_us


def distortion(permille: int, seed: int) -> Callable[[int, int, int, int], float] | None:
    """Return the errors of estimates, for `Times`; None: there are none."""
    if not permille:
        return None
    known: dict[tuple[int, int, int, int], float] = {}

    def factor(network: int, start: int, stop: int, unit: int) -> float:
        key = network, start, stop, unit
        if key not in known:
            share = 2 * Random(f"{seed}/{key}").random() - 1
            known[key] = 1 + permille / 1000 * share
        return known[key]

    return factor


class Warmth:
    """The temperature of one unit over time.

    `limit_c`: at which temperature it is to be noticed. It is cool enough again as far below that as the
    model says, or halfway to its temperature at rest if that is nearer.
    """

    def __init__(self, behaviour: UnitBehaviour, heat: HeatModel, limit_c: float) -> None:
        self.heat = heat
        self.limit_c = limit_c
        self.hot = False
        self._powers_w = [(behaviour.idle_mw or 0) / 1000, (behaviour.busy_mw or 0) / 1000]
        rest_c = heat.ambient_c + heat.kelvin_per_w * self._powers_w[0]
        self.back_c = max(limit_c - (heat.limit_c - heat.back_c), min(heat.back_c, (rest_c + limit_c) / 2))
        self._busy = False
        self._at_us = 0.0
        self._now_c = heat.ambient_c

    def at(self, time_us: float) -> float:
        """Return the temperature at a time that is not before the last change, Celsius."""
        final_c = self._final_c
        return final_c + (self._now_c - final_c) * math.exp(-self._seconds(time_us) / self.heat.time_s)

    def work(self, time_us: float, *, busy: bool) -> None:
        """Say whether it works from a time on."""
        self._now_c, self._at_us, self._busy = self.at(time_us), time_us, busy

    def next_us(self) -> float | None:
        """Return when it becomes too hot, or cool enough again, if it goes on as now; None: never."""
        goal_c, final_c = (self.back_c if self.hot else self.limit_c), self._final_c
        if (final_c >= goal_c) == self.hot:
            return None
        gap, left = self._now_c - final_c, goal_c - final_c
        if (self._now_c <= goal_c) if self.hot else (self._now_c >= goal_c):
            return self._at_us
        if left == 0:
            return None
        return self._at_us + 1e6 * self.heat.time_s * math.log(gap / left)

    @property
    def _final_c(self) -> float:
        return self.heat.ambient_c + self.heat.kelvin_per_w * self._powers_w[self._busy]

    def _seconds(self, time_us: float) -> float:
        return (time_us - self._at_us) / 1e6
