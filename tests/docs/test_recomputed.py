"""Pages of recomputed papers have the numbers that their commands print.

Each page is compared, number by number, with what its commands printed, which is stored beside it; what is
computed in a moment and comes out alike every time is compared with what is printed now, too. The rest
(searches with a limit of time, what was measured) is made again by `python -m benchmarks.recomputed`.
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module

import pytest

from benchmarks.recomputed import COMMANDS, PAGES, STORED, page_of, plain, stored, written

OMITTED = ("Fig. 2, vgg16:", "Fig. 2, yolov2:", "Fig. 5, VGG16:", "Figs. 6 and 7: no executed plans")
"""Tables that are printed and not on the page: pictures show them, or another output of the page does."""

OWN = {"Misprints that change no result:"}
"""Tables of pages that no command prints."""

PARTS = [
    ("band", ["--parts", "7,table1"]),
    ("bettertogether", []),
    ("hetero2pipe", ["--parts", "classes,2a,9,11,13,spaces"]),
    ("pico", ["--figures", "2,5,18"]),
]
"""What takes seconds."""


@pytest.mark.parametrize("page", PAGES)
def test_all_that_is_printed_is_on_the_page(page: str) -> None:
    text = page_of(page).read_text(encoding="utf-8")
    now, homeless = written(text, stored(page))
    assert now == text, f"python -m benchmarks.recomputed --pages {page}"
    assert [line for line in homeless if line[0] != "|" and not line.startswith(OMITTED)] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_number_is_on_the_page_that_was_not_printed(page: str) -> None:
    printed = Counter(map(plain, stored(page).splitlines()))
    title, shown = "", Counter[str]()
    for line in page_of(page).read_text(encoding="utf-8").splitlines():
        if plain(line) and not line.startswith("|"):
            title = plain(line)
        if (line.startswith("|") and title not in OWN) or line.startswith("* Paper:"):
            shown[plain(line)] += 1
    assert shown - printed == Counter()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), PARTS, ids=[name for name, _ in PARTS])
def test_what_is_stored_is_what_is_printed(
    name: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    module, *options = COMMANDS[name]
    if "--parts" in options:
        options = options[: options.index("--parts")]
    assert import_module(f"{module}.__main__").main([*options, *words]) == 0
    first, *lines = (line for line in capsys.readouterr().out.splitlines() if plain(line))
    assert "gapless" in first  # when and where it ran
    known = set(map(plain, (STORED / f"{name}.txt").read_text(encoding="utf-8").splitlines()))
    assert [line for line in lines if plain(line) not in known] == []
