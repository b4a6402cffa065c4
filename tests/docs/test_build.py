"""The documentation builds without a warning, hangs together, and asks nothing of the network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import jsonschema
import pytest

import gapless
from gapless.files.formats import FORMATS

from ..documents import DOCS, ROOT

LOADING = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
"""Attributes that a browser follows without being asked."""

NO_LOAD = {"canonical", "index", "search", "next", "prev", "author", "copyright", "contents"}
"""Relations of `link` that a browser does not follow by itself."""


class Page(HTMLParser):
    """What matters of one built page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADING and not (tag == "link" and given.get("rel") in NO_LOAD):
            self.loads.append(given.get(LOADING[tag], ""))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs")
    # A fifth faster: no garbage is collected, and tables of contents have no line for each name.
    sphinx = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", sphinx, "-W", "--keep-going", "-q", "-D", "toc_object_entries=0"]
    run = subprocess.run(
        [*command, "-b", "html", "-d", str(out / "doctrees"), str(DOCS), str(out / "html")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    return out / "html"


@pytest.fixture(scope="session")
def pages(built: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(built.rglob("*.html"))}


def inside(page: Page, link: str) -> tuple[Path, str] | None:
    """Return file and anchor that a link of a page leads to, or None when it leads elsewhere."""
    if re.match(r"[a-z]+:", link):
        return None
    path, _, anchor = link.partition("#")
    target = (page.path.parent / unquote(path)).resolve() if path else page.path
    return target, unquote(anchor)


@pytest.mark.slow
def test_links_and_anchors_are_there(pages: dict[Path, Page]) -> None:
    broken = []
    for page in pages.values():
        for link in page.links:
            found = inside(page, link)
            if found is None:
                assert link.startswith(("https://", "mailto:")), link
                continue
            target, anchor = found
            known = pages[target].names if target in pages else set()
            if not target.is_file() or (anchor and anchor not in known):
                broken.append((page.path.name, link))
    assert broken == []


@pytest.mark.slow
def test_every_page_can_be_reached(built: Path, pages: dict[Path, Page]) -> None:
    waiting, seen = [built / "index.html"], set()
    while waiting:
        path = waiting.pop()
        if path in pages and path not in seen:
            seen.add(path)
            waiting += [found[0] for link in pages[path].links if (found := inside(pages[path], link))]
    unreached = {path.relative_to(built).as_posix() for path in set(pages) - seen}
    assert unreached <= {"genindex.html", "search.html", "py-modindex.html"}
    written = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {built / page for page in written} <= seen


def outside(text: str) -> Iterator[str]:
    """Yield what a style sheet loads from elsewhere."""
    yield from re.findall(r"(?:url\(|@import )[\"' ]*((?:https?:)?//[^\"') ]+)", text)


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(built: Path, pages: dict[Path, Page]) -> None:
    for page in pages.values():
        for source in page.loads:
            target = inside(page, source.partition("?")[0])
            assert target is not None, f"{page.path.name} loads {source}"
            assert target[0].is_file(), f"{page.path.name} loads {source}, which is not there"
    for sheet in built.rglob("*.css"):
        assert list(outside(sheet.read_text(encoding="utf-8"))) == [], sheet.name


@pytest.mark.slow
def test_equations_are_equations(built: Path) -> None:
    for page in (built / "formulations").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        body = re.sub(r"<(pre|code|math).*?</\1>", "", text, flags=re.DOTALL)
        assert not re.search(r"\\(frac|sum|text|begin|le|ge|min|max)\b", body), page.name
        assert "$" not in re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL), page.name


@pytest.mark.slow
def test_the_schemas_lie_beside_the_pages(built: Path) -> None:
    for entry in FORMATS:
        schema = json.loads((built / "_static" / "schemas" / f"{entry.name}.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(built: Path, pages: dict[Path, Page]) -> None:
    reference = built / "reference"
    names = pages[reference / "python.html"].names
    modules = {name for name in dir(gapless) if isinstance(getattr(gapless, name), ModuleType)}
    assert [name for name in dir(gapless) if name not in modules and f"gapless.{name}" not in names] == []
    for module in modules:
        own = pages[reference / "python" / f"{module}.html"].names
        missing = [name for name in getattr(gapless, module).__all__ if f"gapless.{module}.{name}" not in own]
        # what rules are made of is in the modules where it is from
        assert set(missing) <= ({"OpaqueRule", "PlanView"} if module == "rules" else set())


@pytest.mark.slow
def test_every_command_is_in_the_reference(built: Path, pages: dict[Path, Page]) -> None:
    from gapless.cli.main import every_command

    names = pages[built / "reference" / "commands.html"].names
    assert [name for name in every_command() if f"gapless-{name.replace(' ', '-')}" not in names] == []
