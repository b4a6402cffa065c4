"""The web application: which address gives what, who may ask, and which code says what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ..executor.coordination.registration import Registered
from ..formulations.errors import InvalidInputError
from ..formulations.validation import shown, unique_keys
from . import protocol
from .access import Access, Group
from .codec import Codec
from .messages import (
    ARRIVAL,
    JSON,
    Bodies,
    Body,
    Headers,
    Message,
    Receive,
    Refusal,
    Reply,
    Send,
    chosen,
    ended_with_client,
    headers_of,
    packed,
    unpacked,
)
from .metrics import CONTENT_TYPE, prometheus_text
from .parameters import check_known
from .service import NOT_OFFERED, Phase, Service, told
from .tensors import members, written

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 4
"""How many times the largest body all bodies in memory may have together."""

_MOST_STEERING_BYTES = 64 * 1024
"""Largest body of a request about the repository of models."""


class App:
    """The Open Inference Protocol, version 2, with Triton's extensions, as an ASGI application."""

    def __init__(self, service: Service, *, access: Access, most_bytes: int) -> None:
        self.service = service
        self._access = access
        self._most_bytes = most_bytes
        self.bodies = Bodies(_LARGEST * most_bytes)
        self._codec = Codec()

    def close(self) -> None:
        """End what it has started. Can be called twice."""
        self._codec.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one message."""
        if scope["type"] != "http":
            return
        body, encoding = None, None
        try:
            headers = headers_of(scope["headers"])
            reply = await self._reply(scope, headers, receive)
            accepted = chosen(headers.get("accept-encoding", b"").decode("latin-1"))
            body, encoding = await packed(reply.body, accepted)
        except Exception as error:
            reply = _told(error)
        body = reply.body if body is None else body
        lines = [*reply.headers, ("content-length", str(len(body)))]
        lines += [("content-encoding", encoding), ("vary", "accept-encoding")] if encoding else []
        await send(
            {
                "type": "http.response.start",
                "status": reply.code,
                "headers": [(name.encode(), value.encode()) for name, value in lines],
            }
        )
        await send({"type": "http.response.body", "body": body})

    async def _reply(self, scope: Message, headers: Headers, receive: Receive) -> Reply:
        words = [unquote(word) for word in scope["raw_path"].decode("latin-1").strip("/").split("/")]
        self._access.check(_group(words), headers)
        service, arrival_s = self.service, scope.get(ARRIVAL)
        arrival_ns = None if arrival_s is None else round(1e9 * arrival_s)
        takes, method = _method(words), scope["method"]
        if takes and method not in takes:
            raise Refusal(405, f"{shown(scope['path'])} takes {takes[0]}, not {shown(method)}", allow=takes)
        match words:
            case ["v2"]:
                return _json(service.server_metadata())
            case ["v2", "health", "live"]:
                return _health("live", service.live, service.phase)
            case ["v2", "health", "ready"]:
                return _health("ready", service.ready, service.phase)
            case ["v2", "models"]:
                return _json({"models": list(service.catalogue.names)})
            case ["metrics"]:
                text = prometheus_text(service.counted(), service.batches)
                return Reply(200, text.encode(), (("content-type", CONTENT_TYPE),))
            case ["v2", "models", "stats"] if "stats" not in service.catalogue.names:
                return _json(service.statistics())
            case ["v2", kind, *_] if kind in NOT_OFFERED:
                raise Refusal(501, NOT_OFFERED[kind])
            case ["v2", "models", name, "versions", version, *rest]:
                return await self._about((name, version), rest, headers, receive, arrival_ns=arrival_ns)
            case ["v2", "models", name, *rest]:
                return await self._about((name, ""), rest, headers, receive, arrival_ns=arrival_ns)
            case ["v2", "repository", *rest] if takes:
                return await self._repository(rest, headers, receive)
            case ["v2", "units", unit, "withdraw" | "restore" as what]:
                return self._unit(unit, what)
        raise Refusal(404, f"there is nothing at {shown(scope['path'])}")

    async def _about(
        self,
        asked: tuple[str, str],
        rest: list[str],
        headers: Headers,
        receive: Receive,
        *,
        arrival_ns: int | None,
    ) -> Reply:
        service = self.service
        match rest:
            case []:
                return _json(service.model_metadata(*asked))
            case ["config"]:
                return _json(service.model_config(*asked))
            case ["stats"]:
                return _json(service.statistics(*asked))
            case ["ready"]:
                ready = service.model_ready(*asked)
                return _json({"name": asked[0], "ready": ready}, code=200 if ready else 503)
            case ["infer"]:
                model, interface = service.accepting(*asked)
                return await self._infer(model, interface, headers, receive, arrival_ns=arrival_ns)
        if rest and rest[0] in NOT_OFFERED:
            raise Refusal(501, NOT_OFFERED[rest[0]])
        service.catalogue.find(*asked)
        raise Refusal(404, f"model {asked[0]!r} has no {shown('/'.join(rest))}")

    async def _repository(self, rest: list[str], headers: Headers, receive: Receive) -> Reply:
        document = await self._document(headers, receive)
        check_known(document, ("ready",) if rest == ["index"] else ("parameters",), "member")
        match rest:
            case ["index"]:
                ready = document.get("ready", False)
                if not isinstance(ready, bool):
                    raise InvalidInputError(f"ready is {written(ready)}, must be true or false")
                return _json(self.service.index(ready=ready))
            case ["models", name, "load"]:
                await self.service.load(name, members(document, "parameters", "parameters"))
            case ["models", name, "unload"]:
                await self.service.unload(name, members(document, "parameters", "parameters"))
        return Reply(200, b"")

    async def _document(self, headers: Headers, receive: Receive) -> Mapping[str, Any]:
        """Return a small JSON object; where nothing is sent, an empty one."""
        with self.bodies.held() as body:
            most = _MOST_STEERING_BYTES
            data = await body.read(headers, receive, most_bytes=most, why=": nothing here needs more")
            data = await unpacked(data, _encoding(headers), most_bytes=most)
            try:
                document = json.loads(bytes(data) or b"{}", object_pairs_hook=unique_keys)
            except (ValueError, RecursionError) as error:
                raise InvalidInputError(f"the request is no JSON document: {error}") from None
        if not isinstance(document, dict):
            raise InvalidInputError(f"the request is {written(document)}, must be a JSON object")
        return document

    async def _infer(
        self,
        model: Registered,
        interface: protocol.Interface,
        headers: Headers,
        receive: Receive,
        *,
        arrival_ns: int | None,
    ) -> Reply:
        with self.bodies.held() as body:
            data = await self._read(interface, body, headers, receive)
            with ended_with_client(receive):
                request, inputs = await self._request(interface, data, headers)
                del data
                wishes = replace(request.wishes, arrival_ns=arrival_ns)
                served = await self.service.served(model, inputs, wishes, body.release)
                draft = protocol.draft(interface, request, served, compared=model.compared)
                said = await self._codec.write(draft.document, draft.arrays)
        if not draft.blobs:
            return Reply(200, said)
        kind = ("content-type", "application/octet-stream")
        return Reply(200, b"".join([said, *draft.blobs]), (kind, (protocol.HEADER_LENGTH, str(len(said)))))

    async def _read(
        self, interface: protocol.Interface, body: Body, headers: Headers, receive: Receive
    ) -> memoryview:
        needed = interface.most_bytes
        why = (
            " (--max-body)"
            if self._most_bytes <= needed
            else f": no request of {interface.model!r} needs more"
        )
        most = min(self._most_bytes, needed)
        data = await body.read(headers, receive, most_bytes=most, why=why)
        encoding = _encoding(headers)
        if encoding != "identity":
            data = await unpacked(data, encoding, most_bytes=most)
            body.count(len(data))
        return data

    async def _request(
        self, interface: protocol.Interface, data: memoryview, headers: Headers
    ) -> tuple[protocol.InferRequest, dict[str, NDArray[Any]]]:
        told_bytes = headers.get(protocol.HEADER_LENGTH)
        length = protocol.document_bytes(
            interface, None if told_bytes is None else told_bytes.decode("latin-1"), len(data)
        )
        request = await self._codec.read(interface, data[:length], len(data) - length)
        return request, request.inputs.complete(interface.inputs, data[length:])

    def _unit(self, unit: str, what: str) -> Reply:
        coordinator = self.service.coordinator
        try:
            coordinator.platform.index_of(unit)
        except InvalidInputError as error:
            raise Refusal(404, str(error)) from None
        (coordinator.withdraw if what == "withdraw" else coordinator.restore)(unit)
        return _json({"unit": unit, "available": what == "restore"})


_GET, _POST = ("GET", "HEAD"), ("POST",)
_OF_MODELS = {"config": _GET, "stats": _GET, "ready": _GET, "infer": _POST}


def _method(words: list[str]) -> tuple[str, ...] | None:
    """Return the methods that an address takes; None: there is nothing."""
    match words:
        case ["v2"] | ["metrics"] | ["v2", "models"] | ["v2", "health", "live" | "ready"]:
            return _GET
        case ["v2", "models", _] | ["v2", "models", _, "versions", _]:
            return _GET
        case ["v2", "models", _, what] | ["v2", "models", _, "versions", _, what]:
            return _OF_MODELS.get(what)
        case ["v2", "repository", "index"] | ["v2", "repository", "models", _, "load" | "unload"]:
            return _POST
        case ["v2", "units", _, "withdraw" | "restore"]:
            return _POST
    return None


def _group(words: list[str]) -> Group:
    match words:
        case ["v2", "health", *_]:
            return Group.HEALTH
        case ["v2", "units", *_] | ["v2", "repository", "models", *_]:
            return Group.STEERING
        case ["metrics", *_]:
            return Group.METRICS
    return Group.INFERENCE


def _encoding(headers: Headers) -> str:
    return headers.get("content-encoding", b"identity").decode("latin-1").strip().lower()


def _health(what: str, well: bool, phase: Phase) -> Reply:  # noqa: FBT001 - the answer to a question
    return _json({what: well, "state": str(phase)}, code=200 if well else 503)


def _json(document: Any, *, code: int = 200) -> Reply:
    return Reply(code, json.dumps(document, separators=(",", ":")).encode())


def _told(error: Exception) -> Reply:
    """Return an error as clients of the protocol expect it."""
    code, text = told(error)
    own = [("connection", "close")] if isinstance(error, Refusal) and error.closes else []
    own += [("allow", ", ".join(error.allow))] if isinstance(error, Refusal) and error.allow else []
    further = {401: ("www-authenticate", "Bearer"), 429: ("retry-after", "1"), 503: ("retry-after", "1")}
    headers = (("content-type", JSON), *([further[code]] if code in further else []), *own)
    return Reply(code, json.dumps({"error": text}).encode(), headers)
