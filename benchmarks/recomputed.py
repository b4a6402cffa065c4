"""The recomputed pages and what their commands print: `python -m benchmarks.recomputed [NAME ...]`.

    python -m benchmarks.recomputed bettertogether      # runs its command, stores the output, writes the page
    python -m benchmarks.recomputed --check band        # runs it, and shows what differs from what is stored
    python -m benchmarks.recomputed --pages             # runs nothing: writes what is stored into the pages

What a command printed is stored in `docs/formulations/recomputed`, and a test compares each page with it. A
search with a limit of time, and what is measured, comes out a little different each time, so this is how
numbers of such parts get on a page: from one run, whole, with its date. Sentences around the tables are
written by hand.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

FORMULATIONS = Path(__file__).parent.parent / "docs" / "formulations"
STORED = FORMULATIONS / "recomputed"

COMMANDS = {
    "band": (
        *("benchmarks.band", "--simulated", "10", "--runs", "3", "--seconds", "2"),
        *("--parts", "4,6,7,14,15,16,17,18,19,table1,table2"),
    ),
    "band-families": ("benchmarks.band", "--parts", "families"),
    "band-beyond": (
        *("benchmarks.band", "--simulated", "10", "--runs", "3"),
        *("--parts", "sessions,workers,mapping,support,sweep,crowds"),
    ),
    "bettertogether": ("benchmarks.bettertogether",),
    "hetero2pipe": ("benchmarks.hetero2pipe", "--parts", "classes,2a,policies,9,10,11,12,13,spaces"),
    "hetero2pipe-limited": (
        *("benchmarks.hetero2pipe", "--parts", "7,8,exact", "--limit", "0.5", "--pictures", "docs/images"),
    ),
    "hetero2pipe-returning": (
        *("benchmarks.hetero2pipe", "--parts", "returning,hops", "--count", "14", "--limit", "0.5"),
        *("--pictures", "docs/images"),
    ),
    "hetero2pipe-steps": ("benchmarks.hetero2pipe", "--parts", "steps"),
    "hetero2pipe-pipe-it": ("benchmarks.hetero2pipe", "--parts", "pipe-it"),
    "passage": ("benchmarks.passage", "--tables", "gain", "--only", "pixel7a,oneplus11,jetson"),
    "passage-exact": ("benchmarks.passage", "--tables", "exact", "--exact-limits", "10"),
    "passage-phones": (
        *("benchmarks.passage", "--tables", "gain"),
        *("--only", "kirin990,snapdragon778g,snapdragon870"),
    ),
    "pico": ("benchmarks.pico",),
}
"""What prints the numbers of the pages, by the name of its output."""

PAGES = {
    "band": ("band", "band-families", "band-beyond"),
    "bettertogether": ("bettertogether", "bettertogether-executed"),
    "hetero2pipe": (
        "hetero2pipe",
        "hetero2pipe-limited",
        "hetero2pipe-returning",
        "hetero2pipe-steps",
        "hetero2pipe-pipe-it",
        "hetero2pipe-here",
    ),
    "passage": ("passage", "passage-phones", "passage-exact", "passage-here"),
    "pico": ("pico",),
}
"""The outputs of each page. One without a command was measured on a machine of then, and the page says so."""


def page_of(name: str) -> Path:
    """Return the page of a paper, or of a question."""
    return FORMULATIONS / f"{name}-recomputed.md"


def stored(page: str) -> str:
    """Return all that the commands of a page printed."""
    return "\n".join((STORED / f"{name}.txt").read_text(encoding="utf-8") for name in PAGES[page])


def plain(line: str) -> str:
    """Return a line of a page or an output without what only lays it out."""
    line = re.sub(r"^[> ]+", "", line.strip())
    return "" if re.fullmatch(r"[|:\s-]+", line) else " ".join(line.replace("|", " | ").split())


def _key(line: str) -> str:
    """Return what does not change with the numbers: a title, or what the paper says."""
    return re.sub(r"[\d.,]+", "#", plain(line).partition(" Here: ")[0])


def written(page: str, output: str) -> tuple[str, list[str]]:
    """Return a page with the lines of an output in it, and the lines that have no place in it."""
    lines, homeless = page.splitlines(), []
    free = {place: _key(line) for place, line in enumerate(lines) if line.strip()}
    for first, *rows in _parts(output):
        place = next((place for place, key in free.items() if key == _key(first)), None)
        if place is None:
            homeless += [first, *rows]
            continue
        del free[place]
        lead = re.match(r"[> ]*", lines[place])
        lines[place] = (lead[0] if lead and rows == [] else "") + first
        if rows:
            begin = next(at for at in range(place + 1, len(lines)) if lines[at].lstrip().startswith("|"))
            end = next((at for at in range(begin, len(lines)) if not lines[at].startswith("|")), len(lines))
            lines[begin] = "\n".join(rows)
            for at in range(begin + 1, end):
                lines[at] = "\0"
    return "\n".join(line for line in lines if line != "\0") + "\n", homeless


def _parts(output: str) -> Iterator[list[str]]:
    """Yield titles with the rows of their tables, and other lines by themselves."""
    lines = [line for line in output.splitlines() if line.strip()]
    for place, line in enumerate(lines):
        if line.startswith("|"):
            continue
        rows = []
        for row in lines[place + 1 :]:
            if not row.startswith("|"):
                break
            rows.append(row)
        yield [line, *rows]


def _printed(name: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *COMMANDS[name]], stdout=subprocess.PIPE, text=True, check=True
    )
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Store and write what is asked for; 1: the check found differences."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recomputed", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*", default=list(COMMANDS), help=f"some of {', '.join(COMMANDS)}")
    parser.add_argument("--check", action="store_true", help="only say what differs from what is stored")
    parser.add_argument("--pages", action="store_true", help="write what is stored; run nothing")
    asked = parser.parse_args(arguments)
    code = 0
    for name in asked.names:
        if not asked.pages:
            now = _printed(name)
            if asked.check:
                before = (STORED / f"{name}.txt").read_text(encoding="utf-8")
                lines = list(unified_diff(before.splitlines(), now.splitlines(), "stored", "now", n=0))
                print("\n".join(lines))
                code |= len(lines) > 5  # the first line of an output says when it ran
                continue
            (STORED / f"{name}.txt").write_text(now, encoding="utf-8")
        page = next(page for page, names in PAGES.items() if name in names)
        text, homeless = written(page_of(page).read_text(encoding="utf-8"), stored(page))
        page_of(page).write_text(text, encoding="utf-8")
        print(f"{page}: written", *(f"  has no place on the page: {line}" for line in homeless), sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
