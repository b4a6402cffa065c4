"""The web application: which address gives what, who may ask, and which code says what went wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from itertools import accumulate
from typing import Any
from urllib.parse import unquote

from ..executor.coordination.coordinator import Coordinator
from ..executor.coordination.registration import Registered
from ..executor.coordination.requests import Served
from ..executor.coordination.tally import BUCKETS_US, Statistics
from ..formulations.errors import (
    DroppedRequestError,
    GaplessError,
    InvalidInputError,
    QueueFullError,
    RefusedRequestError,
)
from ..formulations.nearness import shown
from . import protocol
from .access import Access, Group
from .codec import Codec
from .messages import (
    JSON,
    Bodies,
    Body,
    Headers,
    Message,
    Receive,
    Refusal,
    Reply,
    Send,
    ended_with_client,
    headers_of,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Rows = Iterable[tuple[str, Mapping[str, str], float]]
"""Suffix of the name, labels, value."""


def prometheus_text(statistics: Statistics) -> str:
    """Return what a coordinator counts, as Prometheus reads it."""
    models, units = statistics.models, statistics.units
    families: tuple[tuple[str, str, str, Rows], ...] = (
        (
            "gapless_requests_total",
            "counter",
            "Requests by what became of them.",
            [
                ("", {"model": model.name, "result": fate}, count)
                for model in models
                for fate, count in model.fates.items()
            ],
        ),
        (
            "gapless_request_seconds",
            "histogram",
            "From arrival to the end of the last chunk.",
            _latencies(statistics),
        ),
        ("gapless_requests_waiting", "gauge", "Accepted and not answered.", [("", {}, statistics.waiting)]),
        ("gapless_decisions_total", "counter", "Chunks that were started.", [("", {}, statistics.decisions)]),
        (
            "gapless_unit_busy_seconds_total",
            "counter",
            "Time that a unit has worked.",
            [("", {"unit": unit.name}, unit.busy_us / 1e6) for unit in units],
        ),
        (
            "gapless_unit_chunks_total",
            "counter",
            "Chunks that a unit has run.",
            [("", {"unit": unit.name}, unit.chunks) for unit in units],
        ),
        (
            "gapless_unit_available",
            "gauge",
            "1 while a unit may be used.",
            [("", {"unit": unit.name}, unit.available) for unit in units],
        ),
        (
            "gapless_unit_losses_total",
            "counter",
            "Workers that were lost, or could not be started.",
            [("", {"unit": unit.name}, unit.losses) for unit in units],
        ),
        (
            "gapless_unit_restarts_total",
            "counter",
            "Workers that were started again.",
            [("", {"unit": unit.name}, unit.restarts) for unit in units],
        ),
        (
            "gapless_unit_memory_bytes",
            "gauge",
            "Most memory of a worker when it last opened models.",
            [("", {"unit": unit.name}, unit.rss_bytes) for unit in units],
        ),
        ("gapless_uptime_seconds", "gauge", "Since the start.", [("", {}, statistics.seconds)]),
    )
    return "".join(f"{line}\n" for family in families for line in _lines(*family))


def _latencies(statistics: Statistics) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for model in statistics.models:
        counts = tuple(accumulate(model.buckets))
        for end_us, count in zip((*BUCKETS_US, None), counts, strict=True):
            end = "+Inf" if end_us is None else f"{end_us / 1e6:g}"
            yield "_bucket", {"model": model.name, "le": end}, count
        yield "_sum", {"model": model.name}, model.total_us / 1e6
        yield "_count", {"model": model.name}, counts[-1]


def _lines(name: str, kind: str, about: str, rows: Rows) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for suffix, labels, value in rows:
        said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"{name}{suffix}{f'{{{said}}}' if said else ''} {float(value):.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


_HEALTH = ("live", "ready")
_VERSION = "1"

_LARGEST = 4
"""How many times the largest body all bodies in memory may have together."""


class App:
    """The Open Inference Protocol, version 2, as an ASGI application."""

    def __init__(self, coordinator: Coordinator, *, access: Access, most_bytes: int) -> None:
        self._coordinator = coordinator
        self._access = access
        self._most_bytes = most_bytes
        self._bodies = Bodies(_LARGEST * most_bytes)
        self._codec = Codec()
        self._interfaces: dict[str, tuple[Registered, protocol.Interface]] = {}
        self.stopping = False  # whether no more requests are taken

    def close(self) -> None:
        """End what it has started. Can be called twice."""
        self._codec.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one message."""
        if scope["type"] != "http":
            return
        try:
            reply = await self._reply(scope, receive)
        except Exception as error:
            reply = _told(error)
        headers = [*reply.headers, ("content-length", str(len(reply.body)))]
        await send(
            {
                "type": "http.response.start",
                "status": reply.code,
                "headers": [(name.encode(), value.encode()) for name, value in headers],
            }
        )
        await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Message, receive: Receive) -> Reply:
        headers = headers_of(scope["headers"])
        words = [unquote(word) for word in scope["raw_path"].decode("latin-1").strip("/").split("/")]
        self._access.check(_group(words), headers)
        match scope["method"], words:
            case "GET", ["v2"]:
                return _json(protocol.server_metadata())
            case "GET", ["v2", "health", what] if what in _HEALTH:
                return self._health(what)
            case "GET", ["v2", "models"]:
                return _json({"models": list(self._coordinator.registered)})
            case "GET", ["metrics"]:
                text = prometheus_text(self._coordinator.statistics())
                return Reply(200, text.encode(), (("content-type", CONTENT_TYPE),))
            case method, ["v2", "models", name, *rest]:
                model = self._model(name)
                if rest[:1] == ["versions"] and len(rest) > 1:
                    if rest[1] != _VERSION:
                        raise Refusal(404, f"model {name!r} has the version 1 only, not {shown(rest[1])}")
                    rest = rest[2:]
                return await self._about(model, method, rest, headers, receive)
            case "POST", ["v2", "units", unit, "withdraw" | "restore" as what]:
                return self._unit(unit, what)
        raise Refusal(404, f"there is nothing at {shown(scope['path'])} for {shown(scope['method'])}")

    async def _about(
        self, model: Registered, method: str, rest: list[str], headers: Headers, receive: Receive
    ) -> Reply:
        match method, rest:
            case "GET", []:
                return _json(protocol.model_metadata(model))
            case "GET", ["ready"]:
                ready = not self.stopping and self._coordinator.can_serve(model.name)
                return _json({"name": model.name, "ready": ready}, code=200 if ready else 503)
            case "POST", ["infer"]:
                return await self._infer(model, headers, receive)
        raise Refusal(404, f"model {model.name!r} has no {shown('/'.join(rest))} for {shown(method)}")

    async def _infer(self, model: Registered, headers: Headers, receive: Receive) -> Reply:
        if self.stopping:
            raise Refusal(503, "the server is stopping")
        encoding = headers.get("content-encoding", b"identity").decode("latin-1")
        if encoding != "identity":
            raise Refusal(415, f"bodies in {shown(encoding)} are not taken: send them as they are")
        interface = self._interface(model)
        with self._bodies.held() as body:
            data = await self._read(interface, body, headers, receive)
            with ended_with_client(receive):
                request, answer = await self._submitted(interface, data, headers)
                del data
                body.release()  # the inputs are copied
                served = await self._answer(answer)
                draft = protocol.draft(model, request, served)
                said = await self._codec.write(draft.document, draft.arrays)
        if not draft.blobs:
            return Reply(200, said)
        kind = ("content-type", "application/octet-stream")
        return Reply(200, b"".join([said, *draft.blobs]), (kind, (protocol.HEADER_LENGTH, str(len(said)))))

    def _interface(self, model: Registered) -> protocol.Interface:
        known = self._interfaces.get(model.name)
        if known is None or known[0] is not model:
            known = self._interfaces[model.name] = model, protocol.interface_of(model)
        return known[1]

    async def _read(
        self, interface: protocol.Interface, body: Body, headers: Headers, receive: Receive
    ) -> memoryview:
        needed = interface.most_bytes
        why = (
            " (--max-body)"
            if self._most_bytes <= needed
            else f": no request of {interface.model!r} needs more"
        )
        return await body.read(headers, receive, most_bytes=min(self._most_bytes, needed), why=why)

    async def _submitted(
        self, interface: protocol.Interface, data: memoryview, headers: Headers
    ) -> tuple[protocol.InferRequest, Future[Served]]:
        told = headers.get(protocol.HEADER_LENGTH)
        length = protocol.document_bytes(
            interface, None if told is None else told.decode("latin-1"), len(data)
        )
        request = await self._codec.read(interface, data[:length], len(data) - length)
        inputs = request.inputs.complete(interface.inputs, data[length:])
        answer = self._coordinator.submit(interface.model, inputs, deadline_us=request.deadline_us)
        return request, answer

    async def _answer(self, answer: Future[Served]) -> Served:
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            self._coordinator.abandon(answer)
            raise

    def _model(self, name: str) -> Registered:
        found = self._coordinator.registered.get(name)
        if found is None:
            there = ", ".join(map(repr, self._coordinator.registered))
            raise Refusal(404, f"no model {shown(name)}; there are {there}")
        return found

    def _health(self, what: str) -> Reply:
        models = self._coordinator.registered
        well = self._coordinator.alive
        if what == "ready":
            well = well and not self.stopping and all(map(self._coordinator.can_serve, models))
        return _json({what: well}, code=200 if well else 503)

    def _unit(self, unit: str, what: str) -> Reply:
        (self._coordinator.withdraw if what == "withdraw" else self._coordinator.restore)(unit)
        return _json({"unit": unit, "available": what == "restore"})


def _group(words: list[str]) -> Group:
    match words:
        case ["v2", "health", *_]:
            return Group.HEALTH
        case ["v2", "units", *_]:
            return Group.STEERING
        case ["metrics", *_]:
            return Group.METRICS
    return Group.INFERENCE


def _json(document: Mapping[str, Any], *, code: int = 200) -> Reply:
    return Reply(code, json.dumps(document, separators=(",", ":")).encode())


_CODES: tuple[tuple[type[Exception], int], ...] = (
    (QueueFullError, 429),
    (RefusedRequestError, 503),
    (DroppedRequestError, 503),
    (InvalidInputError, 400),
    (GaplessError, 500),
)
"""Status code of each kind of error; the first that fits counts."""


def _told(error: Exception) -> Reply:
    """Return an error as clients of the protocol expect it."""
    if isinstance(error, Refusal):
        code, text = error.code, str(error)
    else:
        code = next((code for kind, code in _CODES if isinstance(error, kind)), 500)
        text = str(error) if isinstance(error, GaplessError) else f"{type(error).__name__}: {error}"
    closes = [("connection", "close")] if isinstance(error, Refusal) and error.closes else []
    further = {401: ("www-authenticate", "Bearer"), 429: ("retry-after", "1"), 503: ("retry-after", "1")}
    headers = (("content-type", JSON), *([further[code]] if code in further else []), *closes)
    return Reply(code, json.dumps({"error": text}).encode(), headers)
