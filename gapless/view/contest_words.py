"""What a comparison over many problems says, in words: for the terminal and for the page."""

from __future__ import annotations

from ..answers.sweeps import class_words
from ..answers.words import seconds
from ..sweeps.contest import InstanceComparison
from ..sweeps.standings import SHIFT_S, Standing

COLUMNS = (
    "backend",
    "answered",
    "failed",
    "proved",
    "given",
    "best",
    "within 1 %",
    "above best",
    "gap",
    "to best bound",
    "time to 1 %",
    "time to proof",
    "primal integral",
)

MEANINGS = (
    (
        "given",
        "On how many problems its plan is the one that it was given (--start native) and has not proved "
        "to be best: such a plan counts as none in the columns behind and in the profiles.",
    ),
    ("best, within 1 %", "On how many problems its plan is the best of all backends, and close to it."),
    ("above best", "Mean distance of its plans from the best, as a share of the best."),
    (
        "gap",
        "Mean distance of its plans from bounds that it proved itself, not from those that it was given, as "
        "a share of the plan, and on how many problems it has one.",
    ),
    ("to best bound", "The same from the best bound of all backends."),
    (
        "time to 1 %, time to proof",
        f"Shifted geometric means (shift {SHIFT_S:g} s) of the times of the search until a plan within 1 % "
        "of the best, and to a proof; who did not get there took as long as there was.",
    ),
    (
        "primal integral",
        "Mean area under the distance to the best plan over time, as a share of the time; 100 %: never a "
        "plan (Berthold 2013).",
    ),
)


def standing_cells(one: Standing) -> tuple[str, ...]:
    """Return what is said about one backend, by `COLUMNS`."""
    return (
        one.backend,
        f"{one.answered:,}",
        f"{one.failed:,}",
        f"{one.proven:,}",
        f"{one.given:,}",
        f"{one.best:,}",
        f"{one.near:,}",
        _percent(one.above),
        _percent(one.own_gap) if one.own_gap is None else f"{_percent(one.own_gap)} ({one.own_bounds})",
        _percent(one.gap_to_best_bound),
        *("-" if time_s is None else seconds(time_s) for time_s in (one.time_s, one.proof_s)),
        _percent(one.primal),
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def summary_words(found: InstanceComparison) -> tuple[str, ...]:
    """Return what was compared, and what proofs are about."""
    about = class_words(one.row for one in found.answers)
    return (f"{head_words(found)}.", *((about,) if about else ()))


def head_words(found: InstanceComparison) -> str:
    """Return what was compared."""
    limit = found.time_limit_s
    each = "" if limit is None else f", {limit:g} s each"
    done = "" if len(found.answers) == found.total else f"; {len(found.answers):,} of {found.total:,} answers"
    return f"{len(found.instances):,} problems, {len(found.backends)} backends{each}{done}"
