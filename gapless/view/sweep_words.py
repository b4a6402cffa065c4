"""What a sweep found, in words: for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterable

from ..answers.words import all_terms, gap, seconds, term_name, term_value
from ..solvers.protocol import SolveStatus
from ..sweeps.findings import FAILED, RATE, BackendRecord, Topic, is_proof
from ..sweeps.table import SweepRow

_MOST_CLASSES = 2
"""Classes of plans that are named."""

BACKEND_COLUMNS = (
    "backend",
    "plans",
    "proved best",
    "not proved",
    "none valid",
    "nothing found",
    "failed",
    "gap if not proved",
    "time of proofs",
    "largest proof",
)


def class_words(rows: Iterable[SweepRow]) -> str:
    """Return among which plans proofs and bounds hold; empty where there are none."""
    found = dict.fromkeys(row.plan_class for row in rows if row.plan_class and (is_proof(row) or row.bound))
    if not found:
        return ""
    if len(found) > _MOST_CLASSES:
        return f"Proofs and bounds are among {len(found)} classes of plans: see plan_class of the table."
    return f"Proofs and bounds are among {'; and among '.join(found)}."


def topic_words(topic: Topic) -> str:
    """Return what is compared."""
    more = [f"of {topic.batch} inferences" if topic.batch > 1 else "", topic.limits]
    return ", ".join(filter(None, [f"{topic.model}: {goal_words(topic)}", *more]))


def goal_words(topic: Topic) -> str:
    """Return by what it is compared."""
    return "inferences a second" if topic.goal == RATE else f"least {term_name(all_terms(), topic.goal)}"


def amount_words(topic: Topic, row: SweepRow) -> str:
    """Return what a plan reaches of its goal."""
    if topic.goal != RATE:
        return term_value(all_terms(), topic.goal, row.value)
    return rate_words(row.per_second)


def rate_words(per_second: float | None) -> str:
    """Return a rate with as many places as it deserves."""
    if per_second is None:
        return "-"
    return f"{per_second:,.1f} /s" if per_second >= 10 else f"{per_second:.3g} /s"


def gain_words(gain: float | None) -> str:
    """Return what one more device brings."""
    return "-" if gain is None else f"{100 * gain:+.1f} %"


def price_words(price: float | None, currency: str) -> str:
    """Return a price."""
    return "-" if price is None else f"{price:,.10g} {currency}".rstrip()


def backend_cells(record: BackendRecord) -> tuple[str, ...]:
    """Return what one backend proved, by `BACKEND_COLUMNS`."""
    statuses = (
        SolveStatus.OPTIMAL,
        SolveStatus.FEASIBLE,
        SolveStatus.INFEASIBLE,
        SolveStatus.NO_SOLUTION,
        FAILED,
    )
    return (
        record.backend,
        f"{record.tasks:,}",
        *(f"{record.counts.get(status, 0):,}" for status in statuses),
        gap(record.gap),
        "-" if record.proof_s is None else seconds(record.proof_s),
        f"{record.largest:,}" if record.largest else "-",
    )
