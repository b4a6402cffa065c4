"""Valid JSON files of every kind, written by the commands that users have, and damage to them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from random import Random
from typing import Any

from gapless.cli.main import main
from gapless.profiler.clusters import catalog as clusters
from gapless.profiler.platforms import catalog

from .damage import BYTE_DAMAGE, STRANGE_NUMBERS, STRANGE_TEXTS, Damage

_NAME = "pixel7a/alexnet-sparse"
_SIMULATED = ("--engine", "simulated", "--costs", "isolated", "--top", "2", "--rounds", "2", "--budget", "1s")
_DEEPEST = 3000


def valid_documents(folder: Path) -> Mapping[str, bytes]:
    """Return valid files by name; they are made in a folder."""
    words = {
        "plan.json": ["plan", _NAME, "--out"],
        "platform.json": ["device", "detect", "--out"],
        "comparison.json": ["compare", _NAME, "--backends", "native,exhaustive", "--out"],
        "interference.json": ["costs", "interference", "pixel7a", "--out"],
        "workload.json": ["show", "--workload", "yolov4,bert", "--platform", "kirin990", "--out"],
        "trace.json": ["tools", "trace", _NAME, str(folder / "plan.json"), "--simulated", "--out"],
        "run": ["tune", _NAME, *_SIMULATED, "--out"],
    }
    for name, command in words.items():
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            if main([*command, str(folder / name)]):
                raise RuntimeError(f"{' '.join(command)} failed: {said.getvalue()}")
    made = sorted([*folder.glob("*.json"), *(folder / "run").glob("*.json")])
    data = [Path(catalog.__file__).parent, Path(clusters.__file__).parent]
    files = (path for place in data for path in place.rglob("*.json"))
    shipped = sorted(files, key=lambda path: (path.stat().st_size, str(path)))
    kinds: dict[str, Path] = {}
    for path in shipped:
        kinds.setdefault(json.loads(path.read_bytes()).get("format", "?"), path)
    return {
        **{str(path.relative_to(folder)): path.read_bytes() for path in made},
        **{path.name: path.read_bytes() for path in kinds.values()},
    }


class _Twice(dict[str, Any]):
    """An object that is written with one of its keys twice."""

    def items(self) -> Any:
        """Return the pairs, the first of them once more at the end."""
        pairs = list(super().items())
        return [*pairs, *pairs[:1]]


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything in a tree."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        inside = list(holder.items() if isinstance(holder, dict) else enumerate(holder))
        found += [(holder, key) for key, _ in inside]
        waiting += [item for _, item in inside if isinstance(item, dict | list)]
    return found


def edit_tree(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change some places of a document: other values and types, missing, repeated and moved parts."""
    tree = json.loads(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        places = _places(tree)
        if not places:
            break
        holder, key = random.choice(places)
        choice = random.randrange(8)
        if choice == 0:
            del holder[key]
        elif choice == 1 and isinstance(holder, dict):
            holder[random.choice(STRANGE_TEXTS)] = holder.pop(key)
        elif choice == 2 and isinstance(holder, list):
            holder[key:key] = [holder[key]] * random.choice((1, 2, 300))
        elif choice == 3 and isinstance(holder[key], dict):
            holder[key] = _Twice(holder[key])
        elif choice == 4:
            other, place = random.choice(places)
            holder[key] = json.loads(json.dumps(other[place]))
        elif choice == 5:
            spare, place = random.choice(_places(json.loads(random.choice(others))))
            holder[key] = spare[place]
        else:
            holder[key] = _strange(random, holder[key])
    text = json.dumps(tree, ensure_ascii=random.random() < 0.5)
    for mark, number in (('"@huge"', "9" * 400), ('"@digits"', "7" * 5000), ('"@overflow"', "1e999")):
        text = text.replace(mark, number)
    return text.replace('"@deep"', "[" * _DEEPEST + "]" * _DEEPEST).encode(errors="surrogatepass")


def _strange(random: Random, value: Any) -> Any:
    """Return something else than a value, often of the same type."""
    if isinstance(value, int) and not isinstance(value, bool) and random.random() < 0.6:
        return random.choice((*STRANGE_NUMBERS, value + 1, value - 1, -value, value * 1000))
    if isinstance(value, str) and random.random() < 0.6:
        return random.choice((*STRANGE_TEXTS, value + "\u202e", value.upper()))
    marks = ("@huge", "@digits", "@overflow", "@deep")
    plain: list[Any] = [
        None,
        True,
        False,
        0.5,
        -0.0,
        1e300,
        float("nan"),
        float("inf"),
        [],
        {},
        [[]],
        {"": {}},
    ]
    return random.choice([*plain, *STRANGE_NUMBERS, *STRANGE_TEXTS, *marks])


def recode(random: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Write a text in another encoding."""
    return data.decode().encode(random.choice(("utf-16", "utf-8-sig", "utf-32", "utf-7", "cp037")), "replace")


DOCUMENT_DAMAGE: tuple[Damage, ...] = (*BYTE_DAMAGE, recode, *(edit_tree,) * 16)
