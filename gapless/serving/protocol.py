"""Requests and answers of the Open Inference Protocol (version 2, REST, with binary tensors)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

from ..executor.model import TensorSpec
from ..formulations.errors import InvalidInputError
from ..formulations.validation import meant, shown, unique_keys
from .parameters import Wishes, check_known, flag, read_wishes
from .tensors import (
    DATATYPES,
    SHARED_MEMORY,
    Inputs,
    Spelled,
    binary_data,
    has,
    json_data,
    members,
    read_inputs,
    written,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..executor.coordination.requests import Served

HEADER_LENGTH = "inference-header-content-length"
"""Header that says where the JSON document ends and binary data begins."""

BYTES_AN_ELEMENT = 64
"""The most that an element takes in JSON: 25 characters of a number, and a line of its own, indented."""

_BYTES_A_VALUE = 10  # of a varint; all other values have 8 at most
_MOST_DIGITS = 18
_MOST_NAMED = 8
_FURTHER_BYTES = 64 * 1024
_FURTHER_VALUES = 1_000
_BYTES_A_TENSOR = 1_024
_OF_DOCUMENTS = ("id", "inputs", "model_name", "outputs", "parameters")
_OF_INPUTS = ("data", "datatype", "name", "parameters", "shape")
_OF_OUTPUTS = ("binary_data", "classification", *SHARED_MEMORY)


@dataclass(frozen=True, kw_only=True)
class Interface:
    """What requests of a model may name, and how large they can be."""

    model: str
    inputs: tuple[TensorSpec, ...]  # what it takes
    outputs: tuple[str, ...]  # names of what it gives
    version: str = "1"
    recurrent: bool = False  # whether it keeps a state for each sequence of requests

    @cached_property
    def _elements(self) -> int:
        return sum(prod(spec.shape) for spec in self.inputs)

    @cached_property
    def most_document_bytes(self) -> int:
        """Largest JSON document of a request."""
        tensors = len(self.inputs) + len(self.outputs)
        return BYTES_AN_ELEMENT * self._elements + _BYTES_A_TENSOR * tensors + _FURTHER_BYTES

    @cached_property
    def most_bytes(self) -> int:
        """Largest body of a request."""
        return self.most_document_bytes + sum(spec.bytes for spec in self.inputs)

    @cached_property
    def most_message_bytes(self) -> int:
        """Largest message of gRPC."""
        tensors = len(self.inputs) + len(self.outputs)
        return _BYTES_A_VALUE * self._elements + _BYTES_A_TENSOR * tensors + _FURTHER_BYTES

    def check_count(self, given: int) -> None:
        """Refuse a request of more inputs than the model has."""
        if given > len(self.inputs):
            raise InvalidInputError(
                f"{given} inputs are given; {self.model!r} takes {len(self.inputs)}: "
                + ", ".join(repr(spec.name) for spec in self.inputs[:_MOST_NAMED])
            )

    @cached_property
    def most_values(self) -> int:
        """Most values in a JSON document of a request."""
        return self._elements + 16 * (len(self.inputs) + len(self.outputs)) + _FURTHER_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class InferRequest:
    """A request as its JSON document says it."""

    inputs: Inputs  # those that came in JSON, and where the others lie
    outputs: Mapping[str, bool]  # names of the outputs that are wanted, and whether each comes in binary form
    id: str | None  # as the client names it; None: it does not
    wishes: Wishes  # what its parameters ask for


def document_bytes(interface: Interface, header_length: str | None, body_bytes: int) -> int:
    """Return how much of a body is its JSON document.

    `header_length`: length of the document as the header says it; None: it is all of the body.
    """
    length = body_bytes
    if header_length is not None:
        known = header_length.isascii() and header_length.isdigit() and len(header_length) <= _MOST_DIGITS
        if not known or int(header_length) > body_bytes:
            raise InvalidInputError(
                f"Inference-Header-Content-Length is {shown(header_length)}, "
                f"but the body has {body_bytes} bytes"
            )
        length = int(header_length)
    if length > interface.most_document_bytes:
        raise InvalidInputError(
            f"the JSON document has {length:,} bytes; the inputs of {interface.model!r} need at most "
            f"{interface.most_document_bytes:,} ({BYTES_AN_ELEMENT} an element)"
        )
    return length


def read_request(interface: Interface, text: bytes | bytearray, binary_bytes: int) -> InferRequest:
    """Return a request from its JSON document."""
    if (commas := text.count(b",")) > interface.most_values:
        raise InvalidInputError(
            f"the JSON document has more than {commas:,} values; the inputs of {interface.model!r} have "
            f"{interface.most_values - _FURTHER_VALUES:,} at most"
        )
    try:
        try:
            document = json.loads(text, object_pairs_hook=unique_keys)
            return read_document(interface, document, binary_bytes)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise _Malformed(f"the request is no JSON document: {error}") from None
        except _Malformed:
            raise
        except ValueError:  # once more, slowly, to say what is wrong as the client has written it
            spelled = json.loads(
                text,
                parse_float=Spelled,
                parse_constant=Spelled,
                parse_int=_whole,
                object_pairs_hook=unique_keys,
            )
            return read_document(interface, spelled, binary_bytes)
    except RecursionError:
        raise InvalidInputError("the request is no JSON document: it is nested too deeply") from None


class _Malformed(InvalidInputError):
    """Text that is no JSON document."""


def _whole(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # more digits than Python takes
        return Spelled(text)


def read_document(interface: Interface, document: Any, binary_bytes: int) -> InferRequest:
    """Return a request from its document; NaN and Infinity, which JSON does not have, fit nowhere."""
    if not isinstance(document, dict):
        raise InvalidInputError(f"the request is {written(document)}, must be a JSON object")
    if document.get("model_name", interface.model) != interface.model:  # KServe's client names it here, too
        raise InvalidInputError(
            f"model_name is {written(document['model_name'])}, but the address names {interface.model!r}"
        )
    name = document.get("id")
    if name is not None and not isinstance(name, str):
        raise InvalidInputError(f"id is {written(name)}, must be a string")
    parameters = members(document, "parameters", "parameters")
    given = _objects(document, "inputs")
    interface.check_count(len(given))
    found = InferRequest(
        inputs=read_inputs(interface.inputs, given, binary_bytes),
        outputs=_outputs(interface, document, parameters),
        id=name,
        wishes=read_wishes(interface.model, parameters, recurrent=interface.recurrent),
    )
    check_known(document, _OF_DOCUMENTS, "member")
    for tensor in given:
        check_known(tensor, _OF_INPUTS, f"input {shown(tensor['name'])}: member")
    return found


def _objects(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = document.get(key)
    if not isinstance(found, list):
        words = f"is {written(found)}" if key in document else "is missing"
        raise InvalidInputError(f"{key} {words}, must be a list of objects, each with a name")
    for index, each in enumerate(found):
        if not isinstance(each, dict):
            raise InvalidInputError(f"{key}[{index}] is {written(each)}, must be an object with a name")
        if not isinstance(each.get("name"), str):
            raise InvalidInputError(f"{key}[{index}] {has(each, 'name')}: a string is needed")
    return found


def _outputs(
    interface: Interface, document: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, bool]:
    usual = flag(parameters, "binary_data_output", "parameter", usual=False)
    if document.get("outputs") in (None, []):
        return dict.fromkeys(interface.outputs, usual)
    wanted = dict[str, bool]()
    for output in _objects(document, "outputs"):
        name = output["name"]
        if name not in interface.outputs:
            raise InvalidInputError(
                f"{shown(name)} is no output of {interface.model!r}; {meant(name, interface.outputs)}"
            )
        if name in wanted:
            raise InvalidInputError(f"output {name!r} is asked for twice")
        check_known(output, ("name", "parameters"), f"output {name!r}: member")
        own = members(output, "parameters", f"output {name!r}: parameters")
        if own.get("classification"):
            raise InvalidInputError(
                f"output {name!r}: classification is {written(own['classification'])}, which is not done "
                "here; take its numbers"
            )
        if own.get("shared_memory_region"):
            raise InvalidInputError(f"output {name!r}: shared memory with clients is not offered")
        check_known(own, _OF_OUTPUTS, f"output {name!r}: parameter")
        wanted[name] = flag(own, "binary_data", f"output {name!r}:", usual=usual)
    return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An answer before its outputs are written as JSON."""

    document: Mapping[str, Any]  # all of it but the data of outputs in JSON
    arrays: Mapping[int, NDArray[Any]]  # by index of output, those that are to come in JSON
    blobs: Sequence[bytes]  # what follows the document


def draft(interface: Interface, request: InferRequest, served: Served, *, compared: bool) -> Draft:
    """Return the answer to a request; `compared`: whether the numbers of the model were."""
    outputs, arrays, blobs = [], {}, []
    for index, (name, binary) in enumerate(request.outputs.items()):
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
            arrays[index] = array
        outputs.append(told)
    document = {
        "model_name": interface.model,
        "model_version": interface.version,
        **({} if request.id is None else {"id": request.id}),
        "parameters": {
            "latency_us": round(served.latency_us),
            "waited_us": round(served.waited_us),
            "units": ",".join(chunk.unit for chunk in served.chunks),
            "late": served.late,
            "compared": compared,
        },
        "outputs": outputs,
    }
    return Draft(document=document, arrays=arrays, blobs=blobs)


def write_document(document: Mapping[str, Any], arrays: Mapping[int, NDArray[Any]]) -> bytes:
    """Return the document of an answer, with the data of its outputs in JSON."""
    for index, array in arrays.items():
        told = document["outputs"][index]
        told["data"], lacking = json_data(array)
        if lacking:
            told["parameters"] = lacking
    return json.dumps(document, separators=(",", ":")).encode()
