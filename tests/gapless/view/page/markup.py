"""What tests look for in a page: balanced tags, places and references, texts, scripts."""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser
from typing import TypeVar

from gapless.answers.blocks import Block, Section, Table

BlockT = TypeVar("BlockT", bound=Block)


def texts(given: Table) -> list[list[str]]:
    """Return the texts of the cells of a table."""
    return [[c.text(cell) for c, cell in zip(given.columns, row.cells, strict=True)] for row in given.rows]


def column(given: Table, title: str) -> list[str]:
    """Return the texts of one column."""
    index = [one.title for one in given.columns].index(title)
    return [row[index] for row in texts(given)]


def among(blocks: Iterable[Block], kind: type[BlockT]) -> list[BlockT]:
    """Return the blocks of one kind, in sections, too."""
    found: list[BlockT] = []
    for block in blocks:
        found += [block] if isinstance(block, kind) else []
        found += among(block.blocks, kind) if isinstance(block, Section) else []
    return found


_VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}

_LOADS = {"src", "srcset", "data", "action", "poster", "formaction", "background"}


class Markup(HTMLParser):
    """A page, read strictly.

    Attributes
    ----------
    errors
        Tags that are not balanced, places that are named twice.
    ids, references
        Names of places, and names that something refers to.
    loads
        Attributes that make a browser load something.
    headings
        Levels, in order.
    counts
        How often each tag occurs.
    text
        All text outside scripts and styles.
    scripts
        Contents of scripts by their type.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.errors: list[str] = []
        self.ids: list[str] = []
        self.references: set[str] = set()
        self.loads: list[str] = []
        self.headings: list[int] = []
        self.counts: dict[str, int] = {}
        self.scripts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self._type = ""
        self.feed(page)
        self.close()
        self.errors += [f"<{tag}> is not closed" for tag in self._open]

    @property
    def text(self) -> str:
        """All text outside scripts and styles."""
        return " ".join("".join(self._texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag that opens."""
        self._note(tag, attrs)
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember a tag that closes itself."""
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close the last tag, which must be of this kind."""
        if not self._open or self._open[-1] != tag:
            self.errors.append(f"</{tag}> at {self.getpos()} closes {self._open[-3:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        inside = self._open[-1] if self._open else ""
        if inside == "script":
            self.scripts.append((self._type, data))
        elif inside != "style":
            self._texts.append(data)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.errors.append(f"<{tag}> at {self.getpos()} has an attribute twice")
        found = {name: value or "" for name, value in attrs}
        if tag == "script":
            self._type = found.get("type", "")
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append(int(tag[1]))
        if "id" in found:
            if found["id"] in self.ids:
                self.errors.append(f"two places are called {found['id']}")
            self.ids.append(found["id"])
        for name, value in found.items():
            if name in ("aria-labelledby", "aria-describedby", "data-timeline", "data-marks", "data-table"):
                self.references.update(value.split())
            elif name in ("href", "xlink:href") and value.startswith("#"):
                self.references.add(value[1:])
            elif name in _LOADS or name in ("href", "xlink:href") or name.startswith("on"):
                self.loads.append(f"{tag} {name}={value}")
