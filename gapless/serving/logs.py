"""The log of a server: lines on standard error, in which nobody can write and which nobody can flood."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, perf_counter
from traceback import extract_tb
from typing import Any, TextIO

from ..formulations.printing import printable
from .messages import Application, Message, Receive, Send

SAME_S = 60.0
"""The same message comes once in this time."""

MOST_LINES = 200
"""Most lines within `SAME_S`, debug apart: whatever somebody makes the server say, disks do not fill."""

_MOST_CHARS = 2000
_OF_CLIENTS = ("uvicorn", "asyncio")
"""What these say up to warnings is about clients that send nonsense or hang up."""

_log = logging.getLogger(__name__)


class LogHandler(logging.StreamHandler[TextIO]):
    """Writes one line per message; of messages that repeat themselves it tells how many were left out.

    `clock`: tells seconds.
    """

    def __init__(self, stream: TextIO, *, as_json: bool, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(stream)
        self.as_json = as_json
        self._clock = clock
        self._said: dict[tuple[str, int, str], _Said] = {}
        self._written_s: deque[float] = deque()
        self._crowd = _Said(0.0)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, or count it."""
        level = record.levelno
        if record.name.startswith(_OF_CLIENTS) and level <= logging.WARNING:
            level = logging.DEBUG
        if level < self.level:
            return
        try:
            text = _text(record, whole=self.level <= logging.DEBUG)
            fields = getattr(record, "fields", {})
        except Exception as error:  # of a message that does not fit its values
            text, fields = f"a message could not be written: {type(error).__name__}", {}
        if level > logging.DEBUG and not self._counts(record.name, level, text):
            return
        self._write(record.name, level, text, fields, record.created)

    def tell_left_out(self, *, all_of_it: bool = False) -> None:
        """Tell what was left out a minute ago; in the end, all of it."""
        with self.lock or nullcontext():
            now_s = self._clock()
            for key, said in list(self._said.items()):
                if all_of_it or now_s - said.since_s >= SAME_S:
                    del self._said[key]
                    if said.left_out:
                        name, level, text = key
                        often = "once more" if said.left_out == 1 else f"{said.left_out} more times"
                        self._write(name, level, f"{text} ({often})", {}, None)
            if self._crowd.left_out and (all_of_it or now_s - self._crowd.since_s >= SAME_S):
                left_out, self._crowd = self._crowd.left_out, _Said(now_s)
                words = f"{left_out} other messages were left out: at most {MOST_LINES} a minute are written"
                self._write(__name__, logging.WARNING, words, {}, None)

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: where nobody can read the log, requests are answered all the same."""

    def close(self) -> None:
        """Tell what was left out."""
        self.tell_left_out(all_of_it=True)
        super().close()

    def _counts(self, name: str, level: int, text: str) -> bool:
        """Return whether a message is written; otherwise count it."""
        self.tell_left_out()
        now_s, key = self._clock(), (name, level, text)
        if (said := self._said.get(key)) is not None:
            said.left_out += 1
            return False
        while self._written_s and now_s - self._written_s[0] >= SAME_S:
            self._written_s.popleft()
        if len(self._written_s) >= MOST_LINES:
            if not self._crowd.left_out:
                self._crowd.since_s = now_s
            self._crowd.left_out += 1
            return False
        self._written_s.append(now_s)
        self._said[key] = _Said(now_s)
        return True

    def _write(
        self, name: str, level: int, text: str, fields: MutableMapping[str, Any], created: float | None
    ) -> None:
        at = datetime.now(UTC) if created is None else datetime.fromtimestamp(created, UTC)
        time, word = at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), logging.getLevelName(level)
        said = {"time": time, "level": word.lower(), "logger": name, "message": text, **fields}
        try:
            self.stream.write(f"{json.dumps(said) if self.as_json else f'{time} {word} {text}'}\n")
            self.stream.flush()
        except (OSError, ValueError):
            pass  # as in `handleError`


class _Said:
    """Since when a message is said, and how many more times it was not written."""

    def __init__(self, since_s: float) -> None:
        self.since_s = since_s
        self.left_out = 0


def _text(record: logging.LogRecord, *, whole: bool) -> str:
    """Return a message as one line; of an error its text and its place, or the whole way there."""
    text = record.getMessage()
    if record.exc_info and (error := record.exc_info[1]) is not None:
        frames = extract_tb(error.__traceback__)
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
        text += f": {type(error).__name__}: {error} (at {' > '.join(places if whole else places[-1:])})"
    line = " | ".join(part.strip() for part in text.splitlines() if part.strip())
    line = printable(line)
    return line if len(line) <= _MOST_CHARS else f"{line[:_MOST_CHARS]}..."


@contextmanager
def kept(stream: TextIO, *, level: str, as_json: bool) -> Iterator[LogHandler]:
    """Keep a log meanwhile.

    `level`: the least important messages that are written: "debug", "info", "warning" or "error".
    """
    handler, root = LogHandler(stream, as_json=as_json), logging.getLogger()
    handler.setLevel(level.upper())
    before = root.level
    root.addHandler(handler)
    root.setLevel(level.upper())
    try:
        yield handler
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        handler.close()


def told_as_json(text: str) -> bool:
    """Log what a command says to people, if its log is of JSON lines; return whether it is."""
    handlers = logging.getLogger().handlers
    if not any(isinstance(handler, LogHandler) and handler.as_json for handler in handlers):
        return False
    _log.info("%s", text)
    return True


class LoggedRequests:
    """An application whose requests are logged, at the level of debug."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Have a request answered."""
        if not _log.isEnabledFor(logging.DEBUG):
            await self._application(scope, receive, send)
            return
        code, start_s = 0, perf_counter()

        async def heard(message: Message) -> None:
            nonlocal code
            code = message.get("status", code)
            await send(message)

        try:
            await self._application(scope, receive, heard)
        finally:
            said = {"method": scope["method"], "path": scope["path"], "code": code}
            said["ms"] = round(1000 * (perf_counter() - start_s), 3)
            client = ":".join(map(str, scope.get("client") or ("unix socket",)))
            words = (client, said["method"], said["path"], code, said["ms"])
            _log.debug("%s: %s %s gets %s in %s ms", *words, extra={"fields": {**said, "client": client}})
