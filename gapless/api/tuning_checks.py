"""What cannot be tuned, said before anything is measured."""

from __future__ import annotations

from ..formulations.errors import InvalidInputError
from ..formulations.objective import Objective
from ..formulations.problem import Problem
from .closed_loop import check_rounds
from .groups import parse_groups

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
    """Return what counts, and refuse what cannot be done before anything is measured.

    Raises
    ------
    InvalidInputError
        A number is out of its range, or several rounds are asked of what has none.
    """
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
    check_rounds(rounds, workload=_has_workload(subject), objective=wanted)
    if sustain_s is not None and not 0 < sustain_s <= MOST_SUSTAINED_S:
        raise InvalidInputError(f"sustain_s is {sustain_s}, must be above 0 and at most {MOST_SUSTAINED_S:g}")
    return wanted


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
