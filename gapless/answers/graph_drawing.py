"""A graph of layers as a drawing: layers in columns by depth, coloured by who runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_DRAWN = 800
"""Layers of a graph that is drawn; more would be a blur."""

COLUMN, ROW, MARGIN = 26, 22, 14
"""Units of the drawing between layers of one row, between those of one column, and around all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A layer: where it lies, which of the legend it is, and what it says."""

    x: int
    y: int
    part: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDrawing:
    """A drawing.

    `width`, `height`: its size.
    """

    width: int
    height: int
    dots: tuple[Dot, ...]  # the layers
    lines: tuple[tuple[int, int, int, int, bool], ...]
    """(x1, y1, x2, y2, whether it crosses from one part to another) of each edge."""
    legend: tuple[str, ...]  # what each part is
    words: str  # what it shows, in words


def drawn_graph(
    titles: Sequence[str],
    edges: Sequence[tuple[int, int]],
    parts: Sequence[int],
    legend: Sequence[str],
    words: str,
) -> GraphDrawing:
    """Return the drawing of a graph whose nodes stand in a topological order.

    `edges`: (source, target), source < target.
    """
    depth = [0] * len(titles)
    for source, target in sorted(edges):
        depth[target] = max(depth[target], depth[source] + 1)
    filled: dict[int, int] = {}
    places = []
    for column in depth:
        row = filled.get(column, 0)
        filled[column] = row + 1
        places.append((MARGIN + COLUMN * column, MARGIN + ROW * row))
    return GraphDrawing(
        width=2 * MARGIN + COLUMN * max(depth, default=0),
        height=2 * MARGIN + ROW * (max(filled.values(), default=1) - 1),
        dots=tuple(
            Dot(x=x, y=y, part=part, title=title)
            for (x, y), part, title in zip(places, parts, titles, strict=True)
        ),
        lines=tuple(
            (*places[source], *places[target], parts[source] != parts[target]) for source, target in edges
        ),
        legend=tuple(legend),
        words=words,
    )
