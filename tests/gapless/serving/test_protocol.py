"""The Open Inference Protocol: what is asked, what is answered, the code and the words of each mistake."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.model import TensorSpec
from gapless.executor.runner import UNCHECKED
from gapless.formulations.coordination.simulation import Late
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.validation import shortened
from gapless.serving.access import Access
from gapless.serving.app import App
from gapless.serving.service import Service
from gapless.serving.tensors import DATATYPES, Spelled, binary_data, json_data, read_inputs
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import Response, ask, asked, binary_body, json_body, vector
from tests.processes import soon


def parse_inputs(
    specs: Sequence[TensorSpec], given: Sequence[Mapping[str, Any]], binary: memoryview
) -> dict[str, NDArray[Any]]:
    return read_inputs(specs, given, len(binary)).complete(specs, binary)


INFER = "/v2/models/net/infer"


@pytest.fixture(scope="module")
def opened() -> Iterator[Coordinator]:
    with coordinator("a", "b", queue=8, late=Late.DROP, check=False) as found:  # "nan" is wrong on purpose
        found.register(chain(("add", 1.0), ("scale", 2.0), name="net"))
        found.register(chain(("sleep", 0.1), name="slow"))
        found.register(chain("nan", name="nan"))
        yield found


@pytest.fixture
def app(opened: Coordinator) -> App:
    return App(Service(opened), access=Access(), most_bytes=10_000)


@pytest.mark.slow
def test_health_and_metadata(app: App) -> None:
    assert ask(app, "GET", "/v2/health/live").document == {"live": True, "state": "serving"}
    assert ask(app, "GET", "/v2/health/ready").document == {"ready": True, "state": "serving"}
    assert "binary_tensor_data" in ask(app, "GET", "/v2").document["extensions"]
    assert ask(app, "GET", "/v2/models").document == {"models": ["net", "slow", "nan"]}
    tensor = {"datatype": "FP32", "shape": [16]}
    expected = {
        "name": "net",
        "versions": ["1"],
        "platform": "gapless",
        "inputs": [{"name": "x", **tensor}],
        "outputs": [{"name": "t1", **tensor}],
        "parameters": {"compared": False, "numbers": UNCHECKED},
    }
    assert ask(app, "GET", "/v2/models/net").document == expected
    assert ask(app, "GET", "/v2/models/net/versions/1").document == expected
    assert ask(app, "GET", "/v2/models/net/ready").document == {"name": "net", "ready": True}


@pytest.mark.slow
def test_metadata_and_answers_say_that_numbers_were_compared() -> None:
    with coordinator("a") as opened:
        opened.register(chain(("add", 1.0), ("scale", 2.0), name="net"))
        app = App(Service(opened), access=Access(), most_bytes=10_000)
        said = ask(app, "GET", "/v2/models/net").document["parameters"]
        assert said["compared"] is True
        assert said["numbers"].startswith("numbers agree with the uncut model")
        found = ask(app, "POST", INFER, json_body(vector(3.0)))
        assert found.document["parameters"]["compared"] is True


def test_infer_in_json(app: App) -> None:
    found = ask(app, "POST", INFER, json_body(vector(3.0)))
    assert found.code == 200
    assert found.headers["content-type"] == "application/json"
    (output,) = found.document["outputs"]
    assert output == {"name": "t1", "datatype": "FP32", "shape": [16], "data": [8.0] * 16}
    assert found.document["parameters"]["units"] in {"a", "b"}
    assert found.document["parameters"]["late"] is False
    assert found.document["parameters"]["compared"] is False
    nested = json_body(vector(1.0), data=[1] * 16)
    assert (
        ask(app, "POST", "/v2/models/net/versions/1/infer", nested).document["outputs"][0]["data"][0] == 4.0
    )


def test_infer_in_binary_form_as_tritonclient_asks(app: App) -> None:
    body, headers = binary_body(vector(3.0), id="seven", parameters={"binary_data_output": True})
    found = ask(app, "POST", INFER, body, headers=headers)
    assert found.code == 200
    assert found.document["id"] == "seven"
    (output,) = found.document["outputs"]
    assert output["parameters"] == {"binary_data_size": 64}
    assert np.array_equal(np.frombuffer(found.blobs, np.float32), vector(8.0))
    body, headers = binary_body(vector(3.0), outputs=[{"name": "t1", "parameters": {"binary_data": False}}])
    assert ask(app, "POST", INFER, [body[:50], body[50:]], headers=headers).document["outputs"][0]["data"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "no JSON document"),
        (b"[" * 9_000, "no JSON document"),
        (b"[]", "must be a JSON object"),
        (b"{}", "inputs is missing, must be a list of objects"),
        (b'{"inputs": null}', "inputs is null, must be a list of objects"),
        (b'{"inputs": [{}]}', "inputs[0] has no name: a string is needed"),
        (b'{"inputs": [{"name": "x"}]}', "input 'x' has no datatype, needs FP32"),
        (b'{"inputs": [], "inputs": []}', "the key 'inputs' stands twice in one object"),
        (json_body(vector(1))[:-1] + b', "id": "a", "id": "b"}', "the key 'id' stands twice"),
        (b'{"inputs": [NaN], "parameters": {"a": 1, "a": 2}}', "the key 'a' stands twice"),
        (b'{"inputs": [], "id": 7}', "id is 7, must be a string"),
        (b'{"inputs": [], "parameters": 7}', "parameters is 7, must be an object"),
        (b'{"inputs": []}', "input 'x' is missing"),
        (json_body(vector(1), name="y"), "input 'y' is no input of the model"),
        (json_body(vector(1), shape=[4, 4]), "has the shape [4, 4], needs [16]"),
        (json_body(vector(1), datatype="INT32"), 'has the datatype "INT32", needs FP32'),
        (json_body(vector(1), datatype="BYTES"), "BYTES, which no model here takes; it is FP32"),
        (json_body(vector(1), data=[1.0]), "data of another shape: [16] is needed"),
        (
            json_body(vector(1), data=["1"] * 16),
            """input 'x' has "1" at [0], which FP32 in JSON does not have""",
        ),
        (json_body(vector(1), data=[[1.0], [1.0, 2.0]]), "data of another shape: [16] is needed"),
        (json_body(vector(1), data=None), "has the data null: a list is needed"),
        (json_body(vector(1), parameters=7), "parameters that are no object"),
        (
            json_body(vector(1), parameters={"binary_data_size": 64}),
            "has data and binary_data_size; give one",
        ),
        (
            json_body(vector(1)).replace(b"1.0,", b"NaN,", 1),
            "input 'x' has NaN at [0], which FP32 in JSON does not have",
        ),
        (json_body(vector(1))[:-1] + b', "outputs": [{"name": "t7"}]}', "'t7' is no output of 'net'"),
        (
            json_body(vector(1))[:-1]
            + b', "outputs": [{"name": "t1", "parameters": {"classification": 3}}]}',
            "classification is 3, which is not done here",
        ),
        (
            json_body(vector(1))[:-1] + b', "parameters": {"deadline_ms": 0.0005}}',
            "deadline_ms is 0.0005, must be a number of at least 0.001, at most a day",
        ),
        (json_body(vector(1))[:-1] + b', "parameters": {"deadline_ms": -1}}', "deadline_ms is -1, must be"),
    ],
)
def test_mistakes_are_named(app: App, body: bytes, words: str) -> None:
    found = ask(app, "POST", INFER, body)
    assert found.code == 400
    assert words in found.error


def test_lengths_that_lie_are_named(app: App) -> None:
    body, headers = binary_body(vector(1.0))
    for length in ("100000", "-1", "x", "9" * 100):
        found = ask(app, "POST", INFER, body, headers={"Inference-Header-Content-Length": length})
        assert (found.code, "Inference-Header-Content-Length is" in found.error) == (400, True)
    found = ask(app, "POST", INFER, body + b"more", headers=headers)
    assert (found.code, "4 bytes follow the last binary input" in found.error) == (400, True)


def test_codes_of_what_is_not_there_and_of_what_is_too_much(app: App) -> None:
    for method, path in (
        ("GET", "/v2/models/nett"),
        ("POST", "/v2/models/nett/infer"),
        ("GET", "/v2/models/net/versions/2"),
        ("GET", "/"),
        ("POST", "/v2/units/c/withdraw"),
        ("GET", "/v2/models/net/versions"),
        ("POST", "/v2/repository/models/net/loads"),
        ("GET", "/v2/models/..%2f..%2fetc"),
    ):
        found = ask(app, method, path)
        assert found.code == 404, path
        assert found.error
    huge = ask(app, "POST", INFER, [b"x" * 6_000, b"x" * 6_000])
    assert (huge.code, huge.headers["connection"]) == (413, "close")
    assert ask(app, "POST", INFER, headers={"Content-Length": "10001"}).code == 413
    assert ask(app, "POST", INFER, headers={"Content-Encoding": "br"}).code == 415


@pytest.mark.parametrize(
    ("method", "path", "takes"),
    [
        ("GET", INFER, "POST"),
        ("PUT", INFER, "POST"),
        ("POST", "/v2/models/net", "GET, HEAD"),
        ("POST", "/v2/models/net/versions/1/config", "GET, HEAD"),
        ("POST", "/v2/health/live", "GET, HEAD"),
        ("DELETE", "/v2", "GET, HEAD"),
        ("GET", "/v2/repository/index", "POST"),
        ("GET", "/v2/repository/models/net/unload", "POST"),
        ("HEAD", "/v2/units/a/withdraw", "POST"),
    ],
)
def test_another_method_is_told_which_one_an_address_takes(
    app: App, method: str, path: str, takes: str
) -> None:
    found = ask(app, method, path)
    assert (found.code, found.headers["allow"]) == (405, takes)
    assert found.error == f"'{path}' takes {takes.partition(',')[0]}, not '{method}'"


@pytest.mark.parametrize("path", ["/v2", "/v2/health/ready", "/v2/models/net/ready", "/v2/models/net"])
def test_head_is_answered_as_get(app: App, path: str) -> None:
    assert ask(app, "HEAD", path).headers == ask(app, "GET", path).headers
    assert ask(app, "HEAD", path).code == 200


def test_a_full_queue_is_429_and_a_missed_deadline_503(app: App) -> None:
    body = json_body(vector(1.0))

    async def many() -> list[Response]:
        return await asyncio.gather(*(asked(app, "POST", "/v2/models/slow/infer", body) for _ in range(12)))

    found = asyncio.run(many())
    assert sorted(response.code for response in found) == [200] * 8 + [429] * 4
    refused = next(response for response in found if response.code == 429)
    assert refused.headers["retry-after"] == "1"
    assert "8 requests wait" in refused.error
    for parameter in (b'"deadline_ms": 0.1', b'"timeout": 100'):
        late = ask(app, "POST", "/v2/models/slow/infer", body[:-1] + b', "parameters": {' + parameter + b"}}")
        assert (late.code, "cannot meet its deadline" in late.error) == (503, True)


def test_numbers_that_json_does_not_have_are_null_and_counted(app: App) -> None:
    found = ask(app, "POST", "/v2/models/nan/infer", json_body(vector(1.0)))
    (output,) = found.document["outputs"]
    assert (found.code, output["data"], output["parameters"]) == (200, [None] * 16, {"nan": 16})
    body, headers = binary_body(vector(1.0), parameters={"binary_data_output": True})
    found = ask(app, "POST", "/v2/models/nan/infer", body, headers=headers)
    assert np.isnan(np.frombuffer(found.blobs, np.float32)).all()
    array = np.array([[1.5, np.inf], [-np.inf, np.nan], [np.inf, 0.0]], np.float16)
    data, lacking = json_data(array)
    assert data == [1.5, None, None, None, None, 0.0]
    assert lacking == {"nan": 1, "infinity": 2, "-infinity": 1}


def test_units_leave_and_return(app: App, opened: Coordinator) -> None:
    for unit in "ab":
        assert ask(app, "POST", f"/v2/units/{unit}/withdraw").document == {"unit": unit, "available": False}
    assert ask(app, "GET", "/v2/health/ready").code == ask(app, "GET", "/v2/models/net/ready").code == 503
    found = ask(app, "POST", INFER, json_body(vector(1.0)))
    assert (found.code, "without the units 'a', 'b'" in found.error) == (503, True)
    for unit in "ab":
        assert ask(app, "POST", f"/v2/units/{unit}/restore").code == 200
    assert ask(app, "POST", INFER, json_body(vector(1.0))).code == 200
    assert ask(app, "POST", "/v2/units/c/restore").code == 404
    assert soon(lambda: all(unit.available for unit in opened.statistics().units))  # each is probed first


def test_metrics_are_those_of_prometheus(app: App) -> None:
    ask(app, "POST", INFER, json_body(vector(1.0)))
    found = ask(app, "GET", "/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = found.body.decode().splitlines()
    values: dict[str, float] = {}
    for line in lines:
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    count = values['gapless_request_seconds_count{model="net"}']
    assert count >= 1
    assert values['gapless_request_seconds_bucket{model="net",le="+Inf"}'] == count
    assert values['gapless_requests_total{model="net",result="answered"}'] == count
    assert values["gapless_requests_waiting"] == 0
    assert values['gapless_unit_available{unit="a"}'] == 1
    assert sum(line.startswith("# TYPE") for line in lines) == sum(
        line.startswith("# HELP") for line in lines
    )


def test_a_server_that_stops_says_so(app: App) -> None:
    app.service.stop()
    assert ask(app, "POST", INFER, json_body(vector(1.0))).code == 503
    assert ask(app, "GET", "/v2/health/ready").code == 503
    assert ask(app, "GET", "/v2/health/live").code == 200


def test_bytes_that_no_truth_value_has_are_named() -> None:
    """Engines disagree on what 2 is: one takes it for true, and for the opposite of false all the same."""
    spec = TensorSpec(name="x", shape=(2, 2), dtype="bool")
    given = [{"name": "x", "shape": [2, 2], "datatype": "BOOL", "parameters": {"binary_data_size": 4}}]
    found = parse_inputs([spec], given, memoryview(b"\0\1\1\0"))["x"]
    assert found.tolist() == [[False, True], [True, False]]
    with pytest.raises(InvalidInputError, match=r"input 'x' has the byte 255 at \[1, 0\], which BOOL"):
        parse_inputs([spec], given, memoryview(b"\0\1\xff\2"))


@pytest.mark.parametrize("dtype", DATATYPES)
def test_all_types_go_both_ways(dtype: str) -> None:
    spec = TensorSpec(name="x", shape=(2, 3), dtype=dtype)
    array = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    tensor: dict[str, Any] = {"name": "x", "shape": [2, 3], "datatype": DATATYPES[dtype]}
    data = binary_data(array)
    binary = {**tensor, "parameters": {"binary_data_size": len(data)}}
    nested = {**tensor, "data": array.tolist()}
    flat = {**tensor, "data": json.loads(json.dumps(json_data(array)[0]))}
    for given, blob in ((binary, data), (nested, b""), (flat, b"")):
        found = parse_inputs([spec], [given], memoryview(blob))["x"]
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)


MISFITS = [
    ("float16", "70000", "70000"),
    ("float16", "65520.0", "65520.0"),
    ("float16", "1" + "0" * 400, "1" + "0" * 400),
    ("float32", "1e400", "1e400"),
    ("float32", "-3.5e38", "-3.5e38"),
    ("float64", "1e400", "1e400"),
    ("float64", "NaN", "NaN"),
    ("float32", "-Infinity", "-Infinity"),
    ("float32", "true", "true"),
    ("float32", "null", "null"),
    ("float32", '"1"', '"1"'),
    ("uint8", "300", "300"),
    ("uint8", "-1", "-1"),
    ("uint8", "true", "true"),
    ("int32", "1.5", "1.5"),
    ("int32", "1.0", "1.0"),
    ("int32", "1e400", "1e400"),
    ("int64", "9223372036854775808", "9223372036854775808"),
    ("uint64", "18446744073709551616", "18446744073709551616"),
    ("bool", "1", "1"),
]


@pytest.mark.parametrize(("dtype", "text", "named"), MISFITS)
@pytest.mark.parametrize("nested", [False, True])
def test_json_values_that_a_type_does_not_have_are_named(
    dtype: str, text: str, named: str, nested: bool
) -> None:
    spec, good = TensorSpec(name="x", shape=(2, 2), dtype=dtype), "false" if dtype == "bool" else "0"
    data = f"[[{good}, {good}], [{text}, {good}]]" if nested else f"[{good}, {good}, {text}, {good}]"
    given = f'{{"name": "x", "shape": [2, 2], "datatype": "{DATATYPES[dtype]}", "data": {data}}}'
    document = json.loads(given, parse_float=Spelled, parse_constant=Spelled)
    with pytest.raises(InvalidInputError, match="does not have") as raised:
        parse_inputs([spec], [document], memoryview(b""))
    assert f"input 'x' has {shortened(named)} at [1, 0], which {DATATYPES[dtype]} in JSON" in str(
        raised.value
    )
    with pytest.raises(InvalidInputError, match="does not have"):  # also as the server reads it first
        parse_inputs([spec], [json.loads(given)], memoryview(b""))


@pytest.mark.parametrize(
    ("dtype", "text", "expected"),
    [
        ("float16", "65519", 65504.0),
        ("float32", "1" + "0" * 30, np.float32(1e30)),
        ("float32", "1e-400", 0.0),
        ("float64", "9007199254740993.0", 9007199254740992.0),
        ("uint64", "18446744073709551615", 18446744073709551615),
        ("int64", "-9223372036854775808", -9223372036854775808),
    ],
)
def test_json_values_that_a_type_has_are_taken(dtype: str, text: str, expected: Any) -> None:
    spec = TensorSpec(name="x", shape=(2,), dtype=dtype)
    given = f'{{"name": "x", "shape": [2], "datatype": "{DATATYPES[dtype]}", "data": [1, {text}]}}'
    found = parse_inputs([spec], [json.loads(given)], memoryview(b""))["x"]
    assert found.tolist() == [1, expected]


@pytest.mark.parametrize(
    ("shape", "data"),
    [
        ((2, 2), [[1, 2], 3]),
        ((2, 2), [[1, 2, 3, 4]]),
        ((2, 2), [[[1], [2]], [[3], [4]]]),
        ((), []),
        ((0,), [1]),
    ],
)
def test_data_of_another_shape_is_refused(shape: tuple[int, ...], data: list[Any]) -> None:
    spec = TensorSpec(name="x", shape=shape, dtype="int32")
    given = {"name": "x", "shape": list(shape), "datatype": "INT32", "data": data}
    with pytest.raises(InvalidInputError, match="data of another shape"):
        parse_inputs([spec], [given], memoryview(b""))


def test_scalars_and_empty_tensors_are_taken() -> None:
    for shape, data in (
        ((), [7]),
        ((0,), []),
        ((2, 0), [[], []]),
        ((2, 0), []),
        ((1, 1), [[7]]),
        ((1, 1), [7]),
    ):
        spec = TensorSpec(name="x", shape=shape, dtype="int32")
        given = {"name": "x", "shape": list(shape), "datatype": "INT32", "data": data}
        found = parse_inputs([spec], [given], memoryview(b""))["x"]
        assert (found.shape, found.ravel().tolist()) == (shape, [7] * found.size)


def test_an_input_that_is_given_twice_is_named() -> None:
    spec = TensorSpec(name="x", shape=(1,), dtype="uint8")
    twice = [{"name": "x", "shape": [1], "datatype": "UINT8", "data": [1]}] * 2
    with pytest.raises(InvalidInputError, match="'x' is given twice"):
        parse_inputs([spec], twice, memoryview(b""))
