"""The README is short and leads on; what it left to other pages is there. `tests/docs` runs its blocks."""

from __future__ import annotations

import re

from gapless.executor.engines.registry import engine_names
from gapless.solvers.registry import backend_names

from .documents import DOCS, ROOT

README = (ROOT / "README.md").read_text()
MOST_WORDS = 900


def test_it_is_short() -> None:
    assert len(README.split()) < MOST_WORDS


def test_its_commands_are_those_of_the_makefile() -> None:
    """What it says `make demo` does is what the Makefile has."""
    makefile = re.sub(r"\$\(BIN\)/", "", (ROOT / "Makefile").read_text())
    shown = re.findall(r"^\$ (gapless .*)", README, re.MULTILINE)
    assert len(shown) == 2
    for command in shown:
        assert command in makefile
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_three_readers_find_their_pages() -> None:
    for reader in ("I have models and a board", "I compare planners", "I want to contribute"):
        assert f"**{reader}.**" in README
    for page in ("how-to/use-a-gpu.md", "how-to/run-three-models-on-one-board.md", "what-it-can-do.md"):
        assert f"](docs/{page})" in README


def test_every_backend_and_engine_is_named() -> None:
    text = (DOCS / "reference" / "backends-and-engines.md").read_text()
    for name in (*backend_names(), *engine_names()):
        assert f"`{name}`" in text


def test_every_how_to_page_is_in_a_group_of_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    for page in (DOCS / "how-to").glob("*.md"):
        assert index.count(f"how-to/{page.stem}\n") == 1, page
        assert index.count(f"(how-to/{page.name})") >= 1, page
