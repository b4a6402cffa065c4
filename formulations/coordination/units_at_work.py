"""What runs on which unit in the simulation, and how fast: side by side on one unit, and beside others."""

from __future__ import annotations

from dataclasses import dataclass

from .dispatch import Start
from .setting import Setting

MOST_LOSS = 0.75
"""Most of its speed that a chunk loses to all other units together; as for workloads."""


@dataclass(slots=True, eq=False)
class Task:
    """A chunk, or a whole network, that was started.

    `unit`, `began_us`: where it runs, and since when.
    """

    start: Start  # what was decided
    legs: tuple[tuple[int, int, int], ...]
    """First section, one past the last, and unit of its parts, in order; of a chunk there is one."""
    leg: int = 0  # which of them runs
    unit: int = -1
    began_us: float = 0.0
    left_us: float = 0.0  # what is left of it, as if it were alone
    pace: float = 1.0  # how much of that passes in a microsecond


class UnitsAtWork:
    """All that runs; a change of what runs changes how fast the rest goes on."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._tasks: list[list[Task]] = [[] for _ in setting.platform.units]
        self._idle_since_us = [0.0] * len(self._tasks)
        self._names = [network.name for network in setting.networks]

    def count(self, unit: int) -> int:
        """Return how much runs on a unit."""
        return len(self._tasks[unit])

    def tasks(self) -> list[Task]:
        """Return all that runs."""
        return [task for tasks in self._tasks for task in tasks]

    def idle_us(self, unit: int, now_us: float) -> float:
        """Return for how long a unit has had nothing to do."""
        return 0.0 if self._tasks[unit] else now_us - self._idle_since_us[unit]

    def begin(self, task: Task, unit: int, time_us: float, now_us: float) -> None:
        """Begin a leg of a task on a unit; alone it would take `time_us`."""
        task.unit, task.began_us, task.left_us = unit, now_us, time_us
        self._tasks[unit].append(task)
        self._set_paces()

    def stop(self, task: Task, now_us: float) -> None:
        """Take a task from its unit."""
        self._tasks[task.unit].remove(task)
        self._idle_since_us[task.unit] = now_us
        self._set_paces()

    def next_us(self, now_us: float) -> float | None:
        """Return when the next leg is done if nothing changes; None: nothing runs."""
        ends = [now_us + task.left_us / task.pace for tasks in self._tasks for task in tasks]
        return min(ends, default=None)

    def advance(self, time_us: float) -> None:
        """Let time pass: not more than until the next leg is done."""
        for tasks in self._tasks:
            for task in tasks:
                task.left_us -= time_us * task.pace

    def done(self, epsilon_us: float) -> list[Task]:
        """Return the tasks whose leg is done."""
        return [task for tasks in self._tasks for task in tasks if task.left_us <= epsilon_us]

    def _set_paces(self) -> None:
        for unit, tasks in enumerate(self._tasks):
            if tasks:
                shared = self._setting.behaviours[unit].shared_permille(len(tasks)) / 1000
                for task in tasks:
                    task.pace = 1 / (shared * self._beside_others(task))

    def _beside_others(self, task: Task) -> float:
        """Return how many times as long a task takes because of what runs on other units.

        As for workloads, a slowdown of d is a loss of d / (1 + d) of the speed, and losses add up.
        """
        interference = self._setting.interference
        if interference is None:
            return 1.0
        victim = self._names[task.start.request.network]
        lost = 0.0
        for other, tasks in enumerate(self._tasks):
            if other != task.unit and tasks:
                names = {self._names[each.start.request.network] for each in tasks}
                slower = max(interference.slowdown_of(victim, task.unit, name, other) for name in names)
                lost += slower / (1000 + slower)
        return 1 / (1 - min(lost, MOST_LOSS))
