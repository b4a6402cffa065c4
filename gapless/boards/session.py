"""One command on a board, from connecting to bringing its results back."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, TypeVar

from ..executor.progress import Report, Step, silent
from ..files.formats import file_format
from ..files.run_document import RUN
from ..files.run_names import RUN_FILE, run_file
from ..formulations.errors import BoardError, InvalidInputError
from ..formulations.json_files import format_of, json_tree, load, parse, parse_tree
from ..version import __version__
from . import frames
from .agent import ENVIRONMENT
from .folder import Place, RunFolder
from .packing import Packing
from .shelf import Listed, receive
from .ssh import Address, Connection, Greeting
from .translation import Stream, Translation, harmless

MAX_OUTPUT_BYTES = 64 << 20
"""Most that a command may print, to its output and to its errors."""

MAX_RESULT_BYTES = 8 << 30
"""Most that all files may have that it brings back."""

_MIB = 1 << 20
_MAX_CODE = 255
_OURS = "gapless."

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command for a board."""

    words: Sequence[str]  # its words, with the paths that files have there
    packing: Packing  # what it takes along
    place: Place  # where its results go
    terminals: dict[str, tuple[int, int]]
    """(lines, columns) of the terminals that its output and its errors are shown on, by "out" and "err"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a command on a board.

    `copied_bytes`, `brought_bytes`: what went there, and came back, as files.
    """

    code: int  # its exit code
    out: bytes  # what it printed
    translation: Translation  # from paths there to those here
    notes: tuple[str, ...] = ()  # what the user should know
    copied_bytes: int = 0
    brought_bytes: int = 0

    @property
    def text(self) -> str:
        """What it printed for people, in the terms of this machine."""
        return harmless(self.translation.text(self.out.decode(errors="replace")), colours=True)

    def document(self) -> dict[str, Any]:
        """Return the JSON document that it printed, in the terms of this machine."""
        try:
            tree = json_tree(self.out, "what it printed")
        except InvalidInputError as error:
            raise BoardError(f"the board sent no answer: {harmless(str(error))}") from None
        found: dict[str, Any] = self.translation.tree(tree)
        return found


def require_ready(address: Address, greeting: Greeting) -> None:
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


def perform(
    address: Address,
    order: Order,
    *,
    report: Report = silent,
    show: Callable[[str], object] = lambda text: None,
) -> Ran:
    """Run a command on a board.

    `report`: told of each step until the command runs.
    Raises KeyboardInterrupt: Ctrl-C was pressed twice, or before the command ran.
    """
    report(Step(text=f"connecting to {address}"))
    with Connection.to(address) as (connection, greeting):
        require_ready(address, greeting)
        ready = connection.told(frames.READY)
        version = harmless(str(ready.get("gapless"))[:60])
        if ready.get("protocol") != frames.PROTOCOL:
            raise BoardError(
                f"{address} has gapless {version}, here is {__version__}: they do not "
                "understand each other; install the same on both sides"
            )
        root = ready.get("root")
        if not isinstance(root, str) or len(Path(root).parts) < 2 or not Path(root).is_absolute():
            raise connection.wrong("root", root, "the path of a folder")
        translation = Translation(root, order.packing.printed)
        connection.step = f"while files were copied to {address}"
        copied = _copy(connection, order, report)
        connection.step = f"while `gapless {order.words[0]}` ran on {address}"
        report(Step(text=f"`gapless {order.words[0]}` runs on {address}"))
        _say(connection, order)
        with _interrupting(connection, show):
            out, listing = _relay(connection, order, Stream(translation), show)
        connection.step = f"while results were brought back from {address}"
        code = listing.get("code")
        if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code <= _MAX_CODE:
            raise connection.wrong("code", code, f"an exit code from 0 to {_MAX_CODE}")
        brought = _bring(connection, order, listing, translation)
        connection.send(frames.frame(frames.DONE))
        return Ran(
            code=code,
            out=out,
            translation=translation,
            notes=tuple(_notes(address, version, code)),
            copied_bytes=copied,
            brought_bytes=brought,
        )


def _notes(address: Address, version: str, code: int) -> Iterator[str]:
    """Yield what the user should know of a command that has ended."""
    if version != __version__:
        yield f"{address} has gapless {version}, here is {__version__}: better install the same"
    if code > 128 and code != 130:
        yield f"the command was killed on {address} (signal {code - 128}): it may lack memory"


def _copy(connection: Connection, order: Order, report: Report) -> int:
    """Take there what the board has not; return its bytes."""
    groups, folder = order.packing.groups, order.place if isinstance(order.place, RunFolder) else None
    seed = [] if folder is None else folder.seed(order.packing.scratch)
    offer = {
        "groups": [[asdict(listed) for listed in group.listed] for group in groups],
        "run": order.packing.run,
        "fresh": folder is None or folder.fresh,
        "seed": [asdict(listed) for listed, _ in seed],
    }
    connection.send(frames.message(frames.OFFER, offer))
    need = connection.told(frames.NEED)
    numbers, seeded = connection.items(need, "groups"), need.get("seed")
    if not all(type(each) is int and 0 <= each < len(groups) for each in numbers):
        raise connection.wrong("groups", numbers, f"numbers below {len(groups)}")
    if not isinstance(seeded, bool):
        raise connection.wrong("seed", seeded, "true or false")
    files = [file for number in dict.fromkeys(numbers) for file in groups[number].files]
    files += seed if seeded else []
    total: int = sum(listed.size_bytes for listed, _ in files)
    done = 0
    for listed, path in files:
        with path.open("rb") as file:
            while piece := file.read(frames.PIECE_BYTES):
                connection.send(frames.frame(frames.DATA, piece))
                done += len(piece)
                size = f"{done / _MIB:.1f} of {total / _MIB:.1f} MiB"
                text = f"copying {listed.name} to {connection.address} ({size})"
                report(Step(text=text, done=done, total=total))
        connection.send(frames.frame(frames.END))
    connection.next(frames.TAKEN)
    return total


def _say(connection: Connection, order: Order) -> None:
    """Tell the board what to run."""
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    content = {"words": list(order.words), "environment": environment, "about": RUN_FILE}
    connection.send(frames.message(frames.GO, {**content, "terminal": order.terminals}))


def _relay(
    connection: Connection, order: Order, errors: Stream, show: Callable[[str], object]
) -> tuple[bytes, dict[str, Any]]:
    """Show what a command prints until it has ended; return its output and the list of its files."""
    out, printed = bytearray(), 0
    while True:
        kind, payload = connection.next(frames.OUT, frames.ERR, frames.RUN, frames.LISTED)
        printed += len(payload) if kind in (frames.OUT, frames.ERR) else 0
        if printed > MAX_OUTPUT_BYTES:
            raise BoardError(f"{connection.address} prints more than {MAX_OUTPUT_BYTES} bytes: refused")
        if kind == frames.OUT:
            out += payload
        elif kind == frames.ERR:
            show(errors.feed(payload))
        elif kind == frames.RUN:
            with _sent_by(connection.address, RUN_FILE):
                parse(payload, RUN, name=RUN_FILE)
            order.place.told(payload)
        else:
            show(errors.feed(b"", last=True))
            return bytes(out), connection.content(payload)


def _bring(connection: Connection, order: Order, listing: dict[str, Any], translation: Translation) -> int:
    """Bring back the files that are results; return their bytes."""
    found = [Listed.read(each) for each in connection.items(listing, "files")]
    wanted = [listed for listed in found if order.place.accepts(listed.name)]
    total = sum(listed.size_bytes for listed in wanted)
    if total > MAX_RESULT_BYTES:
        raise BoardError(f"{connection.address} wants to send {total} bytes of results: refused")
    connection.send(frames.message(frames.WANT, {"names": [listed.name for listed in wanted]}))
    scratch = Path(tempfile.mkdtemp(dir=order.packing.scratch))
    received = {}
    for listed in wanted:
        received[listed.name] = scratch / listed.name
        receive(listed, scratch / listed.name, connection.pieces())
        _check(connection.address, scratch / listed.name)
    order.place.take(received, translation)
    shutil.rmtree(scratch, ignore_errors=True)
    return total


def sent(tree: Mapping[str, Any], content: type[Read], board: str, what: str) -> Read:
    """Read what a board has sent into a type."""
    try:
        return parse_tree(dict(tree), content, wrong=f"{board} sent {what} that is not valid:")
    except InvalidInputError as error:
        raise BoardError(harmless(str(error))) from None


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
        connection.interrupt()
        show(f"\ninterrupted: {connection.address} ends in order; Ctrl-C again leaves at once\n")

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def terminals(**streams: TextIO) -> dict[str, tuple[int, int]]:
    """Return (lines, columns) of those streams that are terminals, by name."""
    found = {}
    for name, stream in streams.items():
        with suppress(OSError, ValueError):
            if stream.isatty():
                size = os.get_terminal_size(stream.fileno())
                found[name] = (size.lines or 24, size.columns or 80)
    return found


def write_error(text: str) -> None:
    """Write what a board says to standard error, at once."""
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()
