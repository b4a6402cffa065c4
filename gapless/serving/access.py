"""Who may ask a server for what: tokens by group of addresses, and web pages of strangers kept out.

A browser sends requests for any page that it shows, to this machine, too. A group of addresses without a
token therefore answers only requests that call the server by a name of this machine (a page whose name has
been rebound to this machine calls it by its own), and none that come from a page of another server. A group
with a token needs neither: pages do not know tokens, and browsers attach none by themselves.
"""

from __future__ import annotations

import errno
import hmac
import ipaddress
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path

from ..formulations.errors import ExecutionError, InvalidInputError
from ..formulations.validation import shown
from .messages import Headers, Refusal

LEAST_TOKEN = 16
"""Shorter tokens are refused: they can be guessed."""

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]*))?", re.ASCII)
_REMEMBERED = 64
_USUAL_PORTS = {"http": "80", "https": "443"}


class Group(Enum):
    """Addresses of a server that the same clients may ask.

    HEALTH
        Whether it runs; whoever watches over servers need not know a token.
    INFERENCE
        Models, what they take, and requests.
    STEERING
        What changes the server for everybody: units that leave and return.
    METRICS
        What it counts.
    """

    HEALTH = auto()
    INFERENCE = auto()
    STEERING = auto()
    METRICS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who may ask a server for what.

    Raises InvalidInputError: a token can be guessed, a name is none, or others can reach the server and need
    no token.
    """

    token: str | None = field(default=None, repr=False)  # what clients must show; None: nothing
    admin_token: str | None = field(default=None, repr=False)
    """What clients that steer must show; None: the token, and over the network none may."""
    metrics_token: str | None = field(default=None, repr=False)
    """What clients that read metrics must show; None: the token."""
    hosts: tuple[str, ...] = ()  # further names that clients without a token may call the server by
    public: str = ""  # where other machines can reach it; empty: nowhere

    def __post_init__(self) -> None:
        for what, token in (
            ("token", self.token),
            ("admin token", self.admin_token),
            ("metrics token", self.metrics_token),
        ):
            if token is not None and not (
                len(token) >= LEAST_TOKEN
                and token.isascii()
                and token.isprintable()
                and token == token.strip()
            ):
                raise InvalidInputError(
                    f"the {what} has {len(token)} characters; it needs at least {LEAST_TOKEN}, printable "
                    "ASCII: `openssl rand -hex 32` makes one"
                )
        for name in self.hosts:
            _host(name)
        if self.public and self.token is None:
            raise InvalidInputError(
                f"{self.public} can be reached by others: give a token (--token-file), or listen on "
                "127.0.0.1 or on a Unix socket"
            )

    def check(self, group: Group, headers: Headers, *, pages: bool = True) -> None:
        """Refuse a message that its sender may not send.

        `pages`: whether a browser can send it for a page; none speaks gRPC without TLS.
        """
        token = self._token(group)
        if token is not None:
            _check_token(token, headers)
        elif group is Group.STEERING and self.public:
            raise Refusal(
                403,
                "units are not withdrawn and restored over the network: start the server with a token for "
                "that (--admin-token-file)",
            )
        elif self.token is None and pages:
            self._check_name(headers)
            _check_page(headers)

    def _token(self, group: Group) -> str | None:
        match group:
            case Group.INFERENCE:
                return self.token
            case Group.STEERING:
                return self.admin_token or (None if self.public else self.token)
            case Group.METRICS:
                return self.metrics_token or self.token
        return None

    def _check_name(self, headers: Headers) -> None:
        called = headers.get("host", b"").decode("latin-1")
        found = _split(called)
        if found is None or not (is_loopback(found[0]) or found[0] in map(_host, self.hosts)):
            raise Refusal(
                403,
                f"the server is called {shown(called)} (Host); without a token it answers to names of this "
                "machine only: localhost, 127.x.x.x, [::1], and what --allow-host adds",
            )


@lru_cache(_REMEMBERED)
def is_loopback(host: str) -> bool:
    """Return whether a name or an address is one by which a machine calls itself."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def cannot_listen(where: str, error: Exception) -> ExecutionError:
    """Return the error of a server that cannot listen somewhere."""
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    hint = "; choose another port (0: any that is free) or path" if taken else ""
    return ExecutionError(f"cannot listen on {where}: {getattr(error, 'strerror', None) or error}{hint}")


def read_token(path: Path) -> str:
    """Return the token of a file, which nobody else may read."""
    try:
        text = path.read_text(encoding="ascii")
        if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            raise InvalidInputError(f"{path} can be read by others: chmod 600 {path}")
        return text.strip()
    except OSError as error:
        raise InvalidInputError(f"cannot read the token in {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"the token in {path} is no ASCII text: `openssl rand -hex 32 > {path}` writes one"
        ) from None


def _check_token(token: str, headers: Headers) -> None:
    scheme, _, found = headers.get("authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not hmac.compare_digest(found.strip(), token.encode()):
        raise Refusal(401, "a token is needed: Authorization: Bearer TOKEN")


def _check_page(headers: Headers) -> None:
    """Refuse what a page of another server sends; clients that are no browsers have no Origin."""
    if (origin := headers.get("origin")) is None:
        return
    text = origin.decode("latin-1")
    scheme, _, rest = text.lower().partition("://")
    page, here = _split(rest), _split(headers.get("host", b"").decode("latin-1"))
    usual = _USUAL_PORTS.get(scheme)
    if (
        usual is None
        or page is None
        or here is None
        or (page[0], page[1] or usual) != (here[0], here[1] or usual)
    ):
        raise Refusal(
            403,
            f"the request comes from a page of {shown(text)} (Origin); without a token pages of other "
            "servers may not ask",
        )


@lru_cache(_REMEMBERED)
def _split(authority: str) -> tuple[str, str] | None:
    """Return the host and the port, which may be empty, of "host:port"; None: it is none."""
    found = _AUTHORITY.fullmatch(authority.lower())
    if found is None:
        return None
    host = found[1]
    with suppress(ValueError):
        return (
            f"[{ipaddress.IPv6Address(host[1:-1])}]" if host[0] == "[" else host.removesuffix(".")
        ), found[2] or ""
    return None


def _host(name: str) -> str:
    """Return the name of a host as it is compared."""
    text = name.lower()
    with suppress(ValueError):
        text = f"[{ipaddress.IPv6Address(text)}]"
    found = None if text.endswith(":") else _split(text)
    if found is None or found[1] or not found[0]:
        raise InvalidInputError(f"--allow-host {name!r}: expected the name of a host, without a port")
    return found[0]
