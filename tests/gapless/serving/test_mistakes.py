"""Any JSON value in any place of a request, and messages whose length is said in two ways: 400 says why."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

import gapless
from gapless.executor.model import TensorSpec
from gapless.formulations.errors import InvalidInputError
from gapless.serving.protocol import Interface, read_request
from gapless.serving.tensors import DATATYPES
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import json_body, over_socket, vector

INFER = "/v2/models/net/infer"

GIANT = "1" + "0" * 5_000
"""More digits than Python reads."""

VALUES = (
    "null", "true", "false", "0", "-1", "1", "1.5", "1e999", "-1e999", "NaN", GIANT, f"-{GIANT}.5", '""',
    '"x"', '"\\ud800"', "[]", "[1]", "[[]]", "[[1, 2], [3]]", '["x"]', "{}", '{"x": 1}', '{"name": "x"}',
    "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900,
)  # fmt: skip


def request(dtype: str) -> dict[str, Any]:
    values = [True, False] if dtype == "bool" else [1, 0]
    tensor = {"name": "x", "shape": [1, 2], "datatype": DATATYPES[dtype]}
    binary = {"name": "b", "shape": [2], "datatype": "INT8", "parameters": {"binary_data_size": 2}}
    outputs = [
        {"name": "y", "parameters": {"binary_data": True, "classification": 0, "shared_memory_region": ""}}
    ]
    parameters = {"binary_data_output": False, "deadline_ms": 5.5, "timeout": 0, "priority": 2}
    return {
        "id": "seven",
        "inputs": [{**tensor, "data": [values], "parameters": {}}, binary],
        "outputs": outputs,
        "parameters": parameters,
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(each, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], text: str) -> str:
    """Return a document as text, with one value of it as it is given."""
    if not path:
        return text
    items = value.items() if isinstance(value, dict) else enumerate(value)
    parts = [
        (key, replaced(each, path[1:], text) if key == path[0] else json.dumps(each)) for key, each in items
    ]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {each}" for key, each in parts) + "}"
    return "[" + ", ".join(each for _, each in parts) + "]"


def defect(interface: Interface, text: str) -> str:
    """Return what is said to be wrong with a request; empty: it is taken."""
    try:
        read_request(interface, text.encode(), 2)
    except InvalidInputError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32"])
def test_any_value_anywhere_is_taken_or_named(dtype: str) -> None:
    specs = (TensorSpec(name="x", shape=(1, 2), dtype=dtype), TensorSpec(name="b", shape=(2,), dtype="int8"))
    interface, document = Interface(model="net", inputs=specs, outputs=("y", "z")), request(dtype)
    assert defect(interface, json.dumps(document)) == ""
    taken = 0
    for path in places(document):
        names = [word for word in path if isinstance(word, str)]
        for text in VALUES:
            said = defect(interface, replaced(document, path, text))
            where = [*names[-1:], "inputs", "input ", "output ", "binary", "JSON", "member"]
            assert not said or any(word in said for word in where), (path, text[:20], said)
            assert len(said) < 2_000
            taken += not said
    assert taken > 30  # null where something may be absent, other numbers


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"name": "x"', '"name": ["x"]', """inputs[0] has the name ["x"]: a string is needed"""),
        ('"name": "x"', '"name": {"x": 1}', """inputs[0] has the name {"x": 1}: a string is needed"""),
        ('"name": "x"', '"name": null', "inputs[0] has the name null: a string is needed"),
        ('"name": "y"', '"name": [7]', "outputs[0] has the name [7]: a string is needed"),
        ('"data": [[1, 0]]', f'"data": [[{GIANT}, 0]]', "input 'x' has 1000"),
        ('"data": [[1, 0]]', '"data": [[1e999, 0]]', "input 'x' has 1e999 at [0, 0], which FP32 in JSON"),
        ('"deadline_ms": 5.5', f'"deadline_ms": {GIANT}', "parameter deadline_ms is 1000"),
        ('"deadline_ms": 5.5', '"deadline_ms": 1e999', "parameter deadline_ms is 1e999, must be"),
        ('"timeout": 0', '"timeout": true', "parameter timeout is true, must be"),
        ('"timeout": 0', '"timeout": [1]', "parameter timeout is [1], must be"),
        ('"binary_data_size": 2', '"binary_data_size": "2"', """'b' has the binary_data_size "2", but 2"""),
        ('"shape": [2]', '"shape": [2.0]', "input 'b' has the shape [2.0], needs [2]"),
        ('"shape": [1, 2]', '"shape": [true, 2]', "input 'x' has the shape [true, 2], needs [1, 2]"),
        ('"binary_data": true', '"binary_data": "no"', """output 'y': binary_data is "no", must be"""),
        ('"binary_data_output": false', '"binary_data_output": 1', "binary_data_output is 1, must be"),
        ('"outputs": [', '"outputs": 0, "more": [', "outputs is 0, must be a list"),
        ('"shared_memory_region": ""', '"shared_memory_region": "r"', "shared memory with clients is not"),
        ('"parameters": {}', '"parameters": {"shared_memory_region": "r"}', "input 'x' is in shared memory"),
        ('"outputs": [', '"outputs": [{"name": "y"}, ', "output 'y' is asked for twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place_and_its_value(old: str, new: str, words: str) -> None:
    text = json.dumps(request("float32"))
    assert old in text
    specs = (TensorSpec(name="x", shape=(1, 2)), TensorSpec(name="b", shape=(2,), dtype="int8"))
    interface = Interface(model="net", inputs=specs, outputs=("y", "z"))
    with pytest.raises(InvalidInputError) as raised:
        read_request(interface, text.replace(old, new, 1).encode(), 2)
    assert words in str(raised.value)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with coordinator("a") as own:
        own.register(chain(("add", 1.0), name="net"))
        with gapless.serve(own, port=0) as server:
            yield int(server.url.rpartition(":")[2])


def codes(port: int, *messages: bytes) -> list[int]:
    """Return the codes of all that is answered over one connection, until it is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(b"".join(messages))
        client.shutdown(socket.SHUT_WR)
        return [int(code) for code in re.findall(rb"HTTP/1.1 (\d+)", client.makefile("rb").read())]


def message(*fields: str, body: bytes = b"") -> bytes:
    lines = [f"POST {INFER} HTTP/1.1", "Host: localhost", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


SMUGGLED = b"GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 4"),
        ("Content-Length: 4", "Transfer-Encoding: Chunked"),
        ("Content-Length: 4", "Content-Length: 5"),
        ("Content-Length: 4", "Transfer-Encoding: gzip, chunked"),
        ("Content-Length: 4", "Transfer-Encoding: identity"),
        ("Content-Length: +4",),
        ("Content-Length: " + "0" * 5_000,),
        ("Content-Length: 9" + "0" * 5_000,),
    ],
)
def test_a_length_that_is_said_in_two_ways_ends_the_connection(port: int, fields: tuple[str, ...]) -> None:
    found = codes(port, message(*fields, body=b"0\r\n\r\n"), SMUGGLED)
    assert len(found) == 1, found
    assert found[0] in (400, 413, 501)


def test_messages_in_chunks_are_taken(port: int) -> None:
    body = json_body(vector(1.0))
    chunked = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    assert over_socket(port, "POST", INFER, body).code == 200
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(message("Transfer-Encoding: chunked", "Connection: close", body=chunked))
        assert client.makefile("rb").readline().split()[1] == b"200"


def test_lengths_of_documents_that_no_number_can_be_are_refused(port: int) -> None:
    for length in ("0" * 5_000, "9" * 5_000, "-1", "1.0", "", "\u0661"):
        headers = {"Inference-Header-Content-Length": length.encode("utf-8").decode("latin-1")}
        found = over_socket(port, "POST", INFER, json_body(vector(1.0)), headers)
        assert (found.code, "Inference-Header-Content-Length is" in found.error) == (400, True), length[:10]
