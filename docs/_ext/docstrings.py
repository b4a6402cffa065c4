"""Docstrings as reStructuredText wants them."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_CODE = re.compile(r"``.*?``|`[^`\n]+`\w?")
"""Pieces of code, with the letter behind them as in "`Rule`s": to reStructuredText that is no end of code."""


def _apart(code: re.Match[str]) -> str:
    found = code[0]
    return found if found.endswith("`") else rf"{found[:-1]}\ {found[-1]}"


def _mend(*event: Any) -> None:
    lines: list[str] = event[-1]
    lines[:] = _CODE.sub(_apart, "\n".join(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Mend docstrings before they are parsed."""
    app.connect("autodoc-process-docstring", _mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
