"""Requests and answers of the Open Inference Protocol (version 2, REST, with binary tensors)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..executor.coordination.registration import Registered
from ..executor.coordination.requests import Served
from ..formulations.errors import InvalidInputError
from ..formulations.nearness import meant, shown
from ..version import __version__
from .tensors import DATATYPES, Spelled, binary_data, described, json_data, parse_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEADER_LENGTH = "inference-header-content-length"
"""Header that says where the JSON document ends and binary data begins."""

_MOST_DEADLINE_US = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class InferRequest:
    """A request as it came.

    Attributes
    ----------
    inputs
        By name.
    outputs
        Names of the outputs that are wanted, and whether each comes in binary form.
    id
        As the client names it; None: it does not.
    deadline_us
        By when it has to be done; None: as the model says.
    """

    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, bool]
    id: str | None
    deadline_us: int | None


def parse_infer(model: Registered, body: memoryview, header_length: str | None) -> InferRequest:
    """Return a request from the body of its message.

    Parameters
    ----------
    model
        Whom it asks.
    body
        A JSON document, and binary data behind it.
    header_length
        Length of the document as the header says it; None: it is all of the body.

    Raises
    ------
    InvalidInputError
        It is malformed, or does not fit the model.
    """
    length = len(body)
    if header_length is not None:
        if not header_length.isascii() or not header_length.isdigit() or int(header_length[:20]) > len(body):
            raise InvalidInputError(
                f"Inference-Header-Content-Length is {shown(header_length)}, "
                f"but the body has {len(body)} bytes"
            )
        length = int(header_length)
    text = bytes(body[:length])
    document = _document(text)
    name, parameters = document.get("id"), document.get("parameters", {})
    if name is not None and not isinstance(name, str):
        raise InvalidInputError(f"id is {shown(str(name))}, must be a text")
    if not isinstance(parameters, dict):
        raise InvalidInputError("parameters must be an object")
    specs, binary = model.held.model.inputs, body[length:]
    try:
        inputs = parse_inputs(specs, _objects(document, "inputs"), binary)
    except InvalidInputError:  # once more, slowly, to say what is wrong as the client has written it
        inputs = parse_inputs(specs, _objects(_document(text, number=Spelled), "inputs"), binary)
    return InferRequest(
        inputs=inputs,
        outputs=_outputs(model, document, parameters),
        id=name,
        deadline_us=_deadline_us(parameters),
    )


def _document(text: bytes, *, number: Callable[[str], float] = float) -> dict[str, Any]:
    """Return a JSON document; NaN and Infinity, which JSON does not have, are numbers that fit nowhere."""
    try:
        found = json.loads(text, parse_float=number, parse_constant=number)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the request is no JSON document: {error}") from None
    if not isinstance(found, dict):
        raise InvalidInputError("the request must be a JSON object")
    return found


def _objects(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = document.get(key)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InvalidInputError(f"{key} must be a list of objects, each with a name")
    return found


def _outputs(
    model: Registered, document: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, bool]:
    known = [spec.name for spec in model.held.model.outputs]
    usual = bool(parameters.get("binary_data_output", False))
    if not document.get("outputs"):
        return dict.fromkeys(known, usual)
    wanted = {}
    for output in _objects(document, "outputs"):
        own, name = output.get("parameters", {}), output.get("name")
        if not isinstance(own, dict):
            raise InvalidInputError(f"output {shown(str(name))} has parameters that are no object")
        if not isinstance(name, str) or name not in known:
            raise InvalidInputError(
                f"{shown(str(name))} is no output of {model.name!r}; {meant(str(name), known)}"
            )
        if own.get("classification"):
            raise InvalidInputError(f"output {name!r}: classification is not done here; take its numbers")
        if own.get("shared_memory_region"):
            raise InvalidInputError(f"output {name!r}: shared memory with clients is not offered")
        wanted[name] = bool(own.get("binary_data", usual))
    return wanted


def _deadline_us(parameters: Mapping[str, Any]) -> int | None:
    """Return the deadline: `deadline_ms`, or `timeout` in microseconds as Triton's clients say it."""
    for key, scale in (("deadline_ms", 1000), ("timeout", 1)):
        if (value := parameters.get(key)) is not None:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 1 <= value * scale <= _MOST_DEADLINE_US:
                raise InvalidInputError(
                    f"parameter {key} is {shown(str(value))}, must be a number above 0, at most a day"
                )
            return int(value * scale)
    return None


def answer(model: Registered, request: InferRequest, served: Served) -> tuple[bytes, int | None]:
    """Return the body of an answer, and the length of its JSON document where binary data follows."""
    outputs, blobs = [], []
    for name, binary in request.outputs.items():
        array = served.outputs[name]
        told: dict[str, Any] = {
            "name": name,
            "datatype": DATATYPES[str(array.dtype)],
            "shape": list(array.shape),
        }
        if binary:
            blobs.append(binary_data(array))
            told["parameters"] = {"binary_data_size": len(blobs[-1])}
        else:
            told["data"], lacking = json_data(array)
            if lacking:
                told["parameters"] = lacking
        outputs.append(told)
    document = {
        "model_name": served.name,
        "model_version": "1",
        **({} if request.id is None else {"id": request.id}),
        "parameters": {
            "latency_us": round(served.latency_us),
            "waited_us": round(served.waited_us),
            "units": ",".join(chunk.unit for chunk in served.chunks),
            "late": served.late,
            "compared": model.compared,
        },
        "outputs": outputs,
    }
    head = json.dumps(document, separators=(",", ":")).encode()
    return b"".join([head, *blobs]), len(head) if blobs else None


def server_metadata() -> dict[str, Any]:
    """Return who serves."""
    return {"name": "gapless", "version": __version__, "extensions": ["binary_tensor_data"]}


def model_metadata(model: Registered) -> dict[str, Any]:
    """Return what a model takes and gives."""
    return {
        "name": model.name,
        "versions": ["1"],
        "platform": "gapless",
        "inputs": described(model.held.model.inputs),
        "outputs": described(model.held.model.outputs),
        "parameters": {"compared": model.compared, "numbers": model.numbers},
    }
