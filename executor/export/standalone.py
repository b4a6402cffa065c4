"""The runner of an exported folder as one file: its parts, put together without what names gapless."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

PARTS = ("sessions", "crews", "../comparing", "frames", "runner")
"""Modules, seen from this folder, lowest first; `run.py --help` shows the docstring of the last one."""


def runner_source() -> str:
    """Return the source of `run.py`."""
    modules = [_Part((Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")) for name in PARTS]
    guarded = dict.fromkeys(block for part in modules for block in part.guarded)
    head = [modules[-1].docstring, *_imports([node for part in modules for node in part.imports]), *guarded]
    bodies = [part.body.strip("\n") for part in modules]
    return "#!/usr/bin/env python3\n" + "\n\n".join(head) + "".join(f"\n\n\n{body}" for body in bodies) + "\n"


class _Part:
    """One module, taken apart."""

    def __init__(self, source: str) -> None:
        lines = source.splitlines()
        docstring, *nodes = ast.parse(source).body
        self.docstring = _text(lines, docstring)
        self.imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        guards = [node for node in nodes if _is_guard(node)]
        self.guarded = [_text(lines, node) for node in guards]
        last = max(node.end_lineno or 0 for node in (*self.imports, *guards))
        self.body = "\n".join(lines[last:])


def _imports(nodes: Sequence[ast.Import | ast.ImportFrom]) -> list[str]:
    """Return blocks of imports: the future, the standard library, numpy; each module once."""
    plain = {ast.unparse(node) for node in nodes if isinstance(node, ast.Import)}
    names: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.setdefault(node.module, set()).update(alias.name for alias in node.names)
    future = f"from __future__ import {', '.join(names.pop('__future__'))}"
    numpy = {line for line in plain if "numpy" in line}
    found = [f"from {module} import {', '.join(sorted(own))}" for module, own in sorted(names.items())]
    return [future, "\n".join([*sorted(plain - numpy), *found]), *numpy]


def _is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _text(lines: list[str], node: ast.stmt) -> str:
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])
