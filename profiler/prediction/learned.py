"""The learned co-run model: what chunks take beside each other, from executed plans (section 5).

It starts from `interpolated`, and without executed plans it is `interpolated`. What plans took says who slows
whom (`noisy_or`), on which layers, and how sure that is. Sums of layers stay sums of layers, one table for
each set of units, so that every exact backend plans with the same integers (`solvers.by_units`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...formulations.co_run import LEARNED, CoRunCosts
from ...formulations.costs import CostTable, NetworkCosts, TransferRows
from ...formulations.errors import InvalidInputError
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.validation import FileContent
from .corrections import Corrections, fit_corrections
from .executions import ExecutedPlan, Executions
from .noisy_or import NOISE, Array, Items, Posterior, joined, solved
from .session import Cells, Piece, Places, Session, units_of

MOST_UNITS = 10
"""Most units of which each set has a table: 1023 sets."""

SPREAD = 0.07
"""Standard deviation of the period of a plan from run to run, beyond what is not known of its chunks."""

_QUANTILES = (0.05, 0.95)
_DRAWS = 4000
_STEPS = 2
"""How often the sums of layers are linearised: where they were expected, then where they were found."""

_STEEPEST = 3.0
"""Most that a time is corrected by, as a logarithm: twenty times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold(FileContent):
    """What a plan is expected to take.

    `low_us`, `high_us`: it lies between them with 90 % probability.
    """

    period_us: float  # time between two outputs
    low_us: float
    high_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Company(FileContent):
    """What was learned of a unit in one company."""

    unit: str
    beside: tuple[str, ...]
    """Names of the unit, and of the others in use."""
    loaded: float
    """How far its times are from isolated (0) to heavy (1); both ends may be passed."""
    factor: float
    """What they are multiplied with beyond that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons(FileContent):
    """What was learned, and from how much."""

    plans: int
    """Executed plans of this network that it was learned from."""
    earlier_plans: int
    """Plans of other sessions on this device."""
    companies: tuple[Company, ...]
    """Each unit in each company."""
    layer_factor: tuple[tuple[float, ...], ...]
    """By [layer][unit]: how much longer layers take than the company says."""

    @property
    def unit_factors(self) -> tuple[float, ...]:
        """The factor of each unit in its largest company."""
        largest = {one.unit: one.factor for one in sorted(self.companies, key=lambda one: len(one.beside))}
        return tuple(largest[unit] for unit in dict.fromkeys(one.unit for one in self.companies))

    @property
    def basis(self) -> str:
        """What it was learned from, in words."""
        words = f"{self.plans} executed {'plan' if self.plans == 1 else 'plans'}"
        return f"{words} and {self.earlier_plans} of earlier sessions" if self.earlier_plans else words


@dataclass(frozen=True, slots=True)
class Learned:
    """The model after some plans were executed (`learn`)."""

    session: Session  # what is planned: tables, and its own executed plans
    earlier: tuple[Session, ...]  # other sessions on the same device
    own_share: bool
    """Whether a chunk's share of the whole network's time matters, too: then chunks are no sums of layers,
    and it can predict plans, but not be planned with."""
    _places: Places
    _posterior: Posterior

    def foretell(self, one: ExecutedPlan | Plan) -> Foretold:
        """Return what a plan is expected to take."""
        cells = self._places.cells(self.session, 0, self.session.pieces(one, own_share=self.own_share))
        deviation = self._deviation(cells)
        chunks, time_us = cells.summed(deviation)
        spread = self._posterior.covariance(chunks)
        values, vectors = np.linalg.eigh(spread)  # singular where chunks are known equally well
        root = vectors * np.sqrt(np.maximum(values, 0))
        rng = np.random.default_rng(0)
        drawn = np.log(time_us) + rng.standard_normal((_DRAWS, len(time_us))) @ root.T
        longest = drawn.max(axis=1) + SPREAD * rng.standard_normal(_DRAWS)
        low, high = np.exp(np.quantile(longest, _QUANTILES))
        return Foretold(
            period_us=float(time_us.max()),
            low_us=float(min(low, time_us.max())),
            high_us=float(max(high, time_us.max())),
        )

    def costs(self) -> CoRunCosts:
        """Return one table for each set of units that can run at once."""
        check_units(self.session)
        if self.own_share:
            raise InvalidInputError("own shares of chunks cannot be planned with: leave own_share out")
        tables = {members: self._table(members) for members in self.session.sets()}
        alone = [members for members in tables if len(members) == 1]
        columns = [tables[members] for members in alone]
        together = tuple(table for members, table in tables.items() if len(members) > 1)
        return CoRunCosts(costs=_side_by_side(columns, self.session), beside=together or None)

    def problem(self) -> Problem:
        """Return the problem of planning the network with these costs."""
        found = self.costs()
        return Problem(
            platform=self.session.platform,
            networks=(self.session.network,),
            costs=found.costs,
            co_run_costs=found.beside,
        )

    def lessons(self) -> Lessons:
        """Return what was learned, for people."""
        found = []
        for members in self.session.sets():
            for unit in members:
                expected, (level, rise) = self._expected(members), self._rises(unit, members)
                beside = tuple(other for other in members if other != unit)
                found.append(
                    Company(
                        unit=units_of(self.session, [unit])[0],
                        beside=units_of(self.session, beside),
                        loaded=expected + rise,
                        factor=float(np.exp(level)),
                    )
                )
        rows = np.exp(self._layers()).tolist()
        return Lessons(
            plans=len(self.session.executed),
            earlier_plans=sum(len(one.executed) for one in self.earlier),
            companies=tuple(found),
            layer_factor=tuple(map(tuple, rows)),
        )

    def _deviation(self, cells: Cells) -> Array:
        return np.clip(self._posterior.mean(cells.items), -_STEEPEST, _STEEPEST)

    def _expected(self, members: tuple[int, ...]) -> float:
        """Return how far `interpolated` is from isolated to heavy."""
        return min((len(members) - 1) / max(self.session.platform.most_at_once - 1, 1), 1.0)

    def _rises(self, unit: int, members: tuple[int, ...]) -> tuple[float, float]:
        """Return by how much a unit in some company deviates at slope 0, and how much more at slope 1."""
        piece = Piece(unit=unit, company=tuple(o for o in members if o != unit), cells=(0, 0))
        items = self._places.cells(self.session, 0, [piece]).items
        bare = replace(items, slope=np.array([0.0, 1.0]), shares=np.zeros_like(items.shares))
        level, steep = self._posterior.mean(bare)
        return float(level), float(steep - level)

    def _layers(self) -> Array:
        """Return by how much each layer on each unit deviates, by [layer][unit]: what is its own."""
        session, layers = self.session, range(self.session.layers)
        units = range(len(session.platform.units))
        pieces = [Piece(unit=unit, company=(), cells=layers) for unit in units]
        items = self._places.cells(session, 0, pieces).items
        bare = replace(items, slope=np.zeros_like(items.slope))
        common = replace(bare, shares=np.zeros_like(items.shares))
        own = self._posterior.mean(bare) - self._posterior.mean(common)
        return own.reshape(len(units), -1).T

    def _table(self, members: tuple[int, ...]) -> CostTable:
        """Return the table for plans that use exactly these units: their columns."""
        session, layers = self.session, self.session.layers
        base = session.numbers.expected_us[len(members) - 1]
        own = self._layers()
        columns = []
        for unit in members:
            level, rise = self._rises(unit, members)
            deviation = level + rise * session.numbers.slopes[:, unit]
            deviation[:layers] += own[:, unit]
            columns.append(base[:, unit] * np.exp(np.clip(deviation, -_STEEPEST, _STEEPEST)))
        time_us = np.rint(np.stack(columns, axis=1)).astype(int)
        able = [[row[unit] is not None for unit in members] for row in self._costs(session.isolated).layer_us]
        alone = self._costs(session.isolated)
        told = session.isolated.provenance
        return CostTable(
            units=units_of(session, members),
            networks=(
                NetworkCosts(
                    network=session.network.name,
                    layer_us=tuple(
                        tuple(max(1, int(t)) if can else None for t, can in zip(times, row, strict=True))
                        for times, row in zip(time_us[:layers], able, strict=True)
                    ),
                    transfer_in_us=_copies(alone.transfer_in_us, time_us[layers : 2 * layers + 1]),
                    transfer_out_us=_copies(alone.transfer_out_us, time_us[2 * layers + 1 :]),
                ),
            ),
            batch=session.isolated.batch,
            provenance=replace(told, method=LEARNED, estimated=True, notes=self._notes()),
        )

    def _costs(self, table: CostTable) -> NetworkCosts:
        return table.of(self.session.network.name)

    def _notes(self) -> str:
        earlier = sum(len(one.executed) for one in self.earlier)
        return (
            f"isolated and heavy, corrected by {len(self.session.executed)} executed plans and {earlier} of "
            "earlier sessions; one table for each set of units"
        )


def learn(session: Session, earlier: Sequence[Session] = (), *, own_share: bool = False) -> Learned:
    """Learn what chunks take from executed plans.

    `earlier`: other sessions on the same device: their structure counts, too; `own_share`: whether the share
    of a chunk in the whole network's time matters (`Learned.own_share`).
    """
    sessions = (session, *earlier)
    places = Places.of(sessions)
    found = Learned(session, tuple(earlier), own_share, places, _nothing(places, session))
    for _ in range(_STEPS):
        seen = [_observed(found, one, number) for number, one in enumerate(sessions) if one.executed]
        if not seen:
            break
        items, beyond, noise = zip(*seen, strict=True)
        posterior = solved(joined(items), np.concatenate(beyond), np.concatenate(noise))
        found = Learned(session, tuple(earlier), own_share, places, posterior)
    return found


def check_units(session: Session) -> None:
    """Refuse more units than there can be tables for their sets."""
    count = len(session.platform.units)
    if count > MOST_UNITS:
        raise InvalidInputError(
            f"{count} units have too many sets to learn a table for each, at most {MOST_UNITS} are possible; "
            "choose fewer with --units, or costs by their number: --costs interpolated"
        )


def _nothing(places: Places, session: Session) -> Posterior:
    items = places.cells(session, 0, []).items
    return solved(items, np.zeros(0), np.zeros(0))


def _observed(known: Learned, session: Session, number: int) -> tuple[Items, Array, Array]:
    """Return the chunks of one session, what they took beyond expectation, and how noisy that is.

    The longest chunk of a plan is taken to have lasted the period, and the others as much in proportion: what
    passes between two runs of a chunk (hand-over, waiting for a core) delays outputs, too. Where the times of
    chunks are not known, the one that is expected to be the longest took the period.
    """
    listed = [session.pieces(one, own_share=known.own_share) for one in session.executed]
    cells = known._places.cells(session, number, [piece for pieces in listed for piece in pieces])
    deviation = known._deviation(cells)
    chunks, time_us = cells.summed(deviation)
    mean = np.bincount(
        cells.owner, cells.time_us * np.exp(deviation) / time_us[cells.owner] * deviation, cells.count
    )
    rows: list[int] = []
    taken: list[float] = []
    noise: list[float] = []
    first = 0
    for one, pieces in zip(session.executed, listed, strict=True):
        own = range(first, first + len(pieces))
        first += len(pieces)
        longest = max(own, key=time_us.__getitem__)
        measured = dict(zip(own, one.chunk_us, strict=True)) if one.chunk_us else {longest: one.period_us}
        share = {row: time / max(measured.values()) for row, time in measured.items()}
        rows += share.keys()
        taken += [one.period_us * of_longest for of_longest in share.values()]
        noise += [NOISE / of_longest for of_longest in share.values()]
    kept = np.array(rows)
    beyond = np.log(taken) - np.log(time_us[kept]) + mean[kept]
    return chunks.rows(kept), beyond, np.array(noise)


def _copies(asked: TransferRows, time_us: Array) -> TransferRows:
    return tuple(tuple(int(time) for time in row) for row in time_us) if asked or time_us.any() else ()


def _side_by_side(columns: Sequence[CostTable], session: Session) -> CostTable:
    """Return tables of one unit each as one: for plans on a single unit."""
    found = [table.of(session.network.name) for table in columns]

    def rows(field: str) -> Any:
        every = [getattr(costs, field) for costs in found]
        depth = max(map(len, every))
        filled = [one or ((0,),) * depth for one in every]
        return tuple(tuple(row[0] for row in rows) for rows in zip(*filled, strict=True))

    return replace(
        columns[0],
        units=session.platform.unit_names,
        networks=(
            NetworkCosts(
                network=session.network.name,
                layer_us=rows("layer_us"),
                transfer_in_us=rows("transfer_in_us"),
                transfer_out_us=rows("transfer_out_us"),
            ),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """What was learned, for people, and the problem with the costs that follow from it."""

    learned: Corrections | Lessons
    problem: Problem


def lessons_of(executions: Executions, costs: str) -> Taught:
    """Learn from all executed plans.

    `costs`: `learned`, or the co-run cost model that is corrected.
    Raises InvalidInputError: there is no such model, or no table that it needs.
    """
    if costs == LEARNED:
        found = learn(Session.of(executions))
        return Taught(learned=found.lessons(), problem=found.problem())
    problem = executions.problem(costs)
    corrections = fit_corrections(problem, executions.executed)
    return Taught(learned=corrections, problem=corrections.applied(problem))
