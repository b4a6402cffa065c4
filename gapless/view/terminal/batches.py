"""Sizes of batches for people: what each choice comes to, and the best plan."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from rich.console import Group
from rich.text import Text

from ...answers.words import microseconds, term_name, term_value
from ...api.batches import BatchChoice
from ...formulations.job_requests import Jobs
from ...formulations.terms import Dimension
from ...formulations.workload import Workload, split_batch
from ..layout import indented, plain_table
from .tables import result_view


def batches_view(found: Sequence[BatchChoice]) -> Group:
    """Return what `gapless plan --batches` shows."""
    best = found[0]
    infos, first = best.problem.formulation.terms, best.problem.objective.first
    numbers = (term_name(infos, first), "per inference")
    table = plain_table("requests", "status", *numbers, numbers=numbers)
    for choice in found:
        value = None if choice.key[0] == inf else int(choice.key[0])
        data = choice.problem.data
        assert isinstance(data, Workload | Jobs)
        count = sum(split_batch(request.network)[1] for request in data.requests)
        timed = value is not None and infos[first].dimension is Dimension.MICROSECONDS
        table.add_row(
            choice.workload,
            str(choice.result.status),
            "-" if value is None else term_value(infos, first, value),
            microseconds((value or 0) / count) if timed else "-",
            style="bold" if choice is best else "",
        )
    words = "the others were planned for a part of the time, and the best one once more"
    shown = result_view(best.problem, best.result)
    return Group(indented(table), Text(words, style="dim"), "", shown)
