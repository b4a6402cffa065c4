"""Tiles and pieces of a model for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import seconds, size
from ...api.pieces import OperatorSplit, PieceSummary
from ...formulations.spatial import Axis, SpatialNetwork
from ...solvers.pieces.finding import Pieces
from ..layout import indented, plain_table
from .models import MAX_ROWS_SHOWN


def split_view(network: str, found: Sequence[OperatorSplit], parts: int, axis: Axis) -> Group:
    """Return what `gapless tools inspect --split` shows."""
    side = axis.name.lower()
    stuck = [entry for entry in found if entry.obstacle]
    head = Text(network, style="bold")
    head.append(
        f": {len(found) - len(stuck)} of {len(found)} operators split in {parts} along {side}",
        style="not bold",
    )
    numbers = ("size", "tile MFLOP", "tile bytes", "read again", "fused", "computed again")
    table = plain_table("operator", "type", "window", *numbers, numbers=numbers)
    for entry in found[:MAX_ROWS_SHOWN]:
        table.add_row(
            entry.name,
            entry.op_type,
            "does not split" if entry.obstacle else _window(entry),
            f"{entry.size[0]} x {entry.size[1]}",
            f"{entry.tile_flops / 1e6:,.2f}",
            size(entry.tile_bytes),
            "-" if entry.obstacle else f"{100 * entry.reread:.1f} %",
            str(entry.fused) if entry.fused else "-",
            "-" if entry.obstacle else f"{100 * entry.redundancy:.1f} %",
        )
    words = (
        f"tile: the largest of {parts}; read again: by this operator alone; computed again: when it is fused "
        "with a given number of operators before it, back to inputs and to what does not split."
    )
    return Group(head, "", indented(table), *_more(len(found), "operators"), "", Text(words, style="dim"))


def _window(entry: OperatorSplit) -> str:
    if entry.stride is None:
        return "whole"
    words = f"{entry.extent}" + (f" by {entry.stride}" if entry.stride != 1 else "")
    return words + (f", enlarged {entry.up}" if entry.up != 1 else "")


def pieces_view(network: SpatialNetwork, found: Pieces, summaries: Sequence[PieceSummary]) -> Group:
    """Return what `gapless tools inspect --pieces` shows."""
    head = Text(network.name, style="bold")
    layers = sum(node.is_layer for node in network.nodes)
    head.append(
        f": {layers} convolutions and poolings ({len(network.operators)} operators) in {found.count} pieces "
        f"by method {found.method}, {seconds(found.seconds)}",
        style="not bold",
    )
    numbers = ("#", "operators", "layers", "MFLOP", "extra MFLOP", "halo")
    table = plain_table("#", "from", "to", *numbers[1:], "in tiles", numbers=numbers)
    for index, piece in enumerate(summaries[:MAX_ROWS_SHOWN]):
        table.add_row(
            str(index),
            piece.first,
            piece.last,
            str(piece.operators),
            str(piece.layers),
            f"{piece.flops / 1e6:,.2f}",
            f"{piece.extra_flops / 1e6:,.2f}",
            f"{piece.halo[0]} x {piece.halo[1]}",
            "yes" if piece.whole is None else f"no: {piece.whole}",
        )
    return Group(
        head,
        _proof(found),
        "",
        indented(table),
        *_more(len(summaries), "pieces"),
        "",
        Text(_WORDS, style="dim"),
    )


_WORDS = (
    "extra: what halos inside a piece add, for a tile as large as the map (PICO, cost C); halo: rows and "
    "columns that the largest one adds."
)


def _proof(found: Pieces) -> Text:
    words = (
        f"largest extra {found.largest / 1e6:,.3f} MFLOP, all together {sum(found.costs) / 1e6:,.3f} MFLOP"
    )
    if found.proven:
        return Text(f"{words}; proven: no chain is better", style="green")
    if found.bound == found.largest:
        return Text(
            f"{words}; no chain has a smaller largest one; number and sum are not proven", style="yellow"
        )
    return Text(f"{words}; not proven, at least {found.bound / 1e6:,.3f} MFLOP", style="yellow")


def _more(count: int, what: str) -> list[RenderableType]:
    hidden = count - MAX_ROWS_SHOWN
    return [Text(f"  ... and {hidden} more {what} (--json shows all)")] if hidden > 0 else []
