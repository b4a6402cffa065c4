"""What a comparison over many instances says about each backend: profiles, means, and what is proved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..solvers.course import NEAR, Pace, pace_of
from ..solvers.result import relative_gap
from ..solvers.sources import Source
from .contest import InstanceAnswer, InstanceComparison
from .findings import is_proof

SHIFT_S = 0.1
"""Added to times before their geometric mean is taken: what is much shorter does not count."""

LEAST_S = 1e-3
"""Shorter times count as equal in profiles: ratios of less say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem: what is known of it by all backends.

    `best`, `bound`: the best value that anybody has, and the best bound that anybody proved; None: nobody.
    """

    instance: str
    answers: Mapping[str, InstanceAnswer]  # by backend; those that failed are absent
    best: int | None
    bound: int | None
    horizon_s: float  # until when backends are measured: the time limit, or when the last one was done

    def gap(self, answer: InstanceAnswer) -> float | None:
        """Return how far a plan may be from the optimum, by the best bound of all; None: not known."""
        return relative_gap(answer.row.value, self.bound)

    def pace(self, answer: InstanceAnswer) -> Pace:
        """Return how fast a backend came to a good plan."""
        return pace_of(answer.course, self.best, self.horizon_s)

    def solved_s(self, answer: InstanceAnswer) -> float | None:
        """Return when a backend had a plan within 1 % of the best, or proved that there is none."""
        if self.best is None:
            return self.proved_s(answer)
        return self.pace(answer).near_best_s

    def proved_s(self, answer: InstanceAnswer) -> float | None:
        """Return when a backend had a proof; None: it has none."""
        return answer.end_s if is_proof(answer.row) else None

    def ratio(self, answer: InstanceAnswer) -> float | None:
        """Return the value of its own plan over the best one; None: none, or the best is 0 and it is not."""
        value, best = own_value(answer), self.best
        if value is None or best is None:
            return None
        return value / best if best else None if value else 1.0


def own_value(answer: InstanceAnswer) -> int | None:
    """Return the value of the plan that a backend found, or proved to be best; None: it has none."""
    row = answer.row
    proved = row.bound == row.value and row.bound_source == Source.OWN
    return None if row.plan_source == Source.START and not proved else row.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a comparison says about one backend.

    `answered`, `failed`: on how many problems it gave an answer, and on how many it failed. `best`, `near`:
    on how many its plan is the best that anybody has, and within 1 % of it. `own_gap`, `own_bounds`: mean gap
    of its plans by bounds that it proved itself, and on how many problems it has both; None: on none.
    """

    backend: str
    answered: int
    failed: int
    proven: int  # on how many it has a proof
    given: int
    """On how many its plan is the one that it was handed over, and not proved to be best. Such a plan counts
    as none in what follows."""
    best: int
    near: int
    above: float | None  # mean distance of its plans from the best, as a share of the best; None: no plans
    gap_to_best_bound: float | None
    """Mean gap of its plans by the best bound of all backends; None: none is known."""
    own_gap: float | None
    own_bounds: int
    time_s: float | None
    """Shifted geometric mean of the times to a plan within 1 % of the best. Who has none took until the
    horizon."""
    proof_s: float | None  # the same of the times to a proof
    primal: float | None  # mean primal integral, as a share of the horizon; None: nobody has plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A performance profile."""

    title: str  # what is compared
    lines: Mapping[str, tuple[tuple[float, float], ...]]
    """By backend: (ratio to the best on a problem, share of the problems with at most this ratio), rising.
    Empty: it solved none."""
    most: float  # the largest ratio


def cases(found: InstanceComparison) -> tuple[Case, ...]:
    """Return what is known of each problem to which there are answers."""
    by_instance: dict[str, list[InstanceAnswer]] = {}
    for one in found.answers:
        by_instance.setdefault(one.instance, []).append(one)
    return tuple(_case(name, answers, found) for name, answers in by_instance.items())


def _case(name: str, answers: Sequence[InstanceAnswer], found: InstanceComparison) -> Case:
    known = {one.backend: one for one in answers if not one.row.failed}
    values = [one.row.value for one in known.values() if one.row.value is not None]
    bounds = [one.row.bound for one in known.values() if one.row.bound is not None]
    best, bound = min(values, default=None), max(bounds, default=None)
    refuted = best is not None and bound is not None and bound > best
    return Case(
        instance=name,
        answers=known,
        best=best,
        bound=None if refuted else bound,
        horizon_s=found.time_limit_s or max((one.end_s for one in known.values()), default=0.0),
    )


def standings(found: InstanceComparison) -> tuple[Standing, ...]:
    """Return what is said about each backend, in the order in which they were asked."""
    known = cases(found)
    failed = [one.backend for one in found.failed]
    return tuple(_standing(backend, known, failed.count(backend)) for backend in found.backends)


def _standing(backend: str, known: Sequence[Case], failed: int) -> Standing:
    own = [(case, case.answers[backend]) for case in known if backend in case.answers]
    # Who failed on a problem has not solved it: it took until the horizon.
    everywhere = [case for case in known if case.answers]
    ratios = [case.ratio(answer) for case, answer in own]
    gaps = [answer.row.gap for _, answer in own if answer.row.bound_source != Source.START]
    own_gaps = [gap for gap in gaps if gap is not None]
    primal = [
        integral / case.horizon_s
        for case, answer in own
        if (integral := case.pace(answer).primal_integral_s) is not None and case.horizon_s
    ]
    return Standing(
        backend=backend,
        answered=len(own),
        failed=failed,
        proven=sum(case.proved_s(answer) is not None for case, answer in own),
        given=sum(answer.row.value is not None and own_value(answer) is None for _, answer in own),
        best=sum(case.best is not None and own_value(answer) == case.best for case, answer in own),
        near=sum(ratio is not None and ratio <= 1 + NEAR for ratio in ratios),
        above=_mean(ratio - 1 for ratio in ratios if ratio is not None),
        gap_to_best_bound=_mean(gap for case, answer in own if (gap := case.gap(answer)) is not None),
        own_gap=_mean(own_gaps),
        own_bounds=len(own_gaps),
        time_s=shifted_mean(_taken(everywhere, backend, Case.solved_s)),
        proof_s=shifted_mean(_taken(everywhere, backend, Case.proved_s)),
        primal=_mean(primal),
    )


def _taken(
    known: Iterable[Case], backend: str, time_s: Callable[[Case, InstanceAnswer], float | None]
) -> list[float]:
    """Return how long a backend took for each problem; the horizon where it did not get there."""
    found = []
    for case in known:
        answer = case.answers.get(backend)
        taken = None if answer is None else time_s(case, answer)
        found.append(case.horizon_s if taken is None else taken)
    return found


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None


def shifted_mean(times_s: Sequence[float], shift_s: float = SHIFT_S) -> float | None:
    """Return the shifted geometric mean of some times: exp(mean(log(t + shift))) - shift; None of nothing."""
    if not times_s:
        return None
    return math.exp(fmean(math.log(time_s + shift_s) for time_s in times_s)) - shift_s


def profiles(found: InstanceComparison) -> tuple[Profile, ...]:
    """Return the performance profiles: time to a good plan, how good plans are, and time to a proof.

    From E. D. Dolan and J. J. More, "Benchmarking optimization software with performance profiles",
    Mathematical Programming 91 (2002), 201-213. All three are there, if without lines.
    """
    known = cases(found)

    def at_least(time_s: float | None) -> float | None:
        return None if time_s is None else max(time_s, LEAST_S)

    measures: tuple[tuple[str, Callable[[Case, InstanceAnswer], float | None]], ...] = (
        ("Time to a plan within 1 % of the best", lambda case, one: at_least(case.solved_s(one))),
        ("Value of the plan", lambda case, one: case.ratio(one)),
        ("Time to a proof", lambda case, one: at_least(case.proved_s(one))),
    )
    return tuple(_profile(title, known, found.backends, measure) for title, measure in measures)


def _profile(
    title: str,
    known: Sequence[Case],
    backends: Sequence[str],
    measure: Callable[[Case, InstanceAnswer], float | None],
) -> Profile:
    ratios: dict[str, list[float]] = {backend: [] for backend in backends}
    for case in known:
        costs = {name: measure(case, one) for name, one in case.answers.items()}
        least = min((cost for cost in costs.values() if cost is not None), default=None)
        for name, cost in costs.items():
            if cost is not None and least:
                ratios[name].append(cost / least)
    lines = {name: _line(sorted(own), len(known)) for name, own in ratios.items()}
    return Profile(
        title=title, lines=lines, most=max((r for own in ratios.values() for r in own), default=1.0)
    )


def _line(ratios: Sequence[float], count: int) -> tuple[tuple[float, float], ...]:
    """Return the share of problems by ratio; of equal ratios the last."""
    return tuple({ratio: (place + 1) / count for place, ratio in enumerate(ratios)}.items())
