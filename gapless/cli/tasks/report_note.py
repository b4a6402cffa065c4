"""What `gapless report` says of the page that it wrote."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ...view.words import size
from .reporting import WrittenReport


def written_view(written: WrittenReport) -> RenderableType:
    """Return where the page is and what it shows."""
    head = Text(written.path, style="bold")
    head.append(f" ({size(written.size_bytes)}): open it in a browser; it needs no network", style="not bold")
    return Group(head, *(Text(f"  {title}: {deployment}") for title, deployment in written.subjects))
