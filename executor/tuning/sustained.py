"""What finalists did under sustained load: whether they slow down, and whether their order holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

from ...formulations.validation import FileContent
from ..machine.state import MachineState
from . import racing
from .trials import Failure

WINDOW_S = 60.0
"""Length of the beginning, and of the end, that are compared; of a short run, a third of it."""

_THROTTLED = 0.95
"""Share of the clock at the beginning below which the machine has throttled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedVisit(FileContent):
    """One visit of a sustained run."""

    candidate: str
    """Identity of the deployment."""
    round: int
    """In each round every finalist is visited once."""
    begin_s: float
    """When it began, seconds of the run."""
    period_us: float
    """What was measured."""
    machine: MachineState | None = None
    """What the machine was like meanwhile; None: not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedRow:
    """How one finalist fared: periods at the beginning and at the end, and the difference in percent."""

    candidate: str
    visits: int
    first_us: float
    last_us: float

    @property
    def change_percent(self) -> float:
        """By how much it was slower at the end."""
        return 100 * (self.last_us / self.first_us - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained(FileContent):
    """What a sustained run has found."""

    asked_s: float
    seconds: float
    """How long it was to be, and how long it was."""
    visits: tuple[SustainedVisit, ...]
    """Every visit, in order of time."""
    failures: tuple[tuple[str, Failure], ...]
    """Finalists that could not be executed any more: identity, and why."""
    interrupted: bool
    """Whether somebody stopped it."""
    run: int
    """Number of the run in the store."""

    @property
    def window_s(self) -> float:
        """Length of the beginning and of the end."""
        return min(WINDOW_S, self.seconds / 3)

    @property
    def beginning(self) -> str:
        """What the first `window_s` are called."""
        return "first minute" if self.window_s == WINDOW_S else f"first {self.window_s:.0f} s"

    @property
    def first(self) -> tuple[SustainedVisit, ...]:
        """Visits of the beginning: whole rounds."""
        rounds = {visit.round for visit in self.visits if visit.begin_s >= self.window_s}
        return tuple(visit for visit in self.visits if visit.round not in rounds)

    @property
    def last(self) -> tuple[SustainedVisit, ...]:
        """Visits of the end."""
        begin_s = max(self.window_s, self.seconds - self.window_s)
        return tuple(visit for visit in self.visits if visit.begin_s >= begin_s)

    @property
    def rows(self) -> tuple[SustainedRow, ...]:
        """How each finalist fared that was visited at both ends, the fastest at first before the others."""
        early, late = _by_candidate(self.first), _by_candidate(self.last)
        rows = [
            SustainedRow(
                candidate=key,
                visits=sum(visit.candidate == key for visit in self.visits),
                first_us=median(early[key].values()),
                last_us=median(late[key].values()),
            )
            for key in early
            if key in late
        ]
        return tuple(sorted(rows, key=lambda row: row.first_us))

    @property
    def order_held(self) -> bool | None:
        """Whether nobody became clearly slower than somebody who was slower at first; None: not known."""
        keys = [row.candidate for row in self.rows]
        begun = {visit.round for visit in self.first}
        after = _by_candidate([visit for visit in self.visits if visit.round not in begun])
        pairs = [racing.ratios(after, faster, slower) for faster, slower in combinations(keys, 2)]
        if not any(len(found) >= racing.FEW_ROUNDS for found in pairs):
            return None
        return not any(racing.clearly_slower(found, margin=racing.RESOLUTION) for found in pairs)

    @property
    def mhz(self) -> tuple[float, float] | None:
        """The clock at the beginning and at the end; None: not told."""
        first, last = ([v.machine.mhz for v in part if v.machine] for part in (self.first, self.last))
        return _ends(first, last)

    @property
    def celsius(self) -> tuple[float, float] | None:
        """The temperature at the beginning and at the end; None: not told."""
        first, last = ([v.machine.celsius for v in part if v.machine] for part in (self.first, self.last))
        return _ends(first, last)

    @property
    def throttled(self) -> bool | None:
        """Whether the clock was lower at the end; None: not told."""
        return None if self.mhz is None else self.mhz[1] < _THROTTLED * self.mhz[0]


def _by_candidate(visits: Sequence[SustainedVisit]) -> dict[str, dict[int, float]]:
    found: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for visit in visits:
        found[visit.candidate][visit.round] = visit.period_us
    return found


def _ends(first: Sequence[float | None], last: Sequence[float | None]) -> tuple[float, float] | None:
    early, late = ([value for value in part if value is not None] for part in (first, last))
    return (fmean(early), fmean(late)) if early and late else None
