"""The process that reads large requests and writes large answers, and what the server and it say."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from math import prod
from typing import TYPE_CHECKING, Any

from ..executor.model import TensorSpec
from ..formulations.errors import InvalidInputError
from .protocol import Interface, read_request, write_document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..executor.workers import Link
    from .messages import Buffer

_NICE = 5
_LENGTHS = struct.Struct("<QQ")


def work(link: Link, settings: Mapping[str, Any]) -> None:
    """Read requests and write answers until the parent is gone: all of the child process."""
    os.nice(_NICE)  # the units work first
    with socket.socket(fileno=settings["descriptor"]) as end:
        while (asked := receive(end)) is not None:
            try:
                said: tuple[Mapping[str, Any], Buffer] = _done(*asked)
            except InvalidInputError as error:
                said = {"message": error.message, "problems": error.problems}, b""
            except Exception as error:
                said = {"failed": f"{type(error).__name__}: {error}"}, b""
            del asked
            send(end, *said)


def _done(head: Mapping[str, Any], data: bytearray) -> tuple[Mapping[str, Any], Buffer]:
    if "document" in head:
        arrays = {int(index): array for index, array in split(head["arrays"], data).items()}
        return {}, write_document(head["document"], arrays)
    specs = tuple(
        TensorSpec(name=name, shape=tuple(shape), dtype=dtype) for name, shape, dtype in head["inputs"]
    )
    interface = Interface(
        model=head["model"], inputs=specs, outputs=tuple(head["outputs"]), recurrent=head["recurrent"]
    )
    found = read_request(interface, data, head["binary"])
    told, parts = joined(found.inputs.arrays)
    said = {
        "arrays": told,
        "spans": found.inputs.spans,
        "outputs": found.outputs,
        "id": found.id,
        "wishes": asdict(found.wishes),
    }
    return said, parts


def joined(arrays: Mapping[str, NDArray[Any]]) -> tuple[list[list[Any]], bytes]:
    """Return name, shape and type of arrays, and their data one behind the other."""
    told = [[name, list(array.shape), str(array.dtype)] for name, array in arrays.items()]
    return told, b"".join(array.tobytes() for array in arrays.values())


def split(told: Sequence[Sequence[Any]], data: bytearray) -> dict[str, NDArray[Any]]:
    """Return the arrays that `joined` was given."""
    import numpy as np

    found, at = {}, 0
    for name, shape, dtype in told:
        found[name] = np.frombuffer(data, dtype, prod(shape), at).reshape(shape)
        at += found[name].nbytes
    return found


def send(end: socket.socket, head: Mapping[str, Any], data: Buffer) -> None:
    """Say something to the other end: a small document, and data."""
    text = json.dumps(head).encode()
    end.sendall(_LENGTHS.pack(len(text), len(data)) + text)
    end.sendall(data)


def receive(end: socket.socket) -> tuple[dict[str, Any], bytearray] | None:
    """Return what the other end says; None: it is gone."""
    with suppress(ConnectionError):
        if lengths := _exactly(end, _LENGTHS.size):
            head_bytes, data_bytes = _LENGTHS.unpack(lengths)
            head, data = _exactly(end, head_bytes), _exactly(end, data_bytes)
            if head is not None and data is not None:
                return json.loads(head), data
    return None


def _exactly(end: socket.socket, count: int) -> bytearray | None:
    found = bytearray(count)
    view, at = memoryview(found), 0
    while at < count:
        got = end.recv_into(view[at:])
        if not got:
            return None
        at += got
    return found
