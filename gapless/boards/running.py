"""A command of gapless on a board: its files there, the same command with `--json`, its results here."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from ..executor.progress import Report, Step, silent
from ..files.formats import file_format
from ..files.run import Entry
from ..files.run_document import RUN, RUN_FILE, run_file
from ..formulations import errors
from ..formulations.errors import BoardError, GaplessError, InvalidInputError
from ..formulations.json_files import format_of, json_tree, load, parse, parse_tree
from ..question.fields import Given
from ..question.subjects import Folder
from ..version import __version__
from .channel import PROTOCOL, About, Ended, Interrupt, Line, Message, Need, Order, Want
from .folder import Results, RunFolder, Translation, harmless
from .packing import Packing
from .shelf import ANSWER, receive
from .ssh import Address, Connection, Greeting

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

GENERAL = ("--json", "--progress-json")
"""What is said of every command on a board: it answers with a document, and tells its steps as such."""

GOES_ON = "; the same command with --resume goes on with what the board has measured"

MAX_OUTPUT_BYTES = 64 << 20
"""Most that a command may print, to its output and to its errors."""

MAX_RESULT_BYTES = 8 << 30
"""Most that all files may have that it brings back."""

USAGE, INTERRUPTED = 2, 130

_MIB = 1 << 20
_OURS = "gapless."
_MOST = 2**31

Read = TypeVar("Read", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a command on a board.

    `copied_bytes`, `brought_bytes`: what went there, and came back, as files.
    """

    board: str
    code: int  # its exit code
    out: bytes  # what it printed
    translation: Translation  # from paths there to those here
    notes: tuple[str, ...] = ()  # what the user should know
    copied_bytes: int = 0
    brought_bytes: int = 0

    def document(self) -> dict[str, Any]:
        """Return the JSON document that it printed, in the terms of this machine."""
        try:
            tree = json_tree(self.out, "what it printed")
        except InvalidInputError as error:
            raise BoardError(f"the board sent no answer: {harmless(str(error))}") from None
        found: dict[str, Any] = self.translation.tree(tree)
        return found

    def read(self, content: type[Read], what: str) -> Read:
        """Return what that document holds, without what stands in all documents."""
        document = self.document()
        known = {each.name: document[each.name] for each in fields(content) if each.name in document}
        return sent(known, content, self.board, what)

    def raise_error(self) -> None:
        """Raise what the command has raised on the board, unless it has given an answer."""
        if self.code > 128 and self.code != INTERRUPTED:
            raise BoardError(
                f"the command was killed on {self.board} (signal {self.code - 128}): it may lack memory"
            )
        document = self.document() if self.code else {}
        if document.get("format") != "gapless.error":
            return
        if self.code == INTERRUPTED:
            raise KeyboardInterrupt
        told = sent(document, _Failure, self.board, "an error")
        if self.code == USAGE:
            raise InvalidInputError(f"{self.board}: {told.message}", told.problems)
        kind = getattr(errors, told.error, None)
        error: GaplessError = BoardError(f"{self.board}: {told.error}: {told.message}")
        if isinstance(kind, type) and issubclass(kind, GaplessError):
            with suppress(TypeError):  # it is made of more than a message
                error = kind(f"{self.board}: {told.message}")
        raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure(Message):
    error: str
    message: str
    problems: tuple[str, ...] = ()


def sent(tree: Mapping[str, Any], content: type[Read], board: str, what: str) -> Read:
    """Read what a board has sent into a type."""
    try:
        return parse_tree(dict(tree), content, wrong=f"{board} sent {what} that is not valid:")
    except InvalidInputError as error:
        raise BoardError(harmless(str(error))) from None


def run_there(
    address: Address,
    command: str,
    said: Iterable[Given],
    subjects: Sequence[Any] = (),
    folder: Folder | None = None,
    *,
    general: Sequence[str] = (),
    line: str = "",
    report: Report = silent,
    show: Callable[[str], object] = lambda text: None,
) -> Ran:
    """Run a command of gapless on a board.

    `said`: of its fields; files among them are taken there, and those that it writes are brought back.
    `subjects`: its arguments. `folder`: of a command that writes a run. `general`: further words, of every
    command. `report`: told of each step, here and there. `show`: told of lines that the command prints
    besides its answer.
    Raises InvalidInputError: a file cannot be read or written, a folder holds another run, or an option has
    no meaning on a board. KeyboardInterrupt: Ctrl-C was pressed twice, or before the command ran.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gapless-board-")))
        results = Results()
        if folder is not None:
            entry = folder.made(Entry)
            results = stack.enter_context(RunFolder.entered(folder.out, entry, str(address), line=line))
        packing = Packing(run=results.run, scratch=scratch, results=results.places)
        first, *rest = packing.words(command, said, subjects, folder)
        try:
            report(Step(text=f"connecting to {address}"))
            with Connection.to(address) as (connection, greeting):
                _require_ready(address, greeting)
                session = _Session(connection, packing, results, report, show)
                return session.perform(command, (first, *GENERAL, *general, *rest))
        except BoardError as error:
            if isinstance(results, RunFolder) and results.begun:
                raise BoardError(f"{error}{GOES_ON}") from error
            raise


def _require_ready(address: Address, greeting: Greeting) -> None:
    """Refuse a board on which gapless cannot work."""
    if greeting.state != "ready":
        lacks = {
            "old-python": f"has Python {greeting.said}, gapless needs 3.11 or newer",
            "no-gapless": f"has Python {greeting.said}, but no gapless",
            "old-gapless": f"has a gapless without a working agent ({greeting.said}), here is {__version__}",
        }
        what = lacks.get(greeting.state, f"says {greeting.state[:60]!r}, which this gapless does not know")
        raise BoardError(
            f"{address} {what}: `gapless doctor --on {address}` says how to install what is missing"
        )


@dataclass(slots=True)
class _Session:
    """One command, from the first word of the board to its results."""

    connection: Connection
    packing: Packing
    results: Results
    report: Report
    show: Callable[[str], object]

    def perform(self, command: str, words: tuple[str, ...]) -> Ran:
        """Run the command."""
        connection, board = self.connection, str(self.connection.address)
        ready = connection.ready()
        version = harmless(ready.gapless[:60])
        if ready.protocol != PROTOCOL:
            raise BoardError(
                f"{board} has gapless {version}, here is {__version__}: they do not "
                "understand each other; install the same on both sides"
            )
        translation = Translation(ready.root, self.packing.printed)
        connection.step = f"while files were copied to {board}"
        copied = self._copy(words)
        connection.step = f"while `gapless {command}` ran on {board}"
        self.report(Step(text=f"`gapless {command}` runs on {board}"))
        with _interrupting(connection, self.show):
            ended = self._relay(translation)
        connection.step = f"while results were brought back from {board}"
        out, brought = self._bring(ended, translation)
        connection.say(Want())
        notes = list(self.packing.notes)
        if version != __version__:
            notes.append(f"{board} has gapless {version}, here is {__version__}: better install the same")
        return Ran(
            board=board,
            code=ended.code,
            out=out,
            translation=translation,
            notes=tuple(notes),
            copied_bytes=copied,
            brought_bytes=brought,
        )

    def _copy(self, words: tuple[str, ...]) -> int:
        """Say what is to be done, and take there what the board has not; return its bytes."""
        connection, groups = self.connection, self.packing.groups
        seed = self.results.seed(self.packing.scratch)
        order = Order(
            words=words,
            run=self.results.run,
            fresh=self.results.fresh,
            groups=tuple(tuple(group.listed) for group in groups),
            seed=tuple(listed for listed, _ in seed),
        )
        connection.say(order)
        need = connection.told(Need)
        if not all(0 <= each < len(groups) for each in need.groups):
            raise connection.wrong(f"groups are {need.groups}, must be numbers below {len(groups)}")
        files = [file for number in dict.fromkeys(need.groups) for file in groups[number].files]
        files += seed if need.seed else []
        total: int = sum(listed.size_bytes for listed, _ in files)
        done = 0
        for listed, path in files:

            def count(size: int, name: str = listed.name) -> None:
                nonlocal done
                done += size
                text = f"copying {name} to {connection.address} ({done / _MIB:.1f} of {total / _MIB:.1f} MiB)"
                self.report(Step(text=text, done=done, total=total))

            connection.give(listed, path, count)
        return total

    def _relay(self, translation: Translation) -> Ended:
        """Tell what a command says besides its answer until it has ended; return what came of it."""
        connection, printed = self.connection, 0
        while True:
            message = connection.next()
            match message:
                case Line(text=text):
                    printed += len(text)
                    if printed > MAX_OUTPUT_BYTES:
                        board = connection.address
                        raise BoardError(f"{board} prints more than {MAX_OUTPUT_BYTES} bytes: refused")
                    self._tell(text, translation)
                case About(run=run):
                    with _sent_by(connection.address, RUN_FILE):
                        about = parse(json.dumps(run).encode(), RUN, name=RUN_FILE)
                    self.results.told(about)
                case Ended():
                    return message
                case _:
                    raise connection.wrong(f"{type(message).__name__} while a command runs")

    def _tell(self, line: str, translation: Translation) -> None:
        """Tell of a step, or show what else a command says besides its answer."""
        step = _step(line)
        if step is None:
            self.show(translation.text(line) + "\n")
            return
        whole = step.total is None or 0 <= step.done <= step.total < _MOST
        text = translation.text(step.text)
        self.report(Step(text=text, done=step.done, total=step.total) if whole else Step(text=text))

    def _bring(self, ended: Ended, translation: Translation) -> tuple[bytes, int]:
        """Bring back the answer, and the files that are results; return the answer, and the bytes of all."""
        connection = self.connection
        accepted = (each for each in ended.files if each.name == ANSWER or self.results.accepts(each.name))
        wanted = {each.name: each for each in accepted}
        total = sum(listed.size_bytes for listed in wanted.values())
        if ANSWER not in wanted:
            raise connection.wrong("no answer of the command")
        if total > MAX_RESULT_BYTES or wanted[ANSWER].size_bytes > MAX_OUTPUT_BYTES:
            raise BoardError(f"{connection.address} wants to send {total} bytes of results: refused")
        connection.say(Want(names=tuple(wanted)))
        scratch = Path(tempfile.mkdtemp(dir=self.packing.scratch))
        received = {}
        for name, listed in wanted.items():
            received[name] = scratch / name
            receive(listed, scratch / name, connection.content(listed.size_bytes))
            if name != ANSWER:
                _check(connection.address, scratch / name)
        answer = received.pop(ANSWER).read_bytes()
        self.results.take(received, translation)
        shutil.rmtree(scratch, ignore_errors=True)
        return answer, total


def _step(line: str) -> Step | None:
    """Return the step that a line says; None: it says something else."""
    if not line.startswith("{"):
        return None
    try:
        return parse_tree(json_tree(line.encode(), "a step"), Step, wrong="a step")
    except InvalidInputError:
        return None


def _check(address: Address, path: Path) -> None:
    """Refuse a file of gapless that is not what its format says: whoever reads it later would be blamed."""
    if path.suffix != ".json":
        return
    with _sent_by(address, path.name):
        kind = format_of(path)
        known = run_file(path.name)
        if known is not None and kind not in known.formats:
            raise InvalidInputError(f"its format is {kind!r}, not {known.formats[0]!r}")
        if kind is not None and kind.startswith(_OURS):
            load(path, file_format(kind).schema)


@contextmanager
def _sent_by(address: Address, what: str) -> Iterator[None]:
    """Say of what cannot be read that the board sent it."""
    try:
        yield
    except InvalidInputError as error:
        raise BoardError(f"{address} sent a {what} that cannot be used: {harmless(str(error))}") from None


@contextmanager
def _interrupting(connection: Connection, show: Callable[[str], object]) -> Iterator[None]:
    """Let the first Ctrl-C interrupt the command on the board, and the second one leave."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        connection.say(Interrupt())
        show(f"interrupted: {connection.address} ends in order; Ctrl-C again leaves at once\n")

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
