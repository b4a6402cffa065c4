"""gRPC beside REST: the Open Inference Protocol and health on one port, in the loop of the web server."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from importlib.util import find_spec
from time import monotonic_ns, perf_counter
from typing import Any

from ..formulations.errors import EngineUnavailableError, InvalidInputError
from ..formulations.validation import shown
from .access import Access, Group, cannot_listen
from .grpc_requests import answer_message, is_small, parameters_of, read_message
from .messages import MOST_HEADERS_BYTES, Bodies, Refusal
from .service import NOT_OFFERED, Phase, Service, told
from .wire import HEALTH, Method, Wire, wire

_MOST_CALLS = 1024
_MOST_CONNECTIONS = 256
_CROWD, _CROWD_S, _PATIENCE_S = 16, 2.0, 20.0
"""A message is waited for so long; when many are being read, those that begin then get less."""

_IDLE_MS, _HANDSHAKE_MS, _AGE_MS, _GRACE_MS = 300_000, 10_000, 3_600_000, 30_000
"""When a connection ends: without calls, before it has become one, and in any case, with the calls on it, so
that no answer waits for ever for a client that does not read it."""

_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    408: "DEADLINE_EXCEEDED",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
}
"""Status of each code that REST answers with."""

_REFUSED = {
    "ModelStreamInfer": "streams are not offered: send each request with ModelInfer",
    **dict.fromkeys(
        [
            f"{kind}SharedMemory{what}"
            for kind in ("System", "Cuda")
            for what in ("Status", "Register", "Unregister")
        ],
        NOT_OFFERED["systemsharedmemory"],
    ),
    "TraceSetting": NOT_OFFERED["trace"],
    "LogSettings": NOT_OFFERED["logging"],
}
"""Methods of Triton's service that get no other answer than this."""

_MOST_WATCHING = 64
"""Most calls that watch the health of something: anybody may, and requests need calls, too."""

_LOOK_S = 0.25
"""Who watches is told within this time; the server does not stop before."""

_log = logging.getLogger(__name__)


def check_grpc(host: str, port: int) -> None:
    """Say early that gRPC cannot be spoken there.

    Raises EngineUnavailableError: grpcio is not installed. ExecutionError: the port is in use.
    """
    if find_spec("grpc") is None:
        raise EngineUnavailableError("grpcio is not installed: pip install 'gapless[grpc]'")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with closing(socket.socket(family, socket.SOCK_STREAM)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
            trial.listen(1)
    except (OSError, OverflowError) as error:
        raise cannot_listen(f"{host}:{port} for gRPC", error) from None


class GrpcServer:
    """Serves the same models over gRPC; made and started in the loop of the web server.

    `host`, `port`: where it listens; 0: any port that is free. `bodies`: the messages in memory, also those
    of REST.

    `port`: where it listens.
    """

    def __init__(
        self, service: Service, *, access: Access, bodies: Bodies, host: str, port: int, most_bytes: int
    ) -> None:
        self.port = port
        self._service = service
        self._access = access
        self._bodies = bodies
        self._host = host
        models = service.coordinator.registered.values()
        needed = max((service.interface(model).most_message_bytes for model in models), default=0)
        self._message_bytes = min(most_bytes, needed)
        self._most_reading = max(4, min(64, 4 * most_bytes // max(1, self._message_bytes)))
        self._reading = 0
        self._watching = 0
        self._server: Any = None

    async def start(self) -> None:
        """Begin to listen; raises ExecutionError: it cannot."""
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # clients could fill the log with its lines
        import grpc

        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", self._message_bytes),
                ("grpc.max_metadata_size", MOST_HEADERS_BYTES),
                ("grpc.max_allowed_incoming_connections", _MOST_CONNECTIONS),
                ("grpc.max_connection_idle_ms", _IDLE_MS),
                ("grpc.max_connection_age_ms", _AGE_MS),
                ("grpc.max_connection_age_grace_ms", _GRACE_MS),
                ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=_MOST_CALLS,
        )
        self._server.add_generic_rpc_handlers(
            [
                grpc.method_handlers_generic_handler(each.service, self._handlers(grpc, each))
                for each in (wire(), wire(HEALTH))
            ]
        )
        name = f"[{self._host}]" if ":" in self._host else self._host or "0.0.0.0"
        try:
            self.port = self._server.add_insecure_port(f"{name}:{self.port}")
        except RuntimeError as error:
            raise cannot_listen(f"{name}:{self.port} for gRPC", error) from None
        await self._server.start()

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, and let those under way end."""
        if self._server is not None:
            await self._server.stop(grace_s)

    def _handlers(self, grpc: Any, spoken: Wire) -> Mapping[str, Any]:
        """Return a handler for each method of a service.

        All are streams of one message: so it is seen here how long each message takes and how much of them is
        in memory; over the wire that is the same.
        """
        found = {
            method.name: grpc.stream_stream_rpc_method_handler(
                self._handler(grpc, method),
                request_deserializer=method.request.FromString,
                response_serializer=method.response.SerializeToString,
            )
            for method in spoken.methods
        }
        for name, why in _REFUSED.items() if spoken is wire() else ():
            found[name] = grpc.stream_stream_rpc_method_handler(_refuser(grpc, why))
        return found

    def _handler(self, grpc: Any, method: Method) -> Callable[[Any, Any], Awaitable[None]]:
        groups = {
            "ServerLive": Group.HEALTH,
            "ServerReady": Group.HEALTH,
            "Check": Group.HEALTH,
            "Watch": Group.HEALTH,
            "RepositoryModelLoad": Group.STEERING,
            "RepositoryModelUnload": Group.STEERING,
        }
        group = groups.get(method.name, Group.INFERENCE)
        answer = {"ModelInfer": self._infer, "Watch": self._watch}.get(method.name, self._told)

        async def handler(_: Any, context: Any) -> None:
            began_s, status = perf_counter(), "OK"
            try:
                self._access.check(group, _headers(context), pages=False)
                await answer(method, context)
            except Exception as error:
                if isinstance(error, grpc.aio.BaseError):
                    raise
                code, text = told(error)
                status = _CODES.get(code, "INTERNAL")
                await context.abort(getattr(grpc.StatusCode, status), text)
            finally:
                took_ms = round(1000 * (perf_counter() - began_s), 3)
                _log.debug("%s: %s gets %s in %s ms", context.peer(), method.name, status, took_ms)

        return handler

    async def _message(self, context: Any, patience_s: float) -> Any:
        """Return the one message of a call."""
        import grpc

        try:
            message = await asyncio.wait_for(context.read(), patience_s)
        except TimeoutError:
            raise Refusal(408, "the request did not come in time") from None
        if message is grpc.aio.EOF:
            raise Refusal(400, "the call has no message")
        return message

    async def _told(self, method: Method, context: Any) -> None:
        """Answer a call that asks about the server or a model."""
        message = await self._message(context, _CROWD_S)
        document = await self._document(method.name, message)
        await context.write(_message_of(method, document))

    async def _watch(self, method: Method, context: Any) -> None:
        """Say the health of something now, and again whenever it changes, until the server stops."""
        message, told_last = await self._message(context, _CROWD_S), None
        if self._watching >= _MOST_WATCHING:
            raise Refusal(429, f"{self._watching} calls watch already, and no more may; ask with Check")
        self._watching += 1
        try:
            stops = False
            while not stops:
                stops = self._service.phase is Phase.STOPPING  # first: so the end is told, too
                if (status := self._health(message.service)) != told_last:
                    await context.write(_message_of(method, {"status": status}))
                    told_last = status
                await asyncio.sleep(0.0 if stops else _LOOK_S)
        finally:
            self._watching -= 1

    def _health(self, whom: str) -> str:
        """Return the health of the server, or of the model of this name, in the words of its protocol."""
        service = self._service
        takes = service.ready if whom in ("", wire().service) else service.takes(whom)
        return "SERVICE_UNKNOWN" if takes is None else "SERVING" if takes else "NOT_SERVING"

    async def _document(self, name: str, message: Any) -> dict[str, Any]:
        service = self._service
        if repository := getattr(message, "repository_name", ""):
            raise InvalidInputError(
                f"repository_name is {shown(repository)}; there is one repository, which has no name"
            )
        match name:
            case "Check":
                if (status := self._health(message.service)) == "SERVICE_UNKNOWN":
                    raise Refusal(404, f"no model {shown(message.service)}; an empty name asks about all")
                return {"status": status}
            case "ServerLive":
                return {"live": service.live}
            case "ServerReady":
                return {"ready": service.ready}
            case "ModelReady":
                with suppress(Refusal):  # clients expect an answer, also about what is not there
                    return {"ready": service.model_ready(message.name, message.version)}
                return {"ready": False}
            case "ServerMetadata":
                return service.server_metadata()
            case "ModelMetadata":
                found = service.model_metadata(message.name, message.version)
                return {key: value for key, value in found.items() if key != "parameters"}
            case "ModelConfig":
                return {"config": service.model_config(message.name, message.version)}
            case "ModelStatistics":
                return service.statistics(message.name, message.version)
            case "RepositoryIndex":
                return {"models": service.index(ready=message.ready)}
            case "RepositoryModelLoad":
                await service.load(message.model_name, parameters_of(message.parameters))
            case "RepositoryModelUnload":
                await service.unload(message.model_name, parameters_of(message.parameters))
        return {}

    async def _infer(self, _: Method, context: Any) -> None:
        with self._bodies.held() as body:
            message, arrival_ns = await self._read(context), monotonic_ns()
            body.count(message.ByteSize())
            model, interface = self._service.accepting(message.model_name, message.model_version)
            if is_small(message):
                request, binary = read_message(interface, message)
            else:
                request, binary = await asyncio.to_thread(read_message, interface, message)
            del message
            inputs = request.inputs.complete(interface.inputs, memoryview(binary))
            del binary
            wishes = replace(request.wishes, arrival_ns=arrival_ns)
            served = await self._service.served(model, inputs, wishes, body.release)
            found, size = answer_message(interface, request, served, compared=model.compared)
            body.count(size, taken=True)
            await context.write(found)

    async def _read(self, context: Any) -> Any:
        """Return a request; of too many, the later ones are refused."""
        if self._reading >= self._most_reading:
            raise Refusal(429, f"{self._reading} messages are being read; try again later")
        patience_s = _PATIENCE_S if self._reading < _CROWD else _CROWD_S
        self._reading += 1
        try:
            return await self._message(context, patience_s)
        finally:
            self._reading -= 1


def _headers(context: Any) -> dict[str, bytes]:
    """Return what the metadata of a call say of who sends it."""
    metadata = context.invocation_metadata() or ()
    return {key: str(value).encode() for key, value in metadata if key == "authorization"}


def _message_of(method: Method, document: Mapping[str, Any]) -> Any:
    """Return the answer of a method that says what a document says."""
    from google.protobuf.json_format import ParseDict

    return ParseDict(document, method.response())


def _refuser(grpc: Any, why: str) -> Callable[[Any, Any], Awaitable[None]]:
    async def handler(_: Any, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, why)

    return handler
