"""The server: a socket, a web server in a thread of its own, and the coordinator behind it."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, Unpack

from ..api.coordinators import CoordinatorOptions, open_coordinator
from ..executor.coordination.coordinator import CLOSE_PATIENCE_S, Coordinator
from ..executor.model import Model
from ..formulations.errors import EngineUnavailableError, InvalidInputError
from .access import Access, cannot_listen, is_loopback
from .app import App
from .grpc_server import GrpcServer, check_grpc
from .logs import LoggedRequests
from .messages import keep_memory
from .sequences import States
from .service import Service

if TYPE_CHECKING:
    from .connections import WebServer

HOST, PORT = "127.0.0.1", 8000

MOST_BYTES = 64 * 1024 * 1024
"""Largest body of a message, unless the user says otherwise."""

_BACKLOG = 128
"""Connections that may be accepted before the first of them is looked at."""

_SWITCH_S = 0.0005
"""The thread that starts chunks waits so long at most for the one that reads messages (usually 5 ms)."""


class Server:
    """Models behind an address, for clients of the Open Inference Protocol; a context manager.

    Parameters
    ----------
    coordinator
        Who serves, or what opens it, which is called once the address is known to be free; it is closed with
        the server.
    host, port
        Where it listens; port 0: any that is free.
    path
        A Unix socket instead, which only this user can reach.
    token
        What clients must show; needed where others than this machine can reach it.
    admin_token
        What clients that withdraw and restore units must show; None: the token, and none may where others
        than this machine can reach it.
    metrics_token
        What clients that read metrics must show; None: the token.
    allow_hosts
        Without a token, further names that clients may call it by, besides those by which a machine calls
        itself.
    most_bytes
        Largest body of a message.
    grpc_port
        Where it speaks gRPC, too, at the same host, once the models are open; 0: any that is free. None: it
        does not.
    states
        By recurrent model, which of its inputs take a state, and the output that gives the next one: the
        server keeps it for each sequence of requests. What a plan says of them is known.
    max_delay_us
        How long a request may wait for others that run together with it, where models like "net*4", a batch
        of 4 of "net", are served as well and are measured to pay. None: requests run alone, and batches are
        models like others.

    Attributes
    ----------
    coordinator
        Who serves.
    url
        Where it listens, in words.
    grpc_port
        Where it speaks gRPC; None: it does not.
    states
        By recurrent model, what it keeps.

    Raises
    ------
    InvalidInputError
        Others can reach it, and there is no token; or a value is not valid.
    ExecutionError
        It cannot listen there, or uvicorn or httptools is not installed.
    """

    def __init__(
        self,
        coordinator: Coordinator | Callable[[], Coordinator],
        *,
        host: str = HOST,
        port: int = PORT,
        path: str | Path | None = None,
        token: str | None = None,
        admin_token: str | None = None,
        metrics_token: str | None = None,
        allow_hosts: Sequence[str] = (),
        most_bytes: int = MOST_BYTES,
        grpc_port: int | None = None,
        states: Mapping[str, States] | None = None,
        max_delay_us: int | None = None,
    ) -> None:
        for needed in ("uvicorn", "httptools"):
            if find_spec(needed) is None:
                raise EngineUnavailableError(f"{needed} is not installed: pip install 'gapless[serve]'")
        local = is_loopback(host) or (path is not None and grpc_port is None)
        access = Access(
            token=token,
            admin_token=admin_token,
            metrics_token=metrics_token,
            hosts=tuple(allow_hosts),
            public="" if local else host or "every address",
        )
        if grpc_port is not None:
            check_grpc(host, grpc_port)
        self._path = None if path is None else Path(path)
        self._socket = _bound(host, port, self._path)
        name = f"[{host}]" if ":" in host else host
        self.url = f"unix:{path}" if path else f"http://{name}:{self._socket.getsockname()[1]}"
        self._service = Service()
        self._app = App(self._service, access=access, most_bytes=most_bytes)
        self._server = _web_server(self._app)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="gapless server", daemon=True
        )
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_S)
        keep_memory()
        self._thread.start()
        opened = None
        try:
            opened = self.coordinator = coordinator if isinstance(coordinator, Coordinator) else coordinator()
            self._server.connections.leave_files_for(len(opened.platform.units))
            delay_s = None if max_delay_us is None else max_delay_us / 1e6
            self._service.begin(opened, states, max_delay_s=delay_s)
            self.states = self._service.states
            self.grpc_port = None
            if grpc_port is not None:
                grpc = GrpcServer(
                    self._service,
                    access=access,
                    bodies=self._app.bodies,
                    host=host,
                    port=grpc_port,
                    most_bytes=most_bytes,
                )
                self._server.start_beside(grpc)
                self.grpc_port = grpc.port
        except BaseException:
            self._end()
            if opened is not None and opened is not coordinator:
                opened.close(patience_s=0.0)
            raise

    @property
    def alive(self) -> bool:
        """Whether it serves."""
        return self._thread.is_alive()

    def close(self, *, patience_s: float = CLOSE_PATIENCE_S) -> tuple[str, ...]:
        """Take no more requests, answer those that were accepted, and free everything. Can be called twice.

        Parameters
        ----------
        patience_s
            How long answers may take; sequences that are open may go on for half of it.

        Returns
        -------
        tuple of str
            The requests that could not be answered in time.
        """
        end_s = monotonic() + patience_s
        try:
            self._service.stop(patience_s / 2)
        except KeyboardInterrupt:  # asked twice
            self.coordinator.close(patience_s=0.0)
            raise
        self._server.stop()
        unanswered = self.coordinator.close(patience_s=end_s - monotonic())
        self._end()
        return unanswered

    def _end(self) -> None:
        self._service.stop()
        self._server.stop()
        self._thread.join()  # it hands out the last answers
        self._app.close()
        sys.setswitchinterval(self._switch_s)
        self._socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

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
    admin_token: str | None = None,
    metrics_token: str | None = None,
    allow_hosts: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
    grpc_port: int | None = None,
    states: Mapping[str, States] | None = None,
    max_delay_us: int | None = None,
    **options: Unpack[CoordinatorOptions],
) -> Server:
    """Serve models to other programs by the Open Inference Protocol (KServe's version 2, REST).

    Parameters
    ----------
    models
        Models, or their locators; or a coordinator that holds them.
    host, port, path, token, admin_token, metrics_token, allow_hosts, most_bytes
        As for `Server`.
    grpc_port, states, max_delay_us
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
    if isinstance(models, Coordinator) and options:
        raise InvalidInputError(f"a coordinator is open already: {', '.join(options)} come too late")
    return Server(
        models if isinstance(models, Coordinator) else partial(open_coordinator, models, **options),
        host=host,
        port=port,
        path=path,
        token=token,
        admin_token=admin_token,
        metrics_token=metrics_token,
        allow_hosts=allow_hosts,
        most_bytes=most_bytes,
        grpc_port=grpc_port,
        states=states,
        max_delay_us=max_delay_us,
    )


def _web_server(app: App) -> WebServer:
    """Return a web server whose connections end, and leave files for the workers of the units."""
    from .connections import Connections, Patience, WebServer

    return WebServer(
        LoggedRequests(app),
        Connections(patience=Patience(), batch=_BACKLOG),
        backlog=_BACKLOG,
        grace_s=CLOSE_PATIENCE_S + 1,
    )


def _bound(host: str, port: int, path: Path | None) -> socket.socket:
    """Return a socket that listens; one that does not is taken for an abandoned one, or taken away."""
    where: Any = str(path) if path else (host, port)
    try:
        if path is None:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            found = socket.socket(family, socket.SOCK_STREAM)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # Else an answer of two writes waits 40 ms for an acknowledgement; accepted sockets inherit it.
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
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
        try:
            found.listen(_BACKLOG)
        except OSError:
            found.close()
            raise
    except (OSError, OverflowError) as error:
        raise cannot_listen(str(path or f"{host}:{port}"), error) from None
    return found


def _remove_abandoned(path: Path) -> None:
    """Remove a Unix socket that nobody listens on any more."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.stat().st_mode):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
                if trial.connect_ex(str(path)):
                    path.unlink()
