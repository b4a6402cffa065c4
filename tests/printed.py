"""Whether a page shows what its commands print.

What is computed from shipped numbers is compared line by line, numbers included; `...` stands for lines, or
for the rest of a line, that the page omits. What is measured here differs from run to run: there each line of
the page is compared with the lines of the output in any order, numbers count by kind only (a time, a size, a
share, any other number), and who wins does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

_KINDS = (
    (re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)? (ns|us|ms|s)\b"), "<time>"),
    (re.compile(r"[+-]?\d[\d,]*(\.\d+)? (B|KiB|MiB|GiB)(?!\w)"), "<size>"),
    (re.compile(r"[+-]?\d[\d,]*(\.\d+)? ?%"), "<share>"),
    (re.compile(r"[+-]?\d[\d,]*(\.\d+)*(e[+-]?\d+)?"), "<number>"),
    (re.compile(r"\b(wins a tie|wins|ties|slower|tie)\b"), "<outcome>"),
)
_CLOCK = re.compile(r"(?<=, )[\d.]+ m?s(?=\])|(?<=plan_id )\w+")
"""What differs from run to run, or from version to version, in the output of any command."""

_GAP = "..."
_ALIKE = 0.5


@dataclass(frozen=True, slots=True)
class Output:
    """What one command, or one block of Python, printed; whether it measured this machine."""

    text: str
    measured: bool

    @property
    def lines(self) -> list[str]:
        """The lines that are not blank."""
        return [line.rstrip() for line in self.text.splitlines() if line.strip()]


def masked(line: str) -> str:
    """Return a line with its numbers by kind, and blanks and bars of any length."""
    for pattern, kind in _KINDS:
        line = pattern.sub(kind, line)
    return _words(line)


def _words(line: str) -> str:
    return " ".join(re.sub(r"([#=─-])\1+|\.{4,}", r"\1", line).split())


def _shown(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _same(shown: str, printed: str) -> bool:
    if shown.endswith(f" {_GAP}"):
        return printed.startswith(shown.removesuffix(f" {_GAP}"))
    return shown == printed


def missing(text: str, output: Output) -> list[str]:
    """Return the lines that are shown and not printed; none: the page shows what is printed."""
    if output.measured:
        known = [masked(line) for line in output.lines]
        wanted = [line for line in _shown(text) if line != _GAP]
        return [line for line in wanted if not any(_same(masked(line), one) for one in known)]
    printed, place, lost, free = [line.strip() for line in output.lines], 0, [], True
    for line in _shown(text):
        if line == _GAP:
            free = True
            continue
        places = range(place, len(printed) if free else min(place + 1, len(printed)))
        found = next((at for at in places if _same(_spaced(line), _spaced(printed[at]))), None)
        if found is None:
            lost.append(line)
        place, free = (place if found is None else found + 1), found is None
    return lost


def _spaced(line: str) -> str:
    return " ".join(_CLOCK.sub("<clock>", line).split())


def rewritten(text: str, output: Output) -> str:
    """Return a block as its command prints it now: each line by the one that is most like it.

    A block that omits nothing has all lines from its first to its last one.
    """
    lines = output.lines
    by_mask: dict[str, list[str]] = {}
    for line in lines:
        by_mask.setdefault(masked(line), []).append(line)
    chosen = list(_replaced(text.splitlines(), by_mask))
    omits = any(line.strip() == _GAP or line.rstrip().endswith(f" {_GAP}") for line in chosen)
    if not output.measured and not omits:
        whole = [line.rstrip() for line in output.text.splitlines()]
        at = [whole.index(line) for line in chosen if line in whole]
        chosen = whole[min(at) : max(at) + 1] if at else chosen
    indent = min(
        (len(line) - len(line.lstrip()) for line in chosen if line.strip() != _GAP and line), default=0
    )
    kept = min((len(line) - len(line.lstrip()) for line in text.splitlines() if line.strip()), default=0)
    moved = (line if line.strip() == _GAP else " " * kept + line[indent:] for line in chosen)
    return "".join(f"{line.rstrip()}\n" for line in moved)


def _replaced(shown: Sequence[str], by_mask: dict[str, list[str]]) -> Iterator[str]:
    for line in shown:
        if not line.strip() or line.strip() == _GAP or line.rstrip().endswith(f" {_GAP}"):
            yield line
            continue
        near = get_close_matches(masked(line), list(by_mask), n=1, cutoff=_ALIKE)
        if near:
            found = by_mask[near[0]]
            yield found.pop(0) if len(found) > 1 else found[0]
        else:
            yield line
