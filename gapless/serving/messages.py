"""Messages of HTTP as the application sees them: header fields, answers, and refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Headers = Mapping[str, bytes]
"""Header fields of a message by their names in lower case."""

JSON = "application/json"

MOST_HEADERS_BYTES = 16 * 1024

_ONCE = frozenset(
    {
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "inference-header-content-length",
        "origin",
        "transfer-encoding",
    }
)
"""Fields that are read here: of two of them, a proxy in between may believe the other one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: code, body, headers besides its length."""

    code: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("content-type", JSON),)


class Refusal(Exception):
    """A message that is answered with an error of its own code.

    Parameters
    ----------
    code
        Status code of HTTP.
    text
        What is wrong.
    closes
        Whether nothing further is read from the connection.
    """

    def __init__(self, code: int, text: str, *, closes: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.closes = closes


def headers_of(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the header fields of a message.

    Raises
    ------
    Refusal
        They are too large, or one that counts is there twice.
    """
    found: dict[str, bytes] = {}
    size = 0
    for key, value in fields:
        name = key.decode("latin-1").lower()
        size += len(key) + len(value)
        if name in found and name in _ONCE:
            raise Refusal(400, f"the header {name} is there twice", closes=True)
        found[name] = value
    if size > MOST_HEADERS_BYTES:
        raise Refusal(431, f"the headers are larger than {MOST_HEADERS_BYTES:,} bytes")
    return found
