"""The server: a socket, a web server in a thread of its own, and the coordinator behind it."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from ..api.coordinators import open_coordinator
from ..executor.coordination.coordinator import CLOSE_PATIENCE_S, Coordinator
from ..executor.model import Model
from ..formulations.errors import EngineUnavailableError, ExecutionError, InvalidInputError
from .app import App
from .logs import LoggedRequests

HOST, PORT = "127.0.0.1", 8000

MOST_BYTES = 64 * 1024 * 1024
"""Largest body of a message, unless the user says otherwise."""

LEAST_TOKEN = 16
"""Shorter tokens are refused: they can be guessed."""

_BACKLOG = 128
"""So many connections are accepted before the first of them is looked at."""

_SWITCH_S = 0.0005
"""The thread that starts chunks waits so long at most for the one that reads messages (usually 5 ms)."""


class Server:
    """Models behind an address, for clients of the Open Inference Protocol; a context manager.

    Parameters
    ----------
    coordinator
        Who serves; it is closed with the server.
    host, port
        Where it listens; port 0: any that is free.
    path
        A Unix socket instead, which only this user can reach.
    token
        What clients must show; needed where others than this machine can reach it.
    most_bytes
        Largest body of a message.

    Attributes
    ----------
    coordinator
        Who serves.
    url
        Where it listens, in words.

    Raises
    ------
    InvalidInputError
        Others can reach it, and there is no token; or a value is not valid.
    ExecutionError
        It cannot listen there, or uvicorn is not installed.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        *,
        host: str = HOST,
        port: int = PORT,
        path: str | Path | None = None,
        token: str | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        check_access(host, path, token)
        import uvicorn

        from .connections import Connections, Patience, WebServer, most_connections

        patience = Patience()
        connections = Connections(most_connections(len(coordinator.platform.units), batch=_BACKLOG), patience)
        self.coordinator = coordinator
        self._path = None if path is None else Path(path)
        self._socket = _listening(host, port, self._path)
        name = f"[{host}]" if ":" in host else host
        self.url = f"unix:{path}" if path else f"http://{name}:{self._socket.getsockname()[1]}"
        self._app = App(coordinator, token=token, most_bytes=most_bytes)
        config = uvicorn.Config(
            LoggedRequests(self._app),
            http=connections,  # type: ignore[arg-type] # any function that makes one will do
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            backlog=_BACKLOG,
            timeout_keep_alive=round(patience.idle_s),
            timeout_graceful_shutdown=round(CLOSE_PATIENCE_S) + 1,
        )
        self._server = WebServer(config)
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="gapless server", daemon=True
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it serves."""
        return self._thread.is_alive()

    def close(self, *, patience_s: float = CLOSE_PATIENCE_S) -> tuple[str, ...]:
        """Take no more requests, answer those that were accepted, and free everything. Can be called twice.

        Parameters
        ----------
        patience_s
            How long answers may take.

        Returns
        -------
        tuple of str
            The requests that could not be answered in time.
        """
        self._app.stopping = True
        self._server.should_exit = True
        unanswered = self.coordinator.close(patience_s=patience_s)
        self._thread.join()  # it hands out the last answers
        self._socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        sys.setswitchinterval(self._switch_s)
        return unanswered

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    models: Coordinator | Sequence[Model | str | Path],
    *,
    host: str = HOST,
    port: int = PORT,
    path: str | Path | None = None,
    token: str | None = None,
    most_bytes: int = MOST_BYTES,
    **options: Any,
) -> Server:
    """Serve models to other programs by the Open Inference Protocol (KServe's version 2, REST).

    Parameters
    ----------
    models
        Models, or their locators; or a coordinator that holds them.
    host, port, path, token, most_bytes
        As for `Server`.
    options
        As for `open_coordinator`.

    Returns
    -------
    Server
        At work; to be closed; a context manager.

    Examples
    --------
    >>> import gapless
    >>> with gapless.serve(["squeezenet"], port=0) as server:  # doctest: +SKIP
    ...     print(server.url)
    """
    check_access(host, path, token)  # before models are opened
    if isinstance(models, Coordinator) and options:
        raise InvalidInputError(f"a coordinator is open already: {', '.join(options)} come too late")
    coordinator = models if isinstance(models, Coordinator) else open_coordinator(models, **options)
    try:
        return Server(coordinator, host=host, port=port, path=path, token=token, most_bytes=most_bytes)
    except BaseException:
        if coordinator is not models:
            coordinator.close(patience_s=0.0)
        raise


def check_access(host: str, path: str | Path | None, token: str | None) -> None:
    """Require a web server, and a token where others than this machine can reach it.

    Raises
    ------
    InvalidInputError
        There is none, or it is too short.
    EngineUnavailableError
        Nothing can be served: uvicorn is not installed.
    """
    if find_spec("uvicorn") is None:
        raise EngineUnavailableError("uvicorn is not installed: pip install 'gapless[serve]'")
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise InvalidInputError(
            f"the token has {len(token)} characters; it needs at least {LEAST_TOKEN}, printable ASCII: "
            "`openssl rand -hex 32` makes one"
        )
    if path is None and token is None and not _is_loopback(host):
        raise InvalidInputError(
            f"{host} can be reached by others: give a token (--token-file), or listen on {HOST} or on a Unix "
            "socket"
        )


def read_token(path: Path) -> str:
    """Return the token of a file, which nobody else may read.

    Raises
    ------
    InvalidInputError
        Others may read it.
    """
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        raise InvalidInputError(f"{path} can be read by others: chmod 600 {path}")
    return path.read_text(encoding="utf-8").strip()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int, path: Path | None) -> socket.socket:
    """Return a socket that listens.

    Raises
    ------
    ExecutionError
        It cannot be had.
    """
    where: Any = str(path) if path else (host, port)
    try:
        if path is None:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            found = socket.create_server(where, family=family, backlog=_BACKLOG)
            # Else an answer of two writes waits 40 ms for an acknowledgement; accepted sockets inherit it.
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found
        _remove_abandoned(path)
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            found.bind(where)
        except OSError:
            found.close()
            raise
        finally:
            os.umask(before)
        found.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        raise ExecutionError(f"cannot listen on {path or f'{host}:{port}'}: {error}") from None
    return found


def _remove_abandoned(path: Path) -> None:
    """Remove a Unix socket that nobody listens on any more."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.stat().st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
                if trial.connect_ex(str(path)):
                    path.unlink()
