"""What all pictures share: colours, hatching, new figures, legends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from ...formulations.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Given = ParamSpec("Given")

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
"""Colours of Okabe and Ito, which colour-blind people can tell apart."""

BLUE, ORANGE, GREEN = PALETTE[:3]

DARK = frozenset({"#0072B2", "#009E73", "#D55E00"})
"""Colours on which text is white."""

Look = Mapping[str, Any]
"""Properties of a patch, as matplotlib names them."""

# Hatching says the same as every grey, for printers and for colour-blind people.
IDLE: Look = {"facecolor": "#eeeeee", "edgecolor": "#b0b0b0", "hatch": "///", "linewidth": 0}
"""A bubble."""

LOST: Look = {"facecolor": "none", "edgecolor": "black", "hatch": "xxx", "linewidth": 0}
"""Time that a chunk lost to its neighbours; drawn over its colour."""

_DECADES = 1000
"""Ratio from which a logarithmic axis has enough ticks with the powers of ten alone."""

_CHARACTER_INCHES = 0.085
"""Width of a character of 9 points."""


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return where to draw: the given axes, or those of a new figure of (width, height) inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise InvalidInputError(
            f"pictures need {error.name}, which is not installed; "
            "install it with: pip install 'gapless[plots]'"
        ) from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def with_plain_names(draw: Callable[Given, Axes]) -> Callable[Given, Axes]:
    """Return a function that draws the same, where a dollar in a name begins no formula."""

    @wraps(draw)
    def drawn(*args: Given.args, **kwargs: Given.kwargs) -> Axes:
        axes = draw(*args, **kwargs)
        from matplotlib.text import Text  # there by now

        for text in axes.findobj(Text):
            assert isinstance(text, Text)
            text.set_parse_math("$" not in text.get_text())
        return axes

    return drawn


def legend(axes: Axes, entries: Sequence[tuple[str, Look]]) -> None:
    """Draw a legend of (label, look) on the right of the axes, so that it covers nothing."""
    from matplotlib.patches import Patch

    if entries:
        handles = [Patch(label=label, **look) for label, look in entries]
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9)


def rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a horizontal chart, the first one on top."""
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.4, -0.6)


def plain_decades(axis: Axis, low: float, high: float) -> None:
    """Write the ticks of a logarithmic axis from low to high as 0.1, 1, 10; in between where that is few."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1,) if high >= _DECADES * low else (1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def room(axes: Axes, share: float) -> int:
    """Return how many characters of 9 points a share of the width of the axes has room for."""
    inches = axes.get_window_extent().width / axes.figure.dpi
    return int(share * inches / _CHARACTER_INCHES)


def short(text: str, most: int) -> str:
    """Return a text in one line of at most a given number of characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
