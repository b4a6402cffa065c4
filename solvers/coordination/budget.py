"""A budget of power: whatever the policy, nothing starts that would take the device above it."""

from __future__ import annotations

from collections.abc import Sequence

from ...formulations.coordination.policy import Decision, Place, Policy, UnitState, Waiting
from ...formulations.coordination.setting import Setting
from ...formulations.coordination.times import Times
from ...formulations.errors import InvalidInputError


class PowerBudget(Policy):
    """Hides from a policy the idle units that there is no power for.

    Band reacts when a unit has become too hot; that "detects excessive power consumption beforehand may be
    more effective" is its future work (6.5).

    Raises InvalidInputError: powers are not known, or there is not enough for a single unit at work.
    """

    def __init__(self, policy: Policy, setting: Setting, limit_mw: int) -> None:
        setting = setting.served_by(policy)
        self._places = setting.platform.places
        powers = [(unit.idle_mw or 0, unit.busy_mw) for unit in setting.behaviours]
        names = setting.platform.unit_names
        if lacking := [name for name, (_, busy) in zip(names, powers, strict=True) if busy is None]:
            raise InvalidInputError(
                f"a power budget needs the powers of all units of {setting.platform.name!r}; those of "
                f"{', '.join(lacking)} are not known: give busy_mw and idle_mw of each (--behaviour FILE), "
                "or power_mw and idle_mw in its platform"
            )
        base_mw = setting.behaviour.base_mw if setting.behaviour else None
        self._more_mw = [(busy or 0) - idle for idle, busy in powers]
        idle_mw = sum(idle for unit, (idle, _) in enumerate(powers) if self._places[unit] == unit)
        self._spare_mw = limit_mw - (base_mw or 0) - idle_mw
        if self._spare_mw < min(self._more_mw):
            least = limit_mw - self._spare_mw + min(self._more_mw)
            raise InvalidInputError(
                f"a power budget of {limit_mw / 1000:g} W is too small for {setting.platform.name!r}: with "
                f"one unit at work it takes {least / 1000:g} W"
            )
        self._policy = policy
        self.name, self.conduct, self.fallback = policy.name, policy.conduct, policy.fallback
        self.any_chunk = policy.any_chunk

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return what the policy decides for the units that there is power for."""
        at_work = {place for place, state in zip(self._places, units, strict=True) if state.running}
        left = self._spare_mw - sum(self._more_mw[place] for place in at_work)
        seen = [
            state._replace(available=False) if place not in at_work and more > left else state
            for place, more, state in zip(self._places, self._more_mw, units, strict=True)
        ]
        return self._policy.next(now_us, queue, seen, times)

    def live(self) -> None:
        """Tell the policy."""
        self._policy.live()

    def begin(self, times: Times, demand: Sequence[float]) -> None:
        """Prepare the policy."""
        self._policy.begin(times, demand)

    def requeue(self, request: Waiting) -> Place:
        """Return what the policy says."""
        return self._policy.requeue(request)

    def changed(self, units: Sequence[UnitState]) -> None:
        """Tell the policy."""
        self._policy.changed(units)

    def took(self, request: Waiting, decision: Decision, took_us: float, expected_us: float) -> None:
        """Tell the policy."""
        self._policy.took(request, decision, took_us, expected_us)

    def ended(self, request: Waiting) -> None:
        """Tell the policy."""
        self._policy.ended(request)
