"""Which commands there are: in which module, under which heading.

`gapless --help` shows the commands in this order, and groups of the rest. A module is loaded when one of its
commands is asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

GROUP, OTHER = "More, by subject", "Other"

PANELS = {
    "Plan": {
        "plan": "planning",
        "compare": "planning",
        "simulate": "planning",
        "explain": "explaining",
        "sweep": "sweeping",
    },
    "On this machine": {
        "tune": "tuning",
        "profile": "running",
        "run": "running",
        "serve": "serving",
        "export": "exporting",
        "doctor": "about",
    },
    "Look": {
        "report": "reporting",
        "show": "showing",
    },
    GROUP: {
        "device detect": "about",
        "device describe": "estimates",
        "device bench": "models",
        "device links": "links",
        "costs predict": "estimates",
        "costs learn": "estimates",
        "costs judge": "prediction",
        "costs interference": "co_runs",
        "costs contention": "co_runs",
        "list problems": "lists",
        "list networks": "lists",
        "list policies": "lists",
        "list files": "lists",
        "list runs": "lists",
        "requests coordinate": "coordinating",
        "requests stream": "streams",
        "tools check": "planning",
        "tools inspect": "models",
        "tools trace": "running",
        "tools import": "tools",
        "tools schema": "tools",
        "tools cache": "models",
        "tools completion": "completion",
        "tools version": "tools",
    },
}
"""The module of `cli.commands` that registers a command, by its heading; in the order of `gapless --help`."""

COMMANDS = {name: module for commands in PANELS.values() for name, module in commands.items()}

GROUPS = {
    "device": "This device and its links: find units, measure engines, describe it for predictions.",
    "costs": "Costs that are predicted or learned, and how units slow each other down.",
    "list": "What is there: shipped problems, built-in networks, policies, kinds of files, runs.",
    "requests": "Requests as they come, and networks one after the other.",
    "tools": "Check plans, look into models, file formats, import, caches, completion.",
}
"""Groups of commands: "device bench" is a command of the group "device"."""

RENAMED = {
    "bench-engine": ("device bench",),
    "cache": ("tools cache",),
    "check": ("tools check",),
    "completion": ("tools completion",),
    "contention": ("costs contention",),
    "coordinate": ("requests coordinate",),
    "describe-device": ("device describe",),
    "import": ("tools import",),
    "inspect": ("tools inspect",),
    "interference": ("costs interference",),
    "learn-costs": ("costs learn",),
    "links": ("device links",),
    "networks": ("list networks",),
    "platforms": ("list problems", "device detect"),
    "predict": ("costs judge",),
    "predict-costs": ("costs predict",),
    "runs": ("list runs",),
    "schema": ("tools schema",),
    "stream": ("requests stream",),
    "trace": ("tools trace",),
    "version": ("tools version",),
}
"""What commands were called before there were groups, and are called now."""

SYNONYMS = {
    "bench": "device bench",
    "benchmark": "device bench",
    "devices": "device detect",
    "draw": "report",
    "execute": "run",
    "html": "report",
    "history": "list runs",
    "measure": "profile",
    "models": "list networks",
    "optimise": "tune",
    "optimize": "tune",
    "problems": "list problems",
    "schedule": "plan",
    "score": "tools check",
    "solve": "plan",
    "validate": "tools check",
    "view": "show",
    "why": "explain",
}
"""What people try first, and the command that does it."""


def called(words: Sequence[str]) -> str:
    """Return the command that words name, "plan" or "device bench"; or a group, or what is no command."""
    names = [word for word in words if not word.startswith("-")]
    return " ".join(names[: 2 if names[:1] and names[0] in GROUPS else 1])


def command_name(function: str) -> str:
    """Return the name of the command that a function is: `device_bench` is "device bench"."""
    words = function.rstrip("_").replace("_", "-")
    group, dash, rest = words.partition("-")
    return f"{group} {rest}" if dash and group in GROUPS else words


def panel(name: str) -> str | None:
    """Return the heading of a command in `gapless --help`; None: it stands in its group."""
    return None if " " in name else next((title for title, own in PANELS.items() if name in own), OTHER)


def load(names: Sequence[str] = ()) -> None:
    """Load the modules of some commands; of all without names."""
    modules = dict.fromkeys(module for name, module in COMMANDS.items() if not names or name in names)
    for module in modules:
        import_module(f"..commands.{module}", __package__)


def summary(name: str) -> str:
    """Return what a command does, from its docstring, without loading its module; empty if it has none."""
    path = Path(__file__).parents[1] / "commands" / f"{COMMANDS[name]}.py"
    if not path.is_file():
        return ""
    for node in _parsed(path).body:
        if isinstance(node, ast.FunctionDef) and command_name(node.name) == name:
            return (ast.get_docstring(node) or "").split("\n")[0]
    return ""


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
