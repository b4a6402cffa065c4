"""The blocks of code of a page of Markdown, and how they are run.

`python -m tests.documents PAGE ...` runs every block of a page in order, in a folder of its own: console
blocks command by command, Python blocks in one namespace. Each page has a process, so that no page lives on
what another one has left behind; `--serve FOLDER` does that for the tests, and keeps in the folder what
several pages measure alike.

A block that cannot run everywhere has `<!-- not run: REASON -->` on the line before it. A command whose
exit code is not 0 says so in its comment: `$ gapless plan ...  # exit code 3`.
A command that takes minutes as it is shown may be run with further options, so that it takes seconds:
`<!-- tested with: gapless tune --budget 2s -->` on the line before the block adds them to its `gapless tune`.
Only options that say how long it may take can be added: what is shown is what is tested. Profiles and races
have fewer repetitions than those of users (`shortened.py`).

What a block of `text` shows, and what stands below the commands of a console block, is what a command before
it printed (`printed.py` says how that is compared). A text that no command of the page prints has
`<!-- not run: REASON -->`, too. `COLUMNS=110 python -m tests.documents --rewrite PAGE ...` writes what is
printed now into the pages.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from shutil import copytree
from tempfile import TemporaryDirectory

from gapless import api
from gapless.api.device import this_device
from gapless.cli import tasks
from gapless.cli.base.catalog import called
from gapless.cli.main import commands, main
from gapless.formulations.errors import EngineUnavailableError

from .printed import Output, missing, rewritten
from .shortened import load_for_children, shorten, wait_for_no_disk

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

PAGES = (ROOT / "README.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md")))
"""All pages that users read."""

RUN = ("python", "console")
"""Languages whose blocks are run."""

SHOWN = ("text", "sh", "json", "toml", "ini")
"""Languages whose blocks are only shown; `sh` for what installs, copies and needs another machine."""

REASONS = {
    "it needs a board",
    "it needs the network",
    "it depends on the machine",
    "it needs the permission for quotas",
    "it shows a mistake",
    "it takes minutes",
}
"""Why a block may be left out."""

HOW_LONG = {"--budget", "--seconds", "--time-limit"}
"""Options that a command may be tested with and not be shown with."""

MEASURING = (
    "costs contention", "costs interference", "device bench", "device links", "doctor", "profile", "run",
    "tune",
)  # fmt: skip
"""Commands of gapless that measure this machine."""

BRIEF = {"run": ("--seconds", "300ms")}
"""What commands that measure are told last: a page says what they do, not for how long."""

SAME_PROFILE = "gapless profile squeezenet --units core0,core1 --engine mnn --out profile"
"""What several pages begin with: of the pages that one process runs, the first one measures, and the others
find what it has measured."""

PRELUDES = {
    "judge-your-heuristic.md": {"longest_first.py": (DOCS / "examples" / "longest_first.py").read_text()},
    "write-a-backend.md": {"shares_backend.py": (DOCS / "examples" / "shares_backend.py").read_text()},
    "write-a-policy.md": {"patient.py": (DOCS / "examples" / "patient.py").read_text()},
}
"""Files that a page takes for granted."""

_BLOCK = re.compile(
    r"(?:^ *<!-- (?:not run: (?P<reason>.*?)|tested with: (?P<options>.*?)) -->\n)?"
    r"^(?P<indent> *)(?P<fence>```+|~~~+|:::+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
_EXPECTED = re.compile(r"^(?!\s*#).*print\(.*\) +# (.*)$", re.MULTILINE)
_EXIT_CODE = re.compile(r"# exit code (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block.

    Attributes
    ----------
    language
        What stands behind the fence.
    text, source
        What is in it, without and with its indentation.
    line
        Where it begins, from 1.
    reason
        Why it is not run; empty: it is.
    options
        Command, and what is added to it when it is run here, such as `gapless tune --budget 2s`; or empty.
    """

    language: str
    text: str
    source: str
    line: int
    reason: str
    options: str

    @property
    def commands(self) -> list[str]:
        """The commands of a console block; what stands below them is what they print."""
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]

    @property
    def measures(self) -> bool:
        """Whether this machine is measured when the block is run."""
        return self.language in RUN and not self.reason and any(map(measures, self.commands))

    @property
    def printed(self) -> str:
        """What the block says that commands print; or nothing."""
        if self.reason or self.language not in {"text", "console"}:
            return ""
        lines = self.source.splitlines(keepends=True)
        return "".join(line for line in lines if not line.lstrip().startswith("$ "))

    def tested(self, command: str) -> list[str]:
        """Return the words of a command as it is run here."""
        words, more = shlex.split(command, comments=True), shlex.split(self.options)
        return [*words, *more[2:]] if more and words[:2] == more[:2] else words

    @property
    def expected(self) -> list[str]:
        """What `print(...)  # this` says that it prints."""
        return _EXPECTED.findall(self.text)


def measures(command: str) -> bool:
    """Return whether a command measures this machine."""
    return called(command.split()[1:]) in MEASURING and "--engine simulated" not in command


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            language=found["language"].strip(),
            text=textwrap.dedent(found["text"]),
            source=found["text"],
            line=text.count("\n", 0, found.start("fence")) + 1,
            reason=found["reason"] or "",
            options=found["options"] or "",
        )
        for found in _BLOCK.finditer(text)
    ]


def run_page(page: Path, *, rewrite: bool = False, measured: Path | None = None) -> None:
    """Run the blocks of a page in this folder; the first one that does not do what it says raises.

    With `rewrite`, blocks that show other text than is printed are changed in the page instead.
    `measured`: a folder for what pages have measured that others measure in the same way.
    """
    for name, text in PRELUDES.get(page.name, {}).items():
        Path(name).write_text(text)
    sys.path.insert(0, "")  # Python blocks are typed into an interpreter, which imports from this folder
    names: dict[str, object] = {"__name__": "page"}
    outputs = [Output("", measured=False)]
    for block in blocks_of(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if block.language in RUN and not block.reason:
            _say(f"--- {where}\n")
            if block.language == "python":
                outputs.append(_run_python(block, where, names))
            else:
                outputs += [
                    _run_command(command, block.tested(command), where, measured)
                    for command in block.commands
                ]
        if block.printed.strip():
            _compare(page, block, outputs, where, rewrite=rewrite)


def _compare(page: Path, block: Block, outputs: Sequence[Output], where: str, *, rewrite: bool) -> None:
    """Compare what a block shows with what was printed before it: with the output that is most like it."""
    lost, output = min(
        ((missing(block.printed, output), output) for output in reversed(outputs)),
        key=lambda pair: len(pair[0]),
    )
    if lost and rewrite:
        text = page.read_text(encoding="utf-8")
        assert text.count(block.printed) == 1, f"{where}: rewrite this block by hand"
        page.write_text(text.replace(block.printed, rewritten(block.printed, output)), encoding="utf-8")
        _say(f"rewritten: {where}\n")
        return
    assert not lost, f"{where}: this is shown and not printed:\n" + "\n".join(lost)


def _run_python(block: Block, where: str, names: dict[str, object]) -> Output:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block.text, where, "exec"), names)
    _say(printed.getvalue())
    lines = iter(printed.getvalue().splitlines())
    for expected in block.expected:
        assert expected in lines, f"{where}: {expected!r} is not printed, or not in this order"
    return Output(printed.getvalue(), measured=False)


def _run_command(command: str, words: list[str], where: str, measured: Path | None) -> Output:
    code = _EXIT_CODE.search(command)
    wanted = int(code[1]) if code else 0
    _say(f"$ {shlex.join(words)}\n")
    match words:
        case _ if measured is not None and shlex.join(words) == SAME_PROFILE:
            found, printed = _profiled_once(words, measured)
        case ["gapless", *arguments]:
            brief = BRIEF.get(arguments[0], ()) if measures(command) else ()
            found, printed = _gapless([*arguments, *brief])
        case ["python", *_]:
            done = subprocess.run(
                [sys.executable, *words[1:]], stdout=subprocess.PIPE, text=True, check=False
            )
            found, printed = done.returncode, done.stdout
        case _:
            raise AssertionError(f"{where}: {words[0]} is not run by the tests; show it in a block `sh`")
    _say(printed)
    assert found == wanted, f"{where}: the exit code is {found}, not {wanted}: {command}"
    assert printed or wanted, f"{where}: nothing is printed: {command}"
    return Output(printed, measured=words[0] == "python" or measures(shlex.join(words)))


def _gapless(arguments: Sequence[str]) -> tuple[int, str]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = main(arguments)
    return int(code), printed.getvalue()


def _profiled_once(words: Sequence[str], measured: Path) -> tuple[int, str]:
    """Take the profile of several pages, or a copy of what was measured for it."""
    told = measured / "told.json"
    if not told.exists():
        code, printed = _gapless(words[1:])
        copytree(words[-1], measured / words[-1])
        told.write_text(json.dumps([code, printed]))
        return code, printed
    copytree(measured / words[-1], words[-1])
    code, printed = json.loads(told.read_text())
    return code, printed


def _say(text: str) -> None:
    """Show how far it came: between the lines of child processes, in order."""
    sys.stdout.write(text)
    sys.stdout.flush()


def links_of(page: Path) -> Iterator[str]:
    """Yield where the links of a page lead, outside its blocks."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    yield from re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text))


def run_alone(
    page: Path, *, rewrite: bool = False, output: Path | None = None, measured: Path | None = None
) -> int:
    """Run a page in a child of its own and an empty folder; return its exit code.

    `output`: a file for what it prints. `measured`: as for `run_page`.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        if output is not None:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            for stream in (1, 2):
                os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
        with TemporaryDirectory() as folder, chdir(folder):
            run_page(page, rewrite=rewrite, measured=measured)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        for each in (sys.stdout, sys.stderr):
            each.flush()
        os._exit(code)


def load_for_pages() -> None:
    """Load here what most commands of pages load: each page is a child of this process."""
    load_for_children()
    commands()
    for package in (api, tasks):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    import_module("jinja2")


def serve(measured: Path) -> None:
    """Run the pages that standard input names, with files for their outputs; tell the exit code of each."""
    for line in sys.stdin:
        page, output = json.loads(line)
        _say(f"{run_alone(Path(page), output=Path(output), measured=measured)}\n")


if __name__ == "__main__":
    # All pages find the same loaded and known, and no page what another one has left behind.
    shorten()
    wait_for_no_disk()
    load_for_pages()
    with suppress(EngineUnavailableError):
        this_device(engine="mnn,onnxruntime")
    gc.freeze()
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]))
    else:
        asked = [Path(name).resolve() for name in sys.argv[1:] if name != "--rewrite"]
        sys.exit(sum(run_alone(page, rewrite="--rewrite" in sys.argv) for page in asked))
