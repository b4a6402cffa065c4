"""What solvers answer: objectives, bounds, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from textwrap import wrap
from typing import TYPE_CHECKING

from ...answers.charts import DRAWN, Axis, Bar, Bars, Part, Tone, Track
from ...answers.front import front_chart
from ...answers.words import Terms, all_terms, amount, seconds
from ...api.comparison import Comparison
from ...formulations.errors import InvalidInputError
from ...formulations.problem import Problem
from ...formulations.terms import TermInfo
from ...solvers.pareto import ParetoFront
from ...solvers.protocol import SolveStatus
from ...solvers.result import SolveResult
from .canvas import axes_of, short, with_plain_names
from .draw import draw_bars, draw_plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@with_plain_names
def plot_front(
    front: ParetoFront,
    problem: Problem,
    *,
    terms: tuple[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a front: predicted plans, proven or not, and beside each what was measured of it.

    Parameters
    ----------
    front
        Of `pareto`.
    problem
        What it is about.
    terms
        Two of its terms, to the right and upwards; None: the first two. With three terms a point can be
        dominated in the two that are drawn; a step line joins those that are not.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        There are no plans, the front is not of these terms, or matplotlib is not installed.
    """
    drawn = terms or front.terms[:2]
    if drawn not in set(combinations(front.terms, 2)) | set(combinations(front.terms[::-1], 2)):
        raise InvalidInputError(f"the front is of {', '.join(front.terms)}: draw two of these terms")
    if not front.points:
        raise InvalidInputError("the front has no plans: there is nothing to draw")
    axes = axes_of(ax, (7, 4.5))
    draw_plane(front_chart(front, problem, drawn), axes)
    axes.set_title(f"{'All' if front.complete else 'Known'} trade-offs: {len(front.points)} plans")
    return axes


_LEAST_S = 1e-4
"""Shortest bar of a logarithmic scale of seconds."""


@with_plain_names
def plot_comparison(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw what backends answered to one problem, as `plot_answers` does.

    Parameters
    ----------
    comparison
        Of `compare`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        No backend answered, or matplotlib is not installed.
    """
    failures = {failure.label: str(failure.error) for failure in comparison.failures}
    return _draw_answers(comparison.problem.formulation.terms, _by_backend(comparison), failures, ax)


@with_plain_names
def plot_answers(answers: Mapping[str, SolveResult], *, ax: Axes | None = None) -> Axes:
    """Draw answers: a bar up to the objective, a black mark at the proved bound, status and time in words.

    Parameters
    ----------
    answers
        Results by a name of your own, e.g. of one problem with different rules; of one objective.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        There are no answers, they are of different objectives, or matplotlib is not installed.
    """
    return _draw_answers(all_terms(), answers, {}, ax)


@with_plain_names
def plot_solve_times(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw how long each backend took, on a logarithmic scale.

    Parameters
    ----------
    comparison
        Of `compare`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        No backend answered, or matplotlib is not installed.
    """
    results = _by_backend(comparison)
    if not results:
        raise InvalidInputError("no backend answered: there are no times to draw")
    taken = [max(result.runtime_s, _LEAST_S) for result in results.values()]
    bars = []
    for (name, result), time_s in zip(results.items(), taken, strict=True):
        part = Part(start=0, length=time_s, colour=Tone.MEASURED)
        bars.append(Bar(name=name, tracks=(Track(parts=(part,), text=seconds(result.runtime_s)),)))
    across = Axis(
        name="time of the solver", unit="s", low=min(taken) / 2, high=max(taken) * 6, logarithmic=True
    )
    axes = axes_of(ax, (8, 1.2 + 0.36 * len(results)))
    draw_bars(Bars(title="How long each backend took", across=across, rows=tuple(bars)), axes)
    return axes


def _by_backend(comparison: Comparison) -> dict[str, SolveResult]:
    return {result.label: result for result in comparison.results}


def _draw_answers(
    infos: Terms, results: Mapping[str, SolveResult], failed: Mapping[str, str], ax: Axes | None
) -> Axes:
    terms = sorted({result.asked.terms[0] for result in results.values()})
    if len(terms) != 1:
        what = f"of the objectives {', '.join(terms)}" if terms else "not there"
        raise InvalidInputError(f"the answers are {what}; draw answers to one objective")
    info = infos[terms[0]]
    divisor, unit = DRAWN[info.dimension]
    bars = []
    for name, result in results.items():
        colour = Tone.PREDICTED if result.status is SolveStatus.OPTIMAL else Tone.OPEN
        value = (result.objective or 0) / divisor
        track = Track(
            parts=(Part(start=0, length=value, colour=colour, name=str(result.status)),),
            bound=None if result.bound is None else result.bound / divisor,
            text=_verdict(info, result),
        )
        bars.append(Bar(name=name, tracks=(track,)))
    reasons = ((name, f"no answer: {short(reason, 70)}") for name, reason in failed.items())
    bars += [Bar(name=name, tracks=(Track(text=text),)) for name, text in reasons]
    most = max(track.end for bar in bars for track in bar.tracks) or 1.0
    classes = dict.fromkeys(result.plan_class for result in results.values())
    about = wrap(f"proofs are among {next(iter(classes))}", 90) if len(classes) == 1 else []
    legend = "Blue: proved optimal. Orange: not proved. Black mark: proved bound"
    chart = Bars(
        title="\n".join([legend, *about]),
        across=Axis(name=info.label, unit=unit, low=0, high=1.65 * most),
        rows=tuple(bars),
    )
    axes = axes_of(ax, (9, 1.3 + 0.36 * len(bars)))
    draw_bars(chart, axes)
    axes.set_xlabel(f"{chart.across.label}, less is better")
    return axes


def _verdict(info: TermInfo, result: SolveResult) -> str:
    """Return value, status, gap and time of an answer in one line."""
    parts = [str(result.status).replace("_", " "), seconds(result.runtime_s)]
    if result.objective is not None:
        parts.insert(0, amount(info.dimension, result.objective))
    if result.gap:
        parts.insert(2, f"gap {100 * result.gap:.1f} %")
    return ", ".join(parts)
