"""What cannot be tuned, said before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..executor.tuning.options import Rung, TuningMode, TuningOptions
from ..formulations.energy import ENERGY, lacking
from ..formulations.errors import InvalidInputError
from ..formulations.hardware import Platform
from ..formulations.objective import Objective
from ..formulations.problem import Problem
from .closed_loop import check_rounds
from .groups import parse_groups
from .layer_orders import check_order_word
from .trade_offs import parse_terms

MOST_SUSTAINED_S = 86_400.0
"""Longest time that finalists run: a day."""


def checked(
    subject: object,
    objective: str | Objective | None,
    *,
    rounds: int,
    sustain_s: float | None,
    pipelines: str | int | None,
    groups: str | int | None = None,
) -> Objective:
    """Return what counts, and refuse what cannot be done before anything is measured."""
    wanted = _wanted(subject, objective)
    if pipelines is not None and wanted.first == "latency":
        raise InvalidInputError(
            f"pipelines={pipelines} makes no request faster, and the latency counts first: leave one of "
            "them out"
        )
    if groups is not None:
        parse_groups(groups)
        _check_groups(subject, rounds=rounds, pipelines=pipelines)
    several = isinstance(subject, Problem) and not subject.formulation.correctable
    if rounds > 1 and (pipelines is not None or (several and not _has_workload(subject))):
        raise InvalidInputError(
            f"rounds is {rounds}: corrections are learned from plans of a single pipeline; leave the rounds "
            "out, or the pipelines side by side"
        )
    check_rounds(rounds, objective=wanted)
    if sustain_s is not None and not 0 < sustain_s <= MOST_SUSTAINED_S:
        raise InvalidInputError(f"sustain_s is {sustain_s}, must be above 0 and at most {MOST_SUSTAINED_S:g}")
    return wanted


def check_layer_order(
    layer_order: str | None, *, rounds: int, pipelines: str | int | None, groups: str | int | None
) -> str:
    """Return what plans cut: the order of the network where nothing is said."""
    order = "fixed" if layer_order is None else layer_order
    check_order_word(order)
    if order == "free":
        several = rounds if rounds > 1 else None
        for name, given in (("pipelines", pipelines), ("groups", groups), ("rounds", several)):
            if given is not None:
                raise InvalidInputError(
                    f"{name}={given} is about one order of the layers: leave it out, or the free order"
                )
    elif order != "fixed" and groups is not None:
        raise InvalidInputError(
            f"groups={groups} are of pieces in the order of the network: leave them out, or the other order"
        )
    return order


def _check_groups(subject: object, *, rounds: int, pipelines: str | int | None) -> None:
    if isinstance(subject, Problem):
        raise InvalidInputError(
            "groups are for a model, whose tiles are measured; leave them out: a problem of groups says what "
            "groups there may be, and other problems are about whole layers"
        )
    if pipelines is not None:
        raise InvalidInputError(
            "pipelines race beside groups without being asked for: leave one of the two out"
        )
    if rounds > 1:
        raise InvalidInputError(
            f"rounds is {rounds}: corrections are learned from plans in which each unit has layers of its "
            "own; leave the rounds out, or the groups"
        )


def _wanted(subject: object, objective: str | Objective | None) -> Objective:
    """Return what counts: what is asked for, or else what a problem says."""
    if objective is None:
        return subject.objective if isinstance(subject, Problem) else Objective()
    return Objective.parse(objective) if isinstance(objective, str) else objective


def _has_workload(subject: object) -> bool:
    return isinstance(subject, Problem) and not subject.formulation.one_network


def check_traded(
    pareto: str | Sequence[str] | None,
    backends: Sequence[str],
    *,
    rounds: int,
    distance: int,
    objective: str | Objective | None,
) -> tuple[str, ...]:
    """Return the terms of which trade-offs are measured, none where they are not asked for."""
    if pareto is None:
        return ()
    stray = {
        "several rounds": rounds > 1,
        "a distance": distance > 1,
        "an objective": objective is not None,
        f"{len(backends)} backends": len(backends) != 1,
    }
    found = [what for what, there in stray.items() if there]
    if found:
        raise InvalidInputError(
            f"trade-offs are all plans that no other is better than, found by one backend: leave out "
            f"{' and '.join(found)}"
        )
    return parse_terms(pareto)


def check_powers(platform: Platform, terms: Sequence[str]) -> None:
    """Refuse trade-offs of energy on units whose powers are not known, before anything is measured."""
    reason = lacking(platform)
    if ENERGY in terms and reason:
        raise InvalidInputError(reason)


def for_fronts(options: TuningOptions) -> TuningOptions:
    """Return how trade-offs are measured: all for the same time, in turns."""
    return replace(options, mode=TuningMode.FIXED, rungs=options.rungs or (Rung(seconds=0.5, rounds=4),))
