"""What tuning goes by: plans that were executed on this device before, and what is learned from them.

Each tuning run of one network leaves its executed plans in the store, under the fingerprint of the device
and of the engine. Later runs, of any network on the same units, learn from them before they have measured
anything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..executor.tuning.candidates import TuningCandidate
from ..executor.tuning.store import Store
from ..formulations.co_run import LEARNED
from ..formulations.costs import CostTable
from ..formulations.files import dump, parse
from ..formulations.objective import Objective
from ..formulations.problem import Problem
from ..profiler.prediction.executions import EXECUTIONS, ExecutedPlan, Executions
from ..profiler.prediction.learned import MOST_UNITS, Learned, learn
from ..profiler.prediction.session import NEEDED, Session, session
from ..profiler.profile import Profile
from .execution import profiled_problem

MOST_SESSIONS = 12
"""Most earlier sessions that are learned from, the newest ones: the solve is cubic in their chunks."""

_KEPT, _USED = "executions", "learned from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What is known before and while a network is tuned."""

    session: Session  # its tables
    earlier: tuple[Session, ...] = ()  # executed plans of earlier sessions on this device

    @property
    def ranks_plans(self) -> bool:
        """Whether what earlier sessions teach is what the first plans are made from.

        Executions of this network are. Those of others tell who slows whom: nothing where every plan of
        several chunks has the same company, because no more than two units run at once (measured by
        `benchmarks.prediction` on two cores: never better than the heavy table for the first three plans).
        """
        same = any(one.key == self.session.key for one in self.earlier)
        return same or (bool(self.earlier) and self.session.platform.most_at_once > 2)

    def after(self, executed: Sequence[ExecutedPlan]) -> Learned:
        """Return what is learned from executed plans of this session, and of the earlier ones."""
        return learn(replace(self.session, executed=tuple(executed)), self.earlier)


@dataclass(frozen=True, slots=True)
class Intervals:
    """Tells of candidates between what they are expected to lie; None: nothing was learned."""

    learned: Learned | None

    def __call__(self, candidates: Sequence[TuningCandidate]) -> list[TuningCandidate]:
        """Return candidates with intervals: those that are one plan."""
        return [self._told(candidate) for candidate in candidates]

    def _told(self, candidate: TuningCandidate) -> TuningCandidate:
        plan, ran = candidate.deployment.plan, candidate.deployment
        if self.learned is None or plan is None or plan.order or ran.is_divided or ran.pace != "period":
            return replace(candidate, interval_us=())
        found = self.learned.foretell(plan)
        return replace(candidate, interval_us=(round(found.low_us), round(found.high_us)))


without_intervals = Intervals(None)


def knowledge_from(problem: Problem, tables: Sequence[CostTable]) -> Knowledge | None:
    """Return what can be learned from; None: both tables of one network on few units are needed."""
    plain = problem.formulation.one_network and problem.data is None
    few = len(problem.platform.units) <= MOST_UNITS
    if not plain or not few or not {table.provenance.method for table in tables} >= NEEDED:
        return None
    return Knowledge(session=session(problem.platform, problem.network, tables))


def known_before(
    taken: Profile,
    store: Store,
    device: str,
    *,
    costs: str | None,
    goal: Objective,
    resume: bool,
) -> Knowledge | None:
    """Return what is known before a profiled network is tuned; None: nothing is to be learned.

    `costs`, `goal`: the co-run cost model that is asked for, and what counts: tables but `learned` are
    corrected, and a request that is alone has no company.
    """
    if costs not in (None, LEARNED) or goal.first == "latency":
        return None
    problem = profiled_problem(taken, costs=taken.tables[0].provenance.method)
    found = knowledge_from(problem, taken.tables)
    if found is None:
        return None
    about = problem.fingerprint
    return replace(found, earlier=earlier_sessions(found.session, store, device, about=about, resume=resume))


def earlier_sessions(
    begun: Session, store: Store, device: str, *, about: str, resume: bool
) -> tuple[Session, ...]:
    """Return the newest sessions of a device that have units in common with one that begins.

    `about`: what is tuned: a run that is resumed goes by the same sessions as when it began.
    """
    kept = store.kept(_KEPT, f"{device} ")
    used = store.find(_USED, f"{device} {about}") if resume else None
    names = list(kept) if used is None else [name for name in json.loads(used) if name in kept]
    units = set(begun.platform.units)
    found: dict[str, Session] = {}
    for name in names:
        known = Session.of(parse(kept[name].encode(), EXECUTIONS, name=f"executions {name!r} in the store"))
        if units & set(known.platform.units) and len(found) < MOST_SESSIONS:
            found[name] = known
    store.keep(_USED, f"{device} {about}", json.dumps(list(found)))
    return tuple(found.values())


def keep_session(executions: Executions | None, store: Store, device: str, run: int) -> None:
    """Keep what a tuning run executed, where both tables were measured, for later sessions.

    `executions`: plans of several chunks are kept; None: there are none.
    """
    if executions is None or not {table.provenance.method for table in executions.tables} >= NEEDED:
        return
    several = tuple(one for one in executions.executed if len(one.plan.chunks) > 1)
    if several:
        store.keep(_KEPT, f"{device} {run}", dump(replace(executions, executed=several), EXECUTIONS))
