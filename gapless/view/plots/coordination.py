"""Coordination as pictures: what each unit does under each policy, and the share in time by deadline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.coordination import Coordination
from ...formulations.coordination.record import Record
from .canvas import IDLE, LOST, PALETTE, Look, axes_of, legend, rows, with_plain_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOW_US = 500_000
"""How much of a record is drawn unless something else is asked for."""

_SILENT: Look = {"edgecolor": "black", "hatch": "xx", "linewidth": 0}


@with_plain_names
def plot_record(
    record: Record, *, start_us: float = 0.0, end_us: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what each unit does when; what fell back silently is hatched, and when a unit is away is grey.

    Parameters
    ----------
    record
        What happened.
    start_us, end_us
        From when to when; None: half a second.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        matplotlib is not installed.
    """
    end = start_us + WINDOW_US if end_us is None else end_us
    axes = axes_of(ax, (10, 1.2 + 0.4 * len(record.units)))
    networks = {request.number: request.network for request in record.requests}
    seen = set()
    for span in record.away:
        left, until = max(start_us, span.start_us), min(end, span.end_us or record.end_us)
        if left < until:
            axes.barh(span.unit, (until - left) / 1000, left=left / 1000, height=0.9, **IDLE)
    for each in record.ran:
        left, until = max(start_us, each.start_us), min(end, each.end_us)
        if left >= until:
            continue
        network = networks[each.request]
        seen.add(network)
        special = _SILENT if each.silent else LOST if each.cut_off else {}
        look: Look = {"edgecolor": "white", **special, "facecolor": PALETTE[network % len(PALETTE)]}
        axes.barh(each.unit, (until - left) / 1000, left=left / 1000, height=0.8, **look)
    rows(axes, list(record.units))
    axes.set_xlim(start_us / 1000, end / 1000)
    axes.set_xlabel("time (ms)")
    axes.set_title(record.policy)
    entries: list[tuple[str, Look]] = [
        (record.networks[n], {"facecolor": PALETTE[n % len(PALETTE)]}) for n in sorted(seen)
    ]
    if any(each.silent for each in record.ran):
        entries.append(("fell back silently", {"facecolor": "white", **_SILENT}))
    if record.away:
        entries.append(("not available", dict(IDLE)))
    legend(axes, entries)
    return axes


@with_plain_names
def plot_deadlines(runs: Sequence[Coordination], *, ax: Axes | None = None) -> Axes:
    """Draw the share of requests in time by the multiplier of their deadlines (Band, Fig. 18).

    Parameters
    ----------
    runs
        Of `coordinate_deadlines`.
    ax
        Where to draw; None: in a new figure.

    Raises
    ------
    InvalidInputError
        matplotlib is not installed.
    """
    axes = axes_of(ax, (7, 4))
    across = [(found.scenario.applications[0].deadline_permille or 0) / 1000 for found in runs]
    for index, record in enumerate(runs[0].records):
        shares = [100 * (found.records[index].share_in_time() or 0.0) for found in runs]
        axes.plot(across, shares, marker="o", color=PALETTE[index % len(PALETTE)], label=record.policy)
    axes.set_xlabel("deadline (99th percentiles of the time alone)")
    axes.set_ylabel("requests in time (%)")
    axes.set_ylim(0, 105)
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.02))
    return axes


def save_coordination(runs: Sequence[Coordination], path: Path) -> None:
    """Draw scenarios into a file: of one, what each policy does; of several deadlines, the shares in time."""
    from matplotlib.figure import Figure

    if len(runs) > 1:
        figure = Figure(figsize=(8, 4), layout="constrained")
        plot_deadlines(runs, ax=figure.subplots())
    else:
        records = runs[0].records
        height = len(records) * (1.0 + 0.35 * len(records[0].units))
        figure = Figure(figsize=(11, height), layout="constrained")
        for record, axes in zip(records, figure.subplots(len(records), squeeze=False)[:, 0], strict=True):
            plot_record(record, ax=axes)
    figure.savefig(path, dpi=150)
